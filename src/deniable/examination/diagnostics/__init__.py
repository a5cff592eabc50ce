"""Why a training is not as claimed: small tests on what it applied, together with a known rate of false alarms.

Every diagnostic has one p-value, corrected for the layers, steps or records it looks at (Bonferroni), and fails below
``false_alarms / number of diagnostics``; so a training that is as claimed fails any of them with probability at most
`false_alarms` (Lemma E9). When several fail, those that may follow from another's cause are left out of the findings.

A failed diagnostic says that the training is another one, not that it is less private. That is decided by what it does
in place of the claim (explanations), by twin trainings that show one record's share without noise (unknown_sums), and
by the noise's scale relative to that share.

p_values | trial_evidence (all trials) | noise_spread, shape, dependence, sampling, gradient, around_the_steps (the
diagnostics) | settled_causes (unknown ones that are safe, or cannot be told) | candidates, explanations, moving_norms
(which other gradient fits) | unknown_sums (what an unknown gradient does to privacy) | single_records (the noise under
it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deniable.examination.diagnostics import around_the_steps, dependence, gradient, noise_spread, sampling, shape
from deniable.examination.diagnostics.explanations import Explanation, explanation, sum_is_clipped
from deniable.examination.diagnostics.moving_norms import count_noise
from deniable.examination.diagnostics.settled_causes import (
    settle_by_followed_noise,
    settle_own_rule,
    settle_shortened,
    settle_unmoved_norm,
)
from deniable.examination.diagnostics.single_records import CERTAIN, bare_noise
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.diagnostics.unknown_sums import (
    is_unclipped_by_twins,
    odd_multiples,
    provoked_shares,
    shown_by_twins,
    unknown_sum,
)
from deniable.examination.residuals import TrialStatistics
from deniable.examination.twins.handed_twins import keeps_earlier_records

__all__ = ["NUMBER", "Diagnosis", "Evidence", "Report", "TrialStatistics", "diagnose"]

NUMBER = 13
"""Diagnostics that share the rate of false alarms; the structural ones (steps, public values) never give one."""
GRADIENT = ("clipping per example", "mean zero", "no earlier gradient", gradient.SHARE)
NOISE = ("noise scale", "normality", "independent steps", "independent trainings", "independent layers")
LOOKED_AGAIN = (around_the_steps.STEPS, around_the_steps.FINAL, gradient.FOLLOWS)
"""Diagnostics that may tell for what a training looks at its records again."""
ENOUGH = 0.97
"""Noise of this share of what one record's share needs is enough, within what is measured."""


@dataclass(frozen=True)
class Report:
    """All diagnostics, and of those that failed the ones that name a cause, the first cause first."""

    tests: tuple[Diagnosis, ...]
    findings: tuple[Diagnosis, ...]
    false_alarms: float
    noise_ratio: float
    level: float
    """The p-value below which a diagnostic fails."""
    unseen: tuple[str, ...] = ()
    """What the training did not show, so that it was not examined."""

    @property
    def certain(self) -> bool:
        """Whether a leak was found beyond doubt, and its cause, so that more trials would add nothing.

        Where several diagnostics of the noise fail, more trials tell better which of them is the cause.
        """
        unclear = sum(test.name in NOISE and test.p_value < self.level for test in self.tests) > 1
        return any(
            finding.weakens and finding.p_value < CERTAIN and not (unclear and finding.name in NOISE)
            for finding in self.findings
        )


def diagnose(evidence: Evidence, false_alarms: float) -> Report:
    """Run every diagnostic on the trials and name the causes; `false_alarms` are those of all looks together."""
    angles, ratio = dependence.Angles.of(evidence), noise_spread.noise_ratio(evidence)
    every = (
        around_the_steps.public(evidence),
        around_the_steps.steps(evidence),
        around_the_steps.norms(evidence),
        count_noise(evidence),
        sampling.batch_sizes(evidence),
        sampling.batches(evidence),
        dependence.steps(evidence, angles),
        dependence.trainings(evidence, angles),
        gradient.clipping(evidence),
        gradient.mean(evidence),
        gradient.memory(evidence),
        gradient.share(evidence),
        provoked_shares(evidence),
        noise_spread.noise_scale(evidence),
        shape.normality(evidence),
        dependence.layers(evidence, angles),
        gradient.updates(evidence),
        gradient.post_processing(evidence),
        around_the_steps.final(evidence),
        around_the_steps.undrawn_records(evidence),
        around_the_steps.later_records(evidence),
    )
    tests = tuple(settle_own_rule(test, evidence) for test in every)
    failed = [test for test in tests if test.p_value < evidence.level]
    causes = [
        dependence.correlated_noise(cause, evidence) if cause.sentence == dependence.DEPENDS else cause
        for cause in _causes(failed, evidence, angles, ratio)
    ]
    if any(cause.weakens and cause.name in LOOKED_AGAIN for cause in causes):  # says more
        causes = [cause for cause in causes if cause.name != around_the_steps.LATER]
    if any(cause.weakens and cause.name == around_the_steps.LATER for cause in causes):  # which tells why
        causes = [cause for cause in causes if cause.weakens is not None or cause.name not in LOOKED_AGAIN]
    causes = [settle_unmoved_norm(settle_shortened(cause, evidence), evidence) for cause in causes]
    causes = settle_by_followed_noise(causes, evidence, frozenset({*GRADIENT, *NOISE}))
    causes = sorted(causes, key=lambda one: one.weakens is not True)
    return Report(
        tests, tuple(causes), false_alarms, ratio, evidence.level, tuple(around_the_steps.not_shown(evidence))
    )


