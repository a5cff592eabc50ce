"""Every meaning of identifiability, from one curve: reference values from outside, to their printed digits.

Kulynych 2025 (success at a baseline), Cohen 2020 (singling out), Gomez 2026 (tightest Gaussian DP).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

import deniable as dn
from deniable.answers.sentences import risk_sentences
from deniable.bounds import predicate_singling_out

DELTA = 1e-5
GAUSSIAN = {
    1: (0.2681, 0.1066, 0.1554, 0.01978, 0.002385, 3.64e-6),
    2: (0.5016, 0.1980, 0.2177, 0.03402, 0.004817, 1.06e-5),
    4: (0.9249, 0.3563, 0.3607, 0.08054, 0.01518, 6.45e-5),
    8: (1.6660, 0.5952, 0.6497, 0.2545, 0.07719, 0.00101),
    10: (2.0004, 0.6828, 0.7639, 0.3722, 0.1379, 0.00295),
}
"""Epsilon at delta 1e-5: mu, advantage, success at 1/10, 1/100, 1/1000 and 1e-6."""
SINGLED_OUT = {1: (0.0616, 1, 1), 2: (0.00534, 1, 1), 4: (0.00098, 1, 1), 8: (0.00030, 0.337, 0.351)}
"""Noise in sensitivities of one record, replaced: targeted, untargeted, and by (epsilon, delta); n 1000, w 1/5000."""
GPT2 = {
    0.57151: (3.9451, 0.160962),
    0.60718: (3.1961, 0.140406),
    0.63665: (2.6968, 0.126569),
    0.69454: (1.9477, 0.105479),
    0.74977: (1.4487, 0.0907009),
}
"""Noise: epsilon at delta 1e-5 and advantage; rate .0038010957846441, 792 steps."""


def near(value: float, printed: float) -> bool:
    """Whether `value` is `printed` to its digits, within one unit of the last one."""
    digits = len(f"{printed!r}".split("e", maxsplit=1)[0].replace(".", "").lstrip("0"))
    unit = 10.0 ** (int(np.floor(np.log10(printed))) - digits + 1)
    return abs(value - printed) <= unit


@pytest.mark.parametrize("epsilon", GAUSSIAN)
def test_success_of_a_gaussian_release(epsilon: float) -> None:
    mu, advantage, *successes = GAUSSIAN[epsilon]
    found = dn.calibrate(dn.Gaussian, dn.Epsilon(epsilon, DELTA))
    assert near(1 / float(found.value), mu)
    assert near(float(found.loss.advantage()), advantage)
    for baseline, success in zip((0.1, 0.01, 0.001, 1e-6), successes, strict=True):
        assert near(float(found.loss.success(baseline)), success)
    worst = (1 - float(found.loss.advantage())) / 2
    assert float(found.loss.success(worst)) - worst == pytest.approx(float(found.loss.advantage()), rel=1e-9)


@pytest.mark.parametrize("sigma", SINGLED_OUT)
def test_singling_out(sigma: float) -> None:
    targeted, untargeted, by_epsilon = SINGLED_OUT[sigma]
    loss = dn.privacy_loss(dn.Gaussian(sigma / 2))  # one record exchanged: a sensitivity of two norms
    found = dn.singling_out(loss, 1 / 5000, 1000)
    assert found.targeted == pytest.approx(targeted, abs=6e-6 if sigma > 1 else 6e-5)
    assert found.untargeted == pytest.approx(untargeted, abs=6e-4)
    told = predicate_singling_out(float(loss.epsilon(DELTA)), DELTA, 1 / 5000, 1000)
    assert told == pytest.approx(by_epsilon, abs=6e-4)
    assert found.untargeted <= told


def test_singling_out_by_its_definition() -> None:
    """A union over people, and what is isolated blindly, by counting."""
    loss = dn.privacy_loss(dn.Laplace(2.0))
    found = dn.singling_out(loss, 0.01, 30)
    isolated = 30 * 0.01 * 0.99**29
    assert found.untargeted == pytest.approx(30 * float(loss.tpr(0.01)) - isolated, rel=1e-9)
    assert found.targeted == pytest.approx(float(loss.tpr(0.01)) - 0.01, rel=1e-12)


def test_the_us_census_of_2020() -> None:
    """State level: rho 3.65 x .274, ten discrete Gaussians, mu 1.4143; one of Wyoming's 582,328 people."""
    loss = dn.privacy_loss(dn.GaussianDP(1.4143))
    assert float(loss.epsilon(1e-10)) == pytest.approx(9.619, abs=1e-3)
    assert float(loss.advantage()) == pytest.approx(0.5205, abs=1e-4)
    assert float(loss.success(1 / 582328)) == pytest.approx(6.2e-4, abs=1e-5)
    result = dn.explain(dn.GaussianDP(1.4143), baseline=(1 / 582328,))
    assert "One of 582,328 people could be picked out with probability at most" in result.summary()


