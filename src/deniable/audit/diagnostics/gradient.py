"""The gradient under the noise: the clipped sum of the batch, nothing of other records, nothing of earlier steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.audit.alternatives import ALIKE, ALTERNATIVES
from deniable.audit.diagnostics.evidence import Diagnosis, Evidence
from deniable.audit.diagnostics.laws import any_of, student
from deniable.audit.residuals import DIRECTIONS
from deniable.audit.updates import Rule

__all__ = ["Explanation", "clipping", "explanation", "mean", "memory", "updates"]

Array = NDArray[np.float64]
CLEAN, CUT, OUTSIDE, BEFORE, EARLIER = range(len(DIRECTIONS))
BETTER = 60.0
"""Another gradient explains the training if the distance to it, in claimed variances, is smaller by so much."""


@dataclass(frozen=True)
class Explanation:
    """Another gradient that the training may have summed, and the noise's standard deviation that it leaves."""

    name: str
    sentence: str
    noise_ratio: float


def _per_trial(evidence: Evidence, direction: int) -> Array:
    """(trials, 1) standard normal under the claim: the standardised sum over the steps that have the direction."""
    components = evidence.components[:, :, direction]
    number = np.sum(~np.isnan(components), axis=1)
    return np.where(number > 0, np.nansum(components, axis=1) / np.sqrt(np.maximum(number, 1)), np.nan)[:, None]


def _bias(evidence: Evidence) -> float:
    return float(evidence.trials.allowance.mean() * np.sqrt(evidence.steps))


def _towards(evidence: Evidence, *directions: int) -> tuple[float, bool]:
    """p-value, and whether there was any such direction in at least two trials."""
    values = [_per_trial(evidence, direction) for direction in directions]
    there = [v for v in values if np.sum(~np.isnan(v)) > 1]
    return any_of(*(student(v, _bias(evidence)) for v in there)), bool(there)


def _excess(evidence: Evidence, direction: int) -> float:
    """The multiple of the direction that is in the residual."""
    inner, length = evidence.trials.inner[..., direction], evidence.trials.length[..., direction]
    return float(evidence.claim.sigma * np.nansum(inner) / max(np.nansum(np.square(length)), 1e-300))


def _by_record(evidence: Evidence, outside: bool) -> Array:
    """(trials, records) standard normal: components along each record's gradient."""
    rows = evidence.trials.records[:, 3 * outside : 3 * outside + 2]
    there = rows[:, 1] > 0
    return np.where(there, rows[:, 0] / np.sqrt(np.maximum(rows[:, 1], 1)), np.nan)


def _records(evidence: Evidence, outside: bool) -> Array:
    values = _by_record(evidence, outside)
    enough = np.sum(~np.isnan(values), axis=0) > 1
    p_values = np.ones(values.shape[1])
    if enough.any():
        p_values[enough] = student(values[:, enough], _bias(evidence))
    return p_values


def mean(evidence: Evidence) -> Diagnosis:
    """The residual has mean zero: along the clean sum, each record's gradient, and those outside the batch."""
    inside, outside = _records(evidence, False), _records(evidence, True)
    p_clean, _ = _towards(evidence, CLEAN)
    p_outside, _ = _towards(evidence, OUTSIDE)
    factor = 1 + _excess(evidence, CLEAN)
    return Diagnosis(
        "mean zero",
        any_of(p_clean, p_outside, any_of(inside), any_of(outside), any_of(inside[-evidence.differing :])),
        f"{factor:.4g} x the clean sum, records' p-values from {min(inside.min(), outside.min()):.2g}",
        "1 x the clean sum, no record too much or too little",
        _mean_sentence(evidence, factor, inside, any_of(outside, p_outside)),
    )


