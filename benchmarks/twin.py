"""The truth that neither contender computed: a Poisson-sampled Gaussian, composed, with 60 digits and no cleverness.

With M(s) = E_Q[e^{sL}] of one step, and every point of the line Re s = 1/2, the divergence of `steps` steps is

    H(k) = 1 - 1/pi * integral over omega > 0 of Re[ M(1/2 + i omega)^steps e^{k (1/2 - i omega)} ] / (omega^2 + 1/4).

On this line the trapezoidal rule with spacing 2 pi / T is off by less than 4 e^{|k| - T/2}, whatever the mechanism
(the rule adds the values at k + m T, damped by e^{-|m| T / 2}, and those are at most 1 + e^k), so T = 2 (|k| + 50)
is far more than enough. M itself is a trapezoidal sum over outputs x, exponentially accurate for a Gaussian. The
digits are for large k, where H is what is left of terms as large as e^{k/2}.
"""

from __future__ import annotations

from functools import cache

import mpmath as mp
from mpmath import mpc, mpf

DIGITS = 60
REACH = 16  # standard deviations of output; beyond them lies 1e-57 of a Gaussian
NOTHING = mpf("1e-24")  # where the integrand ends

Line = tuple[tuple[mpc, mpc], ...]


@cache
def line(rate: float, noise: float, steps: int, farthest: float, fineness: int = 12) -> Line:
    """The points s on the line and M(s)^steps there, up to where nothing is left; for |k| <= `farthest`."""
    with mp.workdps(DIGITS):
        spacing = mp.pi / (mpf(farthest) + 50)
        terms, turns = _terms(mpf(rate), 1 / mpf(noise), spacing, fineness)
        nothing = NOTHING * mp.exp(-mpf(farthest) / 2)
        points: list[tuple[mpc, mpc]] = []
        while not points or abs(points[-1][1]) > nothing:
            points.append((mpc(0.5, spacing * len(points)), mp.fsum(terms) ** steps))
            terms = [term * turn for term, turn in zip(terms, turns, strict=True)]
        return tuple(points)


def _terms(rate: mpf, mu: mpf, spacing: mpf, fineness: int) -> tuple[list[mpc], list[mpc]]:
    """density * e^{L/2} at every output x, and the angle by which each turns from one point of the line to the next."""
    width = min(mpf(1), 1 / mu) / fineness
    outputs = [j * width for j in range(int(-REACH / width), int((REACH + mu) / width) + 1)]
    losses = [mp.log(1 - rate + rate * mp.exp(mu * x - mu * mu / 2)) for x in outputs]
    terms = [mpc(width * mp.npdf(x) * mp.exp(loss / 2)) for x, loss in zip(outputs, losses, strict=True)]
    return terms, [mp.expj(spacing * loss) for loss in losses]


def divergence(points: Line, k: float) -> mpf:
    """H(k) = sup over events of P(event) - e^k Q(event), P being the data with the person."""
    with mp.workdps(DIGITS):
        terms = [(moment * mp.exp(-k * (s - 1)) / (s * (s - 1))).real for s, moment in points]
        return 1 + points[1][0].imag / mp.pi * (mp.fsum(terms) - terms[0] / 2)


def worse_divergence(points: Line, k: float) -> mpf:
    """The larger of both directions; the other one follows from H(P, Q) at -k."""
    other = 1 - mp.exp(k) + mp.exp(k) * divergence(points, -k)
    return max(divergence(points, k), other)


def advantage(rate: float, noise: float, steps: int) -> mpf:
    """Total variation: the same in both directions."""
    return divergence(line(rate, noise, steps, 0.0), 0.0)


def epsilon(rate: float, noise: float, steps: int, delta: float, farthest: float) -> mpf:
    """Where the worse divergence falls to delta, by bisection over [0, farthest]."""
    points, low, high = line(rate, noise, steps, farthest), mpf(0), mpf(farthest)
    while high - low > mpf("1e-14") * high:
        middle = (low + high) / 2
        low, high = (middle, high) if worse_divergence(points, middle) > delta else (low, middle)
    return high


def true_positive_rate(rate: float, noise: float, steps: int, fpr: float, farthest: float) -> mpf:
    """min over k of H(k) + e^k fpr: any attack's P(event) is at most that, and the best attack's is that.

    Golden-section search over [-farthest, farthest]; the minimum is flat, so half the digits of k are enough.
    """
    points, golden = line(rate, noise, steps, farthest), (mp.sqrt(5) - 1) / 2

    def bound(k: mpf) -> mpf:
        return worse_divergence(points, k) + mp.exp(k) * fpr

    low, high = mpf(-farthest), mpf(farthest)
    while high - low > 1e-6:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return bound((low + high) / 2)
