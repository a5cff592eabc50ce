"""The gradient under the noise: the clipped sum of the batch, nothing of other records, nothing of earlier steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.examination.diagnostics.p_values import any_of, student
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.residuals import DIRECTIONS
from deniable.examination.updates.post_processing import ACCUMULATED
from deniable.examination.updates.update_rules import Rule
from deniable.tradeoff import rank_correlation

Array = NDArray[np.float64]
CLEAN, CUT, OUTSIDE, BEFORE, EARLIER = range(len(DIRECTIONS))
SHARE = "one record's share"
POST = "post-processing"
EXTRA_RECORD = (
    "a record is used that was not given (every sum has its gradient once more, whatever the records are: it was kept "
    "from an earlier training, or is read from elsewhere): train on the given records"
)
FOLLOWS = "weights follow the gradient"
ROUNDED = 1e-6
"""A loss that rises by less is the same."""
IN_ORDER = 0.99
"""The rank correlation of rates that are a function of a length."""
RATE = 0.01
"""Learning rates that differ by this share are other ones."""
_WRONG = {
    Rule.CLEAN: "the weights move by the gradient without its noise, or with part of it: apply the noisy gradient",
    Rule.OTHER: "the weights do not move by the yielded gradient: yield the very gradient that is applied",
}
MOVED_OTHERWISE = tuple(_WRONG.values())
MEMORY = "no earlier gradient"
KEPT_RECORDS = (
    "records of earlier batches, or clean gradients that were stored of them, are in later steps' sums (a replay "
    "buffer, a table of gradients), so a record counts in steps that did not draw it: sum the batch's gradients alone"
)
_UNKNOWN_RULE = (
    "the weights follow the yielded gradients, but by no rule that is known here (SGD with momentum and decay, Adam, "
    "RMSprop, Adagrad, signs, largest numbers), so that it was not seen whether anything else moves them: audit with a "
    "known rule"
)


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


def noise_mean(evidence: Evidence) -> float:
    """The mean of all numbers of the noise, in claimed standard deviations."""
    totals = evidence.trials.totals * np.sqrt(evidence.sizes)
    return float(totals.sum() / (totals[..., 0].size * evidence.sizes.sum()))


def _p_of_noise_mean(evidence: Evidence) -> float:
    """Of the trainings' own means, so that numbers of one training may depend on each other."""
    each = (evidence.trials.totals * np.sqrt(evidence.sizes)).sum((1, 2))
    return student(each[:, None] / np.sqrt(evidence.steps * evidence.sizes.sum())).item()


def mean(evidence: Evidence) -> Diagnosis:
    """The residual has mean zero: over all, along the clean sum, each record's gradient, and those not in the batch."""
    inside, outside = _records(evidence, False), _records(evidence, True)
    p_clean, _ = _towards(evidence, CLEAN)
    p_outside, _ = _towards(evidence, OUTSIDE)
    factor = 1 + _excess(evidence, CLEAN)
    return Diagnosis(
        "mean zero",
        any_of(
            _p_of_noise_mean(evidence),
            p_clean,
            p_outside,
            any_of(inside),
            any_of(outside),
            any_of(inside[-evidence.differing :]),
            any_of(outside[-evidence.differing :]),
        ),
        f"{factor:.4g} x the clean sum, records' p-values from {min(inside.min(), outside.min()):.2g}",
        "1 x the clean sum, no record too much or too little",
        _mean_sentence(
            evidence, factor, inside, any_of(any_of(outside), p_outside, any_of(outside[-evidence.differing :]))
        ),
    )


def compressed_gradient(evidence: Evidence) -> Diagnosis | None:
    """A yielded gradient with many zeros or equal numbers was compressed after its noise, or has none there."""
    share = float(np.median(evidence.trials.coarse))
    if share < 0.05:
        return None
    if bool(evidence.trials.kept_by_clean.all()):
        text = (
            f"the largest numbers are chosen by the clean gradient ({100 * share:.0f} % of the weights are left out), "
            "which no noise hides: choose them by the noisy gradient, or beforehand"
        )
        return Diagnosis("mean zero", 0.0, "kept where the clean gradient is large", "all kept", text)
    text = (
        f"the yielded gradient is zero, or one of few numbers, on {100 * share:.0f} % of the weights: if it was "
        "compressed after the noise that is safe, but it cannot be seen here; yield the noisy gradient before it is "
        "compressed"
    )
    return Diagnosis("mean zero", 0.0, f"{100 * share:.0f} % alike", "all different", text, weakens=None)


