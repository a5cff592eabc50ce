"""A sum that no known gradient explains: whether it is less private, by what twin trainings show without noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr
from torch import Tensor

from deniable.examination.alternatives import COUNTED
from deniable.examination.diagnostics import gradient, noise_spread
from deniable.examination.diagnostics.candidates import CLAIMED, Candidate, named_candidate, sum_candidate
from deniable.examination.diagnostics.explanations import simplest
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.twins.handed_twins import forgets_earlier_records
from deniable.examination.twins.idle_records import hardest_contents, other_contents
from deniable.examination.twins.probes import (
    Probe,
    noise_of_long_records,
    probe_at_step,
    probe_later_steps,
    probe_share,
    unbounded_step,
)
from deniable.examination.twins.twin_differences import different_batches
from deniable.examination.twins.twin_run import FAILS, LARGE_TIMES, Run, are_same, half_precision_error
from deniable.examination.twins.twins import Twins

PROVOKED = "other records' shares"

DEPENDS = 0.01
"""In clipping norms: what a record outside the batch, or another record, may change by rounding."""
LONGER = 1.02
"""A share of the sum that is longer than this many clipping norms is not clipped."""
MORE_THAN_NOISE = 1.2
"""So many times the claimed noise are partly a gradient, where another one than the claimed is summed."""
EXPLAINED, EXPLAINED_PART = 1e-7, 1e-3
"""Of a squared difference: what single precision leaves is less; and the part of it that another norm may leave."""
UNUSED, OTHER_NOISE, ROUNDED = 1e-6, 0.1, 1e-4
"""The share of claimed differences below which records do not count; of the noise's length by which it is another one;
and of a sum's length that rounding may be."""
UNKNOWN = (
    "the gradient is another than the sum of the batch's clipped gradients at the yielded weights (another loss, "
    "dropout, augmentations, another clipping)"
)
LEFT_OUT = "whether a step is applied is decided by looking at the records, which no noise hides; apply every step"
KEPT_DATA = (
    "the sum is still that of these: a record is used that was not given (it was in an earlier training): train on the "
    "given records"
)


def free_ratio(evidence: Evidence) -> tuple[float, float]:
    """The noise's scale outside the span of all gradients, and the chance that so little comes of the claimed noise."""
    squares, numbers = evidence.free.sum((0, 1)) if evidence.free.size else (0.0, 0.0)
    if numbers < 50:
        return float("nan"), 1.0
    return float(np.sqrt(squares / numbers)), float(chdtr(numbers, squares))


def unknown_sum(evidence: Evidence, kept: Diagnosis, noises: list[Diagnosis]) -> list[Diagnosis]:
    """The findings: for the gradient, and for the noise if there is too little of it whatever the gradient."""
    ratio, chance = free_ratio(evidence)
    little = [test for test in noises if test.name == "noise scale" and test.weakens]
    if chance < evidence.level or (np.isnan(ratio) and little and noise_spread.noise_ratio(evidence) < 1):
        known = ratio if np.isfinite(ratio) else noise_spread.noise_ratio(evidence)
        test = (little or [noise_spread.noise_scale(evidence)])[0]
        sentence = noise_spread.scale_cause(evidence, known)
        return [replace(test, p_value=min(test.p_value, chance), sentence=sentence, weakens=True)]
    if single := _counted_record(evidence, kept):
        return [single]
    probe = probe_share(evidence.twins) if evidence.twins is not None else None
    if probe is None:
        return [_without_twins(evidence, kept)]
    if worse := _less_private(probe, ratio) or _later(evidence, ratio):
        return [replace(kept, sentence=worse, weakens=True)]
    return [_by_record(evidence, kept, ratio)]


def provoked_shares(evidence: Evidence) -> Diagnosis:
    """On records with longer and shorter gradients than these, twins differ as claimed, too; no false alarm."""
    twins = evidence.twins.on_provoking_records if evidence.twins is not None and evidence.gradient_fits else None
    expected = "the difference of the claimed sums"
    if twins is None or twins.differences is None or evidence.claim.recipe.augmentations > 1:
        return Diagnosis(PROVOKED, 1.0, "not known", expected, checked=False)
    about = "on records with longer or shorter gradients than these"
    usual, differences = evidence.twins, twins.differences
    if usual is not None and (text := usual.once("whole step", lambda: _whole_step_depends(usual, twins, differences))):
        return Diagnosis(PROVOKED, 0.0, "another one", expected, f"{about} {text}", weakens=True)
    if twins.fits and (hidden := _norm_of_some(twins)) is not None:
        return Diagnosis(PROVOKED, 0.0, "another one", expected, f"{about} {hidden.sentence}", weakens=True)
    if twins.fits:
        return Diagnosis(PROVOKED, 1.0, "the same", expected)
    found = None if twins.exact is None else simplest(replace(evidence, twins=twins), twins.exact)
    probe = probe_share(twins)
    worse = "" if probe is None else _less_private(probe, float("nan"))
    weakens: bool | None = None if probe is None else bool(worse)
    text = worse or UNKNOWN
    if found is not None and found.weakens and found.safe is not None and weakens is False:
        found = found.safe
    if found is not None and (found.weakens == weakens or not found.rough):
        text, weakens = found.sentence, found.weakens
    return Diagnosis(PROVOKED, 0.0, "another one", expected, f"{about} {text}", weakens=weakens)


