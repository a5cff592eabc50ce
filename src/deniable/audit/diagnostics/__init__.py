"""Why a training is not as claimed: small tests on what it applied, together with a known rate of false alarms.

Every diagnostic has one p-value, corrected for the layers, steps or records it looks at (Bonferroni), and fails below
``false_alarms / number of diagnostics``; so a training that is as claimed fails any of them with probability at most
`false_alarms`. When several fail, those that may follow from another's cause are left out of the findings.

Rooms: laws (p-values) | evidence (all trials) | noise, dependence, sampling, gradient (the diagnostics).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deniable.audit.alternatives import ALTERNATIVES
from deniable.audit.diagnostics import dependence, gradient, noise, sampling
from deniable.audit.diagnostics.evidence import Diagnosis, Evidence
from deniable.audit.residuals import Examined

__all__ = ["NUMBER", "Diagnosis", "Evidence", "Examined", "Report", "diagnose"]

NUMBER = 12
"""Diagnostics that share the rate of false alarms; the structural ones (steps) never give one."""
GRADIENT = ("clipping per example", "mean zero", "no earlier gradient")
NOISE = ("noise scale", "normality", "independent steps", "independent trainings", "independent layers")
HARMLESS = ("clipped at half the norm", "clipped per layer to an equal part", "loss averaged before clipping")


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
        noise.normality(evidence),
        dependence.layers(evidence),
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
    """Leave out what follows from another cause."""
    names = {test.name for test in failed}
    if again := [name for name in angles.repeated(ratio) if name in names]:
        small = abs(ratio - 1) < 0.1
        follows = {*GRADIENT, "independent layers", "normality", *(("noise scale",) if small else ())}
        # noise that returns in another training returns in its steps, too, only if it is reseeded within each
        follows |= {"independent steps", "independent trainings"} - set(again)
        return [test for test in failed if test.name not in follows]
    if "batch sizes" in names:
        failed = [test for test in failed if test.name != "independent batches"]
    if not names & set(GRADIENT):
        return failed
    return _gradient_causes(failed, evidence, ratio)


def _gradient_causes(failed: list[Diagnosis], evidence: Evidence, ratio: float) -> list[Diagnosis]:
    """One finding for the gradient, with the gradient that fits best; the noise's findings only if they stand alone."""
    found = gradient.explanation(evidence)
    kept = next(test for name in GRADIENT for test in failed if test.name == name)
    if found is not None:
        name, ratio = found
        where = "no earlier gradient" if name.startswith("previous") else "mean zero"
        where = "clipping per example" if "clipped" in name or name == "normalised" else where
        kept = next((test for test in failed if test.name == where), kept)
        kept = replace(kept, sentence=ALTERNATIVES[name], weakens=name not in HARMLESS)
    else:
        kept = next((test for test in failed if test.name == "mean zero"), kept)
    follows = {*GRADIENT, *(NOISE if ratio > 0.97 else NOISE[1:])}
    return [kept if test.name == kept.name else test for test in failed if test is kept or test.name == kept.name or test.name not in follows]