def _mean_sentence(evidence: Evidence, factor: float, inside: Array, outside: float) -> str:
    if outside < evidence.level:
        return "records outside the batch are used as well: use the batch that was drawn, and yield its indices"
    worst = int(np.argmin(inside))
    excess = np.nanmean(evidence.trials.records[:, 2, worst])
    if any_of(inside) < evidence.level and np.sum(inside < evidence.level / len(inside)) <= max(3, len(inside) // 4):
        what = "is left out" if abs(excess + 1) < 0.1 else f"counts {1 + excess:.3g} times"
        return f"a record {what}, not once as every other: use every record of the batch once, without weights"
    if abs(factor - 1) > 0.01:
        return f"the gradient is {factor:.3g} x the clipped sum: check the divisor and the loss's reduction"
    return (
        "the gradient is not the sum of the batch's clipped gradients at the yielded weights: check the loss, the "
        "clipping, and that model, weights and batch are those of the step"
    )


def clipping(evidence: Evidence) -> Diagnosis:
    """Nothing is left of what clipping each example's gradient takes away."""
    p_value, checked = _towards(evidence, CUT)
    share = float(evidence.trials.clipped.mean())
    if not checked:
        observed = "no gradient was longer than the clipping norm: clipping was not put to the test"
        return Diagnosis("clipping per example", 1.0, observed, "gradients longer than the norm", checked=False)
    rest = _excess(evidence, CUT)
    return Diagnosis(
        "clipping per example",
        p_value,
        f"{rest:.3g} of what clipping takes away is left ({share:.0%} of the examples are clipped)",
        "0",
        "the gradients are not clipped example by example to the claimed norm: clip every example's gradient, over "
        "all layers together, before summing",
        weakens=rest > 0,
    )


def memory(evidence: Evidence) -> Diagnosis:
    """Nothing of the previous step's gradient is in this step's."""
    p_value, checked = _towards(evidence, BEFORE, EARLIER)
    return Diagnosis(
        "no earlier gradient",
        p_value,
        f"{_excess(evidence, BEFORE):.3g} x the previous gradient" if checked else "one step only",
        "0 x",
        ALTERNATIVES["previous gradient added"],
        checked=checked,
    )


def updates(evidence: Evidence) -> Diagnosis:
    """The weights move by the gradient that was yielded, where the optimizer's rule is known."""
    rules = [Rule(int(rule)) for rule in evidence.trials.rule]
    names = {Rule.LINEAR: "SGD", Rule.ADAPTIVE: "Adam or the like", Rule.UNKNOWN: "an unknown rule", Rule.STILL: "none"}
    wrong = [rule for rule in rules if rule in (Rule.CLEAN, Rule.OTHER)]
    if not wrong:
        common = max(set(rules), key=rules.count)
        checked = common in (Rule.LINEAR, Rule.ADAPTIVE)
        return Diagnosis("weights follow the gradient", 1.0, names[common], "a rule of the gradient", checked=checked)
    sentence = {
        Rule.CLEAN: "the weights move by the gradient without its noise, or with part of it: apply the noisy gradient",
        Rule.OTHER: "the weights do not move by the yielded gradient: yield the very gradient that is applied",
    }[wrong[0]]
    observed = f"in {len(wrong)} of {len(rules)} trainings they do not"
    return Diagnosis("weights follow the gradient", 0.0, observed, "a rule of the gradient", sentence)


def explanation(evidence: Evidence) -> Explanation | None:
    """The alternative that fits best if it fits better than the claim."""
    if not evidence.looked.size:
        return None
    names, distances = list(ALTERNATIVES), evidence.looked.sum((0, 1))
    best = int(np.argmin(distances))
    if names[best] == "as claimed" or distances[0] - distances[best] < BETTER:
        return None
    numbers = evidence.looked.shape[0] * evidence.looked.shape[1] * evidence.sizes.sum()
    close = {name for name, distance in zip(names, distances, strict=True) if distance < distances[best] + 1}
    alike = next((sentence for pair, sentence in ALIKE.items() if names[best] in pair and close >= set(pair)), None)
    return Explanation(names[best], alike or ALTERNATIVES[names[best]], float(np.sqrt(distances[best] / numbers)))
