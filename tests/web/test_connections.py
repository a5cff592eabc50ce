"""Clients that leave, or never ask: their work is given up, and their connections are closed. With real sockets."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from deniable.web import create_app, work
from deniable.web.answer_pool import Answers
from deniable.web.punctual import PunctualProtocol
from deniable.web.work import TooCostlyError

ASK = b"GET /api/explain?epsilon=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Endless(Answers):
    """Every question takes for ever, unless it is given up."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.begun, self.given_up = threading.Event(), threading.Event()

    async def warm_up(self) -> None:
        """Nothing to warm up."""

    def _submit(self, kind: str, text: str) -> asyncio.Future[work.Answer]:
        future: asyncio.Future[work.Answer] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: self.given_up.set() if done.cancelled() else None)
        self.begun.set()
        return future


@contextmanager
def serving(answers: Answers, protocol: type[PunctualProtocol] = PunctualProtocol) -> Iterator[int]:
    """The port of a server in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = uvicorn.Config(create_app(answers=answers), log_level="error", http=protocol)
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


def test_the_work_of_a_client_that_left_is_given_up() -> None:
    answers = Endless()
    with serving(answers) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plug:
            plug.sendall(ASK)
            assert answers.begun.wait(20)
            assert not answers.given_up.is_set()
        assert answers.given_up.wait(20)


class Impatient(PunctualProtocol):
    head_seconds = 0.2


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_connections_without_a_request_are_closed(sent: bytes) -> None:
    with serving(Endless(), Impatient) as port, socket.create_connection(("127.0.0.1", port), timeout=20) as plug:
        plug.sendall(sent)
        assert plug.recv(1) == b""  # closed by the server; without a deadline this would time out


def test_an_answer_is_not_cut_off_by_the_deadline() -> None:
    class Slow(Endless):
        def _submit(self, kind: str, text: str) -> asyncio.Future[work.Answer]:
            future = super()._submit(kind, text)
            asyncio.get_running_loop().call_later(3 * Impatient.head_seconds, future.set_result, (200, b"{}"))
            return future

    with serving(Slow(), Impatient) as port, socket.create_connection(("127.0.0.1", port), timeout=20) as plug:
        plug.sendall(ASK)
        assert plug.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_a_question_is_given_up_only_when_the_last_who_asked_has_gone() -> None:
    async def play() -> list[bool]:
        answers, seen = Endless(), []
        first, second = (asyncio.create_task(answers.ask("explain", "{}")) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for one in (first, second):
            one.cancel()
            await asyncio.gather(one, return_exceptions=True)
            await asyncio.sleep(0.01)
            seen.append(answers.given_up.is_set())
        assert not answers._pending
        return seen

    assert asyncio.run(play()) == [False, True]


def test_refusals_for_cost_are_not_remembered() -> None:
    class Costly(Answers):
        computed = 0

        def _submit(self, kind: str, text: str) -> asyncio.Future[Any]:
            self.computed += 1
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            future.set_exception(TooCostlyError("too dear"))
            return future

    async def play() -> int:
        answers = Costly()
        for kind in ("explain", "choose"):
            for _ in range(2):
                status, content = await answers.ask(kind, "{}")
                assert (status, b"too dear" in content) == (422, True)
        assert not answers._known
        return answers.computed

    assert asyncio.run(play()) == 2 + 2 * 2  # choose has two parts


def test_a_worker_stops_when_its_question_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(values: Any) -> None:
        while True:
            pass

    monkeypatch.setitem(work._KINDS, "explain", spin)
    monkeypatch.setattr(work._current, "given_up", [0, 1])
    before = signal.signal(signal.SIGPROF, work._spent)
    try:
        with pytest.raises(TooCostlyError):
            work.answer("explain", "{}", slot=1)
        assert work._current.ticks == 1  # at the first look, not when the budget was spent
    finally:
        signal.signal(signal.SIGPROF, before)
