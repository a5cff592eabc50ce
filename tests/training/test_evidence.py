from __future__ import annotations

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from deniable.training.engine import local_sensitivity, log_likelihood_ratio


def case(seed: int, differing: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    gradients = torch.randn(1, differing, 5, generator=rng, dtype=torch.float64)
    noise = torch.randn(1, 5, generator=rng, dtype=torch.float64)
    return gradients, noise, (torch.rand(1, differing, generator=rng) < 0.5).double()


@given(st.integers(0, 1000), st.sampled_from([1, 2]), st.floats(0.01, 1), st.floats(0.2, 5))
def test_ratio_equals_densities(seed: int, differing: int, rate: float, sigma: float) -> None:
    gradients, noise, present = case(seed, differing)
    observed = (present.unsqueeze(2) * gradients).sum(1) + sigma * noise

    def density(centre: torch.Tensor) -> float:
        return float(torch.exp(-(observed - centre).square().sum() / (2 * sigma**2)))

    def mixture(centre: torch.Tensor) -> float:
        return (1 - rate) * density(torch.zeros(5)) + rate * density(centre)

    other = mixture(gradients[0, 1]) if differing == 2 else density(torch.zeros(5))
    gram, projection = gradients @ gradients.mT, (gradients @ noise.unsqueeze(2)).squeeze(2)
    ratio = log_likelihood_ratio(gram, projection, present, torch.tensor([sigma], dtype=torch.float64), rate)
    assume(min(other, mixture(gradients[0, 0])) > 1e-290)
    np.testing.assert_allclose(float(ratio), np.log(mixture(gradients[0, 0]) / other), rtol=1e-8, atol=1e-9)


def test_local_sensitivity_is_the_distance() -> None:
    for differing in (1, 2):
        gradients, _, _ = case(0, differing)
        distance = gradients[0, 0] - (gradients[0, 1] if differing == 2 else 0)
        torch.testing.assert_close(local_sensitivity(gradients @ gradients.mT), distance.norm()[None])


def test_rounding_is_no_information() -> None:
    gradient = torch.ones(1, 1, 4, dtype=torch.float64)
    pair = torch.cat([gradient, gradient * (1 + 1e-8)], 1)
    assert float(local_sensitivity(pair @ pair.mT)) == 0


def test_no_noise_no_information_and_no_nan() -> None:
    zero = torch.zeros(2, dtype=torch.float64)
    gram = torch.zeros(2, 2, 2, dtype=torch.float64)
    for rate in (0.5, 1.0):
        assert log_likelihood_ratio(gram, torch.zeros(2, 2), torch.ones(2, 2), zero, rate).tolist() == [0, 0]


def test_huge_exponents_stay_finite() -> None:
    gram = torch.full((1, 1, 1), 1e6, dtype=torch.float64)
    sigma = torch.tensor([1e-3], dtype=torch.float64)
    for present in (0.0, 1.0):
        ratio = log_likelihood_ratio(gram, torch.zeros(1, 1), torch.tensor([[present]]), sigma, 0.5)
        assert bool(torch.isfinite(ratio).all())
