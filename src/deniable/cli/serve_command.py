"""`deniable serve`: the planner page on this machine."""

# ruff: noqa: PLC0415 (imports inside the command)

from __future__ import annotations

import errno
import os
import socket
import sys
import webbrowser
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from deniable.checks import whole
from deniable.cli.options import Text, flag, option

EXAMPLES = "Examples:\n\ndeniable serve\n\ndeniable serve --port 8080 --runs audit-out"
SERVER = "The server"
_MOST_PORT = 65535


def serve(
    host: Annotated[
        str, typer.Option("--host", metavar="H", help="Address to listen on.", rich_help_panel=SERVER)
    ] = "127.0.0.1",
    port: Annotated[
        str, typer.Option("--port", metavar="P", help="Port to listen on.", rich_help_panel=SERVER)
    ] = "8000",
    runs: Annotated[Text, option("runs", "DIR", "List and open the runs in this directory.", SERVER)] = None,
    open_page: Annotated[bool, flag("open", "Open the page in the browser.", SERVER)] = False,
) -> None:
    """Open the planner: a page to choose and explain privacy with sliders, and a JSON API."""
    number, folder = _port(port), _folder(runs)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one worker a core, one core a worker
    uvicorn = _uvicorn()
    from deniable.web import create_app
    from deniable.web.punctual import PunctualProtocol

    listener = _listener(host, number)
    if not _is_loopback(host):
        print(
            f"deniable: {host} is not this machine alone: whoever can reach it can use the planner"
            + (f" and read the reports in {folder}" if folder else ""),
            file=sys.stderr,
        )
    shown = "[" + host + "]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    print(f"planner: {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    application = create_app(folder, hosts=[host, socket.gethostname()])
    settings = uvicorn.Config(application, log_level="warning", access_log=False, http=PunctualProtocol)
    if open_page:
        webbrowser.open(address)  # the socket listens already: the browser waits until the page is there
    with listener:
        uvicorn.Server(settings).run(sockets=[listener])


def _port(text: str) -> int:
    try:
        number = whole("--port", int(text), low=0)
    except ValueError:
        number = -1
    if not 0 <= number <= _MOST_PORT:
        raise typer.TyperException(f"--port must be a whole number from 0 to {_MOST_PORT}, got {text!r}")
    return number


def _folder(text: str | None) -> Path | None:
    if text is not None and not Path(text).is_dir():
        raise typer.TyperException(f"--runs must be a directory, got {text!r}")
    return None if text is None else Path(text).resolve()


def _uvicorn() -> ModuleType:
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ModuleNotFoundError as missing:
        raise typer.TyperException(f"serve needs {missing.name}: pip install 'deniable[web]'") from missing
    return uvicorn


def _listener(host: str, port: int) -> socket.socket:
    """A listening socket, or a refusal in words: taken before anything else starts."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family = found[0][0]
        listener = socket.create_server(found[0][4][:2], family=family, backlog=512)
    except OSError as error:
        busy = error.errno == errno.EADDRINUSE
        reason = f"{port} is in use: name another" if busy else f"cannot be used at {host} ({error.strerror or error})"
        raise typer.TyperException(f"--port {reason}" if busy else f"--port {port} {reason}") from error
    # asyncio does so for sockets of its own making only; without it small answers wait 40 ms for an acknowledgement
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a client that vanished is noticed
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
