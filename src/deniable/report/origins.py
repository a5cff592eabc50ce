"""How a run came about, so that anybody can have it again: model, data, seeds, versions and one command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deniable.document import Document
from deniable.report.chapter import Part
from deniable.report.tables import origin

__all__ = ["rerun"]

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


def rerun(document: Document) -> Part:
    """The part "How to do it again"."""
    known = document.get("provenance", {})
    command, call = known.get("command"), known.get("call")
    if command is not None:
        words = "This one command, run where the data and the model can be found, gives the same figures again:"
    elif call is not None:
        words = "This was examined from Python, with functions of the calling program:"
    else:
        words = "The record does not say how it was made: it is from an older version, or its data has no name."
    table = origin(_origins(document, known))
    return Part("How to do it again", (words,), tables=(table,), code=command or call)


def _origins(document: Document, known: Document) -> Iterator[tuple[str, Any]]:
    given = document["input"]
    yield "Data", known.get("data") or given.get("data") or given.get("scores")
    if "shape" in known:
        classes = "" if known.get("classes") is None else f", {known['classes']} classes"
        yield "Data shape", f"{' x '.join(map(str, known['shape']))} ({known.get('kind', 'records')}{classes})"
    yield "Data SHA-256", _checksums(given.get("data_sha256") or known.get("sha256"))
    yield from ((name, _plain(given.get(key))) for key, name in SETTINGS.items())
    if "weights" in known:
        yield "Model's weights", f"{known['weights']:,}"
    yield "Model's layers", "; ".join(known.get("layers", ()))
    yield "Versions", ", ".join(f"{name} {version}" for name, version in known.get("versions", {}).items())
    yield "Finished", document.get("finished")
    yield "Schema", document["schema"]


def _checksums(found: Any) -> str | None:
    return " ".join(map(str, found)) if isinstance(found, list) else found


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
