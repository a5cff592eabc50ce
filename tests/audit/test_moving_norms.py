"""Clipping norms that are taken from the records: the pairs of pieces that are tried are all that can fit."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.examination.diagnostics.moving_norms import LEFT, _pieces, _pieces_that_may_fit

RECORDS, WEIGHTS = 9, 14


@pytest.mark.parametrize("exchanged", [RECORDS - 1, 0])
def test_no_pair_of_pieces_that_fits_is_left_out(exchanged: int) -> None:
    generator = np.random.default_rng(3)
    mine = generator.normal(size=(RECORDS, WEIGHTS)) * generator.uniform(0.2, 2, (RECORDS, 1))
    other = np.concatenate([mine[:exchanged], generator.normal(size=(RECORDS - exchanged, WEIGHTS))])
    sums = []
    for gradients, norm in ((mine, 2.1), (other, 3.3)):
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        sums.append((gradients * np.minimum(1, norm / lengths)).sum(0))
    target, (_, *own), (_, *others) = sums[0] - sums[1], _pieces(mine), _pieces(other)
    tried, fitting = _pieces_that_may_fit(target, own, others), []
    for i in range(RECORDS):
        for j in range(RECORDS):
            span, wanted = np.stack([own[1][i], -others[1][j]], 1), target - own[0][i] + others[0][j]
            norms = np.linalg.lstsq(span, wanted, rcond=None)[0]
            if np.linalg.norm(span @ norms - wanted) <= LEFT * np.linalg.norm(target):
                fitting.append([i, j])
    assert fitting
    assert [pair for pair in tried if pair in fitting] == fitting
    assert len(tried) < RECORDS**2 / 2, "most are sorted out"
