"""What differs between two trainings with the same seed, in words; "" where nothing does."""

from __future__ import annotations

import numpy as np

from deniable.examination.recomputation import flat
from deniable.examination.trainer import WatchedTraining
from deniable.examination.twins.twin_run import SAME, Run, are_same, final_row, same_weights
from deniable.examination.updates.learning_rates import first_moves, rates_of_any_rule

_UNDRAWN = "records that no batch has drawn"


ONE_FACTOR = 0.02
"""Rates that differ by a factor have one factor in all steps if it varies by this share of its distance from 1: rates
that follow the noisy gradients differ by others."""
_UNHIDDEN = "which no noise hides: only batches, noise and public data may decide"


def different_course(one: Run, two: Run, steps: int) -> str:
    """What differs in so many steps between trainings that differ in records that these have not drawn; "": nothing."""
    last = min(steps, len(two.seen))
    moved = f"{_UNDRAWN} change how the weights move, {_UNHIDDEN}"
    for step in range(last):
        if found := _different_step(one, two, step, moved):
            return found
    if steps < len(one.seen):
        return "" if len(two.seen) <= steps or same_weights(one, two, steps) else moved
    if len(two.seen) != len(one.seen):
        return f"{_UNDRAWN} change the number of steps, {_UNHIDDEN}"
    shown = one.seen.final is not None and two.seen.final is not None
    return (
        f"{_UNDRAWN} change the final weights, {_UNHIDDEN}"
        if shown and not are_same(final_row(one), final_row(two))
        else ""
    )


def different_afterwards(one: Run, two: Run, step: int) -> str:
    """What differs after a step (counted from 0) between trainings whose records differ only from then on."""
    about = f"the records are looked at again after step {step + 1}"
    if len(two.seen) > step + 1 and len(one.seen) > step + 1:
        moved = "change how it moves the weights (they decide on its rate, or whether it is applied)"
        return "" if same_weights(one, two, step + 1) else f"{about} and {moved}, {_UNHIDDEN}"
    if (len(two.seen) > step + 1) != (len(one.seen) > step + 1):
        return f"{about} and change the number of steps, {_UNHIDDEN}"
    shown = one.seen.final is not None and two.seen.final is not None
    if shown and not are_same(final_row(one), final_row(two)):
        return (
            f"the final weights depend on the records beyond the noisy steps (they are chosen, calibrated or trained "
            f"further on them), {_UNHIDDEN}"
        )
    if one.seen.public[step + 1 :] != two.seen.public[step + 1 :]:
        return f"numbers that are made known at the end are computed from the records, {_UNHIDDEN}"
    return ""


def _different_step(one: Run, two: Run, step: int, moved: str) -> str:
    if not same_weights(one, two, step):
        return moved
    if found := different_batches(one, two, step + 1):
        return found
    if one.seen.public[step] != two.seen.public[step] or one.seen.divisors[step] != two.seen.divisors[step]:
        return f"{_UNDRAWN} change numbers that are made known (a divisor, a loss), {_UNHIDDEN}"
    if not are_same(one.sums[step], two.sums[step]):
        return (
            "records outside the batch are used as well, in the sum or in statistics: use the batch that was drawn, "
            "and yield its indices"
        )
    return ""


def different_start(one: Run, two: Run) -> str:
    if same_weights(one, two):
        return ""
    return (
        "the initial weights depend on the records, and no noise hides it (they were trained on them, or scaled by "
        "them): start from weights that are drawn at random, or trained on public data"
    )


def different_batches(one: Run, two: Run, steps: int | None = None) -> str:
    pairs = zip(one.seen.batches[:steps], two.seen.batches[:steps], strict=False)
    if all(a is b is None or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs):
        return ""
    return (
        "the batches are chosen by looking at the records (with the same seed another record's content changes who is "
        "drawn): draw every record with the same probability, whatever it holds"
    )


def divides_by_batch(run: Run) -> bool:
    sizes = [len(run.members) if batch is None else max(1, len(batch)) for batch in run.seen.batches]
    return len(set(sizes)) > 1 and sizes == run.seen.divisors


