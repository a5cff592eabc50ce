"""One HTML page without any outside part: the verdict in words, the scores side by side, the pictures."""

from __future__ import annotations

import io
import json
import os
from base64 import b64encode
from pathlib import Path

import matplotlib as mpl
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from deniable.audit import Trials
from deniable.document import Document
from deniable.report.figures import FIGURES

__all__ = ["drawn", "replace_file", "write"]

TITLES = {
    "final-beliefs": "How sure the observer ended",
    "belief-over-steps": "How its belief grew",
    "sensitivity-over-steps": "What one record changes, beside the worst case",
}


def write(document: Document, trials: Trials, directory: Path | str) -> Path:
    """Write audit.json, the pictures (.svg and .png) and report.html into `directory`; returns the page's path."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    replace_file(place / "audit.json", (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())
    pictures = []
    for name, draw in FIGURES.items():
        figure = draw(document, trials)
        svg = drawn(figure, "svg")
        replace_file(place / f"{name}.svg", svg)
        replace_file(place / f"{name}.png", drawn(figure, "png"))
        pictures.append({"title": TITLES[name], "source": f"data:image/svg+xml;base64,{b64encode(svg).decode()}"})
    page = place / "report.html"
    replace_file(page, _rendered(document, pictures).encode())
    return page


def drawn(figure: Figure, kind: str) -> bytes:
    """The same bytes for the same trials: no date, and names inside the file from a fixed salt."""
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "deniable"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def _rendered(document: Document, pictures: list[dict[str, str]]) -> str:
    environment = Environment(
        loader=PackageLoader("deniable.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["figure"] = lambda value: "-" if value is None else f"{value:.3g}"
    return environment.get_template("audit.html").render(document=document, pictures=pictures)


def replace_file(path: Path, content: bytes) -> None:
    """Whole or not at all: a reader never meets half a file."""
    draft = path.with_name(path.name + ".part")
    draft.write_bytes(content)
    os.replace(draft, path)  # noqa: PTH105 (named for what it does)
