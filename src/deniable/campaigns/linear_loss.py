"""What the final model would give away if losses were linear: a HEURISTIC, no bound.

With linear losses every gradient is a constant, so the final weights are a sum, and nobody learns more from them than
how often the person's record was drawn, through the noise of all steps (Steinke 2024, Section 2). In units of the
sensitivity, with K ~ Binomial(steps, rate) and noise of variance noise^2 steps, the pair is

    add-remove:  K + noise  against  noise;        replace:  K / 2 + noise  against  -K / 2 + noise.

At rate 1 this is the loss of all steps: hiding them hides nothing. Below it, it is smaller. Real losses are not
linear, and some trainings give more away than this (Steinke 2024, Section 4), so it is shown and promised to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, ndtr, xlog1py, xlogy

from deniable.checks import probability
from deniable.mechanisms import Adjacency, Training

Floats = NDArray[np.float64]
_DRAWS_SIGMAS = 12.0
"""How far from their mean draws are counted, and some more."""
_TAIL_SIGMAS = 38.0
"""Beyond so many standard deviations the noise has no mass in double precision."""
_LARGEST_EPSILON = 1e4


@dataclass(frozen=True)
class LinearLoss:
    """The heuristic for one training."""

    training: Training

    @cached_property
    def _draws(self) -> tuple[Floats, Floats]:
        """(how often the record is drawn, ln of its probability)."""
        steps, rate = self.training.steps, self.training.rate
        reach = _DRAWS_SIGMAS * np.sqrt(steps * rate * (1 - rate)) + 40
        low, high = max(0, int(steps * rate - reach)), min(steps, int(steps * rate + reach) + 1)
        k = np.arange(low, high + 1, dtype=np.float64)
        ways = gammaln(steps + 1) - gammaln(k + 1) - gammaln(steps - k + 1)
        logs = ways + xlogy(k, rate) + xlog1py(steps - k, -rate)
        return k[logs > -inf], logs[logs > -inf]

    @property
    def _spread(self) -> float:
        return self.training.noise * float(np.sqrt(self.training.steps))

    @cached_property
    def _means(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Means and logarithms of the weights of the Gaussians, with the person and without (or with another)."""
        k, logs = self._draws
        if self.training.adjacency is Adjacency.REPLACE:
            return (k / 2, logs), (-k / 2, logs)
        return (k, logs), (np.zeros(1), np.zeros(1))

    def _log_ratio(self, x: float) -> float:
        """ln p(x) / q(x): it rises with x, since both are mixtures of one Gaussian, P's means above Q's."""
        with_person, without = (
            float(logsumexp(logs - np.square((x - means) / self._spread) / 2)) for means, logs in self._means
        )
        return with_person - without

    def _above(self, x: float) -> tuple[float, float]:
        """How likely more than x is, with the person and without."""
        first, second = (float(np.exp(logs) @ ndtr((means - x) / self._spread)) for means, logs in self._means)
        return first, second

    def _below(self, x: float) -> tuple[float, float]:
        first, second = (float(np.exp(logs) @ ndtr((x - means) / self._spread)) for means, logs in self._means)
        return first, second

    def _point(self, log_ratio: float) -> float:
        """Where ln p / q is this; an end where it is nowhere."""
        (first, _), (second, _) = self._means
        low = min(first.min(), second.min()) - _TAIL_SIGMAS * self._spread
        high = max(first.max(), second.max()) + _TAIL_SIGMAS * self._spread
        if self._log_ratio(low) >= log_ratio:
            return float(low)
        if self._log_ratio(high) <= log_ratio:
            return float(high)
        return float(brentq(lambda x: self._log_ratio(x) - log_ratio, low, high, xtol=1e-12 * (high - low)))

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at `epsilon`, the larger of both directions."""
        p, q = self._above(self._point(epsilon))
        under, over = self._below(self._point(-epsilon))
        return max(0.0, p - exp(epsilon) * q, over - exp(epsilon) * under)

    def advantage(self) -> float:
        """The total variation distance."""
        return self.delta(0.0)

    def epsilon(self, delta: float) -> float:
        """The epsilon at `delta`, within 1e-9; infinite above 10,000."""
        probability("delta", delta, open_ends=True)
        if self.delta(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > min(_LARGEST_EPSILON, 700):
                return inf
        return float(brentq(lambda epsilon: self.delta(epsilon) - delta, 0.0, high, xtol=1e-9))
