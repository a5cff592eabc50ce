"""A run as it lies on disk: a folder that `audit`, `compare` or `attack` wrote, or a document printed with --json."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from deniable.formatting import count_of
from deniable.report.words import attack_words, frontier_words, verdict_words
from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditResult, CourseResult, ExposureResult
from deniable.results.base import Result, UnreadableError, plain
from deniable.results.compare_result import CompareResult, LevelResult
from deniable.results.explain_result import ChooseResult, ExplainResult
from deniable.results.frontier_result import FrontierResult
from deniable.results.reading import kind_of, read_result, rename_fields
from deniable.results.reproduce_result import ReproduceResult
from deniable.results.run_result import RunResult
from deniable.results.shared import Curve
from deniable.results.verdict_result import VerdictResult
from deniable.store import FILE, kept, verify_document

DOCUMENTS = ("audit.json", "compare.json", "attack.json", "frontier.json")
"""The document in a run's folder."""
PAGE = "report.html"
KINDS = ("audit", "compare", "verdict", "attack", "run", "frontier")
"""The results that a report is made of."""
Reported = (
    AuditResult
    | CompareResult
    | VerdictResult
    | AttackResult
    | ExplainResult
    | ExposureResult
    | ReproduceResult
    | RunResult
    | FrontierResult
)
"""Every kind of result; a file may hold one of `KINDS`."""
LARGEST_BYTES = 64 * 2**20
COMPARED = ("data", "records", "trials", "repeats", "seed", "noise", "model_sha256", "data_sha256")
"""What a folder's trials and its document must agree in, where the trials depend on it."""


@dataclass(frozen=True)
class ReportedRun:
    """One run to be reported; `name` is for people, and comes from a file's name."""

    name: str
    result: Reported

    @property
    def kind(self) -> str:
        """audit, compare, verdict or attack."""
        return self.result.kind


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


def read(path: Path | str, kinds: Collection[str] = KINDS) -> ReportedRun:
    """The run at `path`, of one of these kinds; ValueError or OSError says in one line what is wrong with it."""
    place = Path(path)
    if place.is_dir():
        run = _from_file(_document_of(place), place.resolve().name, kinds)
        return _with_trials(run, place) if (place / FILE).exists() else run
    if not place.exists():
        raise FileNotFoundError(
            f"there is no run {place}: name a folder that audit, compare, attack or frontier wrote, or a .json file"
        )
    return _from_file(place, place.stem, kinds)


def find_runs(folder: Path | str) -> list[Found]:
    """The runs in `folder` and one level below it, by name; links that lead out of it are not followed."""
    return [list_run(place, name) for name, place in places(folder).items()]


def places(folder: Path | str) -> dict[str, Path]:
    """Where those runs lie, by name, without a look into them."""
    root = Path(folder).resolve()
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    inside = (place for place in sorted(root.iterdir()) if place.is_dir() and not place.is_symlink())
    return {place.relative_to(root).as_posix(): place for place in (root, *inside) if _holds_a_run(place)}


def title(run: ReportedRun) -> str:  # noqa: PLR0911 (one for each kind of result)
    """What was examined, in a line."""
    match run.result:
        case AuditResult(input=given):
            return f"Privacy audit of {given.data}"
        case CompareResult(input=compared):
            return f"Local against central privacy on {compared.data}"
        case VerdictResult(input=scored):
            return f"Verdict on {scored.scores or 'scores'}"
        case AttackResult():
            return "Membership attack on a trained model"
        case FrontierResult(input=asked):
            return f"What privacy costs on {asked.data}"
        case RunResult(steps=steps):
            return f"One watched run of {count_of(steps, 'step')}"
        case ChooseResult():
            return "Noise that keeps a promise"
        case ExplainResult():
            return "What a release means for a person"
        case ExposureResult(input=exposed):
            return f"Who is exposed in {exposed.data}"
        case ReproduceResult(items=items):
            return f"{len(items)} tables and figures, made anew"


def outcome(run: ReportedRun) -> str:  # noqa: PLR0911 (one for each kind of result)
    """The verdict in a word or two; a comparison's is which protection is better."""
    match run.result:
        case AttackResult() as attacked:
            return attack_words.outcome(attacked)
        case CompareResult(recommendation=find_runs):
            return _BETTER.get(find_runs.better or "", "undecided")
        case AuditResult() as audited if verdict_words.is_test_mode(audited):
            return verdict_words.badge(audited.verdict, None, test_mode=True).lower()
        case ReproduceResult(missed=missed, items=items):
            return f"{len(missed)} of {len(items)} miss what was stated" if missed else "all hold"
        case ExplainResult(scores=scores):
            return f"belief {scores.belief:.3g}"
        case ExposureResult(exposure=exposure):
            return f"advantage {exposure.most_exposed[0].advantage:.3g}"
        case RunResult(verdict=verdict):
            return verdict
        case FrontierResult() as priced:
            return frontier_words.outcome(priced)
        case AuditResult() | VerdictResult() as judged:
            return verdict_words.badge(judged.verdict, verdict_words.claimed_protection(judged)).lower()


