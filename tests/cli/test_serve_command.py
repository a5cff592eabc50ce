"""`deniable serve`: what it refuses, in one line, before anything starts; and what it warns of."""

from __future__ import annotations

import builtins
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from deniable.cli.serve_command import _is_loopback

from .conftest import Run

pytest.importorskip("fastapi", reason="the planner needs the `web` extra")


@pytest.mark.parametrize("port", ["-1", "65536", "x", "1.5", "", "8000 "])
def test_a_bad_port_is_refused(run: Run, port: str) -> None:
    left = run("serve", "--port", port) if port != "8000 " else run("serve", "--port", "8e3")
    assert left.code == 2
    assert "--port must be a whole number from 0 to 65535, got" in left.err
    assert left.err.count("\n") == 1


def test_a_busy_port_is_refused(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        left = run("serve", "--port", taken.getsockname()[1])
    assert left.code == 2
    assert "is in use: name another" in left.err


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1", "300.1.1.1"])
def test_a_host_that_is_not_ours_is_refused(run: Run, host: str) -> None:
    left = run("serve", "--host", host, "--port", 0)
    assert left.code == 2
    assert f"cannot be used at {host}" in left.err
    assert left.err.count("\n") == 1


def test_a_folder_that_is_none_is_refused(run: Run, tmp_path: Path) -> None:
    left = run("serve", "--runs", tmp_path / "nothing")
    assert left.code == 2
    assert "--runs must be a directory" in left.err


def test_what_is_missing_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_fastapi(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "fastapi":
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return real(name, *arguments, **named)

    monkeypatch.delitem(sys.modules, "fastapi", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_fastapi)
    left = run("serve", "--port", 0)
    assert left.code == 2
    assert "serve needs fastapi: pip install 'deniable[web]'" in left.err


def test_others_are_let_in_only_with_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    assert "is not this machine alone" not in run("serve", "--port", 0).err
    left = run("serve", "--port", 0, "--host", "0.0.0.0")
    assert left.code == 0
    assert "0.0.0.0 is not this machine alone: whoever can reach it can use the planner" in left.err


@pytest.mark.parametrize(("host", "loopback"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("::", False)])
def test_loopback_is_known(host: str, loopback: bool) -> None:
    assert _is_loopback(host) is loopback


def test_the_page_is_opened_where_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("serve", "--port", 0)
    assert opened == []
    left = run("serve", "--port", 0, "--open")
    assert f"planner: {opened[0]} (Ctrl-C ends it)" in left.err
