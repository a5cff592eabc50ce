"""The documentation is a site that builds without a warning and asks nobody for anything; its code does what it says.

README's own blocks are run by test_readme.py, from an installed wheel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from test_readme import CODE, ROOT, checked

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if CODE.search(path.read_text()))
ASKED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)", re.IGNORECASE
)
STYLED = re.compile(r"url\([\"']?((?:https?:)?//[^\"')]+)|@import\s+[\"']((?:https?:)?//[^\"']+)", re.IGNORECASE)


def fetched(site: Path) -> list[str]:
    """What a browser would fetch from elsewhere to show the pages."""
    pages = [found for page in site.rglob("*.html") for found in ASKED.findall(page.read_text())]
    styles = [one or other for sheet in site.rglob("*.css") for one, other in STYLED.findall(sheet.read_text())]
    return sorted({*pages, *styles})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {"__name__": "__main__"}
    for block in CODE.findall(page.read_text()):
        exec(compile(checked(block), str(page), "exec"), known)


def test_every_page_with_code_is_found() -> None:
    assert DOCS / "decisions" / "contour.md" in PAGES


def test_the_site_is_whole_and_asks_nobody(tmp_path: Path) -> None:
    """Strict: a broken link, a page outside the contents or a name that is not there ends the build."""
    pytest.importorskip("mkdocs", reason="the site needs the extra 'docs'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert fetched(tmp_path) == []
    named = {
        "api/calibration": "calibrate",
        "command-line": "--belief",
        "results/RESULTS": "Figure",
        "decisions/tables": "Arrow",
    }
    for page, word in named.items():
        assert word in (tmp_path / page / "index.html").read_text()


def test_every_file_that_contributing_names_is_there() -> None:
    named = re.findall(r"`((?:src|tests|hunt|docs|benchmarks)/[\w./]+?)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) > 50
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_what_a_page_fetches_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://a.example/"> <script async src="//b.example/x.js">')
    (tmp_path / "b.css").write_text("@import 'https://c.example/f.css'; i { background: url(https://d.example/p.png) }")
    assert fetched(tmp_path) == ["//b.example/x.js", "https://c.example/f.css", "https://d.example/p.png"]
