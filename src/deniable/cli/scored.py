"""The document of `deniable verdict` as text for people: the verdict first, then two tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable.cli.running import print_parts
from deniable.document import Document
from deniable.numbers import as_given
from deniable.report.standing import standing

__all__ = ["show"]


def show(document: Document) -> None:
    """Print `document` for a person, on standard output."""
    print_parts(_parts(document))


def _parts(document: Document) -> Iterator[RenderableType]:
    heading = ", ".join(filter(None, (document["verdict"].capitalize(), document["closeness"])))
    yield Text(f"{heading}. {document['verdict_text']}\n", style="bold")
    yield Text(_examined(document) + "\n")
    yield Padding(estimators(document["measured"]["epsilon"]["estimators"]), (0, 0, 1, 2), expand=False)
    yield Padding(_achieved(document), (0, 0, 1, 2), expand=False)
    for note in document["notes"]:
        yield Text(note, style="dim")


def _examined(document: Document) -> str:
    given, measured = document["input"], document["measured"]
    rule = f"threshold {given['threshold']:g} fixed in advance" if "threshold" in given else f"rule {given['rule']}"
    return (
        f"{measured['members']:,} scores of members and {measured['others']:,} of others, examined by "
        f"{given['method']} ({rule}), against the claim of epsilon {as_given(given['claimed_epsilon'])} at delta "
        f"{as_given(given['delta'])}."
    )


def estimators(bounds: list[Document]) -> Table:
    """One row an estimator: what it shows, how sure, and whether its assumptions stand."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (("Epsilon by", "left"), ("at least", "right"), ("shown at most", "right"), ("", "left")):
        table.add_column(heading, justify=justify, no_wrap=heading != "")  # type: ignore[arg-type]
    for bound in bounds:
        low = "-" if not bound["valid"] else _figure(bound["value"])
        high = "-" if not bound["valid"] else _figure(bound["upper"])
        table.add_row(bound["name"], low, high, standing(bound))
    return table


def _achieved(document: Document) -> Table:
    measured = document["measured"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("What the attack achieves")
    table.add_column("measured", justify="right")
    table.add_column(f"{100 * document['input']['confidence']:.4g}% limits", justify="right")
    rows = {
        "Membership advantage": measured["advantage"],
        "AUC": measured["auc"],
        "Average precision": measured["average_precision"],
        **{f"TPR at FPR {as_given(row['fpr'])}": row for row in measured["tpr"]},
    }
    for name, found in rows.items():
        table.add_row(name, _figure(found["value"]), f"{found['low']:.3g} to {found['high']:.3g}")
    return table


def _figure(value: float | None) -> str:
    return "any" if value is None else f"{value:.3g}"
