"""The audits and comparisons in one folder: listed, and their reports read; nothing outside of it is ever opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

__all__ = ["listed", "report"]

REPORT = "report.html"
_KINDS = {"audit.json": "audit", "compare.json": "comparison"}
_MOST_RUNS = 200
_LARGEST = 8 * 2**20  # bytes of a record that is read for its summary
_LONGEST = 300  # characters of a summary


def listed(folder: Path | None) -> list[dict[str, Any]]:
    """Every run in the folder, newest first."""
    if folder is None or not folder.is_dir():
        return []
    runs = sorted(_runs(folder), key=lambda run: str(run["changed"]), reverse=True)
    return runs[:_MOST_RUNS]


def report(folder: Path | None, name: str) -> bytes | None:
    """The report of the run called `name`; None unless it is a real file in a real directory of the folder."""
    if folder is None or name not in (place.name for place in _directories(folder)):
        return None
    page = folder / name / REPORT
    return page.read_bytes() if _is_inside(page, folder) else None


def _directories(folder: Path) -> Iterator[Path]:
    yield from (place for place in folder.iterdir() if place.is_dir() and not place.is_symlink())


def _is_inside(file: Path, folder: Path) -> bool:
    return file.is_file() and not file.is_symlink() and file.resolve().is_relative_to(folder.resolve())


def _runs(folder: Path) -> Iterator[dict[str, Any]]:
    for place in _directories(folder):
        records = [place / name for name in _KINDS if _is_inside(place / name, folder)]
        page = place / REPORT
        if records or _is_inside(page, folder):
            yield _described(place, records[0] if records else page, _is_inside(page, folder))


def _described(place: Path, record: Path, has_report: bool) -> dict[str, Any]:
    changed = datetime.fromtimestamp(record.stat().st_mtime, UTC)
    return {
        "name": _printable(place.name),
        "kind": _KINDS.get(record.name, "other"),
        "changed": changed.isoformat(timespec="seconds"),
        "summary": _summary(record) if record.name in _KINDS else "",
        "report": f"/runs/{quote(place.name, safe='')}/report"
        if has_report and _printable(place.name) == place.name
        else None,
    }


def _printable(name: str) -> str:
    """A name that JSON can carry: bytes that are no text are replaced."""
    return name.encode("utf-8", "replace").decode()


def _summary(record: Path) -> str:
    """The verdict or the recommendation; a record that cannot be read says so."""
    if record.stat().st_size > _LARGEST:
        return "too large to summarise"
    try:
        document = json.loads(record.read_bytes())
        text = document["verdict_text"] if "verdict_text" in document else document["recommendation"]["sentences"][0]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return "its record cannot be read"
    return str(text)[:_LONGEST]
