"""What is kept of a watched run: statistics of its steps, never gradients or records."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.results.base import UnreadableError

__all__ = ["UNEXPLAINED_MOVE", "ExaminedStep", "RunRecord", "append_line", "known_factors", "read_record"]


UNEXPLAINED_MOVE = 1e-3
"""How far weights are from where the optimizer leads, relative to the step's move: what rounding never brings."""


class ExaminedStep(msgspec.Struct, frozen=True, kw_only=True, tag="step"):
    """One step whose clipped sum was recomputed. Residual: applied x divisor - clipped sum; lengths are squared."""

    number: int
    """Of the step, from 0 on."""
    batch: int
    """How many records it drew."""
    residual: tuple[float, ...]
    """Of each parameter."""
    sizes: tuple[int, ...]
    """Numbers in each parameter."""
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


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """The run as a whole."""

    records: int
    weights: int
    """Trainable ones."""
    batches: tuple[int, ...]
    """How many records each step drew, as far as batches were watched."""
    draws: tuple[int, ...]
    """How often each record was drawn."""
    divisors: tuple[float, ...]
    steps: tuple[ExaminedStep, ...]
    cosines: tuple[float, ...]
    """The largest cosine of each examined residual with an earlier one, on the watched weights."""
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

    def save(self, path: Path | str) -> Path:
        """Write it as JSON."""
        place = Path(path)
        place.write_bytes(msgspec.json.encode(self))
        return place


def read_record(path: Path | str) -> RunRecord:
    """A record from its file; refused with the reason where it is none."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=RunRecord)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"{path} is no record of a run: {error}") from error


def append_line(path: Path, step: ExaminedStep) -> None:
    """Add a step to a file that grows while the run goes on: what is there after a crash is whole lines."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(step) + b"\n")