def _causes(failed: list[Diagnosis], evidence: Evidence, angles: dependence.Angles, ratio: float) -> list[Diagnosis]:
    """Leave out what may follow from another cause; the first that is left is the cause."""
    names = {test.name for test in failed}
    if any(test.sentence == sampling.NOT_YIELDED for test in failed):
        return [test for test in failed if test.name not in {*GRADIENT, *NOISE, "independent batches"}]
    if (plain := _plain_cause(failed, evidence)) is not None:
        rest = [test for test in failed if test.name not in {*GRADIENT, *NOISE}]
        return [plain, *rest] if plain.name in NOISE else [*rest, plain]
    odd = bool(names & set(GRADIENT))
    known = evidence.claim.recipe.augmentations == 1 and (not odd or odd_multiples(evidence) is None)
    found = (sum_is_clipped(evidence) or explanation(evidence)) if odd and known else None
    if odd and (found is None or found.about != gradient.MEMORY):  # else known multiples of earlier gradients
        found = _earlier_records(evidence) or found
    if found is not None and found.weakens and (found.safe or found.rough) and not shown_by_twins(evidence):
        found = found.safe  # it is like a leak that is known, and another one
    again = _again(evidence, angles, ratio, found)
    if found is None and again and odd and is_unclipped_by_twins(evidence):
        again = []  # a gradient that is common to steps looks like noise that comes again
    if again := [name for name in again if name in names]:
        follows = {*GRADIENT, *NOISE} - set(again) - ({"noise scale"} if abs(ratio - 1) > 0.1 else set())
        left = [test for test in failed if test.name not in follows]
        return sorted(left, key=lambda test: test.name not in again)
    if {"batch sizes", "independent batches"} <= names:
        follows = {
            "batch sizes" if sampling.dependent(evidence) or sampling.few_odd(evidence) else "independent batches"
        }
        failed = [test for test in failed if test.name not in follows]
    if not odd:
        return _noise_causes(failed, evidence, ratio)
    causes = _gradient_causes(failed, evidence, found)
    if evidence.gradient_fits or any(cause.weakens and cause.name != "noise scale" for cause in causes):
        return causes
    bare = _first_cause(bare_noise(evidence, found), evidence)
    return [*bare, *(cause for cause in causes if not (bare and cause.name in NOISE))]


def _plain_cause(failed: list[Diagnosis], evidence: Evidence) -> Diagnosis | None:
    """What explains all that is wrong with gradient and noise: numbers that come again, or are missing."""
    names = {test.name for test in failed}
    shown = None if evidence.twins is None else evidence.twins.shown
    exact = [dependence.REORDERED, *([dependence.AGAIN] if shown is not None and shown.repeated is not None else [])]
    if again := [test for test in failed if test.sentence in exact]:
        return again[0]
    if names & {*GRADIENT, *NOISE} and (compressed := gradient.compressed_gradient(evidence)) is not None:
        return compressed
    if names & set(NOISE) and not evidence.gradient_fits and noise_spread.has_bare_weights(evidence):
        return noise_spread.left_out(evidence)
    return None


def _earlier_records(evidence: Evidence) -> Explanation | None:
    """Records, or their gradients, that are kept for later steps; None where they are not, or with their noise."""
    twins = evidence.twins
    if twins is None or twins.fits is not False or not twins.first_fits or dependence.first_noise_stays(evidence):
        return None
    return Explanation(gradient.MEMORY, gradient.KEPT_RECORDS, 1.0, True) if keeps_earlier_records(twins) else None


def _again(evidence: Evidence, angles: dependence.Angles, ratio: float, found: Explanation | None) -> list[str]:
    """Between what noise is used again; where another gradient is summed, as it is without that gradient."""
    twins = evidence.twins
    if evidence.gradient_fits:
        return angles.repeated_between(ratio, gradient.noise_mean(evidence))
    if found is not None and found.parts is None:
        return []
    if found is not None and found.parts is not None and twins is not None and twins.exact is not None:
        return dependence.repeated_noise(twins.noise(found.parts))
    return angles.repeated_between(ratio, gradient.noise_mean(evidence))


