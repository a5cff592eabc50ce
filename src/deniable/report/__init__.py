"""Runs -> one page for the people who decide, and pictures; everything is drawn from the runs' documents.

Rooms: runs, shape (what is read, and refused) | numbers, words, tables (what is said) | scale, picture, observed,
epsilons, comparison, exposed (what is shown) | audited, compared, scored (a chapter for each kind of run) | page (one
HTML file) | printed (PDF). Drawing is imported when something is drawn, so that listing runs is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deniable.report.runs import Found, Run, find_runs, read

__all__ = ["Found", "Run", "find_runs", "read", "render"]


def render(runs: Sequence[Path | str]) -> str:
    """One HTML page without any outside part, of the runs at these places; ValueError or OSError name a bad one."""
    from deniable.report.page import page  # noqa: PLC0415 (see above)

    return page([read(run) for run in runs])