@pytest.mark.parametrize("noise", GPT2)
def test_gpt2_on_sst2(noise: float) -> None:
    epsilon, advantage = GPT2[noise]
    loss = dn.privacy_loss(dn.Gaussian(noise).subsampled(0.0038010957846441).composed(792), "add-remove")
    assert float(loss.epsilon(DELTA)) == pytest.approx(epsilon, abs=1e-4)
    assert float(loss.advantage()) == pytest.approx(advantage, abs=4e-6)  # the noise is printed to 1e-5


def test_mu_is_that_of_the_published_package() -> None:
    """gdpnum 0.1.2: noise 9.4, rate .328, 2000 steps: mu 1.5685621993, regret .00102081."""
    release = dn.Gaussian(9.4).subsampled(0.328).composed(2000)
    fit = dn.fit_gaussian(dn.privacy_loss(release, "add-remove"))
    assert fit.mu - fit.error - 1e-4 <= 1.5685622 <= fit.mu + 1e-4
    assert fit.error < 1e-3
    assert fit.regret == pytest.approx(0.00102081, abs=2e-4)


RELEASES = [
    (dn.Laplace(1.0), None),
    (dn.RandomizedResponse(1.0), None),
    (dn.ApproximateDP(1.0, 1e-5), None),
    (dn.TotalVariation(0.2), None),
    (dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove"),
    (dn.compose(dn.Gaussian(2.0), dn.Laplace(3.0)), None),
]


@pytest.mark.parametrize(("release", "adjacency"), RELEASES, ids=lambda one: type(one).__name__)
def test_no_attack_beats_the_fitted_gaussian_and_one_comes_near(release: dn.Mechanism, adjacency: str | None) -> None:
    """The naive twin: mu at many rates, each by itself."""
    loss = dn.privacy_loss(release, adjacency)
    fit = dn.fit_gaussian(loss)
    rates = [*np.geomspace(fit.least_rate, 0.5, 60), (1 - float(loss.advantage())) / 2]
    shifts = [float(norm.isf(rate) - norm.isf(float(loss.tpr(float(rate)).least))) for rate in rates]
    assert max(shifts) <= fit.mu * (1 + 1e-9)
    assert max(shifts) >= fit.mu - fit.error - 0.02
    assert fit.error < 5e-3
    assert 0 <= fit.regret < 1


def test_a_gaussian_release_is_its_own_fit() -> None:
    for mu in (0.1, 1.0, 3.0):
        fit = dn.fit_gaussian(dn.privacy_loss(dn.Gaussian(1 / mu).composed(4)))
        assert (fit.mu, fit.error, fit.regret) == (pytest.approx(2 * mu), 0, 0)
    together = dn.compose(dn.Gaussian(1.0), dn.RandomizedResponse(1e-6))
    assert dn.fit_gaussian(dn.privacy_loss(together)).mu == pytest.approx(1, abs=3e-3)


def test_success_rises_with_the_baseline_and_is_never_below_it() -> None:
    loss = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.02).composed(500), "add-remove")
    found = [float(loss.success(baseline)) for baseline in (1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9)]
    assert all(low < high for low, high in pairwise(found))
    assert all(success >= baseline for success, baseline in zip(found, (1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9), strict=True))


def test_the_smallest_baseline_has_a_sentence():
    """1 / 5e-324 is infinite: a traceback, found by the hunt of command lines."""
    found = dn.explain(dn.Laplace(0.652), baseline=[5e-324])
    assert "with a chance of 5e-324" in risk_sentences(found)
