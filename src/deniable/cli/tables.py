"""A document as text for people: paragraphs first, then compact tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable import words
from deniable.cli.running import print_parts
from deniable.document import Document
from deniable.numbers import as_given, at_most, percent_as_given, percent_at_most

__all__ = ["show"]

_NAMES = {
    "exact": "exact",
    "naive": "naive composition",
    "advanced": "advanced composition",
    "zcdp": "zCDP",
    "rdp": "RDP",
    "kl": "KL",
    "classic": "classic formula",
}


def show(document: Document) -> None:
    """Print `document` for a person, on standard output."""
    print_parts(_parts(document))


def _parts(document: Document) -> Iterator[RenderableType]:
    chosen = "methods" in document
    if chosen:
        yield Text(words.noise_to_add(document) + "\n", style="bold")
    yield Text(words.meaning(document) + "\n")
    if chosen:
        yield _indented(_demands(document))
    yield _indented(_scores(document))
    if not chosen and _is_mechanism(document):
        yield _indented(_analyses(document))
    for note in _footnotes(document):
        yield Text(note, style="dim")


def _scores(document: Document) -> Table:
    scores = document["scores"]
    prior, delta = percent_as_given(scores["prior"]), words.failure(document)
    table = _table("What the strongest attack can reach", "at most")
    exception = f", except with probability {delta}" if scores["belief_failure"] else ""
    table.add_row(f"Posterior belief from {prior}{exception}", percent_at_most(scores["belief"]))
    for label, belief in _other_beliefs(document):
        table.add_row(label, percent_at_most(belief))
    table.add_row("Membership advantage (TPR - FPR; total variation)", percent_at_most(scores["advantage"]))
    table.add_row(f"Attack accuracy, {prior} members", percent_at_most(scores["accuracy"]))
    for row in scores["tpr"]:
        table.add_row(f"Members found (TPR) at FPR {percent_as_given(row['fpr'])}", percent_at_most(row["tpr"]))
    for row in scores["ppv"]:
        label = f"Members among the accused (PPV) at FPR {percent_as_given(row['fpr'])}, {prior} members"
        table.add_row(label, percent_at_most(row["ppv"]))
    table.add_row(f"Epsilon at delta {delta}", _epsilon(scores["epsilon"]))
    return table


def _demands(document: Document) -> Table:
    table = _table("Noise that each analysis demands for this promise", "noise", "x exact")
    for method in sorted(document["methods"], key=lambda method: method["noise"] or float("inf")):
        noise = method["noise"]
        ratio = "-" if noise is None else at_most(noise / document["noise"])
        style = "bold" if method["name"] == "exact" else None
        table.add_row(
            _NAMES[method["name"]] + _mark(method), "-" if noise is None else at_most(noise, 5), ratio, style=style
        )
    return table


def _analyses(document: Document) -> Table:
    scores = document["scores"]
    table = _table("The same release by weaker analyses", "epsilon", "advantage")
    table.add_row(_NAMES["exact"], _epsilon(scores["epsilon"]), percent_at_most(scores["advantage"]), style="bold")
    for name, bound in _analysed(document):
        if "why" not in bound:
            advantage = percent_at_most(bound["advantage"]) if "advantage" in bound else ""
            epsilon = _epsilon(bound["epsilon"]) if "epsilon" in bound else ""
            table.add_row(_NAMES[name] + _mark(bound), epsilon, advantage)
    return table


def _other_beliefs(document: Document) -> Iterator[tuple[str, float]]:
    """Promises about belief that resemble the exact one and are not it (ERRATA 4)."""
    if "any_release" in document["bounds"]:
        strict = document["bounds"]["any_release"]
        label = f"  any such release, except with probability {as_given(strict['belief_failure'])}"
        yield label, strict["belief"]
        return
    read_off, exact = document["bounds"]["theorem_2"]["belief"], document["scores"]["belief"]
    if _is_mechanism(document) and percent_at_most(read_off) != percent_at_most(exact):
        yield "  Theorem 2 on epsilon and delta would say (too low)", read_off


def _footnotes(document: Document) -> Iterator[str]:
    yield from document["notes"]
    for name, entry in _analysed(document):
        if "methods" in document and "why" in entry:
            yield f"{_NAMES[name]}: {entry['why'].removeprefix(name + ': ')}."
    yield f"{words.setting(document)} Method: {document['method']}; rounded up, numerical error included."


def _analysed(document: Document) -> Iterator[tuple[str, Document]]:
    """The analyses that are shown beside the exact one."""
    if "methods" in document:
        yield from ((entry["name"], entry) for entry in document["methods"])
    elif _is_mechanism(document):
        yield from ((name, entry) for name, entry in document["bounds"].items() if name in _NAMES)


def _is_mechanism(document: Document) -> bool:
    """Whether more is known than a bare guarantee."""
    return not {"epsilon", "tvd", "gdp"} & document["input"].keys() or "noise" in document


def _mark(entry: Document) -> str:
    return "" if entry.get("proved", True) else " (not proved)"


def _epsilon(value: float | None) -> str:
    return "infinite" if value is None else at_most(value)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _indented(table: Table) -> Padding:
    return Padding(table, (0, 0, 1, 2), expand=False)
