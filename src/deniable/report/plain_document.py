"""A document of a few kinds of blocks, which is written as Markdown or as a .docx file.

The .docx is written by hand: the library for it brings a compiled XML parser and a template for what are five elements
here. ISO/IEC 29500 names the parts. The same document gives the same bytes.

"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape


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


_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = (
    f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/>'
    '<Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.styles+xml"/></Types>'
)
_ROOT = (
    f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_PARTS = (
    f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_OFFICE}/styles" '
    'Target="styles.xml"/></Relationships>'
)
_PAGE = (
    '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" '
    'w:header="567" w:footer="567" w:gutter="0"/></w:sectPr>'
)
"""A4, with margins of 2 cm: a twentieth of a point is the unit."""
_TEXT_WIDTH_TWIPS = 11906 - 2 * 1134
_CHARACTER_TWIPS, _CELL_MARGINS_TWIPS = 130, 230
"""A wide character of a bold heading, and what is left free beside a cell's text."""
_MOST_CHARACTERS = 24
"""A longer word is broken, and a longer text counts for no more when the width that is left is shared."""
_HEADING_HALF_POINTS = (36, 28, 24)
_BODY_HALF_POINTS = 21


def write_docx(blocks: Sequence[Block]) -> bytes:
    """The file's bytes."""
    body = "".join(part for block in blocks for part in _block(block))
    document = f'<w:document xmlns:w="{_W}"><w:body>{body}{_PAGE}</w:body></w:document>'
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _ROOT,
        "word/_rels/document.xml.rels": _PARTS,
        "word/document.xml": document,
        "word/styles.xml": _styles(),
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>{text}')
    return written.getvalue()


def _styles() -> str:
    headings = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        '<w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:qFormat/><w:pPr><w:keepNext/><w:spacing w:before="280" '
        f'w:after="80"/><w:outlineLvl w:val="{level - 1}"/></w:pPr><w:rPr><w:b/><w:sz w:val="{size}"/></w:rPr>'
        "</w:style>"
        for level, size in enumerate(_HEADING_HALF_POINTS, 1)
    )
    return (
        f'<w:styles xmlns:w="{_W}"><w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii="Calibri" w:hAnsi="Calibri" '
        f'w:cs="Calibri"/><w:sz w:val="{_BODY_HALF_POINTS}"/><w:lang w:val="en-GB"/></w:rPr></w:rPrDefault>'
        '<w:pPrDefault><w:pPr><w:spacing w:after="120"/></w:pPr></w:pPrDefault></w:docDefaults>'
        '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/></w:style>'
        f"{headings}"
        '<w:style w:type="paragraph" w:styleId="ListParagraph"><w:name w:val="List Paragraph"/><w:basedOn '
        'w:val="Normal"/><w:pPr><w:ind w:left="425" w:hanging="283"/></w:pPr></w:style></w:styles>'
    )


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield _paragraph(_run(text), f"Heading{level}")
        case Paragraph(text):
            yield _paragraph(_run(text))
        case OpenPlace():
            yield _paragraph(_run(block.marked_text, '<w:b/><w:highlight w:val="yellow"/>'))
        case Listed(items):
            yield from (_paragraph(_run(f"\u2022\u00a0{item}"), "ListParagraph") for item in items)
        case Rows(head, rows):
            yield _table(head, rows)
            yield _paragraph("")


def _paragraph(runs: str, style: str | None = None) -> str:
    named = "" if style is None else f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
    return f"<w:p>{named}{runs}</w:p>"


def _run(text: str, style: str = "") -> str:
    clean = "".join(one for one in text if one in "\t\n" or (one >= " " and one not in "\ufffe\uffff"))
    look = f"<w:rPr>{style}</w:rPr>" if style else ""
    lines = "<w:br/>".join(f'<w:t xml:space="preserve">{escape(line)}</w:t>' for line in clean.split("\n"))
    return f"<w:r>{look}{lines}</w:r>" if clean else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    edges = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:color="A0A0A0"/>'
        for side in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    widths = _column_widths([head, *rows])
    grid = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
    first = _word_row(head, widths, "<w:trPr><w:cantSplit/><w:tblHeader/></w:trPr>", "<w:b/>") if any(head) else ""
    body = "".join(_word_row(row, widths, "<w:trPr><w:cantSplit/></w:trPr>") for row in rows)
    width = '<w:tblW w:w="5000" w:type="pct"/>'
    look = f"<w:tblPr>{width}<w:tblBorders>{edges}</w:tblBorders></w:tblPr>"
    return f"<w:tbl>{look}<w:tblGrid>{grid}</w:tblGrid>{first}{body}</w:tbl>"


def _column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Twentieths of a point: room for the longest word of each column, and what is left by its longest text."""
    columns = list(zip(*rows, strict=True))
    words = [max((len(word) for cell in column for word in cell.split()), default=1) for column in columns]
    least = [_CHARACTER_TWIPS * min(count, _MOST_CHARACTERS) + _CELL_MARGINS_TWIPS for count in words]
    texts = [min(max(1, *map(len, column)), _MOST_CHARACTERS) for column in columns]
    left = max(_TEXT_WIDTH_TWIPS - sum(least), 0)
    return [width + left * count // sum(texts) for width, count in zip(least, texts, strict=True)]


def _word_row(cells: Sequence[str], widths: Sequence[int], properties: str, style: str = "") -> str:
    found = "".join(
        f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{_paragraph(_run(cell, style))}</w:tc>'
        for cell, width in zip(cells, widths, strict=True)
    )
    return f"<w:tr>{properties}{found}</w:tr>"
