"""Steps beside earlier ones: what the noise of several has in common, and what they hold of sums that were released.

Noise Z with covariance S over the steps hides as much as independent noise of variance s^2 wherever S - s^2 I has no
negative eigenvalue: then every combination of steps, u, has u'Z of variance s^2 |u|^2 at least. What else is in the
residuals only makes these longer. An applied sum may hold earlier applied sums, which are released; what it has beside
them must have as much noise for the batch's own clipped sum as is claimed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import chdtr
from torch import Tensor

from deniable.examination.recorded.gradients.record_shares import shorten

Array = NDArray[np.float64]
_NUMBERS = 2**12
"""Of each step; so many that a sum of steps with .95 x the noise is seen."""
_STEPS, _EARLIER = 256, 32
"""Examined ones whose noise is held, and steps before each that it is compared with as sums."""
_EACH = 8
"""So many numbers are needed for each that is fitted."""
_EACH_OF_MATRIX = 16
"""The same for each step of a least eigenvalue: below, chance alone makes it small."""
_TOLD = 1e-3
"""Sums of steps are kept whose noise is less than that of single ones with this probability."""


class EarlierSums(msgspec.Struct, frozen=True, array_like=True):
    """Of one step's residual, in clipping norms: its squared length, and what is left of it beside earlier steps.

    Once beside their noise; once beside what they applied and its own clipped sum; once beside all their clipped sums.
    """

    numbers: int
    whole: float
    beside_own: float
    """Its own clipped sum alone."""
    beside_noise: float
    noises: int
    """So many are fitted."""
    beside_applied: float
    applied: int
    beside_clean: float
    cleans: int
    factor: float
    """Of its own clipped sum, where earlier applied sums are in it."""
    across: float
    """The squared length of its clipped sum across these."""
    share: float
    """Of the applied sum of the step before."""


class SummedNoise(msgspec.Struct, frozen=True, array_like=True):
    """Noise of steps that are `lag` apart, added with equal signs, or with alternating ones.

    Squared lengths, relative to the steps' own noise and in clipping norms; both over `degrees` numbers.
    """

    lag: int
    alternating: bool
    relative: float
    squares: float
    degrees: int


class CommonNoise(msgspec.Struct, frozen=True, array_like=True):
    """What the noise of the steps has in common."""

    sums: tuple[SummedNoise, ...]
    """Those that are shorter than by chance."""
    tried: int
    relative: float
    """The least eigenvalue of the noise's covariance over the last steps, relative to their own noise."""
    most: float
    """The largest."""
    least: float
    """The least in clipping norms."""
    steps: int
    numbers: int
    lag: int
    """At which the noise is most alike, and its correlation there."""
    correlation: float
    elsewhere: float
    """The same on that half of the weights where clipped sums are smallest: what another gradient does not have."""
    usual: float
    """The median correlation at all lags, its size."""
    spread: float
    """The median squared cosine of two steps' noise over that of independent noise in all directions: 1 for this."""
    pairs: int


