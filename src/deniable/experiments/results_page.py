"""RESULTS.md: all items at a glance, then a section for each: its picture, what was compared, why ours differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from string import ascii_uppercase
from typing import Any

from msgspec import convert

from deniable.experiments.dbsec.figure_panels import VariantFigures
from deniable.results.reproduce_result import ItemResult, Statement

OFTEN = 3
"""A note of so many items is told once, above them."""
HINDSIGHT = " *Settled with data in sight.*"
STAND_IN = re.compile(r"in place of|stands? in\b|cannot be had here")
"""Words by which an item says that its data are not the paper's."""
SOURCES = {
    "Bernau 2020": ("Bernau (ed.) 2020", "MOSAICrOWN, D5.3: Final Report on Privacy Metrics, Risks, and Utility", ""),
    "Bernau 2021": (
        "Bernau, Eibl, Grassal, Keller and Kerschbaum 2021",
        "Quantifying identifiability to choose and audit epsilon in differentially private deep learning. VLDB",
        "doi:10.48550/arXiv.2103.02913",
    ),
    "Jia 2023": (
        "Jia, Tan, Liu, Li, Liu, Lv and Dong 2023",
        "Total variation distance privacy: Accurately measuring inference attacks and improving utility",
        "doi:10.1016/j.ins.2023.01.037",
    ),
    "Bernau 2021b": (
        "Bernau, Robl, Grassal, Schneider and Kerschbaum 2021",
        "Comparing Local and Central Differential Privacy Using Membership Inference Attacks. DBSec",
        "doi:10.1007/978-3-030-81242-3_2",
    ),
    "Erlingsson 2019": (
        "Erlingsson, Mironov, Raghunathan and Song 2019",
        "That which we call private",
        "doi:10.48550/arXiv.1908.03566",
    ),
}
"""Authors and year, title, and where to find it, by the paper's key (docs/theory/references.md)."""
SHORT = {
    "Bernau 2020": "Bernau 2020 (D5.3)",
    "Bernau 2021": "Bernau et al. 2021 (VLDB)",
    "Jia 2023": "Jia et al. 2023",
    "Bernau 2021b": "Bernau et al. 2021 (DBSec)",
    "Erlingsson 2019": "Erlingsson et al. 2019",
}
FAVOURABLE = 1.0


def results_page(records: Sequence[ItemResult]) -> str:
    """The page, from the items' own records."""
    often = Counter(note for record in records for note in record.notes)
    common = dict(zip((note for note, times in often.items() if times >= OFTEN), ascii_uppercase, strict=False))
    return "\n".join((*_glance(records), *_common(common), *_sections(records, common))) + "\n"


def _stands_in(record: ItemResult) -> bool:
    return any(STAND_IN.search(text) for text in (record.caption, *record.notes))


def outcome(record: ItemResult) -> str:
    """In one phrase: as the paper has it, as stated but for known reasons, or missed."""
    missed = [one for one in record.comparisons if not one.passed]
    if missed:
        return "misses: " + "; ".join(f"{one.what}: {one.words}" for one in missed)
    return "holds, differs for a known reason" if _reasons(record) else "holds"


def _glance(records: Sequence[ItemResult]) -> Iterator[str]:
    good = sum(record.passed for record in records)
    statements = [one for record in records for one in record.comparisons]
    late = sum(one.hindsight for one in statements)
    yield from ("# The papers' tables and figures, made anew", "")
    yield (
        f"{good} of {len(records)} items meet what is stated of them. Made by `deniable reproduce`. Of the "
        f"{len(statements)} statements {len(statements) - late} have a tolerance that is derived (printed digits, "
        f"binomial or standard errors, an exact bound) or need none; {late} have a limit or a wording that was "
        "settled with data in sight, and say so in their line. Every record "
        "has all values, versions and the seed. Scale `hours` is what two cores finish in a few hours, `full` the "
        "paper's own size. Data: **stand-in** marks items whose data or network could not be had here, so that others "
        "take their place; what holds of them need not hold of the paper's. An erratum is a "
        "misprint of the paper, numbered in [errata](../theory/errata.md)."
    )
    yield from ("", "| paper | item | what | data | scale | outcome |", "|---|---|---|---|---|---|")
    for record in records:
        unbroken = _title(record).replace(" ", "\N{NO-BREAK SPACE}")
        link = f"[{unbroken}](#{_anchor(record)})"
        data = "**stand-in**" if _stands_in(record) else ""
        paper = SHORT.get(record.paper.key, record.paper.name)
        yield _row(paper, link, record.title, data, record.scale, outcome(record))


def _common(common: Mapping[str, str]) -> Iterator[str]:
    if not common:
        return
    yield from ("", "## Notes that hold for several items", "")
    yield from (f"- **{letter}.** {note}" for note, letter in common.items())


