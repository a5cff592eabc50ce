"""What regulators ask, and which figure answers it: a mapping, never a promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deniable.answers import sentences
from deniable.formatting import at_least, at_most, chance, percent_at_most, short
from deniable.report.chapters.chapter import Section, Table
from deniable.report.words import verdict_words
from deniable.report.words.assumptions import audit_assumptions
from deniable.results.audit_result import AuditResult
from deniable.results.explain_result import ExplainResult
from deniable.results.shared import ReleaseScores

_LAW_WORDS = (
    "A mapping, not a promise: which risk is small enough, and whether a release is anonymous, is decided by people "
    "and by law."
)

_HOW_SURE = {
    "consistent": "This audit looked for more than they allow and did not find it, which is no proof.",
    "other recipe": "The training is not as claimed, so that they may not be its own.",
    "cannot judge": "This audit cannot tell whether they hold.",
}


@dataclass(frozen=True)
class _Found:
    """What the rows are told with: figures, what they are figures of, and what evidence there is."""

    scores: ReleaseScores
    holds: str
    unit: str
    evidence: str
    asked: str = "no share w and no N was named"
    """What stands in place of a success, where none was asked for."""
    refuted: str = ""
    """In place of every figure, where the claim is refuted."""


def law_of_answer(result: ExplainResult) -> Section:
    """Figures of a release as it was described."""
    holds = "The figures hold for the release as it is described above."
    evidence = "evidence is an audit's verdict, which this computation is not"
    asked = "name w or N with --baseline or --candidates"
    return _section(_Found(result.scores, holds, sentences.setting(result), evidence, asked))


def law_of_audit(document: AuditResult) -> Section:
    """Figures of the claim that was audited, unless the audit refutes it; the verdict is the evidence."""
    terms = dict(audit_assumptions(document))
    unit = f"{terms['Neighbours']} {terms['Sampling']}"
    verdict = f'the verdict of this audit is "{document.verdict}"'
    if verdict_words.is_test_mode(document):
        return _section(
            _Found(document.exact, verdict_words.TEST_MODE, unit, verdict, refuted="none: test mode protects nobody")
        )
    if document.verdict == "violated":
        bound = verdict_words.deciding(document) if document.measured.trials else None
        shown = f"; epsilon is at least {at_least(bound.value)}" if bound is not None and bound.value else ""
        holds = "The claim is refuted: its figures do not hold, and none is told."
        return _section(_Found(document.exact, holds, unit, verdict, refuted=f"not kept: the claim is refuted{shown}"))
    return _section(
        _Found(document.exact, f"The figures are those of the claim. {_HOW_SURE[document.verdict]}", unit, verdict)
    )


def _section(found: _Found) -> Section:
    rows = tuple((document, asks, found.refuted or here) for document, asks, here in _rows(found))
    table = Table("Which figure answers what is asked", ("document", "asks", "here"), rows, wordy=True)
    return Section("What regulators ask", (f"{_LAW_WORDS} {found.holds}",), tables=(table,))


def _rows(found: _Found) -> Iterator[tuple[str, str, str]]:
    """A document, what it asks, and the figure that answers it."""
    scores = found.scores
    belief = f"{_belief(scores)} (from {percent_at_most(scores.prior)})"
    epsilon = "no finite epsilon" if scores.epsilon is None else f"epsilon at most {at_most(scores.epsilon)}"
    yield "WP216", "Singling out: isolate a person by a description that fits a share w", _at_baselines(found)
    yield "WP216", "Linkability: which of N candidates is the person", _at_baselines(found)
    yield "WP216", "Inference of an attribute, beyond the guess without the release", _gains(scores)
    yield (
        "EDPB opinion 28/2024",
        "Extraction and queries: likelihood insignificant for any data subject, by all means reasonably likely",
        f"{belief}, for every record; {found.evidence}",
    )
    yield (
        "NIST SP 800-226",
        "Epsilon, unit of privacy, correctness, trust model, side channels, data collection",
        f"{epsilon} at delta {short(scores.delta)}; unit and sampling: {found.unit}",
    )
    yield (
        "ISO/IEC 27559:2022",
        "Quantify identifiability; maximum or average risk; adversarial testing",
        f"advantage of any attack at most {percent_at_most(scores.advantage)}, a maximum over all records; "
        f"{found.evidence}",
    )


def _at_baselines(found: _Found) -> str:
    scores = found.scores
    told = [f"{percent_at_most(at.success)} from {chance(at.baseline)}" for at in scores.success]
    asked = f"success at most {', '.join(told)}" if told else found.asked
    return f"{asked}; at any share at most {_points(scores.advantage)} more than without the release"


def _gains(scores: ReleaseScores) -> str:
    most = f"at most {_points(scores.advantage)} more than any guess"
    told = [f"{_points(at.success - at.baseline)} from {chance(at.baseline)}" for at in scores.success]
    return f"{most}; {', '.join(told)}" if told else most


def _belief(scores: ReleaseScores) -> str:
    """With the chance of more, where there is one."""
    if scores.belief >= 1:
        return "belief possibly 100 %"
    rare = f", but for a chance of {chance(scores.belief_delta)}" if scores.belief_delta else ""
    return f"belief at most {percent_at_most(scores.belief)}{rare}"


def _points(more: float) -> str:
    """A difference of two shares: 0.01 more than 1 % is 2 %."""
    shown = percent_at_most(more)
    return f"{shown[:-2]} percentage points" if shown[0].isdigit() and shown.endswith(" %") else f"{shown} (as a share)"
