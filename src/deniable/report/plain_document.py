"""A document of a few kinds of blocks, which is written as Markdown or as a .docx file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True)
class OpenPlace:
    """What only a person can write: left open, and marked."""

    text: str

    @property
    def marked_text(self) -> str:
        """As it stands in the document."""
        return f"[To be written by a person: {self.text}]"


@dataclass(frozen=True)
class Listed:
    """Items of a list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """A table."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Paragraph | OpenPlace | Listed | Rows


def write_markdown(blocks: Sequence[Block]) -> str:
    """As Markdown: what is text stays text."""
    return "\n\n".join("\n".join(_lines(block)) for block in blocks) + "\n"


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield f"{'#' * level} {_escape(text)}"
        case Paragraph(text):
            yield _escape(text)
        case OpenPlace():
            yield f"**{_escape(block.marked_text)}**"
        case Listed(items):
            yield from (f"- {_escape(item)}" for item in items)
        case Rows(head, rows):
            yield _row(head)
            yield _row(["---"] * len(head), escaped=True)
            yield from (_row(row) for row in rows)


def _row(cells: Sequence[str], *, escaped: bool = False) -> str:
    return f"| {' | '.join(cell if escaped else _escape(cell) for cell in cells)} |"


def _escape(text: str) -> str:
    """Nothing in a text is a mark, a link, HTML or the end of a cell."""
    found = "".join(f"\\{one}" if one in "\\`*_[]<>|#" else one for one in text)
    return " ".join(found.split())
