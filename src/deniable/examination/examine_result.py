"""The document of somebody else's training: the game's figures, the diagnostics, and the verdict of both together."""

from __future__ import annotations

import numpy as np

from deniable.answers.explain import exact_scores
from deniable.campaigns.audit import as_measured, watch_notes
from deniable.campaigns.plot_data import course
from deniable.evidence.anytime.watch import WatchEvidence
from deniable.evidence.measured import Trials, measure
from deniable.evidence.verdict import Name, Verdict, verdict, with_watch
from deniable.examination.claim import RecipeTraining
from deniable.examination.diagnostics import Diagnosis, Report
from deniable.formatting import at_most
from deniable.mechanisms import Mechanism, Training
from deniable.promises import Question, claimed_scores
from deniable.results.audit_result import AuditInput, AuditResult, Diagnostics, MeasuredScores, Test
from deniable.results.shared import Watched

NOTE = (
    "The diagnostics speak about the trainings that were run: this data, this model, and clipping only as far as "
    "gradients reached it."
)


def judge_training(
    claim: RecipeTraining,
    claimed: Mechanism,
    trials: Trials | None,
    report: Report,
    given: AuditInput,
    *,
    delta: float,
    confidence: float,
    evidence: WatchEvidence | None = None,
) -> AuditResult:
    """What is claimed, what is exact for it, what the game shows at `confidence`, what the diagnostics found.

    With the `evidence` of a watch over the same trials, either it or the limits may find a violation.
    """
    exact = exact_scores(claimed, Question(claim.adjacency, delta))
    promised = claimed_scores(None, delta)
    measured = MeasuredScores(trials=0)
    game, watched = None, None if evidence is None else _shown_watch(evidence, claim, delta)
    if trials is not None:
        bounds = {"delta": delta, "belief_bound": exact.belief, "confidence": confidence}
        shown = measure(trials, Training.of(claim), scheduled=bool(claim.schedule), **bounds)
        measured, game = as_measured(shown), verdict(shown, promised, exact)
    if game is not None and watched is not None:
        game = with_watch(game, watched)
    judged = _joint_verdict(report, game)
    return AuditResult(
        input=given,
        claimed=promised,
        exact=exact,
        measured=measured,
        verdict=judged.name,
        closeness=judged.closeness,
        verdict_text=judged.text,
        diagnostics=_shown_diagnostics(report),
        notes=(NOTE, *watch_notes(watched)),
        watched=watched,
        course=None if trials is None else course(trials),
    )


def _shown_watch(evidence: WatchEvidence, claim: RecipeTraining, delta: float) -> Watched:
    """Of a noise schedule, which noise is missing is not known: its bound assumes nothing."""
    if claim.schedule:
        return evidence.result(evidence.bare_bound(delta))
    training = Training.of(claim)
    return evidence.result(evidence.mechanism_bound(training, delta), training=training)


def _joint_verdict(report: Report, game: Verdict | None) -> Verdict:
    """The game's verdict, unless a diagnostic failed; passed diagnostics decide where the game could not."""
    violated = game is not None and game.name == "violated"
    unseen = [f"Not examined, since it was not shown: {'; '.join(report.unseen)}."] if report.unseen else []
    if report.findings:
        found = "; ".join(f"{finding.sentence} ({_p(finding)})" for finding in report.findings)
        rate = f"A training as claimed fails any diagnostic with probability at most {at_most(report.false_alarms, 2)}."
        parts = [f"{found[0].upper()}{found[1:]}.", *([rate] if report.false_alarms else [])]
        parts += [game.text] if game is not None and violated else []
        return Verdict(_word(report, violated), " ".join([*parts, *unseen]))
    if game is None or violated:
        return game or Verdict("cannot judge", "Nothing was trained.")
    passed = sum(test.checked for test in report.tests)
    noise = f"the noise has {report.noise_ratio:.4g} x the claimed standard deviation"
    text = " ".join([f"All {passed} diagnostics that apply pass; {noise}. {game.text}", *unseen])
    return Verdict("cannot judge" if game.exceeded_too_often else "consistent", text, game.closeness)


def _word(report: Report, violated: bool) -> Name:
    """Less private, as private, or not to be told."""
    if violated or any(finding.weakens for finding in report.findings):
        return "violated"
    return "cannot judge" if any(finding.weakens is None for finding in report.findings) else "other recipe"


def _p(finding: Diagnosis) -> str:
    return f"{finding.name}, p < 1e-12" if finding.p_value < 1e-12 else f"{finding.name}, p = {finding.p_value:.1g}"


def _shown_diagnostics(report: Report) -> Diagnostics:
    named = {finding.name: finding for finding in report.findings}
    return Diagnostics(
        cause=report.findings[0].sentence if report.findings else None,
        false_alarm_rate=report.false_alarms,
        level=report.level,
        noise_ratio=float(report.noise_ratio) if np.isfinite(report.noise_ratio) else None,
        not_examined=tuple(report.unseen),
        findings=tuple(_test(finding, report) for finding in report.findings),
        tests=tuple(_test(named.get(test.name, test), report) for test in report.tests),
    )


def _test(test: Diagnosis, report: Report) -> Test:
    passed = bool(test.p_value >= report.level) if report.false_alarms else False
    return Test(
        name=test.name,
        p_value=float(test.p_value),
        passed=passed,
        checked=test.checked,
        observed=test.observed,
        expected=test.expected,
        weakens_privacy=None if passed else test.weakens,
        sentence=None if passed else test.sentence,
    )
