"""Bernau 2021b, Figures 6 and 7: how many records each label has."""

# ruff: noqa: PLC0415 (the data is loaded when it is counted)

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from deniable.experiments.drawing import BLUE, panels
from deniable.experiments.games import available
from deniable.experiments.item import Item, ItemRun
from deniable.experiments.statements import Claim
from deniable.results.base import Part


class ClassSizes(Part, frozen=True, kw_only=True):
    """How many records each label has."""

    data: str
    classes: int
    counts: list[float]
    records: int


class SizeFigure(Part, frozen=True, kw_only=True):
    """Figure 6 or 7."""

    panels: list[ClassSizes]


def _sizes(data: str, classes: int | None) -> ClassSizes:
    import numpy as np

    from deniable.data import load

    dataset = load(data, classes=classes)
    counts = np.bincount(dataset.labels, minlength=dataset.classes).tolist()
    return ClassSizes(data=dataset.name, classes=dataset.classes, counts=counts, records=len(dataset))


def _purchases(run: ItemRun) -> SizeFigure:
    return SizeFigure(panels=[_sizes("purchase100" if available("purchase100") else "location30", None)])


def _texas(run: ItemRun) -> SizeFigure:
    if available("texas100"):
        return SizeFigure(panels=[_sizes(f"texas{classes}", None) for classes in (100, 150, 200, 300)])
    return SizeFigure(panels=[_sizes("location30", classes) for classes in (10, 15, 20, 30)])


def _draw(found: SizeFigure) -> Figure:
    titles = [f"C = {one.classes} ({one.data}, {one.records:,} records)" for one in found.panels]
    figure, axes = panels(titles, min(2, len(titles)), x="labels", y="quantity of records")
    for part, one in zip(axes, found.panels, strict=True):
        part.bar(range(one.classes), one.counts, color=BLUE, width=1.0)
        part.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


UNBALANCED = Claim(
    "labels are unbalanced: the most common has at least twice the records of the least common",
    lambda found: all(max(one.counts) >= 2 * min(one.counts) for one in found.panels[-1:]),
    SizeFigure,
    hindsight=True,
)
STAND_IN = (
    "Cannot be had here: Location-30's labels are counted in its place; the paper's own data is counted where its"
    " file is present."
)


def _item(number: int, name: str, what: str, compute: Callable[[ItemRun], SizeFigure]) -> Item[SizeFigure]:
    return Item(
        name=f"figure-{number}",
        needs=("location30",),
        title=f"records per label, {name}",
        caption=f"Figure {number}: quantity of records per label. {what}",
        compute=compute,
        read_as=SizeFigure,
        draw=_draw,
        comparisons=(UNBALANCED,),
        notes=(f"{name}: {STAND_IN[0].lower()}{STAND_IN[1:]}",),
    )


FIGURE_6 = _item(
    6,
    "Purchases Shopping Carts",
    "Location-30 (30 labels) in place of Purchases Shopping Carts (100 labels).",
    _purchases,
)
FIGURE_7 = _item(
    7,
    "Texas Hospital Stays",
    "The 10, 15, 20 and 30 most common labels of Location-30 in place of Texas Hospital Stays with 100 to 300 labels.",
    _texas,
)
