from __future__ import annotations

import pytest
import torch
from scipy import stats

from deniable.training.noise import SeededSource, SystemSource


@pytest.mark.parametrize("source", [SeededSource(1, 0), SystemSource()])
def test_draws_are_standard_normal_and_uniform(source) -> None:
    assert stats.kstest(source.normal_(torch.empty(3, 10_001)).flatten().numpy(), "norm").pvalue > 1e-4
    uniform = source.uniform(100, 100)
    assert stats.kstest(uniform.flatten().numpy(), "uniform").pvalue > 1e-4
    assert 0 <= float(uniform.min()) <= float(uniform.max()) < 1


def test_seeded_draws_differ_by_seed_block_and_stream() -> None:
    first = {
        float(SeededSource(*key).uniform(1)) for key in [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (1 + 2**32, 0, 0)]
    }
    assert len(first) == 5
    assert float(SeededSource(1, 0, 0).uniform(1)) in first


def test_system_draws_never_repeat() -> None:
    assert not torch.equal(SystemSource().normal_(torch.empty(8)), SystemSource().normal_(torch.empty(8)))


@pytest.mark.parametrize(("seed", "block"), [(-1, 0), (0, -1), (1.5, 0)])
def test_bad_seeds_are_refused(seed, block) -> None:
    with pytest.raises(ValueError, match="whole number >= 0"):
        SeededSource(seed, block)
