"""How good a model is, beside its risk: from the run itself, or from a frontier that is reported with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deniable.mechanisms import Adjacency
from deniable.promises import Advantage
from deniable.report.words.amount_text import share
from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditInput, AuditResult
from deniable.results.base import Result
from deniable.results.explain_result import AnswerInput, ChooseResult, ExplainResult
from deniable.results.frontier_result import FrontierResult
from deniable.results.shared import ReleaseScores
from deniable.results.verdict_result import VerdictResult
from deniable.utility.expected_quality import expect_quality

UNKNOWN = (
    "Not measured here. `deniable frontier` measures what accuracy each promise leaves; named beside this run, its "
    "figures stand here."
)

OTHER_BATCHES = (
    "Not known: frontiers are measured on Poisson batches, and other batches take other noise for a promise."
)

REFUTED = "Not known: the claim is refuted, and frontiers are measured at promises that are kept."


def tell_quality(result: Result, frontiers: Sequence[FrontierResult]) -> str:
    """The model's accuracy at this run's privacy, or that it is not known; empty where the run is about no model."""
    match result:
        case AuditResult(verdict="violated") | VerdictResult(verdict="violated"):
            return REFUTED
        case AttackResult(accuracy=found) if found is not None:
            return f"Right on {share(found.non_members)} of new records and on {share(found.members)} of its own."
        case ChooseResult(expected=expected) if expected is not None:
            return expected.text
        case AuditResult(exact=scores, input=given) | ExplainResult(scores=scores, input=given):
            return _at_these_scores(scores, given, frontiers)
        case VerdictResult(exact=exact, input=judged) if exact is not None:
            return _expected_quality(exact.advantage, judged.adjacency or Adjacency.ADD_REMOVE, 1, frontiers)
    return UNKNOWN if isinstance(result, AttackResult | VerdictResult) else ""


def _at_these_scores(
    scores: ReleaseScores, given: AuditInput | AnswerInput, frontiers: Sequence[FrontierResult]
) -> str:
    if isinstance(given, AuditInput):
        return _expected_quality(scores.advantage, given.adjacency, 1, _of_data(given.data, frontiers))
    if given.is_laplace or given.is_response:
        return ""  # no model is trained
    if given.sampling is not None:
        return OTHER_BATCHES
    return _expected_quality(scores.advantage, given.adjacency, given.records_per_person or 1, frontiers)


def _of_data(name: str, frontiers: Sequence[FrontierResult]) -> list[FrontierResult]:
    """Those that were measured on the data that was audited, by its name: others tell nothing about this model."""
    return [one for one in frontiers if Path(one.input.data).name == Path(name).name]


def _expected_quality(
    advantage: float, adjacency: Adjacency | str, person: int, frontiers: Sequence[FrontierResult]
) -> str:
    if not frontiers or not 0 < advantage < 1:
        return UNKNOWN
    return " ".join(expect_quality(one, Advantage(advantage), adjacency, person).text for one in frontiers)
