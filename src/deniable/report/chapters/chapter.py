"""What a page is made of: a chapter for each run, its first screen, and its parts with words, pictures and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable.report.decision import Decision

if TYPE_CHECKING:  # tables are also printed where nothing is drawn: matplotlib takes a third of a second
    from deniable.report.pictures.picture import Picture
    from deniable.report.pictures.scale_chart import ScaleChart


@dataclass(frozen=True)
class Table:
    """Cells are text; the first of a row names it."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    wordy: bool = False
    """Whether the last column holds sentences."""


@dataclass(frozen=True)
class Section:
    """A section of a chapter."""

    title: str
    words: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    terms: tuple[tuple[str, str], ...] = ()
    code: str | None = None


@dataclass(frozen=True)
class Chapter:
    """One run: the first screen's words and scale, then everything else."""

    name: str
    title: str
    verdict: str
    tone: str
    """good, bad, odd or open: how the verdict is coloured."""
    sure: str
    """How sure the verdict is."""
    promise: str
    measured: str
    meaning: str
    text: str
    """The verdict's own sentences, with figures."""
    cautions: tuple[str, ...]
    scale: ScaleChart | None
    parts: tuple[Section, ...]
    finished: str | None = None
    labels: tuple[str, str] = ("Promised", "Measured")
    """Of `promise` and `measured`."""
    quality: str = ""
    """How good the model is, beside its risk; empty where nothing is to be said of it."""
    personal: tuple[str, ...] = ()
    """What in the file may be personal data."""
    decision: Decision | None = None
    """What follows for a release; None where nothing does."""
    last: bool = False
    """Whether it comes behind all others: it protects nobody."""

    @property
    def pictures(self) -> list[Picture]:
        """Of all parts."""
        return [picture for part in self.parts for picture in part.pictures]
