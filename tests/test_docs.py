"""The documentation is a site that builds without a warning and asks nobody for anything; its code does what it says.

Blocks of README and of the tour are run by test_readme.py, from an installed wheel. Renew the outputs of commands,
after a change of words, with: python tests/test_docs.py
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from deniable.cli import main
from test_readme import CODE, FOLLOWED, ROOT, checked

DOCS = ROOT / "docs"
COMMAND = re.compile(r"^    \$ (?P<line>deniable [^\n]*)\n(?P<output>(?:    [^\n]*\n|\n(?=    ))*)", re.MULTILINE)
"""A command with its output, indented."""
PRINTED = re.compile(r"(?<=^```\n)\n*```text\n(?P<printed>.*?)^```", re.MULTILINE | re.DOTALL)
"""What the code right above it prints."""
STEP = re.compile(f"{CODE.pattern}|{COMMAND.pattern}|{PRINTED.pattern}", re.MULTILINE | re.DOTALL)
PAGES = sorted(path for path in DOCS.rglob("*.md") if path not in FOLLOWED and STEP.search(path.read_text()))
NEEDED = {"frameworks.md": ("pytorch_lightning", "transformers", "accelerate", "peft", "mlflow")}
"""Packages without which a page is left out, which is said."""
ASKED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)", re.IGNORECASE
)
STYLED = re.compile(r"url\([\"']?((?:https?:)?//[^\"')]+)|@import\s+[\"']((?:https?:)?//[^\"']+)", re.IGNORECASE)


def fetched(site: Path) -> list[str]:
    """What a browser would fetch from elsewhere to show the pages."""
    pages = [found for page in site.rglob("*.html") for found in ASKED.findall(page.read_text())]
    styles = [one or other for sheet in site.rglob("*.css") for one, other in STYLED.findall(sheet.read_text())]
    return sorted({*pages, *styles})


class Links(HTMLParser):
    """What a page points at, and the places in it that can be pointed at."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.targets += [found[name] or "" for name in ("href", "src") if name in found]
        self.places |= {found[name] or "" for name in ("id", "name") if name in found}


def dead_links(site: Path) -> list[str]:
    """Links and pictures within the site that lead nowhere, those in raw HTML too, which mkdocs does not look at."""
    pages = {page: Links(page) for page in site.rglob("*.html")}
    dead = []
    for page, links in pages.items():
        for target in links.targets:
            url = urlsplit(target)
            if url.scheme or url.netloc or page.name == "404.html":
                continue
            there = (page.parent / unquote(url.path)).resolve() if url.path else page
            place = unquote(url.fragment)
            lost = place and there in pages and place not in pages[there].places
            if not there.exists() or (lost and not place.startswith("__")):
                dead.append(f"{page.relative_to(site)}: {target}")
    return dead


def follow(text: str, name: str) -> list[str]:
    """Run a page's code and commands in their order, in the current folder: the page with today's outputs, in parts."""
    known: dict[str, object] = {"__name__": "__main__"}
    parts, printed, end = [], "", 0
    for step in STEP.finditer(text):
        parts.append(text[end : step.start()])
        end = step.end()
        if step["line"] is not None:
            parts.append(f"    $ {step['line']}\n{output_of(step['line'])}")
        elif step["printed"] is not None:
            parts.append(text[step.start() : step.start("printed")] + f"{printed}```")
        else:
            parts.append(step[0])
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(checked(step[1]), name, "exec"), known)
            printed = out.getvalue()
    return [*parts, text[end:]]


def output_of(line: str) -> str:
    """What a command prints at 80 columns, indented as on a page."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main(shlex.split(line)[1:])
    return "".join(f"    {line}".rstrip() + "\n" for line in out.getvalue().rstrip("\n").split("\n"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDED.get(page.name, ()):
        pytest.importorskip(package, reason="the page needs the extra 'frameworks'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert "".join(follow(page.read_text(), str(page))) == page.read_text()


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
        assert word in (tmp_path / f"{page}.html").read_text()
    assert dead_links(tmp_path) == []


def test_every_file_that_contributing_names_is_there() -> None:
    named = re.findall(r"`((?:src|tests|hunt|docs|benchmarks)/[\w./]+?)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) > 50
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_what_a_page_fetches_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://a.example/"> <script async src="//b.example/x.js">')
    (tmp_path / "b.css").write_text("@import 'https://c.example/f.css'; i { background: url(https://d.example/p.png) }")
    assert fetched(tmp_path) == ["//b.example/x.js", "https://c.example/f.css", "https://d.example/p.png"]


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#there"><img src="lost.png"><a href="#here" id="here">')
    (tmp_path / "b.html").write_text('<a href="a.html#gone"><a id="there" href="https://a.example/">')
    assert sorted(dead_links(tmp_path)) == ["a.html: lost.png", "b.html: a.html#gone"]


def renew() -> None:
    """Put the outputs of today into the pages that are named, or into all."""
    os.environ["COLUMNS"] = "80"
    asked = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    for page in asked:
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
            renewed = "".join(follow(page.read_text(), str(page)))
        page.write_text(renewed)


if __name__ == "__main__":
    renew()
