"""Compositions that a Gaussian smooths: the moment function on one vertical line, by quadrature over the outputs.

Not a proof but an estimate: the answer of two lines, two spacings and two sets of nodes, with their difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from hunt.laws import Law

__all__ = ["Estimate", "line_estimate"]

_Waves = tuple[int, NDArray[np.float64], NDArray[np.float64], NDArray[np.complex128]]

_MOST_WORK = 4_000_000  # complex exponentials of one line
_FAINT = 1e-12
_STRIDE = 32  # divides every block of frequencies
_CLUSTERED_NATS = 300.0  # between the least and the largest loss of one run: about 20 standard deviations of the noise


@dataclass(frozen=True)
class Estimate:
    """A number, and how far two computations of it were apart."""

    value: float
    spread: float


def _moments(parts: Sequence[tuple[Law, int]], c: float) -> tuple[float, float, float]:
    """ln E[e^{cL}; L finite] and its first two derivatives."""
    value = mean = variance = 0.0
    for law, runs in parts:
        losses, logs = law.nodes
        logs = logs + c * losses
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        centre = float((weights * losses).sum()) / total
        value += runs * (top + log(total))
        mean += runs * centre
        variance += runs * float((weights * (losses - centre) ** 2).sum()) / total
    return value, mean, variance


def _saddle(parts: Sequence[tuple[Law, int]], t: float) -> float | None:
    """The tilt whose mean is t, and at least one standard deviation's worth right of 0."""
    least = 1 / max(sqrt(max(_moments(parts, 0.0)[2], 0.0)), 1e-200)
    low, high = 0.0, 1.0
    while _moments(parts, high)[1] < t:
        low, high = high, 4 * high
        if high > 1e9:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _moments(parts, middle)[1] < t else (low, middle)
        if high - low < 1e-3 * high:
            break
    return max(high, min(least, 1.0))


def _last_revival(parts: Sequence[tuple[Law, int]], c: float) -> float:
    """Up to which frequency a line may come back after it has died out: losses far apart are nearly a lattice."""
    apart = [sqrt(_moments([(law, 1)], c)[2]) for law, _ in parts if np.ptp(law.nodes[0]) > _CLUSTERED_NATS]
    return max((4 * pi / max(deviation, 1e-200) for deviation in apart), default=0.0)


def _waves(parts: Sequence[tuple[Law, int]], c: float, spacing: float) -> list[_Waves]:
    """Of every step, tilted by c, over as many equally spaced frequencies as a stride has."""
    found = []
    for law, runs in parts:
        losses, log_mass = law.nodes
        tilted = log_mass + c * losses
        weights = np.exp(tilted - tilted.max())
        fine = np.exp(1j * np.outer(np.arange(_STRIDE) * spacing, losses))
        found.append((runs, losses, weights / weights.sum(), fine))
    return found


def _line(
    parts: Sequence[tuple[Law, int]], t: float, gain: bool, *, c: float, spacing: float, quiet: float
) -> float | None:
    """E[1; L > t] or E[1 - e^{t-L}; L > t] over finite losses; None where the line does not die out."""
    height, soonest = _moments(parts, c)[0], max(_last_revival(parts, c), quiet)
    total, first, block, waves = 0.0, 0, 64, _waves(parts, c, spacing)
    nodes = sum(law.nodes[0].size for law, _ in parts)
    while (first + block) * nodes < _MOST_WORK:
        w = (np.arange(first, first + block) + 0.5) * spacing
        logs = np.zeros(block, dtype=np.complex128)
        for runs, losses, weights, fine in waves:
            logs += runs * np.log((np.exp(1j * np.outer(w[::_STRIDE], losses)) * weights @ fine.T).ravel())
        s = c + 1j * w
        terms = np.exp(logs - 1j * w * t) / (s * (s + 1) if gain else s)
        total += float(terms.real.sum()) * spacing
        if w[-1] > soonest and float(np.abs(terms[-16:]).max()) < _FAINT * max(abs(total) / spacing, 1e-300):
            return total / pi * exp(min(max(height - c * t, -745.0), 700.0))
        first, block = first + block, min(2 * block, 1024)
    return None


def line_estimate(
    parts: Sequence[tuple[Law, int]], finer: Sequence[tuple[Law, int]], t: float, gain: bool, quiet: float = 0.0
) -> Estimate | None:
    """P(L > t) or H(t), escape not included; None where no line dies out soon.

    From the frequency `quiet` on nothing comes back.
    """
    c = _saddle(parts, t)
    if c is None:
        return None
    found = []
    for tilt, heat, steps in ((c, 40.0, parts), (1.25 * c, 52.0, finer)):
        value = _moments(steps, tilt)[0]
        period = heat / tilt
        farther = _moments(steps, 2 * tilt)
        # the image right of t: e^{tilt period} P(L > t + period), at most this by Chernoff
        rivals = farther[0] - 2 * tilt * (t + period) + tilt * period - (value - tilt * t)
        if rivals > -36:
            period *= 1 + (rivals + 36) / (tilt * period)
        answer = _line(steps, t, gain, c=tilt, spacing=2 * pi / period, quiet=quiet)
        if answer is None:
            return None
        found.append(answer)
    return Estimate(found[0], abs(found[1] - found[0]))
