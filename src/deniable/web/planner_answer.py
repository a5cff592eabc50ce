"""Everything that the planner's page shows of one plan."""

from __future__ import annotations

from deniable.results.base import Part
from deniable.results.explain_result import ChooseResult, CurvesResult, ExplainResult


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
