"""Choices that a training makes by looking at its records: when to stop, and which step's weights to release.

No noise hides such a choice. It is recognised where one rule explains it in every training without exception; rules
that fit by chance are ruled out by how many decisions they explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from deniable.examination.diagnostics.trial_evidence import Evidence
from deniable.examination.final_weights import Ending
from deniable.examination.residuals import TrialStatistics

Array = NDArray[np.float64]
NEVER = 1e-4
"""A coincidence of smaller probability is none."""
ROUNDED = 1e-6
"""Losses that differ by less are the same."""
CHANCE = 1e-3
"""The probability below which released weights are not the best by chance."""
MOST_PATIENCE = 3
"""Steps without improvement after which trainings are thought to stop."""


def best_step_by(sets: list[Evidence]) -> str:
    """By what the released weights are the best of all steps, in every training; "" if by nothing that is known."""
    examined = [one for evidence in sets if _releases_steps(evidence) for one in evidence.examined]
    if len({tuple(one.ending) for one in examined}) < 2:
        return ""
    for what, scores in (("lowest loss", _losses), ("most right labels", _wrong_labels)):
        if any(_is_best(examined, scores, saved) for saved in (_of_every_step, _of_later_steps, _before_step)):
            return f"{what} on the training's own records"
    return "lowest loss on its own batch" if _is_best(examined, _batch_losses, _before_step) else ""


def _losses(one: TrialStatistics) -> tuple[Array, float]:
    """Before each step, and at the final weights."""
    return one.losses, float(one.last_loss)


def _wrong_labels(one: TrialStatistics) -> tuple[Array, float]:
    return 1 - one.right, 1 - float(one.last_right)


def _batch_losses(one: TrialStatistics) -> tuple[Array, float]:
    return one.batch_losses, float("nan")


def _releases_steps(evidence: Evidence) -> bool:
    """Whether the final weights are those of a step."""
    known = bool(np.isin(evidence.trials.ending[:, 0], (Ending.EARLIER, Ending.LAST)).all())
    return known and bool((evidence.taken == evidence.steps).all())


Scores = Callable[[TrialStatistics], tuple[Array, float]]
"""(steps,) a score of the weights before each step, lower is better; and that of the final weights."""
Saved = Callable[[Array, float, TrialStatistics], tuple[Array, int]]
"""From such scores to those of all weights that may be released, and the place of those that are."""


def _of_every_step(scores: Array, last: float, one: TrialStatistics) -> tuple[Array, int]:
    """The initial weights among them; the last ones only if they are released."""
    kind, step = one.ending
    return (np.append(scores, last), len(scores)) if kind == Ending.LAST else (scores, int(step))


def _of_later_steps(scores: Array, last: float, one: TrialStatistics) -> tuple[Array, int]:
    """Without the initial weights."""
    every, place = _of_every_step(scores, last, one)
    return every[1:], place - 1


def _before_step(scores: Array, _: float, one: TrialStatistics) -> tuple[Array, int]:
    """Weights after a step by the score before it, as most loops have it at hand."""
    kind, step = one.ending
    return scores, (len(scores) if kind == Ending.LAST else int(step)) - 1


def _is_best(examined: list[TrialStatistics], scores: Scores, saved: Saved) -> bool:
    """Whether every training releases the weights of lowest score, the first of them where several are as good.

    Trainings that release what most others do tell nothing; of the others each agrees by chance with one step of all.
    """
    places, steps, first, equal = [], [], [], []
    for one in examined:
        every, place = saved(*scores(one), one)
        best = np.flatnonzero(every <= np.nanmin(every) + ROUNDED)
        if place not in best:
            return False
        places.append(place)
        steps.append(len(every))
        first.append(place == best[0])
        equal.append(len(best))
    told = np.array(places) != max(places, key=places.count)
    chance = np.where(all(first), 1.0, equal) / np.array(steps)
    return bool(np.log(chance[told]).sum() < np.log(CHANCE))


def stops_by_loss(evidence: Evidence) -> bool:
    """Whether one threshold of one figure of the loss parts the steps that ended a training from all others."""
    most = int(evidence.taken.max())
    figures = [list(_figures(one)) for one in evidence.examined]
    for kind in range(len(figures[0])):
        stopped, going = [], []
        for one, each in zip(evidence.examined, figures, strict=True):
            values, taken = each[kind], int(one.taken)
            going.append(values[: taken - 1])
            if taken < most and np.isfinite(values[taken - 1]):
                stopped.append((taken, values[taken - 1]))
        if _are_parted(stopped, going):
            return True
    return False


def _figures(one: TrialStatistics) -> Iterator[Array]:
    """(steps,) figures after each step that may decide whether it is the last."""
    after, right = np.append(one.losses[1:], one.last_loss), np.append(one.right[1:], one.last_right)
    every = np.append(one.losses[:1], after)
    yield after
    yield right
    yield one.losses
    yield one.batch_losses
    yield after / after[0]
    yield after / one.losses[0]
    yield np.diff(every)
    for losses in (every, after, one.losses):
        for patience in range(1, MOST_PATIENCE + 1):
            found = np.full(len(after), np.nan)
            for step in range(patience, len(losses)):
                before, last = losses[: step - patience + 1], losses[step - patience + 1 : step + 1]
                found[step - len(losses) + len(after)] = last.min() - before.min()
            yield found


def _are_parted(stopped: list[tuple[int, float]], going: list[Array]) -> bool:
    """Whether a threshold parts the two, of more values than chance does; before the first stop nothing is decided."""
    if not stopped:
        return False
    first, ends = min(taken for taken, _ in stopped), np.array([value for _, value in stopped])
    others = np.concatenate([values[first - 1 :] for values in going])
    others = others[np.isfinite(others)]
    if not len(others) or not (ends.max() < others.min() or ends.min() > others.max()):
        return False
    ways = -betaln(len(ends) + 1, len(others) + 1) - np.log(len(ends) + len(others) + 1)
    return bool(ways > -np.log(NEVER / 100))
