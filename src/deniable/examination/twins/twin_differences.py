"""What differs between two trainings with the same seed, in words; "" where nothing does."""

from __future__ import annotations

import numpy as np

from deniable.examination.learning_rates import first_decay, rates_of_any_rule
from deniable.examination.recomputation import flat
from deniable.examination.trainer import WatchedTraining
from deniable.examination.twins.twin_run import SAME, Run, are_same, final_row, same_weights

__all__ = ["different_batches", "different_course", "different_start", "different_values", "divides_by_batch"]

_UNDRAWN = "records that no batch has drawn"


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


def _different_step(one: Run, two: Run, step: int, moved: str) -> str:
    if not same_weights(one, two, step):
        return moved
    if found := different_batches(one, two, step + 1):
        return found
    if one.seen.public[step] != two.seen.public[step] or one.seen.divisors[step] != two.seen.divisors[step]:
        return f"{_UNDRAWN} change numbers that are made known (a divisor, a loss), {_UNHIDDEN}"
    if not are_same(one.sums[step], two.sums[step]):
        return "records outside the batch are used as well: use the batch that was drawn, and yield its indices"
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
    first, second = first_decay(one.seen), first_decay(two.seen)
    rounding = 1e-4 * max(abs(first), abs(second)) + 1e-6
    if not same_weights(one, two) or not abs(first - second) > rounding:
        return ""
    return f"the weight decay depends on {what} ({first:.6g} and {second:.6g} for neighbours): fix it beforehand"


def _different_rates(one: Run, two: Run, what: str) -> str:
    """Learning rates that differ by one factor in all steps, or at the first step where only the records differ."""
    first, second = rates_of_any_rule(one.seen), rates_of_any_rule(two.seen)
    steps = min(len(first), len(second))
    told = np.isfinite(first[:steps]) & np.isfinite(second[:steps])
    ratio = second[:steps][told] / first[:steps][told]
    if len(ratio) < 2:
        return ""
    rounding = 1e-4 + max(_rounding(one.seen, steps), _rounding(two.seen, steps))
    constant = abs(ratio.mean() - 1) > 3 * rounding and ratio.std() <= max(0.1 * abs(ratio.mean() - 1), rounding)
    lengths = float(one.sums[0].norm() / two.sums[0].norm()) * two.seen.divisors[0] / one.seen.divisors[0]
    # at the first step the weights are the same; a rate that follows the noisy gradient's length is no leak
    at_once = told[0] and abs(ratio[0] - 1) > 3 * rounding and abs(ratio[0] / lengths - 1) > 3 * rounding
    if not (constant or (at_once and same_weights(one, two))):
        return ""
    values = f"{first[:steps][told][0]:.6g} and {second[:steps][told][0]:.6g}"
    return f"the learning rate depends on {what} ({values} for neighbours): fix it before the records are seen"


def _rounding(seen: WatchedTraining, steps: int) -> float:
    weights = flat(seen.weights)
    moves = (weights[1 : steps + 1] - weights[: min(steps, len(weights) - 1)]).norm(dim=1).clamp(min=1e-30)
    return float((2.0**-22 * weights[: len(moves)].norm(dim=1) / moves).max()) if len(moves) else 1.0
