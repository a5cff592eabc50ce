"""One real server, on a port of its own, for all tests of the planner."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import pytest

from deniable.cli import main

SERVE = "from deniable.cli import main; main()"
Document = dict[str, Any]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs to be listed, among them hostile ones, and a secret beside the folder."""
    place = tmp_path_factory.mktemp("served")
    runs = place / "runs"
    (place / "secret").mkdir()
    (place / "secret" / "report.html").write_text("for nobody")
    for name in ("local", "<img src=x onerror=alert(1)>", "ümläut & more", "empty", "broken"):
        (runs / name).mkdir(parents=True)
    for name in ("local", "<img src=x onerror=alert(1)>"):
        verdict = {"schema": "deniable/audit/1", "verdict_text": f"Consistent. {name}"}
        (runs / name / "audit.json").write_text(json.dumps(verdict))
        (runs / name / "report.html").write_text(f"<!doctype html><title>{len(name)}</title><script>1</script>")
    (runs / "ümläut & more" / "compare.json").write_text('{"recommendation": {"sentences": ["Take central."]}}')
    (runs / "broken" / "audit.json").write_text("[" * 100_000)
    (runs / "linked").symlink_to(place / "secret")
    (runs / "half").mkdir()
    (runs / "half" / "audit.json").write_text('{"verdict_text": "Half."}')
    (runs / "half" / "report.html").symlink_to(place / "secret" / "report.html")
    return runs


@pytest.fixture(scope="session")
def served(folder: Path) -> Iterator[str]:
    """The address of `deniable serve`."""
    line = [sys.executable, "-c", SERVE, "serve", "--port", "0", "--runs", str(folder)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=os.environ) as server:
        assert server.stderr is not None
        words = server.stderr.readline()
        assert words.startswith("planner: http://127.0.0.1:"), words
        address = words.split()[1].rstrip("/")
        _wait_for(address)
        yield address
        server.terminate()
        server.wait(20)


def _wait_for(address: str) -> None:
    transport = httpx.HTTPTransport(retries=20)
    with httpx.Client(transport=transport, timeout=60) as client:
        assert client.get(f"{address}/api/runs").status_code == 200


@pytest.fixture(scope="session")
def api(served: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def by_command() -> Callable[[str], Document]:
    """What a command line prints with --json."""

    def run(command: str) -> Document:
        program, *arguments = shlex.split(command)
        assert program == "deniable"
        with redirect_stdout(io.StringIO()) as printed, pytest.raises(SystemExit) as left:
            main([*arguments, "--json"])
        assert left.value.code == 0
        document: Document = json.loads(printed.getvalue())
        return document

    return run
