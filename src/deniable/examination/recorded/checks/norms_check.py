"""The check of a clipping norm that changes from step to step: what is it set from?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.examination.recorded.checks.followed_figures import CLEAN_LENGTH, figure_that_explains
from deniable.examination.recorded.checks.outcomes import LESS, OTHER, UNKNOWN
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Training
from deniable.results.run_result import RunCheck

Array = NDArray[np.float64]
_SAME = 1e-3
"""Relative: norms that differ by less are the same."""
_FEWEST = 4
"""Steps in which a norm has to follow a figure."""
_FIGURES = ("the longest", "the mean", "the median")
_EXPECTED = "the same in all steps, or set from noisy counts"


def norms_check(record: RunRecord, claimed: Training) -> RunCheck | None:
    """None where the norm stays, or follows counts that have noise enough."""
    clips = np.array(record.clips, dtype=float)
    if record.count_noise is not None:
        return _count_check(record.count_noise, claimed)
    if not len(clips) or np.ptp(clips) <= _SAME * clips.max():
        return None
    seen = f"the clipping norm changes from step to step ({clips.min():.3g} to {clips.max():.3g})"
    if followed := _followed_figure(record) or _smoothed_figure(record, clips):
        seen += f": it is {followed}, which no noise hides: fix it beforehand, or set it from noisy counts"
        return RunCheck(name=_NAME, outcome=LESS, observed=seen, expected=_EXPECTED)
    if _is_scheduled(clips):
        seen += " by a rule of the step's number, which is as safe"
        return RunCheck(name=_NAME, outcome=OTHER, observed=seen, expected=_EXPECTED)
    seen += ", and nothing that was watched tells why: if the records' gradients set it, it needs noise of its own"
    return RunCheck(name=_NAME, outcome=UNKNOWN, observed=seen, expected=_EXPECTED)


_NAME = "clipping norm"


def _count_check(count_noise: float, claimed: Training) -> RunCheck | None:
    """A count of sensitivity 1/2 (Andrew et al. 2021) with noise s costs what a sum with 2 s x its norm costs."""
    if 2 * count_noise > claimed.noise:
        return None
    seen = (
        f"the count that the clipping norm follows has noise of standard deviation {count_noise:.3g} only, which costs "
        f"as much as a noise multiplier of {2 * count_noise:.3g}, before any gradient: add more"
    )
    return RunCheck(name=_NAME, outcome=LESS, observed=seen, expected=f"more than {claimed.noise / 2:g}")


def _followed_figure(record: RunRecord) -> str:
    """The figure of a batch's norms, of the same step or of the one before, that the norm is a multiple of."""
    figures = {step.number: (step.longest, *(step.usual_norms or (np.nan, np.nan))) for step in record.steps}
    clips = dict(enumerate(record.clips))
    for lag, whose in ((0, "its"), (1, "the last")):
        both = [(clips[at + lag], found) for at, found in figures.items() if at + lag in clips]
        if len(both) < _FEWEST:
            continue
        norms, found = np.array([norm for norm, _ in both]), np.array([of for _, of in both])
        for name, figure in zip(_FIGURES, found.T, strict=True):
            ratios = norms / np.maximum(figure, 1e-300)
            if np.ptp(ratios) <= _SAME * ratios.max():
                times = "" if abs(ratios.mean() - 1) < _SAME else f"{ratios.mean():.3g} x "
                return f"{times}{name} of the norms of {whose} batch's gradients"
    return ""


def _smoothed_figure(record: RunRecord, clips: Array) -> str:
    """The one that the norm is a running mean of, or a power; clipped sums have its length by themselves."""
    name = figure_that_explains(record, clips, _EXACTLY, of_released=True, left_out=CLEAN_LENGTH)
    return f"made of {name}" if name else ""


_EXACTLY = 0.99
"""The share of what its own past leaves of a norm that a figure explains: one with noise of its own explains less."""


def _is_scheduled(clips: Array) -> bool:
    """Whether they, or their logarithms, lie on a line, or they keep a value for many steps and change a few times."""
    steps = np.arange(len(clips))
    lines = [(v, np.polyval(np.polyfit(steps, v, 1), steps)) for v in (clips, np.log(np.maximum(clips, 1e-300)))]
    straight = any(np.abs(v - line).max() <= _SAME * max(np.ptp(v), 1e-300) for v, line in lines)
    changes = int((np.abs(np.diff(clips)) > _SAME * clips.max()).sum())
    return bool(len(clips) > _FEWEST and (straight or changes <= len(clips) // 8))
