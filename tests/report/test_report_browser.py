"""The page in a real browser: nothing leaves, nothing overflows, axe-core finds nothing serious, it prints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable.report.pdf import print_page

playwright = pytest.importorskip("playwright.sync_api", reason="the browser's tests need playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the browser's tests need axe-core")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


@pytest.fixture(scope="module")
def page(joint: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(joint)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else [], chromium_sandbox=False
        )
        yield launched
        launched.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_leaves(browser: Any, page: Path, scheme: str) -> None:
    shown = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    asked: list[str] = []
    said: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("console", lambda message: said.append(message.text))
    shown.goto(page.as_uri())
    assert asked == [page.as_uri()]
    found = axe.Axe().run(shown).response["violations"]
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found] == []
    assert said == []
    shown.close()


def test_the_decision_is_on_the_first_screen(browser: Any, runs: dict[str, Path]) -> None:
    """It stood below every caution and figure, and below the fold of a small desk."""
    shown = browser.new_page(viewport={"width": 1366, "height": 768})
    shown.goto((runs["audit"] / "report.html").as_uri())
    place = shown.locator(".decided").bounding_box()
    assert place["y"] + place["height"] < 768 / 2
    shown.close()


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_overflows(browser: Any, page: Path, width: int) -> None:
    shown = browser.new_page(viewport={"width": width, "height": 800})
    shown.goto(page.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    sizes = shown.evaluate(
        "[...document.querySelectorAll('.figures svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(sizes) > 6
    shown.close()


def test_the_first_screen_holds_verdict_promise_and_scale(browser: Any, runs: dict[str, Path]) -> None:
    shown = browser.new_page(viewport={"width": 1280, "height": 900})
    shown.goto((runs["audit"] / "report.html").as_uri())
    for what in (".verdict", ".means", ".scale svg"):
        box = shown.locator(what).first.bounding_box()
        assert box["y"] + box["height"] < 900
    shown.close()


def test_it_prints(page: Path, tmp_path: Path) -> None:
    print_page(page, tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert len(content) > 20_000
