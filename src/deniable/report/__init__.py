"""Runs -> one page for the people who decide, and pictures; everything is drawn from the runs' documents.

Drawing is imported when something is drawn, so that listing runs is quick.

stored_runs, under_way (what is read, and refused) | words, report_tables, law_table, page_notes (what is said) |
decision, impact_assessment, privacy_card (for those who decide) | pictures (what is shown) | chapters (one for each
kind of result) | page (one HTML file), templates, pdf, plain_document (Markdown and .docx), show_result (how a result
shows itself in Python), mlflow_log.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deniable.report.stored_runs import Found, ReportedRun, find_runs, read

__all__ = ["Found", "ReportedRun", "find_runs", "read", "render"]


def render(runs: Sequence[Path | str]) -> str:
    """One HTML page without any outside part, of the runs at these places; ValueError or OSError name a bad one."""
    from deniable.report.page import page  # noqa: PLC0415 (see above)

    return page([read(run) for run in runs])