def _sections(records: Sequence[ItemResult], common: Mapping[str, str]) -> Iterator[str]:
    for _, group in groupby(records, key=lambda record: record.paper.key):
        items = list(group)
        paper = items[0].paper
        authors, title, where = SOURCES.get(paper.key, ("", paper.title, ""))
        yield from ("", f"## {SHORT.get(paper.key, paper.name)}", "")
        yield ". ".join(filter(None, (authors, title, where))) + f". (`deniable reproduce {paper.name}`)"
        for record in items:
            yield from _section(record, common)


def _section(record: ItemResult, common: Mapping[str, str]) -> Iterator[str]:
    place = f"{record.paper.name}/{record.item}"
    yield from (
        "",
        f'<a id="{_anchor(record)}"></a>',
        "",
        f"### {_title(record)}: {record.title}{' (stand-in data)' * _stands_in(record)}",
        "",
    )
    compared = list(_beside(record))
    is_table = record.item.startswith("table") and compared  # its values stand below, as a table
    if not is_table:
        yield from (f'<img src="{place}.svg" alt="{_title(record)}" width="720">', "")
    files = f"[record]({place}.json)" + f", [as a picture]({place}.svg)" * bool(is_table)
    yield from (f"{record.caption} Scale {record.scale}; {files}.", "")
    yield from (_statement(one) for one in record.comparisons)
    yield from (f"- not judged at this scale: {one}" for one in record.not_judged)
    yield from _majority(record)
    yield from compared
    yield from _why(record, common)


def _statement(one: Statement) -> str:
    mark = "holds" if one.passed else "**misses**"
    if one.passed and one.reasons:
        return f"- differs where explained below: {one.what} ({one.words}; the others differ for known reasons)."
    said = "" if one.stated == "holds" else f" ({one.stated}; {one.words})"
    return f"- {mark}: {one.what}{said}.{HINDSIGHT if one.hindsight else ''}"


def _beside(record: ItemResult) -> Iterator[str]:
    rows = list(_pairs(record.printed, record.values, ()))
    if not rows:
        return
    columns = max(len(paper) for _, paper, _ in rows)
    heads = [""] * (columns - 1) if columns == 1 else [str(place + 1) for place in range(columns)]
    yield from ("", _row("", "whose", *(heads or ["value"])), "|---" * (columns + 2) + "|")
    for name, paper, ours in rows:
        for whose, values in (("the paper", paper), ("ours", ours)):
            yield _row(name, whose, *values, *[""] * (columns - len(values)))
    if record.order:
        yield from ("", f"Columns: {record.order}.")


def _majority(record: ItemResult) -> Iterator[str]:
    """Levels whose phi praises a model that has lost half of its accuracy or more."""
    praised = [
        f"{variant.classes} classes, {row.kind} {row.value:g} (phi {row.phi:.2f}, accuracy "
        f"{row.accuracy.mean:.2f} of {variant.original.accuracy.mean:.2f})"
        for variant in (convert(one, VariantFigures) for one in record.values.get("variants", ()))
        for row in (*variant.central, *variant.local)
        if (row.phi or 0) > FAVOURABLE and row.accuracy.mean <= variant.original.accuracy.mean / 2
    ]
    if praised:
        yield (
            "- **Warning**: phi above 1 is no praise where the model has learned little more than the most common "
            f"class. Half of the accuracy or more is lost at: {'; '.join(praised)}."
        )


def _pairs(printed: Any, ours: Any, names: tuple[str, ...]) -> Iterator[tuple[str, list[str], list[str]]]:
    """(name, the paper's values, ours) of everything printed, those of one list in one row."""
    if isinstance(printed, Mapping):
        for name, part in printed.items():
            yield from _pairs(part, ours[name], (*names, name))
    elif isinstance(printed, str):
        yield _words(names), [printed], [_like(ours, printed)]
    elif any(text is not None for text in printed):
        both = [("", "") if text is None else (text, _like(one, text)) for text, one in zip(printed, ours, strict=True)]
        yield _words(names), [text for text, _ in both], [own for _, own in both]


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


def _why(record: ItemResult, common: Mapping[str, str]) -> Iterator[str]:
    own = [note for note in record.notes if note not in common]
    letters = sorted(common[note] for note in record.notes if note in common)
    above = [f"See note{'s' * (len(letters) > 1)} {', '.join(letters)} above."] if letters else []
    said = [*_reasons(record), *own, *above]
    if said:
        yield from ("", "Where ours differs, or the paper leaves something open:", "")
        yield from (f"- {one}" for one in said)


def _reasons(record: ItemResult) -> list[str]:
    return [reason for one in record.comparisons for reason in one.reasons]


def _title(record: ItemResult) -> str:
    """As the paper writes it: Figure 5.1."""
    kind, _, number = record.item.partition("-")
    return f"{kind.capitalize()} {number}"


def _anchor(record: ItemResult) -> str:
    return f"{record.paper.name}-{record.item}"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
