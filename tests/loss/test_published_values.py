"""Values that others published for sampled Gaussian releases, to their printed digits."""

from __future__ import annotations

import pytest

import deniable as dn

SST2 = [
    (0.57151, 3.9451, 0.160962),
    (0.60718, 3.1961, 0.140406),
    (0.63665, 2.6968, 0.126569),
    (0.69454, 1.9477, 0.105479),
    (0.74977, 1.4487, 0.0907009),
]


@pytest.mark.parametrize(("sigma", "epsilon", "advantage"), SST2)
def test_gpt2_on_sst2(sigma, epsilon, advantage):
    """Kulynych 2025, language model on SST-2: rate .0038010957846441, 792 steps, delta 1e-5; sigma to its digits."""
    more, less = (
        dn.privacy_loss(dn.Gaussian(sigma + move).subsampled(0.0038010957846441).composed(792), "add-remove")
        for move in (5e-6, -5e-6)
    )
    assert more.epsilon(1e-5) - 6e-5 <= epsilon <= less.epsilon(1e-5) + 6e-5
    assert more.advantage() - 6e-7 <= advantage <= less.advantage() + 6e-7


def test_the_example_of_jax_privacy():
    loss = dn.privacy_loss(dn.Gaussian(3.0).subsampled(0.1).composed(512), "add-remove")
    assert loss.epsilon(1e-6) == pytest.approx(3.77, abs=6e-3)
