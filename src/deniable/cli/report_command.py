"""`deniable report`: one page for the people who decide, of one or several runs."""

# ruff: noqa: PLC0415 (imports inside the command)

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli.common import patience, refusals
from deniable.cli.options import Text, flag, option

EXAMPLES = (
    "Examples:\n\ndeniable report audit-out/local audit-out/global --out report.html\n\n"
    "deniable verdict scores.csv --claimed-epsilon 2 --delta 1e-5 --json > verdict.json; deniable report verdict.json"
)
FILES = "What is written"


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Folders that audit, compare, attack or frontier wrote with --out, or documents printed with --json, "
            "also a verdict's.",
            show_default=False,
        ),
    ],
    out: Annotated[Text, option("out", "FILE", "The page. Default report.html.", FILES)] = None,
    pdf: Annotated[bool, flag("pdf", "Print it, too, into a .pdf beside it; needs chromium.", FILES)] = False,
    json: Annotated[bool, flag("json", "Print one JSON document of what was written.", FILES)] = False,
) -> None:
    """Write one page, for the people who decide, of what was promised, what was measured and what it means."""
    page = Path(out or "report.html")
    with refusals("report"), patience("Drawing ..."):
        if page.suffix not in (".html", ".htm"):
            raise ValueError(f"--out must be a file that ends in .html, got {str(page)!r}")
        written = _write_pages(runs, page, pdf)
    if json:
        typer.echo(encoder.dumps({"schema": "deniable/report/1", "runs": runs, **written}, indent=2))
        return
    for path in filter(None, (written["page"], written["pdf"])):
        typer.echo(path)


def _write_pages(runs: list[str], page: Path, pdf: bool) -> dict[str, Any]:
    from deniable.report import render
    from deniable.report.pdf import print_page
    from deniable.store import replace_file

    content = render(runs).encode()
    try:
        replace_file(page, content)
    except OSError as refused:
        raise OSError(f"{page} {refused.strerror}: name another file with --out") from refused
    printed = page.with_suffix(".pdf") if pdf else None
    if printed is not None:
        print_page(page, printed)
    return {"page": str(page), "pdf": None if printed is None else str(printed), "bytes": len(content)}
