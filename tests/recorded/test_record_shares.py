"""Shares of single records: the bounded fit beside a naive one, its false alarms, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from deniable.examination.recorded.checks.known_vectors import LargestShare
from deniable.examination.recorded.gradients.record_shares import (
    SHARES,
    RecordGradients,
    RecordShares,
    fit_shares,
)
from deniable.examination.recorded.gradients.ways_to_sum import products_of_norms

RECORDS, NUMBERS, CLIP, SIGMA = 12, 80, 0.5, 0.5


def _gradients(random: torch.Generator) -> RecordGradients:
    common = torch.randn(NUMBERS, generator=random)
    values = torch.randn(RECORDS, NUMBERS, generator=random) + common
    values *= torch.rand(RECORDS, 1, generator=random) * 4 * CLIP / NUMBERS**0.5
    return RecordGradients(values, None, values.norm(dim=1), values.norm(dim=1)[None])


def _fit(shares: Tensor, gradients: RecordGradients, random: torch.Generator) -> RecordShares:
    """Of records with these shares in place of their clipped lengths."""
    more = (shares - gradients.norms.clamp(max=CLIP)) / gradients.norms
    noise = SIGMA * torch.randn(NUMBERS, generator=random, dtype=torch.float64)
    found = fit_shares(gradients, more.double() @ gradients.values.double() + noise, CLIP)
    assert found is not None
    return found


def _p_value(rule: str, seed: int, steps: int = 4) -> float:
    random, fits = torch.Generator().manual_seed(seed), []
    for _ in range(steps):
        gradients = _gradients(random)
        clipped = gradients.norms.clamp(max=CLIP)
        shares = {
            "clipped": clipped,
            "normalised": torch.full_like(clipped, CLIP),
            "half": clipped / 2,
            "bare": gradients.norms,
            "some bare": torch.where(torch.arange(RECORDS) < 4, 6 * CLIP, clipped),
        }
        fits.append((_fit(shares[rule], gradients, random), SIGMA))
    return LargestShare(tuple(fits)).p_value


@pytest.mark.parametrize("rule", ["clipped", "normalised", "half"])
def test_shares_within_the_norm_are_rarely_called_larger(rule: str) -> None:
    p_values = [_p_value(rule, seed) for seed in range(100)]
    assert np.mean(np.array(p_values) < 0.05) <= 0.1  # at most 5 % are expected: 0.1 has a chance below 2 %


@pytest.mark.parametrize("rule", ["bare", "some bare"])
def test_larger_shares_are_found(rule: str) -> None:
    assert max(_p_value(rule, seed, 12) for seed in range(5)) < 1e-3


def test_the_distance_is_that_of_a_naive_search() -> None:
    random = torch.Generator().manual_seed(3)
    gradients = _gradients(random)
    residual = torch.randn(NUMBERS, generator=random, dtype=torch.float64)
    found = fit_shares(gradients, residual, CLIP)
    assert found is not None
    clipped = gradients.norms.clamp(max=CLIP).double().numpy()
    units = (gradients.values / gradients.norms[:, None]).double().numpy()

    def distance(shares: np.ndarray) -> float:
        return float(((residual.numpy() - (shares - clipped) @ units) ** 2).sum())

    for share, beyond in zip(SHARES, found.beyond, strict=True):
        best = minimize(distance, clipped, bounds=[(-share * CLIP, share * CLIP)] * RECORDS, tol=1e-12)
        assert beyond + found.outside == pytest.approx(best.fun, rel=1e-4)
    assert list(found.beyond) == sorted(found.beyond, reverse=True)


def test_more_records_than_numbers_tell_nothing() -> None:
    values = torch.randn(40, 60)
    each = RecordGradients(values, None, values.norm(dim=1), values.norm(dim=1)[None])
    assert fit_shares(each, torch.randn(60).double(), 1.0) is None


def test_norms_without_a_parameter_have_the_products_of_their_sums() -> None:
    """Beside a plain loop over parameters and records."""
    parts = [torch.randn(RECORDS, 40), 0.5 * torch.randn(RECORDS, 30), torch.randn(RECORDS, 10)]
    values, norms = torch.cat(parts, 1), torch.stack([part.norm(dim=1) for part in parts])
    residual = torch.randn(NUMBERS).double()
    found = products_of_norms(RecordGradients(values, None, values.norm(dim=1), norms, (1, 2)), residual, CLIP)
    for some, (along, length) in zip(([0], [1], [2], [1, 2]), found, strict=True):
        more = torch.zeros(NUMBERS)
        for record in range(RECORDS):
            kept = torch.cat([part[record] for place, part in enumerate(parts) if place not in some])
            more += (min(1, CLIP / kept.norm()) - min(1, CLIP / values[record].norm())) * values[record]
        assert along == pytest.approx(float(more.double() @ residual), rel=1e-3, abs=1e-3)
        assert length == pytest.approx(float(more @ more), rel=1e-3)
