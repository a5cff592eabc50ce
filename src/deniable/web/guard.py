"""What every request meets first: the host it names, how much it brings, and the headers of every response."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deniable.web.work import refusal

PAGE_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
BODY_SECONDS = 10.0
"""In which a request's body must arrive."""
_MOST_BYTES = 256 * 1024  # a document of another tool, too


class Guard:
    """Refuses requests for another host (DNS rebinding) and large bodies; adds the security headers."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] = ()) -> None:
        self._app = app
        self._hosts = {"localhost", *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self._is_expected(headers.get("host", "")):
            message = "host must be an address or localhost; this server may be named with --host"
            await _json(403, refusal("host", headers.get("host"), message))(scope, receive, _with_headers(send))
            return
        try:
            body = await asyncio.wait_for(_whole(receive), BODY_SECONDS)
        except TimeoutError:
            message = f"the body must arrive within {BODY_SECONDS:g} s"
            await _json(408, refusal(None, None, message))(scope, receive, _with_headers(send))
            return
        if body is None:
            message = f"the body must be at most {_MOST_BYTES} bytes"
            await _json(413, refusal(None, None, message))(scope, receive, _with_headers(send))
            return
        await self._app(scope, _again(body, receive), _with_headers(send))

    def _is_expected(self, host: str) -> bool:
        """A name that only a DNS entry leads here is not; a bare address needs none."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name.lower() in self._hosts:
            return True
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


def _json(status: int, content: bytes) -> Response:
    return Response(content, status, media_type="application/json")


async def _whole(receive: Receive) -> bytes | None:
    """The request's body, or None where it is too large."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > _MOST_BYTES:
            return None
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more for the application, then whatever follows."""
    given = False

    async def once() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
