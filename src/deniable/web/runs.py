"""The audits and comparisons in one folder: listed, and their reports read; nothing outside of it is ever opened."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deniable.report import found
from deniable.report.runs import PAGE, Found

__all__ = ["listed", "report"]

HERE = "."
"""The name of the run that the folder itself holds."""
_MOST_RUNS = 200


def listed(folder: Path | None) -> list[dict[str, Any]]:
    """The runs in the folder, with the addresses of their reports."""
    if folder is None or not folder.is_dir():
        return []
    return [_described(folder, run) for run in islice(found(folder), _MOST_RUNS)]


def report(folder: Path | None, name: str) -> bytes | None:
    """The report of the run called `name`; None unless it is a real file in a real directory of the folder."""
    if folder is None or not folder.is_dir() or name not in (run.name for run in found(folder)):
        return None
    page = folder / name / PAGE
    return page.read_bytes() if _is_inside(page, folder) else None


def _described(folder: Path, run: Found) -> dict[str, Any]:
    name = run.name.encode("utf-8", "replace").decode()  # bytes that are no text cannot be told in JSON, nor asked for
    address = f"/runs/{quote(name, safe='')}/report" if name != HERE else "/runs/report"
    there = name == run.name and _is_inside(folder / run.name / PAGE, folder)
    return {
        "name": folder.name if name == HERE else name,
        "kind": run.kind,
        "title": run.title.encode("utf-8", "replace").decode(),
        "verdict": run.verdict,
        "report": address if there else None,
    }


def _is_inside(file: Path, folder: Path) -> bool:
    return file.is_file() and not file.is_symlink() and file.resolve().is_relative_to(folder.resolve())
