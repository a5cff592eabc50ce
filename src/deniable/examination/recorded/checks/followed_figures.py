"""Whether a series of public values, one a step, follows a figure of the records.

A public series is known from its own past, from time, and from what was released. What these leave of the series is
compared with what they leave of the figure, of the same step or of the one before: under a public series both are
unrelated, and their squared correlation is beyond x with the probability of an F distribution.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from deniable.examination.recorded.run_record import ExaminedStep, RunRecord

Array = NDArray[np.float64]
LOSSES = ("the loss of its batch", "the loss of all records")
ACCURACIES = ("the accuracy on its batch", "the accuracy on all records")
CLEAN_LENGTH = "the length of the clean gradient"
NORMS = tuple(f"the {which} norm of its batch's gradients" for which in ("mean", "median", "largest"))
_RARE = 1e-6
"""A coincidence of smaller probability is none."""
_LEFT = 1e-5
"""Of a series' spread: what is left is rounding, so that it is known without the records."""
_FEWEST = 6
"""Steps beyond the fitted numbers."""
_MOST = 0.6
"""The share of the steps in which a schedule is smooth; the rest is about its corners, as where a warm-up ends."""
_FIGURES = (*LOSSES, *ACCURACIES, CLEAN_LENGTH, *NORMS)


def figure_that_explains(
    record: RunRecord, series: Array, least: float, *, of_released: bool, left_out: str = ""
) -> str:
    """The figure that explains at least this share of what is left of a series (one number a step); "" for none.

    The series may be a power of the figure or a linear function of it, also smoothed. `of_released`: it may as well be
    made of the lengths of the applied gradients.
    """
    if not len(record.batches) == len(record.lengths) == len(series):
        return ""
    of = {step.number: step for step in record.steps}
    with np.errstate(divide="ignore", invalid="ignore"):
        released = [np.log(np.array(record.lengths, dtype=float))] if of_released else []
        if any(_is_schedule(one) for one in (series, np.log(series))):
            return ""
        for name, figure in step_figures(map(of.get, range(len(series)))).items():
            if name == left_out:
                continue
            for of_series, of_figure in ((series, figure), (np.log(series), np.log(figure))):
                for lag in (0, 1):
                    if _explained_share(of_series, _later(of_figure, lag), released) >= least:
                        return name
    return ""


def step_figures(steps: Iterable[ExaminedStep | None]) -> dict[str, Array]:
    """Of each of `_FIGURES` (steps,) values; nan for a step not examined, or what was not kept."""
    rows = [_figures_of_step(step) if step is not None else (None,) * len(_FIGURES) for step in steps]
    return dict(zip(_FIGURES, np.array(rows, dtype=float).reshape(-1, len(_FIGURES)).T, strict=True))


def _figures_of_step(step: ExaminedStep) -> tuple[float | None, ...]:
    norms = (*(step.usual_norms or (None, None)), step.longest)
    return step.loss, step.data_loss, step.accuracy, step.data_accuracy, max(step.clean, 0.0) ** 0.5, *norms


def _is_schedule(series: Array) -> bool:
    """Whether spans in which time and the last two values give the next one make up most of a series.

    Lines, powers, waves and decays, one after the other; or few changes, of which only their times can tell.
    """
    number = np.arange(1.0, len(series) + 1)
    known = (*(number**power for power in (0, 1, 2, -0.5, -1)), _later(series, 1), _later(series, 2))
    rows = np.array([series, *known]).T[2:]
    if not np.isfinite(rows).all() or (np.diff(series) != 0).sum() <= len(series) // 8:
        return bool(np.isfinite(rows).all())
    size, spread, told = len(known) + 1 + _FEWEST, np.ptp(series), np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows) - size + 1, max(1, len(rows) // 128)):
        span = rows[start : start + size]
        scaled = span[:, 1:] / np.maximum(np.linalg.norm(span[:, 1:], axis=0), 1e-300)
        left = span[:, 0] - scaled @ np.linalg.lstsq(scaled, span[:, 0], rcond=1e-13)[0]
        told[start : start + size] |= np.abs(left).max() <= _LEFT * spread and bool((np.diff(span[:, 0]) != 0).all())
    return bool(told.sum() >= _MOST * len(series))


def _later(series: Array, steps: int) -> Array:
    return np.concatenate([np.full(steps, np.nan), series[: len(series) - steps]])


def _explained_share(series: Array, figure: Array, released: list[Array]) -> float:
    """The squared correlation of what is left of both; 0 where it may be chance."""
    time = np.linspace(-1, 1, len(series))
    past = [_later(series, 1), _later(series, 2), *released, *(_later(one, 1) for one in released)]
    known = [np.ones_like(time), time, time**2, *past]
    rows = np.array([series, figure, *known]).T
    rows = rows[np.isfinite(rows).all(1)]
    free = len(rows) - len(known) - 1
    if free < _FEWEST:
        return 0.0
    both, public = rows[:, :2], rows[:, 2:] / np.maximum(np.linalg.norm(rows[:, 2:], axis=0), 1e-300)
    left, other = (both - public @ np.linalg.lstsq(public, both, rcond=1e-10)[0]).T
    if (np.linalg.norm([left, other], axis=1) <= _LEFT * np.linalg.norm(both - both.mean(0), axis=0)).any():
        return 0.0
    share = float(left @ other) ** 2 / float((left @ left) * (other @ other))
    ratio = share * free / max(1 - share, 1e-12)
    return share if float(fdtrc(1, free, ratio)) < _RARE else 0.0
