"""What is kept of a watched run: statistics of its steps, never gradients or records."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["UNEXPLAINED_MOVE", "ExaminedStep", "RunRecord", "known_factors"]


UNEXPLAINED_MOVE = 1e-3
"""How far weights are from where the optimizer leads, relative to the step's move: what rounding never brings."""


class ExaminedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step whose clipped sum was recomputed. Residual: applied x divisor - clipped sum; lengths are squared.

    Of a large model they are those of the weights that are looked at, a random sample.
    """

    number: int
    """Of the step, from 0 on."""
    batch: int
    """How many records it drew."""
    residual: tuple[float, ...]
    """Of each parameter."""
    sizes: tuple[int, ...]
    """Numbers in each parameter that are looked at."""
    clean: float
    cut: float
    """Of what clipping takes away: the sum without clipping less that with it."""
    residual_clean: float
    residual_cut: float
    clean_cut: float
    clip: float
    longest: float
    """The longest gradient of a record, before clipping."""


def known_factors(step: ExaminedStep) -> NDArray[np.float64]:
    """By how much of the clean sum, and of what is cut, the residual is explained best."""
    gram = np.array([[step.clean, step.clean_cut], [step.clean_cut, step.cut]])
    along = np.array([step.residual_clean, step.residual_cut])
    return np.asarray(np.linalg.pinv(gram, rcond=1e-9, hermitian=True) @ along)


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The run as a whole."""

    records: int
    weights: int
    """Trainable ones."""
    batches: tuple[int, ...]
    """How many records each step drew, as far as batches were watched."""
    draws: tuple[int, ...]
    """How often each record was drawn; empty where the recording was cut."""
    divisors: tuple[float, ...]
    steps: tuple[ExaminedStep, ...]
    cosines: tuple[float, ...]
    """The largest cosine of each examined residual with an earlier one, on as many weights as are watched."""
    watched_weights: int
    moves: tuple[float, ...]
    """How far each step's move is from what the optimizer does with the applied gradient, relative to the move."""
    final_move: float | None
    """The same of the final weights; None where they were not shown."""
    final_along_gradient: float | None
    """The cosine of an unexplained last move with the records' mean gradient, where there is such a move."""
    not_recomputed: str = ""
    """Why no gradient was recomputed; empty where they were."""
    seconds: float = 0.0
    """Of the run, and of them those of the watcher."""
    watcher_seconds: float = 0.0
    lengths: tuple[float, ...] = ()
    """Of each step's applied gradient x divisor, over all weights, squared."""
    clips: tuple[float, ...] = ()
    """Each step's clipping norm (of all parameters together)."""
    count_noise: float | None = None
    """The standard deviation of the noise on the count of unclipped records, for adaptive clipping."""
    ended: bool = True
    """Whether it was watched to its end; False for what a killed run leaves."""
