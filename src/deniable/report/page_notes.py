"""What stands beside a run on its page: how it came about, how good its model is, what in it may be personal data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deniable.formatting import count_of
from deniable.mechanisms import Adjacency
from deniable.promises import Advantage
from deniable.report.chapters.chapter import Section
from deniable.report.report_tables import origin
from deniable.report.words.amount_text import share
from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditInput, AuditResult, ExposureResult
from deniable.results.base import Result
from deniable.results.compare_result import CompareResult
from deniable.results.explain_result import AnswerInput, ChooseResult, ExplainResult
from deniable.results.frontier_result import FrontierResult
from deniable.results.reading import schema_name
from deniable.results.shared import Provenance, ReleaseScores
from deniable.results.verdict_result import VerdictResult
from deniable.utility.expected_quality import expect_quality

SETTINGS = {
    "model": "Model",
    "loss": "Loss",
    "optimizer": "Optimizer",
    "learning_rate": "Learning rate",
    "clip": "Clipping norm C",
    "noise": "Noise multiplier",
    "sensitivity": "Noise is relative to the sensitivity",
    "steps": "Steps",
    "rate": "Sampling rate",
    "adjacency": "Neighbours",
    "calibration": "Noise calibrated by",
    "attack": "Attack",
    "repeats": "Repeats",
    "records": "Records of D",
    "measure": "Unlikeness measured by",
    "record": "Record of D that differs",
    "replacement": "Record in its place",
    "trainer": "Examined training",
    "method": "Verdict rests on",
    "rule": "Threshold rule",
    "trials": "Trials",
    "seed": "Seed of everything random",
}


Reported = AuditResult | AttackResult | CompareResult | VerdictResult | FrontierResult


def rerun(document: Reported) -> Section:
    """The part "How to do it again"."""
    known = document.provenance or Provenance(versions={})
    command, call = known.command, known.call
    if command is not None:
        words = "This one command, run where the data and the model can be found, gives the same figures again:"
    elif call is not None:
        words = "This was examined from Python, with functions of the calling program:"
    else:
        words = "The record does not say how it was made: it is from an older version, or its data has no name."
    table = origin(_origins(document, known))
    return Section("How to do it again", (words,), tables=(table,), code=command or call)


def _origins(document: Reported, known: Provenance) -> Iterator[tuple[str, Any]]:
    given = document.input
    yield "Data", known.data or getattr(given, "data", None) or getattr(given, "scores", None)
    if known.shape is not None:
        classes = "" if known.classes is None else f", {known.classes} classes"
        yield "Data shape", f"{' x '.join(map(str, known.shape))} ({known.kind or 'records'}{classes})"
    yield "Data SHA-256", _checksums(getattr(given, "data_sha256", None) or known.sha256)
    yield from ((name, _plain(getattr(given, key, None))) for key, name in SETTINGS.items())
    if known.weights is not None:
        yield "Model's weights", f"{known.weights:,}"
    yield "Model's layers", "; ".join(known.layers or ())
    yield "Versions", ", ".join(f"{name} {version}" for name, version in known.versions.items())
    yield "Finished", getattr(document, "finished", None)
    yield "Schema", schema_name(type(document))


def _checksums(found: Any) -> str | None:
    return " ".join(map(str, found)) if isinstance(found, tuple) else found


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


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


NONE = "No record of the data, and nothing about one person, is in it: figures are about the release as a whole."


def tell_personal_data(result: Result) -> tuple[str, ...]:
    """Sentences about what of the people in the data is in the document; `NONE` alone where nothing is."""
    found: list[str] = []
    if isinstance(result, AuditResult):
        numbers = [number for number in (result.input.record, result.input.replacement) if number is not None]
        if numbers:
            found.append(
                f"Numbers of records of the data ({', '.join(map(str, numbers))}), whose presence the observer guessed."
            )
    exposure = getattr(result, "exposure", None) if isinstance(result, AuditResult | ExposureResult) else None
    if exposure is not None:
        count = count_of(len(exposure.most_exposed), "record")
        found.append(
            f"Numbers and labels of the most exposed records ({count}), and how exposed each is: whoever has the data "
            "can tell whose they are. For those who hold the data alone."
        )
    if isinstance(result, AttackResult) and result.most_exposed:
        count = count_of(len(result.most_exposed), "member")
        found.append(
            f"Numbers of the members that the attack is surest of ({count}): whoever holds the data can tell who they "
            "are. For those who hold the data alone."
        )
    if isinstance(result, AttackResult) and result.exposure is not None:
        count = count_of(len(result.exposure.lira), "member")
        found.append(f"How sure two observers are of every member ({count}), in the order of the data.")
    if isinstance(result, FrontierResult):
        found.append(
            "Measured on the data without protection: accuracies, also of classes and groups, and how columns were "
            "encoded. For those who may see the data."
        )
    if isinstance(result, AuditResult | AttackResult) and not found:
        found.append("What was measured rests on trainings on the data; no record of it is named.")
    return tuple(found) or (NONE,)