_BETTER = {"central": "central is better", "local": "local is better", "alike": "alike", "depends": "depends"}


def list_run(place: Path, name: str) -> Found:
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


def _from_file(path: Path, name: str, kinds: Collection[str] = KINDS) -> ReportedRun:
    document = rename_fields(_parse_file(path))
    kind = _kind(path, document, kinds)
    try:
        result = read_result(document)
        _agree(result)
    except ValueError as unlike:
        raise ValueError(f"{path} is not a whole {kind} document: {unlike}") from unlike
    assert isinstance(result, Reported)
    return ReportedRun(name.encode(errors="replace").decode(), result)


def _parse_file(path: Path) -> Any:
    if path.stat().st_size > LARGEST_BYTES:
        raise ValueError(f"{path} is larger than {LARGEST_BYTES // 2**20} MB, which no document of ours is")

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"it holds {constant}")

    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse, parse_int=_moderate)
        return verify_document(document) if isinstance(document, dict) else document
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole JSON document, or damaged ({error}): write it again") from error


def _moderate(digits: str) -> int:
    if len(digits) > 18:
        raise ValueError(f"it holds {digits[:18]}..., which no figure of ours is")
    return int(digits)


def _kind(path: Path, document: Any, kinds: Collection[str] = KINDS) -> str:
    try:
        return kind_of(document, kinds)
    except UnreadableError as unlike:
        said = str(unlike).replace("wanted is one of", "a report is made of")
        raise ValueError(f"{path} {said}") from unlike


def _agree(result: Result) -> None:
    """What a type cannot say: lists of equal length, rates from 0 to 1, everything that was measured."""
    match result:
        case AuditResult():
            _audit(result)
        case CompareResult(levels=levels):
            _levels(levels)
        case AttackResult():
            _curve("precision_recall", result.precision_recall)
            _rates(result.tpr_at_fpr)


def _audit(result: AuditResult) -> None:
    if result.measured.trials > 0:
        _ = result.game
    if result.course is not None:
        _course(result.course)
    spread = None if result.exposure is None else result.exposure.distribution
    if spread is not None and len(spread.edges) != len(spread.counts) + 1:
        raise ValueError("exposure.distribution must have one edge more than counts")


def _rates(find_runs: Mapping[str, float]) -> None:
    for fpr in find_runs:
        if not 0 <= float(fpr) <= 1:
            raise ValueError(f"tpr_at_fpr must name rates from 0 to 1, got {fpr[:20]!r}")


def _levels(levels: Sequence[LevelResult]) -> None:
    kinds = [level.kind for level in levels]
    if kinds[:1] != ["original"] or "original" in kinds[1:]:
        raise ValueError("levels must be the original, then central and local ones")
    for level in levels:
        _curve("levels.precision_recall", level.precision_recall)
        if (level.kind == "original") != (level.value is None or level.epsilon is None):
            raise ValueError("levels must have a value and an epsilon, but for the original")


def _curve(name: str, curve: Curve) -> None:
    _same(name, (curve.precision, curve.recall))


def _course(course: CourseResult) -> None:
    bands = [band for band in (course.belief.d, course.belief.other, course.sensitivity) if band is not None]
    if not course.steps or any(len(band) != len(course.quantiles) for band in bands) or len(course.quantiles) != 3:
        raise ValueError("course must have steps, and low, middle and high of every band")
    _same("course", [course.steps, *(line for band in bands for line in band)])
    _same("course.final_beliefs", (course.final_beliefs.d, course.final_beliefs.other))
    if course.roc is not None:
        _same("course.roc", (course.roc.fpr, course.roc.tpr))


def _same(name: str, lists: Any) -> None:
    if len({len(values) for values in lists}) != 1:
        raise ValueError(f"{name} must have lists of equal length")


def _with_trials(run: ReportedRun, place: Path) -> ReportedRun:
    """The folder's trials must be whole and the document's own; what a document lacks to be drawn comes from them."""
    settings, blocks = kept(place)
    asked = plain(getattr(run.result, "input", {}))
    if any(settings[name] != asked.get(name) for name in COMPARED if name in settings):
        raise ValueError(f"{place / FILE} holds another campaign than {_document_of(place).name}: run it again")
    if not isinstance(run.result, AuditResult) or run.result.course is not None:
        return run
    from deniable.campaigns.plot_data import course  # noqa: PLC0415 (only old records need it)
    from deniable.evidence.measured import Trials  # noqa: PLC0415

    try:
        trials = Trials.join_blocks(blocks, run.result.measured.trials)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{place / FILE} is not an audit's: {error}") from error
    return ReportedRun(run.name, run.result.replace(course=course(trials)))