def _norm_of_some(twins: Twins) -> Candidate | None:
    """The norm of some parameters that explains what the norm of all leaves, however little that is; None: nothing."""
    differences = twins.differences
    left = 0.0 if differences is None else float(differences[0, 0] - 2 * differences[0, 1] + differences[1, 1])
    exact = None if differences is None or left <= EXPLAINED * float(differences[0, 0]) else twins.exact
    if exact is None:
        return None
    layers = twins.original(twins.seeds[0]).seen.sums
    partial_norms = (named_candidate(name) for name, part in COUNTED.items() if layers[part])
    best = min(partial_norms, key=lambda one: one.left(exact), default=None)
    return best if best is not None and best.left(exact) < EXPLAINED_PART * left else None


def _whole_step_depends(usual: Twins, provoked: Twins, differences: NDArray[np.float64]) -> str:
    """What provoked records change for all others, in words: whether the step counts, or its noise; "" if nothing.

    What is left out of a sum is missing in what is taken for its noise, too: so that is looked for first.
    """
    applied, clean = np.diag(differences)
    if clean > 0 and applied <= UNUSED * clean:  # a record that was not drawn counts nowhere
        own, other = (twins.original(provoked.seeds[0]).sums[0] for twins in (usual, provoked))
        return KEPT_DATA if are_same(own, other) else f"no record counts, neither long nor short: {LEFT_OUT}"
    found = list(_other_noise(usual, provoked)) if provoked.fits and usual.shares_noise else []
    apart = [one for one in found if one.apart > OTHER_NOISE]
    if any(one.alone for one in apart):
        return f"the noise is applied alone, or nothing: {LEFT_OUT}"
    if not apart:
        return ""
    return (
        f"the noise of the same seed is another one (by {max(one.apart for one in apart):.2g} of its length): its size "
        "or its draws follow the records, such as their loss; fix its standard deviation beforehand"
    )


@dataclass(frozen=True)
class _OtherNoise:
    """What the first sum on other records has beside their gradients."""

    apart: float
    """How far that is from the noise on D, beyond rounding and relative to its length."""
    alone: bool
    """Whether the sum is the noise on D, or nothing, without any gradient."""


def _other_noise(usual: Twins, provoked: Twins) -> Iterator[_OtherNoise]:
    """On some other records, where they draw the same random numbers."""
    seed = provoked.seeds[0]
    one, others = usual.original(seed), [provoked.original(seed)]
    for contents in (*other_contents(usual, one), hardest_contents(one)):
        with suppress(*FAILS):
            others.append(usual.train(seed, True, contents, 1))
    own, rounding = _first_noise(one)
    for two in others:
        if different_batches(one, two, 1) or one.seen.random_states[:1] != two.seen.random_states[:1]:
            continue
        noise, more = _first_noise(two)
        applied = two.sums[0] / two.recomputer.recompute(two.seen, two.members).sigma[0]
        apart = float((own - noise).norm()) - rounding - more
        alone = min(float((applied - own).norm()), float(applied.norm())) <= rounding + more
        yield _OtherNoise(apart / max(float(own.norm()), 1e-300), alone)


def _first_noise(run: Run) -> tuple[Tensor, float]:
    """In claimed standard deviations; and how far rounding may be off."""
    found = run.recomputer.recompute(run.seen, run.members)
    share = ROUNDED + 4 * half_precision_error(run)
    return found.residual[0].double(), share * float(run.sums[0].norm() / found.sigma[0])


def shown_by_twins(evidence: Evidence) -> bool:
    """Whether twins show one record's share to be longer than claimed, or not its own; True where that is not known."""
    probe = probe_share(evidence.twins) if evidence.twins is not None else None
    ratio = free_ratio(evidence)[0]
    return probe is None or bool(_less_private(probe, ratio) or _later(evidence, ratio))


def is_unclipped_by_twins(evidence: Evidence) -> bool:
    """Whether twins are certain of that, where what is taken for noise is partly another gradient."""
    if evidence.gradient_fits or noise_spread.noise_ratio(evidence) < MORE_THAN_NOISE or evidence.twins is None:
        return False
    return probe_share(evidence.twins) is not None and shown_by_twins(evidence)


def _later(evidence: Evidence, ratio: float) -> str:
    """What twins show of the steps after the first, in words; "" if nothing."""
    if evidence.twins is None:
        return ""
    if (step := unbounded_step(evidence.twins)) is not None:
        return (
            f"the gradients are not clipped, or not in every step (one large record moves the sum of step {step + 1} "
            "further than all clipped gradients together could): clip every example's gradient before summing"
        )
    probes = sorted(probe_later_steps(evidence.twins), key=lambda found: -found[1].interaction)
    worse = ((step, _less_private(probe, ratio)) for step, probe in probes)
    return next((f"in step {step + 1} {text}" for step, text in worse if text), "")