def odd_record(evidence: Evidence) -> tuple[int, float] | None:
    """The column of a record that is treated unlike the others, and by how many times too much; None: no single one."""
    inside = _records(evidence, False)
    few = np.sum(inside < evidence.level / len(inside)) <= max(3, len(inside) // 4)
    if any_of(inside) >= evidence.level or not few:
        return None
    worst = int(np.argmin(inside))
    watched = evidence.trials.records.shape[2]
    return evidence.members.shape[1] - watched + worst, float(np.nanmean(evidence.trials.records[:, 2, worst]))


def _mean_sentence(evidence: Evidence, factor: float, inside: Array, outside: float) -> str:
    if _p_of_noise_mean(evidence) < evidence.level and abs(noise_mean(evidence)) > 0.01:
        shift = f"a mean of {noise_mean(evidence):.2g} claimed standard deviations"
        return f"the noise has {shift}: draw it from a normal distribution with mean zero"
    if outside < evidence.level and evidence.claim.rate == 1:
        return "a record is used that was not given (the neighbouring data set lacks it): train on the given records"
    if outside < evidence.level:
        return "records outside the batch are used as well: use the batch that was drawn, and yield its indices"
    worst = int(np.argmin(inside))
    excess = np.nanmean(evidence.trials.records[:, 2, worst])
    if any_of(inside) < evidence.level and np.sum(inside < evidence.level / len(inside)) <= max(3, len(inside) // 4):
        what = "is left out" if abs(excess + 1) < 0.1 else f"counts {1 + excess:.3g} times"
        return f"a record {what}, not once as every other: use every record of the batch once, without weights"
    off = abs(factor - 1) > 0.01 and _towards(evidence, CLEAN)[0] < evidence.level
    if off and not evidence.trial_products.size:
        return f"the gradient is {factor:.3g} x the clipped sum: check the divisor and the loss's reduction"
    return (
        "the gradient is another than the sum of the batch's clipped gradients at the yielded weights: check the loss, "
        "augmentations, the clipping, and that model, weights and batch are those of the step"
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
        f"{rest:.3g} of what clipping takes away is left ({100 * share:.0f} % of the examples are clipped)",
        "0",
        "the gradients are not the examples' own, clipped one by one to the claimed norm: clip every example's "
        "gradient, over all layers together, before summing; and audit with the loss and records that are trained on",
        weakens=rest > 0,
    )


def memory(evidence: Evidence) -> Diagnosis:
    """Nothing of the previous step's gradient is in this step's."""
    p_value, checked = _towards(evidence, BEFORE, EARLIER)
    return Diagnosis(
        MEMORY,
        p_value,
        f"{_excess(evidence, BEFORE):.3g} x the previous gradient" if checked else "one step only",
        "0 x",
        ACCUMULATED,
        checked=checked,
    )


def share(evidence: Evidence) -> Diagnosis:
    """Twin trainings differ by what the exchanged record's clipped gradient differs by; no noise, so no false alarm."""
    fits, expected = evidence.gradient_fits, "the difference of the claimed sums"
    if fits is None or evidence.claim.recipe.augmentations > 1:
        return Diagnosis(SHARE, 1.0, "not known", expected, checked=False)
    text = "the gradient is another than the sum of the batch's clipped gradients at the yielded weights"
    return Diagnosis(SHARE, float(fits), "the same" if fits else "twin trainings differ otherwise", expected, text)


def post_processing(evidence: Evidence) -> Diagnosis:
    """The noisy sum is yielded as it is."""
    post = None if evidence.twins is None else evidence.twins.post
    shown = None if evidence.twins is None else evidence.twins.shown
    if shown is not None and shown.extra_record:
        return Diagnosis(POST, 0.0, "one more record's gradient is added", "none", EXTRA_RECORD)
    if post is None or post.changes_nothing:
        return Diagnosis(POST, 1.0, "none that is known", "none")
    return Diagnosis(POST, 0.0, "some, undone here", "none", post.sentence(evidence.layers), weakens=False)


def _undone(evidence: Evidence) -> bool:
    """Whether weights stay in some steps that drew records, other ones in every training, and else the loss falls."""
    change, drawn = np.diff(evidence.trials.losses, axis=1), evidence.trials.batch.sum(2)[:, :-1] > 0
    still, moved = (change == 0) & drawn, change != 0
    alike = bool((still == still[:1]).all())
    return bool(still.sum() >= 5 and moved.sum() >= 8 and not alike and (change[moved] < ROUNDED).all())


def updates(evidence: Evidence) -> Diagnosis:
    """The weights move by the gradient that was yielded, where the optimizer's rule is known."""
    rules = [Rule(int(rule)) for rule in evidence.trials.rule]
    names = {Rule.LINEAR: "SGD", Rule.ADAPTIVE: "Adam or the like", Rule.UNKNOWN: "an unknown rule", Rule.STILL: "none"}
    if any(_undone(one) for one in evidence.others):
        text = (
            "some steps are not applied, and those that are never raise the loss on the training's own records: that "
            "loss decides, and no noise hides it; apply every step, or decide on public data"
        )
        return Diagnosis(FOLLOWS, 0.0, "some steps are undone", "a rule of the gradient", text)
    if wrong := [rule for rule in rules if rule in (Rule.CLEAN, Rule.OTHER)]:
        observed = f"in {len(wrong)} of {len(rules)} trainings they do not"
        return Diagnosis(FOLLOWS, 0.0, observed, "a rule of the gradient", _WRONG[wrong[0]])
    varying = [found for one in evidence.others if (found := _varying_rates(one))]
    if varying:
        sentence, weakens = next((one for one in varying if one[1]), varying[0])
        return Diagnosis(FOLLOWS, 0.0, "at other rates in other trainings", "one schedule", sentence, weakens=weakens)
    if Rule.UNKNOWN in rules:
        return Diagnosis(FOLLOWS, 0.0, "an unknown rule", "a rule of the gradient", _UNKNOWN_RULE, weakens=None)
    common = max(set(rules), key=rules.count)
    return Diagnosis(FOLLOWS, 1.0, names[common], "a rule of the gradient", checked=common is not Rule.STILL)


def _order_by_step(rates: Array, lengths: Array) -> float:
    """The mean rank correlation of rates and lengths over the trainings, of every step."""
    found = [rank_correlation(one, other) or 0.0 for one, other in zip(rates.T, lengths.T, strict=True)]
    return abs(float(np.mean(found)))


def _varying_rates(evidence: Evidence) -> tuple[str, bool | None] | None:
    """What changes the learning rate from step to step, if trainings differ in it, and whether it is a leak."""
    rates, losses = evidence.trials.rates, evidence.trials.losses
    known = np.isfinite(rates).all(1)
    if known.sum() < 3 or rates.shape[1] < 3:
        return None
    rates, losses, lengths = rates[known], losses[known], evidence.trials.length_applied[known]
    kinds = [rates * (lengths / evidence.trials.divisor[known]) ** power for power in (0, 1, 2)]
    if any((np.ptp(one / one[:, :1], axis=0) <= RATE * (one / one[:, :1]).min(0)).all() for one in kinds):
        return None  # one schedule, or one of the noisy gradient's length
    order = [_order_by_step(rates, each) for each in (lengths, evidence.trials.length[known, :, CLEAN])]
    if order[0] > IN_ORDER:
        return None  # a function of the noisy gradient's length
    if order[1] > IN_ORDER:
        return (
            "the learning rate follows the length of the clean gradient, which no noise hides: fix it beforehand",
            True,
        )
    falls = rates[:, 1:] < (1 - RATE) * rates[:, :-1]
    later = np.concatenate([np.full((len(losses), 1), np.inf), losses[:, 1:-1]], axis=1)
    before = losses[:, :-1], *(np.minimum.accumulate(each, axis=1) for each in (losses[:, :-1], later))
    if falls.any() and any(bool((falls == (losses[:, 1:] >= best)).all()) for best in before):
        return (
            "the learning rate falls where the loss on the training's own records does not, which no noise hides: fix "
            "it beforehand, or decide on public data"
        ), True
    return (
        "the learning rate changes otherwise in one training than in the next, and nothing that was shown tells why: "
        "if the records decide, it is a leak; fix its schedule beforehand"
    ), None
