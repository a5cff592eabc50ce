"""Gradients of a multiple of the loss, clipped then, or clipped at a multiple of the norm: public, or by the batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from deniable.examination.recorded.checks.outcomes import LESS, OTHER
from deniable.examination.recorded.record_shares import MULTIPLES
from deniable.examination.recorded.run_record import RunRecord, noise_variance
from deniable.results.run_result import Outcome

__all__ = ["multiplied_sums"]

_LOSS = "the loss is {:.2g} x the named one before its gradients are clipped, which is as safe"
_LOSS_BY_SIZE = (
    "the loss is divided by the batch's own size before its gradients are clipped, so that one record's share depends "
    "on how many others there are: divide by a public number"
)
_NORM = "the gradients are clipped at {:.2g} x the clipping norm"
_SAFE = _NORM + ", and the noise is as much larger, which is as safe if that norm was fixed beforehand: claim it"
_SMALLER = _NORM + ", which is as safe if that norm was fixed beforehand"
_ENOUGH = 0.97
"""Of the noise that a norm needs, within what is measured."""
_KNOWN = np.log(MULTIPLES)
_BETWEEN = np.linspace(_KNOWN[0], _KNOWN[-1], 20 * len(_KNOWN))
Found = tuple[float, Outcome, str]
"""Variances of the noise gained, by a number that is fitted; what that is."""


def multiplied_sums(record: RunRecord, noise: float) -> Iterator[Found]:
    """The best multiples, in all steps; `noise` is that of the run / the claimed."""
    steps = [step for step in record.steps if step.multiplied is not None]
    if not steps:
        return
    gains = np.array([np.array(step.multiplied) / noise_variance(step) for step in steps])
    sizes = np.log([max(1, step.batch) for step in steps])
    gained, multiple = _best(gains[:, : len(_KNOWN)], np.zeros(len(steps)))
    yield gained, OTHER, _LOSS.format(multiple)
    gained, _ = _best(gains[:, : len(_KNOWN)], sizes - sizes.mean())
    yield gained, LESS, _LOSS_BY_SIZE
    gained, multiple = _best(gains[:, len(_KNOWN) :], np.zeros(len(steps)))
    if noise >= _ENOUGH * multiple:
        yield gained, OTHER, (_SMALLER if multiple < 1 else _SAFE).format(multiple)
    else:
        yield gained, LESS, f"{_NORM.format(multiple)}, with too little noise for that"


def _best(gains: NDArray[np.float64], shifts: NDArray[np.float64]) -> tuple[float, float]:
    """What the best number gains, over all steps, each at its log less a shift; and that number."""
    at = np.clip(_BETWEEN - shifts[:, None], _KNOWN[0], _KNOWN[-1])
    gained = np.sum([CubicSpline(_KNOWN, one)(where) for one, where in zip(gains, at, strict=True)], axis=0)
    return float(gained.max()), float(np.exp(_BETWEEN[gained.argmax()]))