class NoiseSeries:
    """Keeps what some weights' applied sums and noise were, for as many steps as they are compared with."""

    def __init__(self, parameters: Sequence[Tensor], places: Sequence[Tensor | None]) -> None:
        counts = [p.numel() if at is None else len(at) for p, at in zip(parameters, places, strict=True)]
        every = torch.linspace(0, sum(counts) - 1, min(_NUMBERS, sum(counts)), dtype=torch.float64).long()
        starts = np.cumsum([0, *counts])
        self._within = [every[(every >= a) & (every < b)] - a for a, b in pairwise(starts)]
        both = zip(self._within, places, strict=True)
        self._places = [within if at is None else at.cpu()[within] for within, at in both]
        self._applied: deque[Tensor] = deque(maxlen=_EARLIER + 1)
        self._clean: deque[Tensor | None] = deque(maxlen=_EARLIER + 1)
        self._noise: deque[tuple[int, float, Tensor]] = deque(maxlen=_STEPS)
        self._sizes = torch.zeros(len(every))
        self._parameters = list(parameters)

    def note(self, gradients: Sequence[Tensor], divisor: float, clip: float) -> None:
        """Add a step, also one that is not recomputed; the weights are those before it."""
        self._applied.append(_picked(gradients, self._places) * (divisor / clip))
        self._clean.append(None)

    def compare(self, number: int, clean: Sequence[Tensor], clip: float, variance: float) -> EarlierSums:
        """The step that was noted last; its clipped sum, flat, at the places looked at, and its noise's `variance`.

        What of its noise is along the weights is taken away: they are released, and hold all earlier noise.
        """
        own = _picked(clean, self._within) / clip
        weights = _picked(self._parameters, self._places)
        residual = self._applied[-1] - own
        along = (residual @ weights) / (weights @ weights).clamp(min=1e-300)
        self._clean[-1] = own
        self._sizes += own.float().square()
        self._noise.append((number, variance / clip**2, (residual - along * weights).float()))
        most = len(residual) // _EACH
        before = [(a, c) for a, c in zip(self._applied, self._clean, strict=True)][-2::-1][:most]
        known = [(a, c) for a, c in before if c is not None]
        rows = [residual, own, *(a for a, _ in before), *(c for _, c in known)]
        values = torch.stack(rows)
        gram = (values @ values.T).numpy()
        steps, there = len(before), [2 + at for at, (_, c) in enumerate(before) if c is not None]
        noises = np.eye(len(gram))[there] - np.eye(len(gram))[2 + steps :]
        own_alone, _ = _left(gram, np.eye(len(gram))[[1]])
        past, _ = _left(gram, noises)
        applied, fit = _left(gram, np.eye(len(gram))[1 : 2 + steps])
        carried, _ = _left(gram, np.eye(len(gram))[[1, *range(2 + steps, len(gram))]])
        across, _ = _left(gram[1:, 1:], np.eye(len(gram) - 1)[1 : 1 + steps])
        return EarlierSums(
            len(residual), shorten(gram[0, 0]),
            shorten(own_alone), shorten(past), len(noises), shorten(applied), 1 + steps,
            shorten(carried), 1 + len(known), shorten(1 + fit[0]), shorten(across), shorten(fit[1]) if steps else 0.0,
        )  # fmt: skip

    def found(self) -> CommonNoise | None:
        """Of all steps that are held; None for too few."""
        if len(self._noise) < 2:
            return None
        numbers = np.array([number for number, _, _ in self._noise])
        rows = torch.stack([noise for *_, noise in self._noise]).double().numpy()
        sizes = np.array([variance for _, variance, _ in self._noise]) ** 0.5
        gram, count = rows @ rows.T, rows.shape[1]
        relative = gram / np.outer(sizes, sizes)
        some = max(2, min(len(gram), count // _EACH_OF_MATRIX))
        (least, _), (own, largest) = (
            np.linalg.eigvalsh(one[-some:, -some:])[[0, -1]] / count for one in (gram, relative)
        )
        sums, most, means = list[SummedNoise](), (0, 0.0, 0.0), list[float]()
        for lag in range(1, min(_STEPS, int(np.ptp(numbers))) + 1):
            pairs = _pairs(numbers, lag)
            if not len(pairs[0]):
                continue
            mean = _correlation(relative, pairs)
            means.append(abs(mean))
            most = max(most, (lag, mean, abs(mean) * len(pairs[0]) ** 0.5), key=lambda one: one[2])
            for alternating in (False, True):
                axes, chains = _chains(numbers, lag, alternating)
                degrees = count * chains
                both = [float((axes * one).sum()) for one in (relative, gram)]
                if chdtr(degrees, both[0]) < _TOLD:
                    sums.append(SummedNoise(lag, alternating, shorten(both[0]), shorten(both[1]), degrees))
        small = rows[:, self._sizes.argsort()[: count // 2].numpy()]
        elsewhere = _correlation(small @ small.T / np.outer(sizes, sizes), _pairs(numbers, most[0]))
        return CommonNoise(
            tuple(sums), 2 * len(means), shorten(own), shorten(largest), shorten(least), some, count,
            most[0], shorten(most[1]), shorten(elsewhere), shorten(float(np.median(means))),
            *self._spread(rows),
        )  # fmt: skip

    def _spread(self, rows: Array) -> tuple[float, int]:
        """Of cosines, with the same length in all parameters."""
        parts = np.split(rows, np.cumsum([len(at) for at in self._within])[:-1], axis=1)
        even = np.concatenate(
            [part / max(float(np.square(part).mean()) ** 0.5, 1e-300) for part in parts if part.size], 1
        )
        unit = even / np.maximum(np.linalg.norm(even, axis=1, keepdims=True), 1e-300)
        cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
        return shorten(float(np.median(np.square(cosines))) * rows.shape[1] / _MEDIAN), len(cosines)


_MEDIAN = 0.4549
"""Of a squared standard normal number."""


def _picked(values: Sequence[Tensor], places: Sequence[Tensor]) -> Tensor:
    both = zip(values, places, strict=True)
    return torch.cat([v.detach().flatten()[at.to(v.device)].cpu().double() for v, at in both])


def _left(gram: Array, rows: Array) -> tuple[float, Array]:
    """The first vector's squared length less its part along combinations of all; the combination's factors."""
    if not len(rows):
        return float(gram[0, 0]), np.zeros(0)
    squares, along = rows @ gram @ rows.T, rows @ gram[0]
    lengths = np.sqrt(np.maximum(np.diag(squares), 1e-300))
    fit = np.linalg.lstsq(squares / np.outer(lengths, lengths), along / lengths, rcond=1e-10)[0] / lengths
    return max(float(gram[0, 0] - fit @ along), 0.0), fit


def _pairs(numbers: NDArray[np.int64], lag: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the earlier and the later of any two steps that are so far apart."""
    earlier, later = np.nonzero(numbers[None, :] - numbers[:, None] == lag)
    return earlier, later


def _correlation(gram: Array, pairs: tuple[NDArray[np.intp], NDArray[np.intp]]) -> float:
    """The mean one of these pairs."""
    return float(gram[pairs].mean() / max(np.trace(gram) / len(gram), 1e-300))


def _chains(numbers: NDArray[np.int64], lag: int, alternating: bool) -> tuple[Array, int]:
    """(steps, steps) the projection on sums of all steps that are multiples of `lag` apart, two at least; how many."""
    classes = numbers % lag
    signs = np.where(numbers // lag % 2, -1.0, 1.0) if alternating else np.ones(len(numbers))
    alike = (classes[:, None] == classes) * np.outer(signs, signs)
    members = np.abs(alike).sum(1)
    axes = alike / members * ((members > 1)[:, None])
    return axes, round(float(np.trace(axes)))
