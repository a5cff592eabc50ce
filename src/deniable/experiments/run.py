"""Runs items and keeps their outcome: <paper>/<item>.json, .svg and .png, and RESULTS.md over all that is there."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

from deniable import __version__
from deniable.engines import Engine
from deniable.experiments.item import Item, Paper, Run, Scale, Values
from deniable.experiments.results import results
from deniable.store import read_document, replace_file, write_document

__all__ = ["SCHEMA", "Selected", "kept", "reproduce", "writable"]

SCHEMA = "deniable/reproduce/1"
Document = dict[str, Any]
_NEEDED = ("schema", "versions", "seed", "scale", "values", "seconds", "paper", "item", "passed", "comparisons")
"""What an item's document must hold to be used again."""
_TAG, _FINE = re.compile(rb"<[^>]*>"), re.compile(rb"(\d\.\d\d)\d+")
_SMALLER = (
    (re.compile(rb'<g id="[^"]*">'), b"<g>"),  # names that nothing refers to
    (re.compile(rb" <metadata>.*</metadata>\n", re.DOTALL), b""),
    (re.compile(rb' transform="rotate\(-0 [^"]*"'), b""),
    (re.compile(rb"\s*\n\s*"), b"\n"),
)
"""What an SVG does without."""
Selected = tuple[Paper, Item]
Progress = Callable[[Selected, float], None]
"""Told the item at work and the share of it that is done."""


def reproduce(
    chosen: Iterable[Selected],
    scale: Scale,
    out: Path,
    *,
    every: Iterable[Paper],
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = lambda selected, done: None,
) -> Document:
    """Run the chosen items into `out` and return the document of the run.

    An item whose values are kept in `out`, from the same version and seed and at least this scale, is not computed
    again, only judged and drawn. RESULTS.md covers all items of the papers `every` that `out` holds, from this run or
    an earlier one. `engine` says where campaigns are played: on the cores of this machine, unless told.
    """
    chosen = list(chosen)
    writable(out)
    _protect(chosen, scale, out, seed)
    records: list[Document] = []
    absent: dict[str, str] = {}
    for paper, item in chosen:
        progress((paper, item), 0.0)
        try:
            run = Run(scale, out / "trials", seed, partial(_tell, progress, (paper, item)), engine)
            records.append(_record((paper, item), run, out))
        except FileNotFoundError as missing:  # data that is not here stops its own item, not the others
            if len(chosen) == 1:
                raise
            absent[f"{paper.name} {item.name}"] = str(missing)
        else:
            replace_file(out / "RESULTS.md", results(_all_kept(every, out)).encode())
        progress((paper, item), 1.0)
    missed = [f"{record['paper']['name']} {record['item']}" for record in records if not record["passed"]]
    about = {"schema": SCHEMA, "scale": str(scale), "seed": seed, "out": str(out)}
    return {**about, "missed": missed, "absent": absent, "items": records}


def kept(selected: Selected, scale: Scale, out: Path, seed: int = 0) -> Document | None:
    """The item's document in `out`, if it was made by this version with this seed, at this scale or a larger one."""
    found = _read(_path(selected, out))
    if found is None or (found["schema"], found["versions"].get("deniable"), found["seed"]) != (
        SCHEMA,
        __version__,
        seed,
    ):
        return None
    return found if Scale(found["scale"]).rank >= scale.rank else None


