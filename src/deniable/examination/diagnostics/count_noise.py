"""The noise on the count that an adaptive clipping norm follows: what moves the norm beside the count itself.

A norm that follows count + noise moves by some function of it. However that function bends, what is left of the moves
after a straight line in the count has at least the line's slope squared times the variance of the noise (Cauchy and
Schwarz: Var h(Z) >= E[h'(Z)]^2 Var Z for normal Z). Too little is left only where the noise is less than claimed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from deniable.examination.diagnostics.p_values import any_of
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.recipe import Adaptive

Array = NDArray[np.float64]
COUNT = "noise of the count"
SLOPE_ERRORS = 7.0
"""Standard errors by which the slope may be overestimated; more has probability 3e-12, which the p-value includes."""
MOST_UNCERTAIN = 0.1
"""A slope with a larger relative error tells nothing about the noise."""
MISSING = 0.01
"""Noise of a smaller share of the claimed one is none."""


class _Line(NamedTuple):
    """A straight line through the moves of the norm: its noise as a share of the claimed one, and the p-value."""

    ratio: float
    p_value: float


def count_noise(evidence: Evidence) -> Diagnosis:
    """The count that the clipping norm follows has as much noise as claimed, or more."""
    clipping = evidence.claim.recipe.clipping
    if not isinstance(clipping, Adaptive):
        return Diagnosis(COUNT, 1.0, "no count is claimed", "none", checked=False)
    expected = f"a standard deviation of {clipping.count_noise:g}"
    lines = [line for line in _lines(evidence, clipping.count_noise) if line is not None]
    if not lines:
        return Diagnosis(COUNT, 1.0, "the norm hardly follows a count", expected, checked=False)
    ratio = min(line.ratio for line in lines)
    has = "has no noise" if ratio < MISSING else f"has {ratio:.3g} x the claimed noise"
    text = f"the count of gradients that the clipping norm follows {has}: add normal noise with {expected} to it"
    return Diagnosis(COUNT, any_of([line.p_value for line in lines]), f"{ratio:.3g} x the claimed one", expected, text)


def _lines(evidence: Evidence, noise: float) -> list[_Line | None]:
    """The logarithm of the norm by the count itself, and by its share of the batch."""
    clips, size = evidence.trials.clip, evidence.trials.batch.sum(2)[:, :-1].astype(float)
    count, move = size * (1 - evidence.trials.clipped[:, :-1]), np.log(clips[:, 1:] / clips[:, :-1])
    ends = (clips[:, 1:] == clips.max()) | (clips[:, 1:] == clips.min())
    free = (~ends if ends.sum() > 2 else np.ones_like(ends)) & (size > 0)  # at a bound the norm follows nothing
    count, size, move = count[free], size[free], move[free]
    ones = np.ones_like(size)
    return [_fit(move, count, [ones, size], noise), _fit(size * move, count, [ones, size], noise)]


def _fit(moves: Array, count: Array, others: list[Array], noise: float) -> _Line | None:
    """None where the slope is not known."""
    basis = np.linalg.qr(np.stack(others, 1))[0] if len(count) else np.empty((0, len(others)))
    count, moves = (values - basis @ (basis.T @ values) for values in (count, moves))
    spread, degrees = float(count @ count), len(count) - len(others) - 1
    uncertain = noise / np.sqrt(max(spread, 1e-300))
    slope = float(count @ moves) / max(spread, 1e-300)
    if degrees < 1 or uncertain > MOST_UNCERTAIN or slope == 0:
        return None
    left = float(np.square(moves - slope * count).sum()) / (slope * noise) ** 2
    beyond = 2 * float(special.ndtr(-SLOPE_ERRORS))
    p_value = float(special.chdtr(degrees, left * (1 + SLOPE_ERRORS * uncertain) ** 2)) + beyond
    return _Line(float(np.sqrt(left / degrees)), min(1.0, p_value))
