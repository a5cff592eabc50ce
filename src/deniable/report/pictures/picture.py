"""A picture: its data, its words and its drawing, which becomes files and a part of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.store import replace_file

Data = dict[str, Any]
"""What a picture shows: JSON values and parts of results, by name."""
BLUE, ORANGE, GREEN, RED = "#0072b2", "#d55e00", "#009e73", "#b3001e"
PURPLE, YELLOW = "#a6528a", "#b07c00"
INK, MUTED, GREY, FAINT = "#1c2530", "#56616d", "#8b949e", "#dfe3e8"
"""Colours that the colour-blind can tell apart (Okabe and Ito), and greys."""
VARIABLES = {
    BLUE: "--blue",
    ORANGE: "--orange",
    GREEN: "--green",
    RED: "--red",
    PURPLE: "--purple",
    YELLOW: "--yellow",
    INK: "--ink",
    MUTED: "--muted",
    GREY: "--grey",
    FAINT: "--faint",
    "#ffffff": "--paper",
}
"""The page's name of each colour, so that its style sheet decides what it is by day, by night and in print."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched and set in the page's font
    "svg.hashsalt": "deniable",
    "text.parse_math": False,
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
}
WIDTH_INCHES = 5.4
"""Inches. Narrow, so that text can be read where a phone shrinks the picture to its width."""
LEAST_RATE = 1e-5
"""The smallest rate on logarithmic axes."""
SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
_COLOUR = re.compile("|".join(VARIABLES), re.IGNORECASE)
_FONT = re.compile(r"font: ((?:\w+ )*[\d.]+px)[^;]*")
_REFERENCE = re.compile(r"#([\w-]+)")


@dataclass(frozen=True)
class Picture:
    """`name` is that of its files, `told` what there is to see, `description` the same for those who do not see it."""

    name: str
    title: str
    told: str
    description: str
    data: Any
    """What is drawn, a typed record or JSON values: the report writes it beside the picture."""
    draw: Callable[[Any], Figure]

    @cached_property
    def drawing(self) -> Figure:
        """From the data alone."""
        with _with_style():
            return self.draw(self.data)

    @cached_property
    def svg(self) -> bytes:
        """As a file, which the page shows, too."""
        return draw_bytes(self.drawing, "svg")


@contextmanager
def _with_style() -> Iterator[None]:
    with mpl.rc_context(STYLE):
        yield


def log_roc(
    found: Axes,
    fpr: Sequence[float],
    tpr: Sequence[float],
    *,
    color: str,
    label: str,
    linestyle: str = "-",
    linewidth: float | None = None,
) -> None:
    """A ROC curve on logarithmic axes, beside guessing; points at a rate of 0 have no place on them."""
    points = [(x, y) for x, y in zip(fpr, tpr, strict=True) if x > 0 and y > 0]
    if not found.lines:
        found.plot([LEAST_RATE, 1], [LEAST_RATE, 1], ":", color=MUTED, linewidth=1, label="guessing")
        found.set(xscale="log", yscale="log", xlim=(LEAST_RATE, 1), ylim=(LEAST_RATE, 1.3))
        percent_axes(found)
    x, y = [x for x, _ in points], [y for _, y in points]
    found.plot(x, y, color=color, label=label, linestyle=linestyle, linewidth=linewidth)


def percent_axes(found: Axes) -> None:
    """Rates on logarithmic axes, in per cent: matplotlib's own powers of ten are TeX, which a page shows as it is."""
    for axis in (found.xaxis, found.yaxis):
        axis.set_major_formatter(lambda rate, _: f"{100 * rate:g} %")
        axis.set_minor_formatter("")


def axes(x: str, y: str, height: float = 3.3) -> tuple[Figure, Axes]:
    """A picture with one set of axes."""
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    found = figure.add_subplot()
    found.set(xlabel=x, ylabel=y)
    return figure, found


def plain(text: str) -> str:
    """A name that comes from a file, as far as it can be drawn: short, and in letters that every font has."""
    return "".join(letter for letter in text[:28] if " " <= letter <= "~")


def legend_above(found: Axes, columns: int = 3) -> None:
    """Where it hides nothing."""
    found.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, borderaxespad=0.2)


def draw_bytes(figure: Figure, kind: str) -> bytes:
    """The same bytes for the same figure: no date, and names inside the file from a fixed salt."""
    buffer = io.BytesIO()
    with _with_style():
        figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def write_pictures(pictures: Iterable[Picture], place: Path) -> list[Path]:
    """Every picture as .svg and .png; the paths of the .png files."""
    written = []
    for picture in pictures:
        replace_file(place / f"{picture.name}.svg", picture.svg)
        replace_file(place / f"{picture.name}.png", draw_bytes(picture.drawing, "png"))
        written.append(place / f"{picture.name}.png")
    return written


def inline(picture: Picture, prefix: str) -> str:
    """The drawing as an <svg> element with a title and a description, in the page's colours and font.

    It is parsed and written anew, so whatever text it holds is escaped; its names get `prefix`, since a page has many.
    """
    tree = ElementTree.fromstring(picture.svg)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    for part in list(tree.iter()):
        for child in [c for c in part if c.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style")]:
            part.remove(child)
    _rename(tree, prefix)
    for part in tree.iter():
        for name in ("style", "fill", "stroke"):
            if name in part.attrib:
                part.set(name, _theme_colours(part.attrib[name]))
    return _label_svg(tree, picture, prefix)


def _theme_colours(style: str) -> str:
    coloured = _COLOUR.sub(lambda found: f"var({VARIABLES[found[0].lower()]})", style)
    return _FONT.sub(r"font: \1 var(--font)", coloured)


def _rename(tree: ElementTree.Element, prefix: str) -> None:
    """Names that are referred to get the prefix; the others, which a page would have many times, go."""
    references = {
        found for part in tree.iter() for value in part.attrib.values() for found in _REFERENCE.findall(value)
    }
    for part in tree.iter():
        name = part.attrib.pop("id", None)
        for key, value in part.attrib.items():
            if "#" in value and (key.endswith("href") or "url(" in value):
                part.set(key, _REFERENCE.sub(rf"#{prefix}-\1", value) if key.endswith("href") else _url(value, prefix))
        if name in references:
            part.set("id", f"{prefix}-{name}")


def _url(value: str, prefix: str) -> str:
    return value.replace("url(#", f"url(#{prefix}-")


def _label_svg(tree: ElementTree.Element, picture: Picture, prefix: str) -> str:
    words = {"title": picture.title, "desc": picture.description}
    for place, (tag, text) in enumerate(words.items()):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{prefix}-{tag}"})
        element.text = text
        tree.insert(place, element)
    for name in ("width", "height", "version"):
        tree.attrib.pop(name, None)
    tree.attrib |= {"role": "img", "aria-labelledby": f"{prefix}-title", "aria-describedby": f"{prefix}-desc"}
    return ElementTree.tostring(tree, encoding="unicode")
