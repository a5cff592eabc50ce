"""The page on paper: a headless Chromium prints it into a PDF file."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE_SECONDS = 120.0
"""Seconds that a browser may take."""


def print_page(page: Path, pdf: Path) -> None:
    """Print the HTML file `page` into `pdf`; OSError says what to install where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise FileNotFoundError(
            f"--pdf needs a browser: install chromium (such as `apt install chromium`), or print {page} from yours"
        )
    with tempfile.TemporaryDirectory(prefix="deniable-") as profile:
        made = Path(profile) / "page.pdf"
        command = [browser, "--headless", "--disable-gpu", f"--user-data-dir={profile}", "--no-pdf-header-footer"]
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses root
        _run([*command, *alone, f"--print-to-pdf={made}", page.resolve().as_uri()], made)
        shutil.move(made, pdf)


def _run(command: list[str], made: Path) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as slow:
        raise OSError(
            f"{command[0]} did not print within {PATIENCE_SECONDS:.0f} seconds: print the page from a browser"
        ) from slow
    if done.returncode != 0 or not made.exists():
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise OSError(f"{command[0]} could not print the page ({last[:200]}): print it from a browser")
