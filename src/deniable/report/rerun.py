"""How a run came about, so that anybody can have it again: model, data, seeds, versions and one command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deniable.report.chapters.chapter import Section
from deniable.report.report_tables import origin
from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditResult
from deniable.results.compare_result import CompareResult
from deniable.results.frontier_result import FrontierResult
from deniable.results.reading import schema_name
from deniable.results.shared import Provenance
from deniable.results.verdict_result import VerdictResult

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