def _noise_causes(failed: list[Diagnosis], evidence: Evidence, ratio: float) -> list[Diagnosis]:
    """Noise of the wrong scale, or with correlated weights, looks dependent between steps and not normal, too."""
    names = {test.name for test in failed}
    by_layer = np.sqrt(evidence.trials.squares.mean((0, 1)) / evidence.sizes)
    off = float(np.abs(by_layer - 1).max())
    bare = by_layer.min() < noise_spread.MISSING < by_layer.max()  # fills few directions, too
    few = (
        not bare
        and dependence.Angles.of(evidence).directions < dependence.FEW_DIRECTIONS * evidence.trials.sketch.shape[2]
    )
    depends = next((test for test in failed if test.sentence == dependence.DEPENDS and not few), None)
    if few and "independent layers" in names:
        follows = set(NOISE) - {"independent layers"}
    elif depends is not None and depends.p_value < CERTAIN and ratio > ENOUGH:
        follows = set(NOISE) - {depends.name}
    elif "independent layers" in names and off < 0.1:
        follows = set(NOISE) - {"independent layers"}
    elif (
        {"normality", "noise scale"} <= names
        and noise_spread.is_even(evidence)
        and not noise_spread.equally_long(evidence)
    ):
        # noise of another shape has another spread of its squares, and often another variance
        follows = set(NOISE) - {"normality", *(("noise scale",) if off > 0.2 else ())}
        failed = sorted(failed, key=lambda test: test.name == "noise scale")
    elif "noise scale" in names:
        follows = set(NOISE) - {"noise scale"}
    else:
        follows = set() if len(names & set(NOISE)) == 1 else {"independent steps", "independent trainings"}
    return [test for test in failed if test.name not in follows]


def _first_cause(failed: list[Diagnosis], evidence: Evidence) -> list[Diagnosis]:
    """The diagnostics of the noise alone that are left once one of them is the cause."""
    alone = evidence.single
    return [] if alone is None else _noise_causes(failed, alone, noise_spread.noise_ratio(alone))


def _gradient_causes(failed: list[Diagnosis], evidence: Evidence, found: Explanation | None) -> list[Diagnosis]:
    """One finding for the gradient, with the gradient that fits best; and the noise, if it is too little for that."""
    by_name = {test.name: test for test in failed}
    kept = next(by_name[name] for name in ("mean zero", *GRADIENT) if name in by_name)
    rest = [test for test in failed if test.name not in {*GRADIENT, *NOISE}]
    if found is None and evidence.claim.recipe.augmentations > 1:
        noises = [by_name[name] for name in NOISE if name in by_name]
        return [one for one in unknown_sum(evidence, kept, noises) if one.weakens is not False] + rest
    if found is None and evidence.gradient_fits:
        noises = _noise_causes(
            [test for test in failed if test.name in NOISE], evidence, noise_spread.noise_ratio(evidence)
        )
        if "the noise has a mean" in kept.sentence:  # which looks like noise that is common to all weights
            noises = [
                one for one in noises if one.name == "noise scale" and noise_spread.noise_ratio(evidence) < ENOUGH
            ]
        by_noise = any(one.name == "independent steps" for one in noises)  # which moved weights, and so gradients
        return [*noises, *([] if by_noise else [replace(kept, weakens=False)]), *rest]
    if found is None:
        return [*unknown_sum(evidence, kept, [by_name[name] for name in NOISE if name in by_name]), *rest]
    kept = replace(by_name.get(found.about, kept), sentence=found.sentence, weakens=found.weakens)
    need = found.stretch if found.stretch != 1 else 1.0
    little = found.noise_ratio < ENOUGH * min(need, 1.0) if found.weakens else found.noise_ratio < ENOUGH * need
    if found.stretch != 1:
        kept = replace(kept, weakens=found.noise_ratio < ENOUGH * need, sentence=_with_noise(found))
        return [kept, *rest]
    if little and found.sentence != dependence.DEPENDS:  # of that, what is new in a step is less by itself
        return [*rest, _too_little(evidence, by_name.get("noise scale"), found.noise_ratio), kept]
    shapes = [by_name[name] for name in ("normality",) if name in by_name and evidence.gradient_fits]
    return [kept, *shapes, *rest]


def _with_noise(found: Explanation) -> str:
    if abs(found.noise_ratio - 1) < 1 - ENOUGH or (found.weakens and found.noise_ratio < found.stretch):
        return found.sentence
    return f"{found.sentence}; the noise is {found.noise_ratio:.3g} x the claimed one"


def _too_little(evidence: Evidence, failed: Diagnosis | None, ratio: float) -> Diagnosis:
    test = noise_spread.noise_scale(evidence) if failed is None else failed
    return replace(
        test,
        p_value=min(test.p_value, evidence.level / 2),
        sentence=noise_spread.scale_cause(evidence, ratio),
        weakens=True,
    )
