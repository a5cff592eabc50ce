"""Checks of what the weights do with the applied gradients, and of the learning rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.examination.diagnostics.p_values import cosine
from deniable.examination.recorded.checks.followed_figures import (
    CLEAN_LENGTH,
    LOSSES,
    figure_that_explains,
    step_figures,
)
from deniable.examination.recorded.checks.outcomes import AS_CLAIMED, LESS, NAMED, UNKNOWN, list_names
from deniable.examination.recorded.checks.step_lengths import gradient_sigmas
from deniable.examination.recorded.run_record import RunRecord
from deniable.examination.recorded.weights.weight_moves import UNEXPLAINED_MOVE
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

_WITHOUT_NOISE = 0.9
"""The cosine with noise or clipped sum above which that is what an unexplained move is made of."""
_SURE = 1e-3
_FALLS = 4
"""Falls of a learning rate from which on their times are compared."""
_FEWEST, _BOTH_WAYS = 12, 3
"""Changes of a learning rate from which on it is told what it follows, and so many of them up, and down."""


def moves_check(record: RunRecord) -> RunCheck:
    """The weights move by the applied gradient, and end where it leads, or at an average of watched weights."""
    off = [number for number, off in enumerate(record.moves) if off > UNEXPLAINED_MOVE]
    odd = [number for number in off if number not in (*record.set_back, *record.pulled)]
    last = record.final_move is not None and record.final_move > UNEXPLAINED_MOVE and not record.final_is_average
    outcome, seen = _what_moves(record, odd, last) if odd or last else (AS_CLAIMED, "the same")
    if record.written is not None:
        outcome, seen = LESS, _tell_written(record, *record.written)
    if outcome == AS_CLAIMED and record.set_back:
        outcome = UNKNOWN
        seen = (
            f"{len(record.set_back):,} steps, first step {record.set_back[0] + 1:,}, are taken back: if the records "
            "decide that (a loss that rises), no noise hides it; keep every step, or decide by public data"
        )
    elif outcome == AS_CLAIMED and record.final_step is not None:
        outcome = UNKNOWN
        seen = (
            f"the final weights are those before step {record.final_step + 1:,}, not the last ones: if the records "
            "decide which are released (the lowest loss), no noise hides it; choose on public data, or release the last"
        )
    elif outcome == AS_CLAIMED and record.final_is_average:
        seen = "the final weights are an average of watched ones"
    elif outcome == AS_CLAIMED and record.pulled:
        seen = "the same, and by a fixed share back to earlier weights at regular times, which is as safe"
    expected = "by the optimizer with the applied gradient alone"
    return RunCheck(name="moves of the weights", outcome=outcome, observed=seen, expected=expected)


def noise_on_weights(record: RunRecord, claimed: Training) -> RunCheck | None:
    """Of gradients without noise, where moves as long as the claimed noise follow every step; None elsewhere."""
    sigmas = gradient_sigmas(record, claimed, np.array(record.clips))
    sizes, towards = np.array(record.odd_sizes), _towards(record)
    if not 0 < len(sigmas) <= len(sizes) or not (sigmas > 0).all():
        return None
    shares, error = sizes / sigmas, (2 * record.watched_weights) ** -0.5
    near = shares.min() > 1 - _ERRORS * error and shares.mean() > 1 - _ERRORS * error / len(shares) ** 0.5
    if not near or np.abs(towards[:, 1:]).max(initial=0.0) > _UNRELATED:
        return None
    seen = (
        "the gradients have no noise, but after every step the weights are moved by something as long as the claimed "
        f"noise ({shares.mean():.3g} x): if that is fresh noise, and nobody sees the weights before it, it is as safe; "
        "add it to the gradient, where it can be judged"
    )
    expected = "1 x the claimed standard deviation"
    return RunCheck(name="noise", outcome=UNKNOWN, observed=seen, expected=expected)


_ERRORS, _UNRELATED = 4.0, 0.3
"""Standard errors; and the cosine with any sum of gradients that noise on a few hundred weights has not."""


def other_weights_check(record: RunRecord, claimed: Training) -> RunCheck | None:
    """None where weights that the watched optimizer does not hold stay as they are."""
    if record.other_moves is None:
        return None
    names, steps, along = record.other_moves
    what = f"{_moving(list(names))} in {steps:,} steps, though the watched optimizer does not hold"
    what += " it" if len(names) == 1 else " them"
    outcome: Outcome = LESS
    if along:
        seen = f"{what}, along the records' gradient without noise: clip and noise all that is trained"
    elif (most := _share_of_noise(record, claimed)) is not None:
        seen = (
            f"{what}, along the records' gradient with at most {most:.2g} x the claimed noise: clip and noise all that "
            "is trained"
        )
    else:
        outcome = UNKNOWN
        seen = f"{what}: if the records make these moves, watch the optimizer that holds all weights"
    return RunCheck(name="other weights", outcome=outcome, observed=seen, expected="not moved")


def _share_of_noise(record: RunRecord, claimed: Training) -> float | None:
    """Of the claimed noise what other weights' moves may have at most; None where that may be all of it."""
    if record.other_noise is None or not record.clips:
        return None
    found, numbers = record.other_noise
    share = found / (claimed.noise * float(np.mean(record.clips))) if claimed.noise else np.inf
    return share if share < 1 - _ERRORS / (2 * numbers) ** 0.5 else None


