"""What `explain` and `choose` found."""

from __future__ import annotations

from typing import Any, ClassVar

from deniable.results.base import Part, Result
from deniable.results.shared import Scores

__all__ = ["Analysis", "ChooseResult", "Demand", "Errors", "ExplainResult"]


class Analysis(Part, frozen=True, kw_only=True):
    """What a weaker analysis says, or why it says nothing."""

    epsilon: float | None = None
    advantage: float | None = None
    belief: float | None = None
    why: str | None = None
    proved: bool | None = None
    source: str | None = None


class Demand(Part, frozen=True, kw_only=True):
    """The noise that an analysis demands for the promise, or why it cannot tell."""

    name: str
    noise: float | None
    why: str | None = None
    proved: bool | None = None


class Errors(Part, frozen=True, kw_only=True):
    """Numerical errors: the truth lies between value - error and value; None where none is known."""

    epsilon: float | None
    advantage: float | None
    accuracy: float | None
    belief: float | None


class ExplainResult(Result, frozen=True, kw_only=True, tag="deniable/explain/2"):
    """What a release means for a person."""

    kind: ClassVar[str] = "explain"
    input: dict[str, Any]
    """What was described and asked, by option."""
    scores: Scores
    errors: Errors
    method: str
    bounds: dict[str, Analysis]
    notes: tuple[str, ...]


class ChooseResult(Result, frozen=True, kw_only=True, tag="deniable/choose/2"):
    """The least noise that keeps a promise, and what it means for a person."""

    kind: ClassVar[str] = "choose"
    input: dict[str, Any]
    noise: float
    scores: Scores
    errors: Errors
    method: str
    bounds: dict[str, Analysis]
    notes: tuple[str, ...]
    methods: tuple[Demand, ...]
