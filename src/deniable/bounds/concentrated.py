"""Zero-concentrated DP: rho bounds the Renyi divergence of every order by rho * order.

For Gaussian steps rho = steps / (2 noise^2). It knows nothing of sampling (Erlingsson 2019, Section 4: "weaker bounds
that ignore how sampling affects the privacy bounds"), which is why it is far from the truth for DP-SGD.
"""

from __future__ import annotations

from math import log, sqrt

from deniable.bounds.numeric import InapplicableError, gaussian_rho
from deniable.bounds.renyi import best_epsilon, improved_conversion
from deniable.bounds.runs import base, gaussian_noise, pure_epsilon, runs
from deniable.bounds.tuning import Tuning
from deniable.checks import positive, probability
from deniable.mechanisms import Mechanism

__all__ = ["epsilon_to_rho", "rho", "rho_to_epsilon", "rho_to_epsilon_classic", "zcdp_epsilon"]


def rho(mechanism: Mechanism) -> float:
    """Total rho: 1/(2 noise^2) a Gaussian step, epsilon^2/2 a pure one (Bun and Steinke 2016, Propositions 1.4, 1.6).

    Sampling is ignored, which is safe: a mixture is never further apart than what is mixed.
    """
    return sum(steps * _step_rho(base(part)) for part, steps in runs(mechanism))


def rho_to_epsilon_classic(rho: float, delta: float) -> float:
    """rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016, Proposition 1.3)."""
    positive("rho", rho, zero=True)
    return rho + 2 * sqrt(-rho * log(probability("delta", delta, open_ends=True)))


def epsilon_to_rho(epsilon: float, delta: float) -> float:
    """The rho whose classic conversion gives epsilon: (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2."""
    positive("epsilon", epsilon, zero=True)
    tail = -log(probability("delta", delta, open_ends=True))
    return (epsilon / (sqrt(tail + epsilon) + sqrt(tail))) ** 2


def rho_to_epsilon(rho: float, delta: float, tuning: Tuning | None = None) -> float:
    """The least epsilon over all orders by the improved Renyi conversion; never above the classic one."""
    classic = rho_to_epsilon_classic(rho, delta)
    return min(classic, best_epsilon(lambda order: rho * order, delta, improved_conversion, tuning))


def zcdp_epsilon(mechanism: Mechanism, delta: float, tuning: Tuning | None = None) -> float:
    """Epsilon at delta by zCDP, for Gaussian, pure and mixed compositions; any adjacency."""
    return rho_to_epsilon(rho(mechanism), delta, tuning)


def _step_rho(mechanism: Mechanism) -> float:
    noise = gaussian_noise(mechanism)
    if noise is not None:
        return gaussian_rho(noise)
    epsilon = pure_epsilon(mechanism)
    if epsilon is None:
        raise InapplicableError(f"zcdp: {mechanism} has no finite rho; use naive or advanced composition")
    return epsilon**2 / 2
