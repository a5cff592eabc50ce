from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from deniable.training import kernels
from deniable.training.noise_source import MANY_DRAWS, SeededSource, SystemSource


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


SIZES = [MANY_DRAWS, MANY_DRAWS + 1, 3, 16 * 624, 9999, MANY_DRAWS - 1, 100_003]


@pytest.mark.skipif(kernels.KERNELS is None, reason="the compiled kernels were not built")
def test_kernel_draws_what_torch_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, plain = SeededSource(3, 1), SeededSource(3, 1)
    mine = [kernel.normal_(torch.empty(size)) for size in SIZES]
    monkeypatch.setattr(kernels, "KERNELS", None)
    for found, size in zip(mine, SIZES, strict=True):
        torch.testing.assert_close(found, plain.normal_(torch.empty(size)), rtol=1e-5, atol=2e-6)
    assert torch.equal(kernel.generator.get_state(), plain.generator.get_state())
    assert float(kernel.uniform(1)) == float(plain.uniform(1))


@pytest.mark.skipif(kernels.KERNELS is None, reason="the compiled kernels were not built")
def test_kernel_equals_box_and_muller_in_float64() -> None:
    size = 16 * 40_000
    uniform = SeededSource(5, 0).uniform(size).double().view(-1, 2, 8)
    radius, angle = (-2 * (1 - uniform[:, 0]).log()).sqrt(), 2 * np.pi * uniform[:, 1]
    expected = torch.stack([radius * angle.cos(), radius * angle.sin()], 1).flatten()
    found = SeededSource(5, 0).normal_(torch.empty(size)).double()
    assert float((found - expected).abs().max()) < 1e-6
    assert float(expected.abs().max()) > 4.5, "the sample must reach the tails"


def test_parts_of_a_tensor_are_filled_in_place() -> None:
    whole = torch.zeros(MANY_DRAWS, 2)
    SeededSource(1, 0).normal_(whole[:, 0])
    assert float(whole[:, 1].abs().max()) == 0 < float(whole[:, 0].abs().min())


def test_other_precisions_are_torch_s_own() -> None:
    found = SeededSource(7, 0).normal_(torch.empty(2 * MANY_DRAWS, dtype=torch.float64))
    generator = SeededSource(7, 0).generator
    assert torch.equal(found, torch.empty(2 * MANY_DRAWS, dtype=torch.float64).normal_(generator=generator))


def test_system_draws_never_repeat() -> None:
    assert not torch.equal(SystemSource().normal_(torch.empty(8)), SystemSource().normal_(torch.empty(8)))


@pytest.mark.parametrize(("seed", "block"), [(-1, 0), (0, -1), (1.5, 0)])
def test_bad_seeds_are_refused(seed, block) -> None:
    with pytest.raises(ValueError, match="whole number >= 0"):
        SeededSource(seed, block)


@pytest.mark.parametrize("count", [1, 700, 2048, 5000, 31_111])
@pytest.mark.parametrize("rate", [0.0, 0.01, 1.0])
def test_places_below_a_rate_are_those_of_uniform_draws(count: int, rate: float) -> None:
    fast, slow = SeededSource(3, 1), SeededSource(3, 1)
    for _ in range(3):
        assert torch.equal(fast.below(rate, count), (slow.uniform(count) < rate).nonzero().squeeze(1))
    assert torch.equal(fast.normal_(torch.empty(100)), slow.normal_(torch.empty(100)))
