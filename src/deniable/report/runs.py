"""A run as it lies on disk: a folder that `audit`, `compare` or `attack` wrote, or a document printed with --json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from deniable.document import Document
from deniable.mechanisms import Adjacency
from deniable.report import given_away, words
from deniable.report.shape import ATTACK, AUDIT, COMPARE, MEASURED, NUMBER, VERDICT, check
from deniable.store import FILE, kept, verified

__all__ = ["DOCUMENTS", "KINDS", "PAGE", "Found", "Run", "found", "listed", "outcome", "places", "read", "title"]

DOCUMENTS = ("audit.json", "compare.json", "attack.json")
"""The document in a run's folder."""
PAGE = "report.html"
KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "audit": (2, AUDIT),
    "compare": (1, COMPARE),
    "verdict": (1, VERDICT),
    "attack": (1, ATTACK),
}
"""The newest schema that is understood of each kind of document, and its shape."""
LARGEST = 64 * 2**20


@dataclass(frozen=True)
class Run:
    """One run to be reported; `name` is for people, and comes from a file's name."""

    name: str
    kind: str
    document: Document


@dataclass(frozen=True)
class Found:
    """A run in a list; `problem` says why one cannot be reported, which otherwise is None."""

    name: str
    """The folder, as a path below the one that was searched, with / between its parts."""
    kind: str
    title: str
    verdict: str
    page: bool
    """Whether it has a report.html."""
    problem: str | None = None


def read(path: Path | str) -> Run:
    """The run at `path`; ValueError or OSError says in one line what is wrong with it."""
    place = Path(path)
    if place.is_dir():
        run = _from_file(_document_of(place), place.resolve().name)
        return _with_trials(run, place) if (place / FILE).exists() else run
    if not place.exists():
        raise FileNotFoundError(
            f"there is no run {place}: name a folder that audit, compare or attack wrote, or a .json file"
        )
    return _from_file(place, place.stem)


def found(folder: Path | str) -> list[Found]:
    """The runs in `folder` and one level below it, by name; links that lead out of it are not followed."""
    return [listed(place, name) for name, place in places(folder).items()]


def places(folder: Path | str) -> dict[str, Path]:
    """Where those runs lie, by name, without a look into them."""
    root = Path(folder).resolve()
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    inside = (place for place in sorted(root.iterdir()) if place.is_dir() and not place.is_symlink())
    return {place.relative_to(root).as_posix(): place for place in (root, *inside) if _holds_a_run(place)}


def title(run: Run) -> str:
    """What was examined, in a line."""
    given = run.document["input"]
    what = {"audit": "Privacy audit of", "compare": "Local against central privacy on", "verdict": "Verdict on"}
    if run.kind == "attack":
        return "Membership attack on a trained model"
    return f"{what[run.kind]} {given.get('data') or given.get('scores') or 'scores'}"


def outcome(run: Run) -> str:
    """The verdict in a word or two; a comparison's is which protection is better."""
    if run.kind == "attack":
        return given_away.outcome(run.document)
    if run.kind == "compare":
        better = run.document["recommendation"]["better"]
        return {"central": "central is better", "local": "local is better", "alike": "alike", "depends": "depends"}.get(
            better, "undecided"
        )
    if run.kind == "audit" and words.is_test_mode(run.document):
        return words.badge(run.document["verdict"], None, test_mode=True).lower()
    return words.badge(run.document["verdict"], words.claimed_protection(run.document)).lower()


def listed(place: Path, name: str) -> Found:
    """The run in this folder, as a list shows it."""
    page = (place / PAGE).is_file()
    try:
        run = _from_file(_document_of(place), place.name)
    except (ValueError, OSError) as problem:
        return Found(name, "unknown", place.name, "unreadable", page, str(problem))
    return Found(name, run.kind, title(run), outcome(run), page)


def _holds_a_run(place: Path) -> bool:
    files = [place / name for name in DOCUMENTS]
    return any(file.is_file() for file in files) and not any(file.is_symlink() for file in files)


def _document_of(place: Path) -> Path:
    there = [place / name for name in DOCUMENTS if (place / name).is_file()]
    if there:
        return there[0]
    begun = "its campaign is not finished: go on with --resume" if (place / FILE).exists() else "it is no run's folder"
    raise ValueError(f"{place} has no {', '.join(DOCUMENTS[:-1])} or {DOCUMENTS[-1]}: {begun}")


def _from_file(path: Path, name: str) -> Run:
    document = _renamed(_parsed(path))
    kind = _kind(path, document)
    try:
        check(KINDS[kind][1], document)
        _agree(kind, document)
    except ValueError as unlike:
        raise ValueError(f"{path} is not a whole {kind} document: {unlike}") from unlike
    return Run(name.encode(errors="replace").decode(), kind, document)