def writable(out: Path) -> None:
    """Refuse a place that cannot be written before the work, not after it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"{out} cannot be written ({error.strerror}): name another directory with --out") from error


def _protect(chosen: Iterable[Selected], scale: Scale, out: Path, seed: int) -> None:
    """A small run never replaces the outcome of a larger one, by another version or with another seed."""
    for paper, item in chosen:
        found = _read(_path((paper, item), out))
        if found is None or kept((paper, item), scale, out, seed) is not None:
            continue
        if Scale(found["scale"]).rank > scale.rank:
            raise ValueError(
                f"{out} holds {paper.name} {item.name} at scale {found['scale']}, which scale {scale} would replace: "
                "name another directory with --out"
            )


def _tell(progress: Progress, selected: Selected, done: float) -> None:
    progress(selected, done)


def _record(selected: Selected, run: Run, out: Path) -> Document:
    paper, item = selected
    document = kept(selected, run.scale, out, run.seed)
    if document is None:
        started = perf_counter()
        values = item.compute(run)
        document = {**_made(values, perf_counter() - started), "scale": str(run.scale)}
    made = {name: document[name] for name in ("scale", "values", "seconds", "versions")}
    document = {**_described(paper, item, run.seed), **made, **_judged(item, made["values"], Scale(made["scale"]))}
    path = _path(selected, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = item.draw(document["values"])
    replace_file(path.with_suffix(".svg"), _drawn(figure, "svg"))
    figure.set_layout_engine("none")  # laid out once, for both
    replace_file(path.with_suffix(".png"), _drawn(figure, "png"))
    # The document last: where it is, the pictures are.
    write_document(path, document, indent=1)
    return document


def _described(paper: Paper, item: Item, seed: int) -> Document:
    return {
        "schema": SCHEMA,
        "paper": {"key": paper.key, "name": paper.name, "title": paper.title},
        "item": item.name,
        "title": item.title,
        "caption": item.caption,
        "notes": list(item.notes),
        "seed": seed,
        "printed": json.loads(json.dumps(item.printed)),
        "order": item.order,
    }


def _made(values: Values, seconds: float) -> Document:
    return {
        "values": json.loads(json.dumps(values, allow_nan=False)),  # as a later run will read it
        "seconds": round(seconds, 2),
        "versions": {"deniable": __version__, "python": sys.version.split()[0], **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in ("numpy", "scipy", "torch", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _judged(item: Item, values: Values, scale: Scale) -> Document:
    judged, left = [], []
    for comparison in item.comparisons:
        if Scale(comparison.smallest).rank > scale.rank:
            left.append(f"{comparison.what}: judged from scale {comparison.smallest} on")
            continue
        judgement = comparison.judge(values, item.printed)
        judged.append({**asdict(judgement), "stated": comparison.stated, "hindsight": comparison.hindsight})
    return {"passed": all(one["passed"] for one in judged), "comparisons": judged, "not_judged": left}


def _drawn(figure: Figure, kind: str) -> bytes:
    """The same bytes for the same values: no date, and names inside the file from a fixed salt."""
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "deniable", "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}):
        figure.savefig(buffer, format=kind, dpi=90, metadata={"Date": None} if kind == "svg" else None)
    return _fewer_bytes(buffer.getvalue()) if kind == "svg" else _few_colours(buffer)


def _fewer_bytes(svg: bytes) -> bytes:
    """Two thirds of the size, and the eye sees no difference: places to hundredths of a point; no text is touched."""
    for pattern, text in _SMALLER:
        svg = pattern.sub(text, svg)
    return _TAG.sub(lambda tag: _FINE.sub(rb"\1", tag[0]), svg)


def _few_colours(png: io.BytesIO) -> bytes:
    """A third of the size, and the eye sees no difference."""
    smaller = io.BytesIO()
    with Image.open(png) as picture:
        picture.convert("RGB").quantize(256).save(smaller, "png", optimize=True)
    return smaller.getvalue()


def _path(selected: Selected, out: Path) -> Path:
    paper, item = selected
    return out / paper.name / f"{item.name}.json"


def _read(path: Path) -> Document | None:
    if not path.exists():
        return None
    try:
        found = read_document(path, *_NEEDED)
    except ValueError as damaged:
        raise ValueError(f"{path} is not an item's record: {damaged}, or name another directory") from damaged
    if not isinstance(found["versions"], dict) or found["scale"] not in list(Scale):
        raise ValueError(f"{path} is not an item's record: delete it, or name another directory with --out")
    return found


def _all_kept(every: Iterable[Paper], out: Path) -> list[Document]:
    found = (_read(_path((paper, item), out)) for paper in every for item in paper.items)
    return [document for document in found if document is not None]
