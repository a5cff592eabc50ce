"""The best of a random number of runs: its Renyi divergences from those of one run (Papernot, Steinke 2022)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, log1p

import numpy as np

from deniable.loss.arrays import Floats
from deniable.search import falls_to


def selected_divergences(
    orders: Floats, epsilons: Floats, mean: float, shape: float, delta: Callable[[float], float]
) -> Floats:
    """Renyi divergences of the released run at all orders, those of one run being `epsilons`.

    `delta` gives the smallest delta of one run by epsilon; a Poisson number of runs (infinite shape) needs it.
    """
    spread = np.log(mean) / (orders - 1)
    if shape == inf:  # Theorem 6
        deltas = np.array([delta(log1p(1 / (order - 1))) for order in orders])
        return np.asarray(epsilons + mean * deltas + spread)
    stop = -log(stopping_probability(mean, shape))  # Theorem 2
    other = (1 - 1 / orders) * epsilons + stop / orders
    return np.asarray(epsilons + (1 + shape) * other.min() + spread)


def stopping_probability(mean: float, shape: float) -> float:
    """gamma of the truncated negative binomial law with this mean, from below."""
    if shape == 1:
        return 1 / mean
    found = falls_to(lambda x: _mean_of_runs(x, shape), mean, (-log(mean), 1.0), within=(-700.0, -1e-12))
    return float(np.exp(found - 1e-9))


def _mean_of_runs(log_gamma: float, shape: float) -> float:
    """eta (1 - gamma) / (gamma (1 - gamma^eta)), by ln gamma; it falls as gamma rises."""
    rise = -np.expm1(log_gamma) * np.exp(-log_gamma)
    return float(rise / -log_gamma if shape == 0 else shape * rise / -np.expm1(shape * log_gamma))