def _what_moves(record: RunRecord, odd: list[int], last: bool) -> tuple[Outcome, str]:
    along, towards = record.final_along_gradient, _towards(record)
    if len(towards) and np.median(np.abs(towards[:, 0])) > _WITHOUT_NOISE:
        return LESS, "the weights move by the gradient without its noise, or with part of it: apply the noisy gradient"
    if len(towards) and np.median(np.abs(towards[:, 1::2]).max(1)) > _WITHOUT_NOISE:
        return LESS, "the weights also move along the records' gradient without noise: apply the noisy gradient alone"
    if len(towards) and np.median(np.abs(towards[:, 2])) > _WITHOUT_NOISE:
        where = f"in {len(odd):,} steps, first in step {odd[0] + 1:,}" if odd else "after the last step"
        return LESS, f"the weights also move along the gradient of all records without noise, {where}: {_ALONE}"
    told = _after_the_last(record, along) if last and not odd else _divided_by(record)
    names = _name(record, {*record.moved, *(record.final_moved if last else ())})
    return (LESS, told) if told else (UNKNOWN, f"{names} by something that was not watched, {_where(odd, last)}")


def _tell_written(record: RunRecord, parameters: tuple[int, ...], steps: int) -> str:
    names = list_names([record.names[at] for at in parameters])
    return (
        f"numbers of records are written into {names} (into last digits, or added), as seen after {steps:,} "
        f"step{'s' if steps > 1 else ''}, which no noise hides: let the optimizer alone move the weights"
    )


def _where(odd: list[int], last: bool) -> str:
    """The last step's own move is that after which nothing was watched."""
    steps = len(odd) + (last and bool(odd))
    return f"in {steps:,} steps, the first is step {odd[0] + 1:,}" if odd else "after the last watched step"


