"""The Gaussian mechanism in the seeds' own formulas: classic calibration, Theorem 3 and its Renyi form.

`noise` is sigma / sensitivity throughout; k steps of noise z without sampling are one step of noise z / sqrt(k).
"""

from __future__ import annotations

from math import exp, log, sqrt

from scipy.special import erfinv

from deniable.bounds.belief import belief_to_epsilon
from deniable.bounds.numeric import gaussian_rho
from deniable.bounds.renyi import epsilon_to_rho, rho_to_epsilon_classic
from deniable.bounds.variation import shift_tvd
from deniable.checks import positive, probability, whole


def classic_noise(epsilon: float, delta: float) -> float:
    """sqrt(2 ln(1.25/delta)) / epsilon (Jia 2023, Theorem 2); a guarantee only where `classic_is_proved(epsilon)`."""
    return _classic_factor(delta) / positive("epsilon", epsilon)


def classic_epsilon(noise: float, delta: float) -> float:
    """The epsilon that the classic formula claims for `noise`; a guarantee only where `classic_is_proved` for it."""
    return _classic_factor(delta) / positive("noise", noise)


def classic_is_proved(epsilon: float) -> bool:
    """Whether the classic formula is proved at this epsilon: it is up to 1, and is false for large ones (erratum 3)."""
    return positive("epsilon", epsilon, zero=True) <= 1


def proved_epsilon(noise: float, delta: float) -> float:
    """The classic epsilon where it is proved, else rho + 2 sqrt(rho ln(1/delta)) with rho = 1/(2 noise^2).

    Guarantee: one Gaussian step of this noise is (result, delta)-DP for every noise and every delta in (0, 1].
    """
    if delta >= 1:
        return 0.0
    classic = classic_epsilon(noise, delta)
    return classic if classic_is_proved(classic) else rho_to_epsilon_classic(gaussian_rho(noise), delta)


def least_classic_delta(noise: float) -> float:
    """1.25 e^(-noise^2 / 2): below it `proved_epsilon` jumps from the classic formula to the other."""
    return min(1.0, 1.25 * exp(-0.5 * noise * noise))


def epsilon_to_advantage(epsilon: float, delta: float) -> float:
    """Bernau 2021, Theorem 3: advantage 2 Phi(eps / (2 sqrt(2 ln(1.25/delta)))) - 1 of the classically calibrated
    Gaussian.

    It is exact for the noise `classic_noise(epsilon, delta)`; noise chosen in another way has another advantage
    (erratum 6).
    """
    return shift_tvd(positive("epsilon", epsilon, zero=True) / _classic_factor(delta))


def advantage_to_epsilon(advantage: float, delta: float) -> float:
    """Inverse of Theorem 3, with the factor 2 that Bernau 2021 (Eq. 6) lacks (erratum 1)."""
    if probability("advantage", advantage) == 1:
        raise ValueError("advantage must be below 1, got 1: no finite epsilon of a Gaussian gives it")
    return 2 * _classic_factor(delta) * sqrt(2) * float(erfinv(advantage))


def renyi_to_advantage(order: float, divergence: float) -> float:
    """2 Phi(sqrt(divergence / (2 order))) - 1: the exact advantage of Gaussian steps with this total Renyi divergence.

    Bernau 2021, Section 4.4, where the Gaussian's divergence is order k / (2 noise^2), so the result is free of the
    order.
    """
    return shift_tvd(sqrt(2 * positive("divergence", divergence, zero=True) / positive("order", order)))


def noise_for_belief(belief: float, delta: float, steps: int = 1, prior: float = 0.5) -> float:
    """Noise of each of `steps` Gaussian steps that Renyi DP with the classic conversion demands for a belief bound.

    The way Bernau 2020, Section 5 and Bernau 2021, Section 5 calibrate (Eq. 5, then RDP), converting once (erratum 5):
    minimised over the order, rho + 2 sqrt(rho ln(1/delta)) = epsilon with rho = steps / (2 noise^2), which has a closed
    inverse.
    """
    rho = epsilon_to_rho(belief_to_epsilon(belief, prior), delta)
    return sqrt(whole("steps", steps) / (2 * rho))


def _classic_factor(delta: float) -> float:
    return sqrt(2 * (log(1.25) - log(probability("delta", delta, open_ends=True))))
