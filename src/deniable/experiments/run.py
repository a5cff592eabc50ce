"""Runs items and keeps their outcome: <paper>/<item>.json, .svg and .png, and RESULTS.md over all that is there."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from msgspec import convert
from PIL import Image

from deniable import __version__
from deniable.engines import Engine
from deniable.experiments.item import Item, ItemRun, Paper, Scale, Values, to_values
from deniable.experiments.results_page import results_page
from deniable.experiments.statements import Comparison
from deniable.results.base import plain as to_plain
from deniable.results.reproduce_result import ItemResult, PaperName, ReproduceResult, Statement
from deniable.store import read_document, replace_file, write_document

_TAG, _FINE = re.compile(rb"<[^>]*>"), re.compile(rb"(\d\.\d\d)\d+")
_SMALLER = (
    (re.compile(rb'<g id="[^"]*">'), b"<g>"),  # names that nothing refers to
    (re.compile(rb" <metadata>.*</metadata>\n", re.DOTALL), b""),
    (re.compile(rb' transform="rotate\(-0 [^"]*"'), b""),
    (re.compile(rb"\s*\n\s*"), b"\n"),
)
"""What an SVG does without."""
Selected = tuple[Paper, Item[Any]]
Progress = Callable[[Selected, float], None]
"""Told the item at work and the share of it that is done."""


def run_items(
    chosen: Iterable[Selected],
    scale: Scale,
    out: Path,
    *,
    every: Iterable[Paper],
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> ReproduceResult:
    """Run the chosen items into `out`.

    An item whose values are kept in `out`, from the same version and seed and at least this scale, is not computed
    again, only judged and drawn. RESULTS.md covers all items of the papers `every` that `out` holds, from this run or
    an earlier one. `engine` says where campaigns are played: on the cores of this machine, unless told.
    """
    chosen, progress = list(chosen), progress or _tell_nobody
    check_writable(out)
    _protect(chosen, scale, out, seed)
    records: list[ItemResult] = []
    absent: dict[str, str] = {}
    for paper, item in chosen:
        progress((paper, item), 0.0)
        try:
            run = ItemRun(scale, out / "trials", seed, partial(progress, (paper, item)), engine)
            records.append(_run_item((paper, item), run, out))
        except FileNotFoundError as missing:  # data that is not here stops its own item, not the others
            if len(chosen) == 1:
                raise
            absent[f"{paper.name} {item.name}"] = str(missing)
        else:
            replace_file(out / "RESULTS.md", results_page(_all_kept(every, out)).encode())
        progress((paper, item), 1.0)
    missed = tuple(record.name for record in records if not record.passed)
    return ReproduceResult(
        scale=str(scale), seed=seed, out=str(out), missed=missed, absent=absent, items=tuple(records)
    )


def _tell_nobody(selected: Selected, done: float) -> None:
    pass


def kept_record(selected: Selected, scale: Scale, out: Path, seed: int = 0) -> ItemResult | None:
    """The item's record in `out`, if it was made by this version with this seed, at this scale or a larger one."""
    found = _read(_path(selected, out))
    if found is None or (found.versions.get("deniable"), found.seed) != (__version__, seed):
        return None
    return found if Scale(found.scale).rank >= scale.rank else None


def check_writable(out: Path) -> None:
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
        if found is None or kept_record((paper, item), scale, out, seed) is not None:
            continue
        if Scale(found.scale).rank > scale.rank:
            raise ValueError(
                f"{out} holds {paper.name} {item.name} at scale {found.scale}, which scale {scale} would replace: "
                "name another directory with --out"
            )


def _run_item(selected: Selected, run: ItemRun, out: Path) -> ItemResult:
    item, scale = selected[1], run.scale
    known = kept_record(selected, scale, out, run.seed)
    if known is None:
        started = perf_counter()
        plain = to_values(item.compute(run))
        seconds, made_by = round(perf_counter() - started, 2), _versions()
    else:
        plain, scale, seconds, made_by = known.values, Scale(known.scale), known.seconds, known.versions
    record = judge_item(selected, plain, scale, seed=run.seed, seconds=seconds, versions=made_by)
    path = _path(selected, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = item.draw_values(record.values)
    replace_file(path.with_suffix(".svg"), _draw_bytes(figure, "svg"))
    figure.set_layout_engine("none")  # laid out once, for both
    replace_file(path.with_suffix(".png"), _draw_bytes(figure, "png"))
    # The record last: where it is, the pictures are.
    write_document(path, to_plain(record), indent=1)
    return record


def judge_item(
    selected: Selected, values: Values, scale: Scale, *, seed: int, seconds: float, versions: dict[str, str]
) -> ItemResult:
    """The record of an item with these values: every statement that can be judged at this scale is."""
    paper, item = selected
    large = [one for one in item.comparisons if Scale(one.smallest).rank > scale.rank]
    judged = tuple(_judge(one, item, values) for one in item.comparisons if one not in large)
    return ItemResult(
        paper=PaperName(key=paper.key, name=paper.name, title=paper.title),
        item=item.name,
        title=item.title,
        caption=item.caption,
        notes=tuple(item.notes),
        seed=seed,
        printed=to_values(item.printed),
        order=item.order,
        scale=str(scale),
        values=values,
        seconds=seconds,
        versions=versions,
        passed=all(one.passed for one in judged),
        comparisons=judged,
        not_judged=tuple(f"{one.what}: judged from scale {one.smallest} on" for one in large),
    )


def _judge(comparison: Comparison, item: Item[Any], values: Values) -> Statement:
    found = comparison.judge(values, item.printed)
    return Statement(**asdict(found), stated=comparison.tolerance_text, hindsight=comparison.hindsight)


def _versions() -> dict[str, str]:
    found = {"deniable": __version__, "python": sys.version.split()[0]}
    for name in ("numpy", "scipy", "torch", "matplotlib"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _draw_bytes(figure: Figure, kind: str) -> bytes:
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


def _read(path: Path) -> ItemResult | None:
    if not path.exists():
        return None
    try:
        found = convert(read_document(path), ItemResult)
        Scale(found.scale)
    except ValueError as damaged:  # msgspec's own errors are ValueErrors
        raise ValueError(
            f"{path} is not an item's record: {damaged}; delete it, or name another directory with --out"
        ) from damaged
    return found


def _all_kept(every: Iterable[Paper], out: Path) -> list[ItemResult]:
    found = (_read(_path((paper, item), out)) for paper in every for item in paper.items)
    return [record for record in found if record is not None]