def _less_private(probe: Probe, ratio: float) -> str:
    """What the twins show, in words; "" if one record changes the first sum no further than claimed."""
    depends = DEPENDS + 4 * probe.rounding
    if probe.outside > depends:
        return (
            "records outside the batch are used as well, in the sum or in statistics: use the batch that was drawn, "
            "and yield its indices"
        )
    if probe.interaction > depends:
        return (
            "one record's share of the sum depends on other records of the batch (statistics, weights or a norm taken "
            "from the batch, which mixes them), so clipping bounds nobody's influence: compute every record's gradient "
            "from that record alone"
        )
    if probe.reach > LONGER * max(1.0, ratio if np.isfinite(ratio) else 1.0):
        return (
            "the gradients are not clipped to the claimed norm, or not all of them: exchanging one record shows a "
            f"share of at least {probe.reach:.3g} x the clipping norm{_bounded_somehow(probe)}: clip every example's "
            "gradient before summing"
        )
    return ""


def _bounded_somehow(probe: Probe) -> str:
    """What a share that is too long, but does not grow with its record, tells; "" where it may grow."""
    if not probe.stretched or probe.reach > LARGE_TIMES / 4:
        return ""
    return (
        f", and no longer one where the record is {LARGE_TIMES:g} x as large: it is bounded, but not as one gradient "
        "by that norm (copies, views or parts of a record that are clipped one by one and added, or a larger norm)"
    )


def odd_multiples(evidence: Evidence) -> list[float] | None:
    """How often the few records count that do not count once, where twins tell it exactly; None: no such records."""
    times = None if evidence.twins is None or evidence.gradient_fits else evidence.twins.multipliers
    if times is None:
        return None
    odd = times[np.abs(times - 1) > 0.1]
    return odd.tolist() if 0 < len(odd) <= max(2, len(times) // 4) else None


def _counted_record(evidence: Evidence, kept: Diagnosis) -> Diagnosis | None:
    """Single records that count more or less often than once."""
    odd = odd_multiples(evidence)
    if odd is None:
        return None
    if "not given" in kept.sentence and min(odd) < 0.1:
        return replace(kept, weakens=True)
    most = max(odd, key=lambda times: abs(times - 1))
    return replace(kept, sentence=_counts(most - 1), weakens=most > 1)


def _counts(excess: float) -> str:
    what = "is left out" if abs(excess + 1) < 0.15 else f"counts {1 + excess:.3g} times"
    return f"a record {what}, not once as every other: use every record of the batch once, without weights"


def _by_record(evidence: Evidence, kept: Diagnosis, ratio: float) -> Diagnosis:
    """A single record that is treated otherwise is tried by itself."""
    worst = gradient.odd_record(evidence)
    if worst is not None and evidence.twins is not None and worst[1] > 0.15:
        probe = probe_share(evidence.twins, evidence.twins.place_of(worst[0]))
        if probe is None or probe.reach > LONGER * max(1.0, ratio if np.isfinite(ratio) else 1.0):
            return replace(kept, sentence=_counts(worst[1]), weakens=True)
    twins = evidence.twins
    if twins is not None and twins.exact is not None and twins.first_fits and not _odd_steps_are_bounded(twins, ratio):
        text = (
            f"the first step is as claimed, but not those after it: {UNKNOWN}, or earlier gradients are in it: show why"
        )
        return replace(kept, sentence=text, weakens=None)
    if evidence.twins is not None and (left := noise_of_long_records(evidence.twins)) is not None:
        text = (
            "the noise is added to every gradient before clipping, which shortens both: on records with long gradients "
            f"{left:.2g} x the claimed standard deviation is left: clip first, and add the noise to the sum"
        )
        return replace(kept, sentence=text, weakens=True)
    text = f"{UNKNOWN}: twin trainings show that one record changes it no further than claimed; audit with that loss"
    return replace(kept, sentence=f"{text}, or claim what is done (recipe=...)", weakens=False)


def _odd_steps_are_bounded(twins: Twins, ratio: float) -> bool:
    """Whether all steps whose twins differ otherwise than claimed were seen to bound every record's share.

    By records that are exchanged just before the step, in a training that keeps nothing of those before.
    """
    if twins.exact_steps is None or len(twins.original(twins.seeds[0]).seen) > len(twins.exact_steps):
        return False
    claimed = sum_candidate(CLAIMED)
    odd = [step for step, exact in enumerate(twins.exact_steps) if claimed.left(exact) > ROUNDED * exact[0, 0]]
    if not forgets_earlier_records(twins):
        return False
    probes = [probe_at_step(twins, twins.seeds[0], step) for step in odd]
    return all(probe is not None and not _less_private(probe, ratio) for probe in probes)


def _without_twins(evidence: Evidence, kept: Diagnosis) -> Diagnosis:
    text = (
        f"{UNKNOWN}; trainings with the same seed do not repeat, so one record's share cannot be seen: draw everything"
    )
    outside = kept.sentence if "not given" in kept.sentence or "outside" in kept.sentence else ""
    weakens = True if outside else None
    return replace(kept, sentence=outside or f"{text} from the seed", weakens=weakens)