def different_values(one: Run, two: Run, what: str) -> str:
    """Numbers that everybody is taken to know, and that differ."""
    advice = "fix it before the records are seen"
    for a, b in zip(one.seen.divisors, two.seen.divisors, strict=False):
        if abs(a - b) > SAME * abs(a):
            return f"the divisor depends on {what} ({a:.6g} and {b:.6g} for neighbours): {advice}{_size_advice(what)}"
    first, second = one.seen.clips[0], two.seen.clips[0]
    if first is not None and second is not None and abs(first - second) > SAME * abs(first):
        return f"the clipping norm depends on {what} ({first:.6g} and {second:.6g} for neighbours): {advice}"
    for name, value in one.seen.public[0].items():
        other = two.seen.public[0].get(name, np.nan)
        if not abs(value - other) <= SAME * abs(value):
            return (
                f"the {name} that is made known depends on {what} and has no noise ({value:.6g} and {other:.6g} for "
                f"neighbours): {advice}, or add noise and count it"
            )
    return _different_rates(one, two, what) or _different_decay(one, two, what)


def _size_advice(what: str) -> str:
    if "number" not in what:
        return ""
    return ", such as the expected batch size; or claim replace or zero-out neighbours, for which that number is known"


def _different_decay(one: Run, two: Run, what: str) -> str:
    """A weight decay that differs at the first step, where the weights are the same."""
    for a, b in zip(*first_moves(one.seen, two.seen), strict=True) if same_weights(one, two) else ():
        rounding = 3 * max(a.error, b.error, a.decay_error + b.decay_error)
        if abs(a.decay - b.decay) > 1e-4 * max(abs(a.decay), abs(b.decay)) + 1e-6 + rounding:
            values = f"{a.decay:.6g} and {b.decay:.6g}"
            return f"the weight decay depends on {what} ({values} for neighbours): fix it beforehand"
    return ""


def _different_rates(one: Run, two: Run, what: str) -> str:
    """Learning rates that differ by one factor in all steps, or at the first step where only the records differ."""
    first, second = rates_of_any_rule(one.seen, two.seen)
    steps = min(len(first), len(second))
    told = np.isfinite(first[:steps]) & np.isfinite(second[:steps])
    ratio = second[:steps][told] / first[:steps][told]
    if len(ratio) > 1:
        rounding = 1e-4 + max(_rounding(one.seen, steps), _rounding(two.seen, steps))
        if abs(ratio.mean() - 1) > 3 * rounding and ratio.std() <= max(ONE_FACTOR * abs(ratio.mean() - 1), rounding):
            return _rates_sentence(first[:steps][told][0], second[:steps][told][0], what)
    return _different_first_rate(one, two, what) if same_weights(one, two) else ""


def _different_first_rate(one: Run, two: Run, what: str) -> str:
    """A layer's rate at the first step that follows neither the length of the noisy gradient nor nothing at all."""
    gradients = [[s[0].double() / run.seen.divisors[0] for s in run.seen.applied] for run in (one, two)]
    lengths = [(float(g.norm()), float(h.norm())) for g, h in zip(*gradients, strict=True)]
    whole = np.linalg.norm(lengths, axis=0)
    moves = zip(*first_moves(one.seen, two.seen), strict=True)
    for (a, b), (mine, other) in zip(moves, lengths, strict=False):
        error = 3 * (1e-4 + a.error + b.error)  # nan where either is not known
        if min(mine, other) == 0 or not (error < 0.1 and a.rate > 0 and b.rate > 0):
            continue
        allowed = [1.0, *((x / y) ** power for x, y in ((mine, other), whole) for power in (1, 2))]
        if not min(allowed) * (1 - error) <= b.rate / a.rate <= max(allowed) * (1 + error):
            return _rates_sentence(a.rate, b.rate, what)
    return ""


def _rates_sentence(first: float, second: float, what: str) -> str:
    values = f"{first:.6g} and {second:.6g}"
    return f"the learning rate depends on {what} ({values} for neighbours): fix it before the records are seen"


def _rounding(seen: WatchedTraining, steps: int) -> float:
    weights = flat(seen.weights)
    moves = (weights[1 : steps + 1] - weights[: min(steps, len(weights) - 1)]).norm(dim=1).clamp(min=1e-30)
    return float((2.0**-22 * weights[: len(moves)].norm(dim=1) / moves).max()) if len(moves) else 1.0
