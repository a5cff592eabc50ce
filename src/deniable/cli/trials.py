"""An audit's document as text for people: the paragraph first, then one table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable.cli.exposed import exposure_words
from deniable.cli.running import print_parts
from deniable.cli.scored import estimators
from deniable.document import Document
from deniable.numbers import as_given

__all__ = ["show"]


def show(document: Document) -> None:
    """Print `document` for a person, on standard output."""
    print_parts(_parts(document))


def _parts(document: Document) -> Iterator[RenderableType]:
    heading = ", ".join(filter(None, (document["verdict"].capitalize(), document.get("closeness"))))
    yield Text(f"{heading}. {document['verdict_text']}\n", style="bold")
    yield Text(_game(document) + "\n")
    yield Padding(_table(document), (0, 0, 1, 2), expand=False)
    yield Padding(estimators(document["measured"]["epsilon"]["estimators"]), (0, 0, 1, 2), expand=False)
    if "exposure" in document:
        yield Text(exposure_words(document["exposure"]) + "\n")
    for note in document["notes"]:
        yield Text(note, style="dim")
    yield Text(f"{document['seconds']:.1f} s, {document['trials_per_second']:.0f} trials/s.", style="dim")


def _game(document: Document) -> str:
    given, measured = document["input"], document["measured"]
    right = (1 + measured["advantage"]["value"]) / 2
    return (
        "An observer who knows both data sets, the model and the noise, and sees every step, was played against "
        f"{as_given(measured['trials'])} trainings on {given['data']} ({given['records']} records, {given['steps']} "
        f"steps, {given['adjacency']} neighbours, noise {given['noise']:.4g} x {given['sensitivity']} sensitivity). "
        f"Telling D from D', it is right {right:.1%} of the time; guessing is right 50%."
    )


def _table(document: Document) -> Table:
    claimed, exact, measured = document["claimed"], document["exact"], document["measured"]
    belief, epsilon = measured["belief"], measured["epsilon"]
    bound = epsilon["lower_bound"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for heading in ("promised", "exact", "measured", f"{100 * bound['confidence']:.3g}% limits"):
        table.add_column(heading, justify="right", no_wrap=True)

    def row(name: str, promised: float | None, real: float | None, found: float | None, limits: str = "") -> None:
        table.add_row(name, *map(_figure, (promised, real, found)), limits)

    row("Membership advantage", claimed["advantage"], exact["advantage"], *_limited(measured["advantage"]))
    row("Largest belief", claimed["belief"], exact["belief"], belief["max"])
    above = {"value": belief["violation_rate"], **belief["violation_interval"]}
    row(f"Belief above {belief['bound']:.3g}", exact["belief_failure"], exact["belief_failure"], *_limited(above))
    at_least = f"at least {bound['value']:.3g}"
    row(f"Epsilon at delta {as_given(exact['delta'])}", claimed["epsilon"], exact["epsilon"], None, at_least)
    row("  from local sensitivities", None, None, epsilon["sensitivity"])
    row("  from the largest belief", None, None, epsilon["belief"], "none")
    row("  from the advantage (Gaussian)", None, None, epsilon["advantage"], "none")
    row("  from the advantage (Theorem 3)", None, None, epsilon["advantage_theorem_3"], "none")
    return table


def _limited(figure: Document) -> tuple[float, str]:
    return figure["value"], f"{figure['low']:.3g} to {figure['high']:.3g}"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
