"""Everything that the planner's page shows of one plan, and what its promise costs by a frontier."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from deniable.promises import SCORES
from deniable.report.stored_runs import places
from deniable.report.words.frontier_words import MEASURES, sampling_note
from deniable.results.base import Part, plain
from deniable.results.explain_result import ChooseResult, CurvesResult, ExpectedPiece, ExplainResult
from deniable.results.frontier_result import FrontierLevel, FrontierResult, Quality
from deniable.results.reading import read_result
from deniable.utility.expected_quality import BUILT_IN, expect_everywhere, level_bounds, read_built_in
from deniable.utility.knee import name_bound, tell_range, tell_value

RUN = "run:"
"""What a frontier in the served folder is called by."""
_LARGEST_BYTES = 4 * 2**20


class CostLevel(Part, frozen=True, kw_only=True):
    """One measured promise."""

    bound: float | None
    """In the unit of the promise that was asked; None where that is not known, and without a promise."""
    name: str
    """In the frontier's own words."""
    mean: float
    next_low: float
    next_high: float
    told: str


class Costs(Part, frozen=True, kw_only=True):
    """What every bound of a promise costs, as one frontier measured it."""

    title: str
    promise: str
    metric: str
    measure: str
    percent: bool
    levels: tuple[CostLevel, ...]
    none: CostLevel
    without_model: float
    without_model_told: str
    pieces: tuple[ExpectedPiece, ...]
    knee: tuple[str, ...]
    notes: tuple[str, ...]
    command: str | None
    """That measured it."""


def read_chosen(chosen: str | Mapping[str, Any], folder: Path | None) -> str | dict[str, Any]:
    """A built-in frontier's name, or the document of a run in `folder` or of the user, without what is not shown."""
    if isinstance(chosen, str) and chosen in BUILT_IN:
        return chosen
    document: Any = chosen
    if isinstance(chosen, str):
        place = places(folder).get(chosen.removeprefix(RUN)) if folder is not None and folder.is_dir() else None
        file = None if place is None else place / "frontier.json"
        if file is None or not file.is_file() or file.is_symlink() or file.stat().st_size > _LARGEST_BYTES:
            raise ValueError(f"frontier must be one of {', '.join(BUILT_IN)}, a run of the folder or a document")
        document = file.read_bytes()
    found = read_result(msgspec.json.decode(document) if isinstance(document, bytes) else document)
    if not isinstance(found, FrontierResult):
        raise ValueError(f"frontier must be a document of `deniable frontier`, got one of {found.kind}")
    slim: dict[str, Any] = plain(_slim(found))
    return slim


def _slim(frontier: FrontierResult) -> FrontierResult:
    """With the tuned measure alone."""

    def only(quality: Quality) -> Quality:
        tuned: dict[str, Any] = {frontier.metric: replace(frontier.tuned_measure(quality), values=())}
        return Quality(**tuned)

    return frontier.replace(
        none=replace(frontier.none, quality=only(frontier.none.quality)),
        levels=tuple(replace(level, quality=only(level.quality)) for level in frontier.levels),
        without_model=only(frontier.without_model),
        local=(),
        encoding=(),
    )


def find_costs(values: Mapping[str, Any]) -> Costs:
    """The answer: `frontier` is a built-in name or a document, `promise` what is asked, with its parameters."""
    chosen = values["frontier"]
    frontier = read_built_in(chosen) if isinstance(chosen, str) else read_result(chosen)
    assert isinstance(frontier, FrontierResult)
    entry = SCORES[values["promise"]]
    parameters = {name: values[name] for name in entry.parameter_names()}
    bounds = level_bounds(frontier, entry, parameters, values["adjacency"], values["records_per_person"])
    named = BUILT_IN.get(chosen) if isinstance(chosen, str) else None
    return Costs(
        title=named or f"{frontier.input.data}: your own run",
        promise=values["promise"],
        metric=frontier.metric,
        measure=MEASURES[frontier.metric],
        percent=frontier.metric in ("accuracy", "balanced_accuracy", "explained"),
        levels=tuple(_level(frontier, level, bound) for level, bound in zip(frontier.levels, bounds, strict=True)),
        none=_level(frontier, frontier.none, None),
        without_model=frontier.tuned_measure(frontier.without_model).mean,
        without_model_told=tell_value(frontier.metric, frontier.tuned_measure(frontier.without_model).mean),
        pieces=expect_everywhere(frontier, bounds),
        knee=frontier.knee.sentences,
        notes=(frontier.tuning_text, sampling_note(frontier)),
        command=None if frontier.provenance is None else frontier.provenance.command,
    )


def _level(frontier: FrontierResult, level: FrontierLevel, bound: float | None) -> CostLevel:
    found = frontier.tuned_measure(level.quality)
    return CostLevel(
        bound=bound if bound is not None and isfinite(bound) else None,
        name=name_bound(frontier.input.promise, level.bound),
        mean=found.mean,
        next_low=found.next_low,
        next_high=found.next_high,
        told=tell_range(frontier.metric, found.next_low, found.next_high),
    )


class PlannerAnswer(Part, frozen=True, kw_only=True):
    """Everything the page shows of one plan."""

    document: ExplainResult | ChooseResult
    curves: CurvesResult
    caution: str
    """To be read first; empty where there is nothing."""
    headline: str
    warning: str
    meaning: str
    kept: str
    engineering: str
    signal: str
    """The signal-to-noise ratio of a step; empty where it is not known."""
    assessment: str
    setting: str
    figures: dict[str, str]
    scores: tuple[tuple[str, str], ...]
    demands: tuple[dict[str, str], ...]
    analyses: tuple[dict[str, str], ...]
    notes: tuple[str, ...]
    command: str
    python: str
    opacus: str
    """A training with Opacus; empty where the release is no such training."""
    pytorch: str
    """The same in plain PyTorch."""
