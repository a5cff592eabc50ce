"""RESULTS.md: all items at a glance, then a section for each: its picture, what was compared, why ours differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from string import ascii_uppercase
from typing import Any

__all__ = ["outcome", "results"]

Document = dict[str, Any]
OFTEN = 3
"""A note of so many items is told once, above them."""
HINDSIGHT = " *Settled with data in sight.*"


def results(documents: list[Document]) -> str:
    """The page, from the items' own records."""
    often = Counter(note for document in documents for note in document["notes"])
    common = dict(zip((note for note, times in often.items() if times >= OFTEN), ascii_uppercase, strict=False))
    return "\n".join((*_glance(documents), *_common(common), *_sections(documents, common))) + "\n"


def outcome(document: Document) -> str:
    """In one phrase: as the paper has it, as stated but for known reasons, or missed."""
    missed = [one for one in document["comparisons"] if not one["passed"]]
    if missed:
        return "misses: " + "; ".join(f"{one['what']}: {one['words']}" for one in missed)
    return "holds, differs for a known reason" if _reasons(document) else "holds"


def _glance(documents: list[Document]) -> Iterator[str]:
    good = sum(document["passed"] for document in documents)
    statements = [one for document in documents for one in document["comparisons"]]
    late = sum(one["hindsight"] for one in statements)
    yield from ("# The papers' tables and figures, made anew", "")
    yield (
        f"{good} of {len(documents)} items meet what is stated of them. Made by `deniable reproduce`. Of the "
        f"{len(statements)} statements {len(statements) - late} have a tolerance that is derived (printed digits, "
        f"binomial or standard errors, an exact bound) or need none; {late} have a limit or a wording that was "
        "settled with data in sight, and say so in their line. Every picture links to its SVG; the record beside it "
        "has all values, versions and the seed. Scale `hours` is what two cores finish in a few hours, `full` the "
        "paper's own size."
    )
    yield from ("", "| document | item | what | scale | outcome |", "|---|---|---|---|---|")
    for document in documents:
        unbroken = _named(document).replace(" ", "\N{NO-BREAK SPACE}")
        link = f"[{unbroken}](#{_anchor(document)})"
        yield _row(document["paper"]["number"], link, document["title"], document["scale"], outcome(document))


def _common(common: Mapping[str, str]) -> Iterator[str]:
    if not common:
        return
    yield from ("", "## Notes that hold for several items", "")
    yield from (f"- **{letter}.** {note}" for note, letter in common.items())


def _sections(documents: list[Document], common: Mapping[str, str]) -> Iterator[str]:
    for _, group in groupby(documents, key=lambda document: document["paper"]["number"]):
        items = list(group)
        paper = items[0]["paper"]
        yield from ("", f"## {paper['number']} ({paper['name']}): {paper['title']}")
        for document in items:
            yield from _section(document, common)


def _section(document: Document, common: Mapping[str, str]) -> Iterator[str]:
    place = f"{document['paper']['name']}/{document['item']}"
    yield from ("", f'<a id="{_anchor(document)}"></a>', "", f"### {_named(document)}: {document['title']}", "")
    yield f'<a href="{place}.svg"><img src="{place}.png" alt="{_named(document)}" width="720"></a>'
    yield from ("", f"{document['caption']} Scale {document['scale']}; [record]({place}.json).", "")
    yield from (_statement(one) for one in document["comparisons"])
    yield from (f"- not judged at this scale: {one}" for one in document["not_judged"])
    yield from _beside(document)
    yield from _why(document, common)


def _statement(one: Document) -> str:
    mark = "holds" if one["passed"] else "**misses**"
    said = "" if one["stated"] == "holds" else f" ({one['stated']}; {one['words']})"
    return f"- {mark}: {one['what']}{said}.{HINDSIGHT if one['hindsight'] else ''}"


def _beside(document: Document) -> Iterator[str]:
    rows = list(_pairs(document["printed"], document["values"], ()))
    if not rows:
        return
    yield from ("", "| | the paper | ours |", "|---|---|---|")
    yield from (_row(*row) for row in rows)
    if document["order"]:
        yield from ("", f"Several values: {document['order']}.")


def _pairs(printed: Any, ours: Any, names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """(name, the paper's, ours) of every printed value, those of one list in one row."""
    if isinstance(printed, Mapping):
        for name, part in printed.items():
            yield from _pairs(part, ours[name], (*names, name))
    elif isinstance(printed, str):
        yield _words(names), printed, _like(ours, printed)
    elif any(text is not None for text in printed):
        both = [(text, _like(one, text)) for text, one in zip(printed, ours, strict=True) if text is not None]
        yield _words(names), ", ".join(text for text, _ in both), ", ".join(own for _, own in both)


def _words(names: tuple[str, ...]) -> str:
    return " ".join(names).replace("_", " ")


def _like(ours: Any, text: str) -> str:
    """Our value with one digit more than the paper prints; an interval by its two ends."""
    if isinstance(ours, Sequence):
        low, high = (_like(end, text) for end in ours)
        return low if low == high else f"{low} to {high}"
    exponent = Decimal(text).as_tuple().exponent
    assert isinstance(exponent, int), text
    return f"{ours:.3g}" if exponent > 0 else f"{ours:.{1 - exponent}f}"


def _why(document: Document, common: Mapping[str, str]) -> Iterator[str]:
    own = [note for note in document["notes"] if note not in common]
    letters = sorted(common[note] for note in document["notes"] if note in common)
    above = [f"See note{'s' * (len(letters) > 1)} {', '.join(letters)} above."] if letters else []
    said = [*_reasons(document), *own, *above]
    if said:
        yield from ("", "Where ours differs, or the paper leaves something open:", "")
        yield from (f"- {one}" for one in said)


def _reasons(document: Document) -> list[str]:
    return [reason for one in document["comparisons"] for reason in one["reasons"]]


def _named(document: Document) -> str:
    """As the paper writes it: Figure 5.1."""
    kind, _, number = document["item"].partition("-")
    return f"{kind.capitalize()} {number}"


def _anchor(document: Document) -> str:
    return f"{document['paper']['name']}-{document['item']}"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