def _renamed(document: Any) -> Any:
    """The document as it is written today, where only names were others: in audit/1, delta of a belief was failure."""
    if not isinstance(document, dict) or document.get("schema") != "deniable/audit/1":
        return document
    found = json.dumps(document).replace('"belief_failure":', '"belief_delta":').replace('"at_failure":', '"at_delta":')
    return {**json.loads(found), "schema": "deniable/audit/2"}


def _parsed(path: Path) -> Any:
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} is larger than {LARGEST // 2**20} MB, which no document of ours is")

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"it holds {constant}")

    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse, parse_int=_moderate)
        return verified(document) if isinstance(document, dict) else document
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole JSON document, or damaged ({error}): write it again") from error


def _moderate(digits: str) -> int:
    if len(digits) > 18:
        raise ValueError(f"it holds {digits[:18]}..., which no figure of ours is")
    return int(digits)


def _kind(path: Path, document: Any) -> str:
    schema = document.get("schema") if isinstance(document, dict) else None
    house, kind, number = [*str(schema).split("/"), "", ""][:3]
    if house != "deniable" or kind not in KINDS or not number.isdecimal():
        wanted = ", ".join(f"deniable/{name}/{newest}" for name, (newest, _) in KINDS.items())
        raise ValueError(f"{path} has schema {str(schema)[:60]!r}; a report is made of {wanted}")
    if int(number) != KINDS[kind][0]:
        newer = "a newer" if int(number) > KINDS[kind][0] else "an older"
        raise ValueError(f"{path} has schema {schema}, of {newer} version of deniable: use that one, or run it again")
    return kind


def _agree(kind: str, document: Document) -> None:
    """What a shape cannot say: lists of equal length, names that are known."""
    if kind == "audit":
        Adjacency(document["input"]["adjacency"])
        if document["measured"]["trials"] > 0:
            check(MEASURED, document["measured"], "measured")
        if document.get("course"):
            _course(document["course"])
    if kind == "compare":
        _levels(document["levels"])
    if kind == "attack":
        _same("precision_recall", document["precision_recall"].values())
        _rates(document["tpr_at_fpr"])
    if kind == "verdict" and "adjacency" in document["input"]:
        Adjacency(document["input"]["adjacency"])
    edges = document.get("exposure", {}).get("distribution")
    if edges and len(edges["edges"]) != len(edges["counts"]) + 1:
        raise ValueError("exposure.distribution must have one edge more than counts")


def _rates(found: Document) -> None:
    for fpr, tpr in found.items():
        check(NUMBER, tpr, "tpr_at_fpr")
        if not 0 <= float(fpr) <= 1:
            raise ValueError(f"tpr_at_fpr must name rates from 0 to 1, got {fpr[:20]!r}")


def _levels(levels: list[Document]) -> None:
    kinds = [level["kind"] for level in levels]
    if kinds[:1] != ["original"] or not set(kinds[1:]) <= {"central", "local"}:
        raise ValueError("levels must be the original, then central and local ones")
    for level in levels:
        _same("levels.precision_recall", level["precision_recall"].values())
        if (level["kind"] == "original") != (level["value"] is None or level["epsilon"] is None):
            raise ValueError("levels must have a value and an epsilon, but for the original")


def _course(course: Document) -> None:
    steps, counts = course["steps"], course["final_beliefs"].values()
    bands = [band for band in (*course["belief"].values(), course["sensitivity"]) if band is not None]
    if not steps or any(len(band) != len(course["quantiles"]) for band in bands) or len(course["quantiles"]) != 3:
        raise ValueError("course must have steps, and low, middle and high of every band")
    _same("course", [steps, *(line for band in bands for line in band)])
    _same("course.final_beliefs", counts)
    if course["roc"]:
        _same("course.roc", (course["roc"][name] for name in ("fpr", "tpr")))


def _same(name: str, lists: Any) -> None:
    if len({len(values) for values in lists}) != 1:
        raise ValueError(f"{name} must have lists of equal length")


def _with_trials(run: Run, place: Path) -> Run:
    """The folder's trials must be whole and the document's own; what a document lacks to be drawn comes from them."""
    settings, blocks = kept(place)
    if dict(_known(settings)) != dict(_known(run.document["input"])):
        raise ValueError(f"{place / FILE} holds another campaign than {_document_of(place).name}: run it again")
    if run.kind != "audit" or run.document.get("course"):
        return run
    from deniable.audit.course import course  # noqa: PLC0415 (only old records need it)
    from deniable.audit.trials import Trials  # noqa: PLC0415

    try:
        trials = Trials.joined(blocks, run.document["measured"]["trials"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"{place / FILE} is not an audit's: {error}") from error
    return Run(run.name, run.kind, {**run.document, "course": course(trials)})


def _known(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((name, settings.get(name)) for name in ("data", "records", "trials", "repeats", "seed", "noise"))
