"""Why a training is not as claimed: small tests on what it applied, together with a known rate of false alarms.

Every diagnostic has one p-value, corrected for the layers, steps or records it looks at (Bonferroni), and fails below
``false_alarms / number of diagnostics``; so a training that is as claimed fails any of them with probability at most
`false_alarms`. When several fail, those that may follow from another's cause are left out of the findings.

Rooms: laws (p-values) | evidence (all trials) | noise, shape, dependence, sampling, gradient (the diagnostics) |
explanations (which other gradient fits).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deniable.audit.diagnostics import dependence, gradient, noise, sampling, shape
from deniable.audit.diagnostics.evidence import Diagnosis, Evidence
from deniable.audit.diagnostics.explanations import explanation
from deniable.audit.residuals import Examined

__all__ = ["NUMBER", "Diagnosis", "Evidence", "Examined", "Report", "diagnose"]

NUMBER = 12
"""Diagnostics that share the rate of false alarms; the structural ones (steps) never give one."""
GRADIENT = ("clipping per example", "mean zero", "no earlier gradient")
NOISE = ("noise scale", "normality", "independent steps", "independent trainings", "independent layers")


@dataclass(frozen=True)
class Report:
    """All diagnostics, and of those that failed the ones that name a cause, the first cause first."""

    tests: tuple[Diagnosis, ...]
    findings: tuple[Diagnosis, ...]
    false_alarms: float
    noise_ratio: float

    @property
    def level(self) -> float:
        """The p-value below which a diagnostic fails."""
        return self.false_alarms / NUMBER


def diagnose(evidence: Evidence, false_alarms: float) -> Report:
    """Run every diagnostic on the trials and name the causes."""
    angles, ratio = dependence.Angles.of(evidence), noise.noise_ratio(evidence)
    tests = (
        _steps(evidence),
        sampling.batch_sizes(evidence),
        sampling.batches(evidence),
        dependence.steps(angles),
        dependence.trainings(angles),
        gradient.clipping(evidence),
        gradient.mean(evidence),
        gradient.memory(evidence),
        noise.noise_scale(evidence),
        shape.normality(evidence),
        dependence.layers(evidence, angles),
        gradient.updates(evidence),
    )
    failed = [test for test in tests if test.p_value < evidence.level]
    return Report(tests, tuple(_causes(failed, evidence, angles, ratio)), false_alarms, ratio)


def _steps(evidence: Evidence) -> Diagnosis:
    taken, claimed = evidence.steps, evidence.claim.steps
    sentence = f"the training takes {taken} steps, {claimed} are claimed: every further step costs privacy"
    more = f"{taken} steps", f"{claimed} steps"
    return Diagnosis("number of steps", float(taken == claimed), *more, sentence, weakens=taken > claimed)


def _causes(failed: list[Diagnosis], evidence: Evidence, angles: dependence.Angles, ratio: float) -> list[Diagnosis]:
    """Leave out what may follow from another cause; the first that is left is the cause."""
    names = {test.name for test in failed}
    if again := [name for name in angles.repeated(ratio, gradient.noise_mean(evidence)) if name in names]:
        follows = {*GRADIENT, *NOISE} - set(again) - ({"noise scale"} if abs(ratio - 1) > 0.1 else set())
        left = [test for test in failed if test.name not in follows]
        return sorted(left, key=lambda test: test.name not in again)
    if {"batch sizes", "independent batches"} <= names:
        follows = {"batch sizes" if sampling.dependent(evidence) else "independent batches"}
        failed = [test for test in failed if test.name not in follows]
    if names & set(GRADIENT):
        return _gradient_causes(failed, evidence, ratio)
    return _noise_causes(failed, evidence, ratio)


def _noise_causes(failed: list[Diagnosis], evidence: Evidence, ratio: float) -> list[Diagnosis]:
    """Noise of the wrong scale, or with correlated weights, looks dependent between steps and not normal, too."""
    names = {test.name for test in failed}
    by_layer = np.sqrt(evidence.trials.squares.mean((0, 1)) / evidence.sizes)
    off = float(np.abs(by_layer - 1).max())
    if "independent layers" in names and off < 0.1:
        follows = set(NOISE) - {"independent layers"}
    elif {"normality", "noise scale"} <= names and noise.is_even(evidence) and not noise.equally_long(evidence):
        follows = set(NOISE) - {"normality", *(("noise scale",) if off > 0.08 else ())}
    elif "noise scale" in names:
        follows = set(NOISE) - {"noise scale"}
    else:
        follows = set() if len(names & set(NOISE)) == 1 else {"independent steps", "independent trainings"}
    return [test for test in failed if test.name not in follows]


def _gradient_causes(failed: list[Diagnosis], evidence: Evidence, ratio: float) -> list[Diagnosis]:
    """One finding for the gradient, with the gradient that fits best; of the noise's only too small a scale."""
    found = explanation(evidence)
    by_name = {test.name: test for test in failed}
    kept = next(by_name[name] for name in ("mean zero", *GRADIENT) if name in by_name)
    if found is not None:
        ratio = found.noise_ratio
        kept = replace(by_name.get(found.about, kept), sentence=found.sentence, weakens=found.weakens)
    follows = {*GRADIENT, *(NOISE if ratio > 0.97 else NOISE[1:])} - {kept.name}
    return [kept if test.name == kept.name else test for test in failed if test.name not in follows]