def _name(record: RunRecord, moved: set[int]) -> str:
    """What moves: single tensors by name, unless it is most of them."""
    names = [record.names[at] for at in sorted(moved) if at < len(record.names)]
    return _moving(names) if 0 < len(names) <= max(NAMED, len(record.names) // 2) else "the weights move"


def _moving(names: list[str]) -> str:
    return f"{list_names(names)} {'moves' if len(names) == 1 else 'move'}"


def _after_the_last(record: RunRecord, along: float | None) -> str:
    """What a move after the last step is made of, in words; "" where it is not known."""
    if record.final_holds_clean:
        return (
            "the final weights are made of the steps' clipped sums without noise: release the weights that the noisy "
            "steps lead to"
        )
    if record.final_made_of:
        return (
            f"after the last watched step {_name(record, set(record.final_moved))} by a function of "
            f"{record.final_made_of}, without noise: release the final weights that the noisy steps lead to"
        )
    if along is not None and along > 0 and cosine(along, record.watched_weights) < _SURE:
        return (
            "after the last watched step the weights move along the records' gradient, without noise: release the "
            "final weights that the noisy steps lead to"
        )
    return ""


def _divided_by(record: RunRecord) -> str:
    """That the optimizer divides by what is made of gradients without noise, in words; "" where it may not."""
    if record.second_moment is None:
        return ""
    source, agrees, applied = record.second_moment
    if agrees < _RANKED or applied > agrees - _APART:
        return ""
    return (
        f"the optimizer's second moment, by which it divides its moves, is made of {_SOURCES[source]}, not of the "
        "applied gradients: which weights move far then shows what no noise hides; square the noisy gradient"
    )


_SOURCES = {
    "clean": "clipped sums before their noise",
    "unclipped": "gradients without clipping and noise",
    "single": "the squares of single records' gradients",
    "applied": "applied gradients",
}
_RANKED, _APART = 0.9, 0.1
"""The correlation of ranks from which on moves are divided by that, if the applied gradients' is less by so much."""
_ALONE = "apply the noisy gradient alone"


def _towards(record: RunRecord) -> NDArray[np.float64]:
    """(odd moves, 4) cosines, see `RunRecord.odd_moves`; 0 where one is not known."""
    rows = [(*one, *(0.0,) * (4 - len(one))) for one in record.odd_moves]
    return np.array(rows, dtype=float).reshape(-1, 4)


def rates_check(record: RunRecord) -> RunCheck | None:
    """The learning rate does not follow loss or accuracy of its batch or of all records, or the clipped sum's length.

    None where it is fixed, or too few steps tell. A schedule agrees with so many ups and downs by chance only.
    """
    rates = np.array([record.rates[step.number] for step in record.steps if step.number < len(record.rates)])
    if len(rates) < len(record.steps) or len(rates) < _FEWEST + 2 or np.ptp(rates) <= 1e-9 * np.abs(rates).max():
        return None
    outcome: Outcome = AS_CLAIMED
    seen = "a schedule"
    if followed := _followed_figure(record, rates):
        seen, outcome = f"the learning rate follows {followed}, which no noise hides: fix it beforehand", LESS
    elif waits := _plateau(record, rates):
        seen = f"the learning rate falls whenever {waits}, which no noise hides: fix its schedule beforehand"
        outcome = LESS
    elif partly := figure_that_explains(record, np.array(record.rates), _IN_PART, of_released=True):
        seen, outcome = f"the learning rate changes with {partly}, though not with it alone: {_SAY_HOW}", UNKNOWN
    elif not record.scheduled and _falls_at_odd_times(rates):
        seen = (
            "the learning rate falls by the same factor at irregular times: if the records decide when (a plateau of "
            "their loss), no noise hides it; fix its schedule beforehand"
        )
        outcome = UNKNOWN
    return RunCheck(name="learning rate", outcome=outcome, observed=seen, expected="fixed before the records are seen")


def _followed_figure(record: RunRecord, rates: NDArray[np.float64]) -> str:
    """What the rate follows; "" for nothing that is known."""
    alike = [what for what, figure in step_figures(record.steps).items() if _rises_alike(rates, figure)]
    lengths = np.array([record.lengths[step.number] for step in record.steps])
    if alike and not (alike == [CLEAN_LENGTH] and _rises_alike(rates, lengths)):  # the noisy length is released
        return alike[0]
    return figure_that_explains(record, np.array(record.rates), _EXACTLY, of_released=True)


_SAY_HOW = "if it is made from the records without noise, no noise hides it; fix it beforehand"
_EXACTLY, _IN_PART = 0.99, 0.3
"""The share of a learning rate that a figure explains: one with noise of its own explains less."""


def _plateau(record: RunRecord, rates: NDArray[np.float64]) -> str:
    """The rule "no better for so many steps" that gives all times at which the rate falls, in words; "" for none."""
    falls = np.flatnonzero(np.diff(rates) < -1e-9 * np.abs(rates).max())
    if len(falls) < _FALLS or len(rates) < len(record.rates):
        return ""
    figures = step_figures(record.steps)
    for name, figure in ((name, figures[name]) for name in LOSSES):
        for patience in range(_PATIENCE):
            for before in (0, 1):  # the rate changes after a step, or before it
                if _times_without_better(figure, patience) == (falls + before).tolist():
                    return f"{name} was no better for {patience + 1:,} step{'s' if patience else ''}"
    return ""


_PATIENCE = 12
"""Steps without a better loss, up to which a rule is played."""


def _times_without_better(losses: NDArray[np.float64], patience: int) -> list[int]:
    """When a rate falls that waits so many steps for a loss that is better by 1e-4 of itself (torch's default)."""
    best, waited, times = np.inf, 0, []
    for at, loss in enumerate(losses):
        waited = 0 if loss < best * (1 - 1e-4) else waited + 1
        best = min(best, loss) if waited == 0 else best
        if waited > patience:
            times.append(at)
            waited = 0
    return times


def _rises_alike(rates: NDArray[np.float64], figure: NDArray[np.float64]) -> bool:
    """Whether the rate rises and falls wherever the figure does, or the other way round; both must occur."""
    change, other = np.sign(np.diff(rates)), np.sign(np.diff(figure))
    told = (np.abs(np.diff(rates)) > 1e-9 * np.abs(rates).max()) & np.isfinite(other) & (other != 0)
    change, other = change[told], other[told]
    both = min((change > 0).sum(), (change < 0).sum()) >= _BOTH_WAYS
    return len(change) >= _FEWEST and both and bool((change == other).all() or (change == -other).all())


def _falls_at_odd_times(rates: NDArray[np.float64]) -> bool:
    """Whether a rate stays, and falls by one factor now and then, at times that no schedule of equal steps has."""
    changes = rates[1:] / np.maximum(rates[:-1], 1e-300)
    times = np.flatnonzero(np.abs(changes - 1) > 1e-9)
    alike = len(times) >= _FALLS and bool(np.ptp(changes[times]) < 1e-6 and changes[times[0]] < 1)
    return alike and len(times) < len(changes) and bool(np.ptp(np.diff(times)) > 1)
