"""Routes without a grid: one step in 40-digit arithmetic, Gaussians in closed form, atoms counted one by one."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, lgamma

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
from mpmath import mpf

from hunt.composed import Bracket
from hunt.laws import Base, Description, Floats, Law

__all__ = ["OneStep", "atoms_counted"]

_DIGITS = 40
_MOST_OUTCOMES = 60_000


class OneStep:
    """One run of one step: P(L > t), Q(L > t) and H(k) from its distribution functions, in 40 digits."""

    def __init__(self, step: Description, adjacency: str) -> None:
        self.base, self.rate = step.base, mpf(step.rate)
        self.sampled = step.rate < 1
        self.replace = (adjacency == "replace" or step.base.exchanges) and self.sampled
        self.exchanged = self.replace and step.base.kind == "gaussian" and not step.base.bare

    def tails(self, t: float, backward: bool) -> tuple[mpf, mpf]:
        """P(L > t) and Q(L > t), in the direction asked for."""
        with mp.workdps(_DIGITS):
            if backward and self.sampled and not self.replace:
                return self._added(mpf(t))
            return self._forward(mpf(t))

    def _forward(self, t: mpf) -> tuple[mpf, mpf]:
        if not self.sampled:
            return _base_tails(self.base, t)
        if self.exchanged:
            return self._exchanged(t)
        if self.replace and t < 0:
            above, null = self._removed(-t, closed=True)
            return 1 - null, 1 - above
        return self._removed(t)

    def _gap(self, t: mpf) -> mpf | None:
        share = mp.expm1(t) / self.rate
        return mp.log1p(share) if share > -1 else None

    def _removed(self, t: mpf, closed: bool = False) -> tuple[mpf, mpf]:
        gap = self._gap(t)
        if gap is None:
            return mpf(1), mpf(1)
        p, q = _base_tails(self.base, gap, closed)
        return (1 - self.rate) * q + self.rate * p, q

    def _added(self, t: mpf) -> tuple[mpf, mpf]:
        """L' = -L: P'(L' > t) = Q(L < -t)."""
        p, q = self._removed(-t, closed=True)
        return 1 - q, 1 - p

    def _exchanged(self, t: mpf) -> tuple[mpf, mpf]:
        mu, q = mpf(self.base.values[0]), self.rate
        # (1-q) + q e^{-a} u = e^t ((1-q) + q e^{-a} / u) with u = e^{mu x / 2}, a = mu^2 / 8
        scale, rest = q * mp.exp(-(mu**2) / 8), (1 - q) * mp.expm1(t)
        root = mp.sqrt(rest**2 + 4 * scale**2 * mp.exp(t))
        u = (rest + root) / (2 * scale) if rest >= 0 else 2 * scale * mp.exp(t) / (root - rest)
        x = 2 * mp.log(u) / mu
        shared = (1 - q) * mp.ncdf(-x)
        return shared + q * mp.ncdf(mu / 2 - x), shared + q * mp.ncdf(-mu / 2 - x)

    def stick(self, k: float, backward: bool) -> Bracket:
        """sup P - e^k Q; extended precision where both nearly cancel."""
        digits = _DIGITS + max(0, int(0.45 * abs(k)))
        with mp.workdps(min(digits, 2000)):
            p, q = self._added(mpf(k)) if backward and self.sampled and not self.replace else self._forward(mpf(k))
            value = max(p - mp.exp(mpf(k)) * q, mpf(0)) if q > 0 else p
            return self._close(value, k, backward)

    def tail(self, t: float, backward: bool) -> Bracket:
        return self._close(self.tails(t, backward)[0], t, backward)

    def null_tail(self, t: float, backward: bool) -> Bracket:
        return self._close(self.tails(t, backward)[1], t, backward)

    def _close(self, value: mpf, t: float, backward: bool) -> Bracket:
        """Relative round-off of the doubles it is made from; absolute where it was had as 1 minus something."""
        number, slack = float(value), 1e-320
        if self.sampled and (backward or (self.replace and t < 0)):
            slack = 1e-33
        return Bracket(max(0.0, number * (1 - 2e-15) - slack), number * (1 + 2e-15) + slack, "40 digits")


def _base_tails(base: Base, t: mpf, closed: bool = False) -> tuple[mpf, mpf]:
    """P0(L > t) and Q0(L > t), or of L >= t."""
    values = [mpf(value) for value in base.values]
    epsilon = values[0]
    if base.kind == "gaussian":
        return mp.ncdf(epsilon / 2 - t / epsilon), mp.ncdf(-epsilon / 2 - t / epsilon)
    if base.kind == "laplace":
        if t > epsilon or (t == epsilon and not closed):
            return mpf(0), mpf(0)
        if t < -epsilon or (t == -epsilon and closed):
            return mpf(1), mpf(1)
        return 1 - mp.exp((t - epsilon) / 2) / 2, mp.exp(-(epsilon + t) / 2) / 2
    _, up, still, down, hidden = values
    down = down or up * mp.exp(-epsilon)  # a double ends at e^-745
    told = (1 - hidden) / (up + still + down) if hidden < 1 else 0  # 1 but for the masses' round-off, beside `hidden`
    p = q = mpf(0)
    for loss, p_mass, q_mass in ((epsilon, up, down), (mpf(0), still, still), (-epsilon, down, up)):
        if loss > t or (closed and loss == t):
            p, q = p + told * p_mass, q + told * q_mass
    return p + hidden, q


def atoms_counted(parts: list[tuple[Law, int]]) -> tuple[Floats, Floats] | None:
    """All finite losses of a composition of atoms and the logarithms of their P-masses; None for too many."""
    losses, logs = np.zeros(1), np.zeros(1)
    for law, runs in parts:
        if law.width.any() or law.loss.size == 0 or law.loss.size > 6:
            return None
        if comb(runs + law.loss.size - 1, law.loss.size - 1) * losses.size > _MOST_OUTCOMES:
            return None
        some, mass = _counts(law, runs)
        losses, logs = (losses[:, None] + some).ravel(), (logs[:, None] + mass).ravel()
    return losses, logs


def _counts(law: Law, runs: int) -> tuple[Floats, Floats]:
    size = law.loss.size
    if size == 1:
        return runs * law.loss, runs * law.log_mass
    bars = np.array(list(combinations_with_replacement(range(runs + 1), size - 1)), dtype=np.float64)
    counts = np.diff(bars, axis=1, prepend=0.0, append=float(runs))
    table = np.array([lgamma(n + 1) for n in range(runs + 1)])
    ways = table[runs] - table[counts.astype(int)].sum(axis=1)
    return counts @ law.loss, ways + counts @ law.log_mass
