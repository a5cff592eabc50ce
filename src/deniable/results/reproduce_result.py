"""What `reproduce` found: a paper's tables and figures made anew, and whether they are as was stated of them."""

from __future__ import annotations

from typing import Any, ClassVar

from deniable.results.base import Part, Result


class PaperName(Part, frozen=True, kw_only=True):
    """One of the documents; `key` is that of docs/theory/references.md."""

    key: str
    name: str
    title: str


class Statement(Part, frozen=True, kw_only=True):
    """What was stated of an item's values before they were computed, and whether they meet it."""

    what: str
    passed: bool
    deviation: float | None
    words: str
    reasons: tuple[str, ...]
    """Why ours differs from the paper where that was known beforehand."""
    stated: str
    hindsight: bool


class ItemResult(Part, frozen=True, kw_only=True, tag_field="schema", tag="deniable/reproduce/1"):
    """One table or figure; `values` and `printed` are trees of numbers and texts, each item's own."""

    paper: PaperName
    item: str
    title: str
    caption: str
    notes: tuple[str, ...]
    seed: int
    printed: dict[str, Any]
    order: str
    scale: str
    values: dict[str, Any]
    seconds: float
    versions: dict[str, str]
    passed: bool
    comparisons: tuple[Statement, ...]
    not_judged: tuple[str, ...]

    @property
    def name(self) -> str:
        """The paper's and the item's."""
        return f"{self.paper.name} {self.item}"


class ReproduceResult(Result, frozen=True, kw_only=True, tag="deniable/reproduce/1"):
    """The items that were asked for; `missed` names those that are not as was stated, `absent` says why some lack."""

    kind: ClassVar[str] = "reproduce"
    scale: str
    seed: int
    out: str
    missed: tuple[str, ...]
    absent: dict[str, str]
    items: tuple[ItemResult, ...]


class ListedItem(Part, frozen=True, kw_only=True):
    """An item that could be made, and about how many seconds it takes at each scale."""

    paper: PaperName
    item: str
    title: str
    seconds: dict[str, float]


class ItemListing(Part, frozen=True, kw_only=True, tag_field="schema", tag="deniable/reproduce/1"):
    """What there is to reproduce; `seconds` is for all together."""

    items: tuple[ListedItem, ...]
    seconds: dict[str, float]
