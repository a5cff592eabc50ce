"""The planner's answers, computed in worker processes: a request's values in, a status and one JSON text out.

Guarantee. No answer costs more than `BUDGET` seconds of a processor: a timer of the process's own processor time ends
it, whatever else the machine does meanwhile. The timer also looks whether the server has given the question up.
"""

from __future__ import annotations

import gc
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from types import FrameType
from typing import Any

from deniable.answers import parse, rows
from deniable.answers.curves import curves
from deniable.answers.explain import Document, demands, explain, found, joined
from deniable.answers.sentences import assessment, engineering, guessed, observed, promise_kept, setting, warning
from deniable.checks import RefusedError
from deniable.mechanisms import Mechanism
from deniable.promises import Promise, Question, resolve_spellings
from deniable.web import exports

__all__ = ["BUDGET", "PARTS", "Answer", "TooCostlyError", "answer", "get_ready", "put_together", "refusal"]

BUDGET = 0.8
_TICKS = 20
"""Looks at the flag for giving up within the budget."""
Answer = tuple[int, bytes]
Values = Mapping[str, Any]


class TooCostlyError(Exception):
    """The budget is spent, or nobody waits for the answer any more; the text is for people."""


@dataclass
class _Current:
    """The question at work in this process."""

    given_up: Sequence[int] = ()
    """Flags shared with the server, one a slot."""
    slot: int = 0
    ticks: int = 0


_current = _Current()


def get_ready(given_up: Sequence[int] = ()) -> None:
    """Begin a worker: Ctrl-C is for the server, the budget's alarm is heard, and no worker outlives the server.

    One question is rehearsed, so that nobody waits for what every process does once.
    """
    _current.given_up = given_up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _spent)
    Thread(target=_follow, args=(parent_process(),), daemon=True).start()
    for part in PARTS["plan-choose"]:
        _KINDS[part]({"belief": 0.9, "records": 60_000, "batch": 256, "epochs": 10})
    gc.freeze()  # what is there now stays: no collection need look at it again


def _follow(server: BaseProcess | None) -> None:
    if server is not None:
        server.join()
        os._exit(1)


def _spent(number: int, frame: FrameType | None) -> None:
    _current.ticks += 1
    if _current.ticks >= _TICKS or (_current.given_up and _current.given_up[_current.slot]):
        raise TooCostlyError


def answer(kind: str, text: str, slot: int = 0) -> Answer:
    """The answer to a request of this kind, whose values are a JSON object; `slot` is its flag for giving up.

    TooCostlyError says in words that the budget does not suffice.
    """
    values = json.loads(text)
    _current.slot, _current.ticks = slot, 0
    try:
        return 200, _encoded(_within_budget(_KINDS[kind], values))
    except RefusedError as refused:
        return 422, refusal(refused.field, values.get(refused.field or ""), str(refused))
    except ValueError as refused:
        return 422, refusal(None, None, str(refused))
    except TooCostlyError:
        raise TooCostlyError(_too_costly(kind, values)) from None


def _within_budget(work: Callable[[Values], Any], values: Values) -> Any:
    signal.setitimer(signal.ITIMER_PROF, BUDGET / _TICKS, BUDGET / _TICKS)
    try:
        return work(values)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def refusal(field: str | None, value: Any, message: str) -> bytes:
    """Why there is no answer, as JSON."""
    return _encoded({"error": {"field": field, "value": value, "message": message}})


def _encoded(document: Any) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _too_costly(kind: str, values: Values) -> str:
    what = "choose" if kind in PARTS["choose"] + PARTS["plan-choose"] else "explain"
    command = exports.command(what, values)
    return f"this corner costs more than {BUDGET:g} s of computing: take more noise or more steps, or run: {command}"


def _explained(values: Values) -> Document:
    return explain(*_release(values))


def _found(values: Values) -> Document:
    promise, training, question, given = _promise(values)
    return found(training, promise, question, given)


def _found_and_drawn(values: Values) -> Document:
    promise, training, question, given = _promise(values)
    document = found(training, promise, question, given)
    return {"document": document, "curves": curves(training(document["noise"]), question, given)}


def _demands(values: Values) -> list[Document]:
    promise, training, question, _ = _promise(values)
    return demands(training, promise, question)


def _promise(values: Values) -> tuple[Promise, Callable[[float], Mechanism], Question, dict[str, Any]]:
    asked, question = _asked(values)
    promise = parse.promised(asked, question)
    training, given = parse.trained(asked, question, values.get("mechanism"))
    return promise, training, question, given


def _curves(values: Values) -> Document:
    return curves(*_release(values))


def _explained_plan(values: Values) -> Document:
    mechanism, question, given = _release(values)
    return _plan("explain", values, explain(mechanism, question, given), curves(mechanism, question, given))


def _plan(what: str, values: Values, document: Document, drawn: Document) -> Document:
    return {
        "document": document,
        "curves": drawn,
        "headline": observed(document),
        "warning": warning(document),
        "meaning": guessed(document),
        "kept": promise_kept(document) if what == "choose" else "",
        "engineering": engineering(document) if what == "choose" else "",
        "assessment": assessment(document),
        "setting": setting(document),
        "figures": rows.figures(document),
        "scores": [list(row) for row in rows.score_rows(document)],
        "demands": list(rows.demand_rows(document)) if what == "choose" else [],
        "analyses": list(rows.analysis_rows(document)) if what == "explain" and rows.is_mechanism(document) else [],
        "notes": [*document["notes"], *rows.reasons(document)],
        "command": exports.command(what, values),
        "python": exports.python(what, document),
    }


def put_together(kind: str, text: str, parts: Sequence[bytes]) -> bytes:
    """The answer whose parts two workers computed at the same time."""
    exact, weaker = (json.loads(part) for part in parts)
    if kind == "choose":
        return _encoded(joined(exact, weaker))
    return _encoded(_plan("choose", json.loads(text), joined(exact["document"], weaker), exact["curves"]))


def _release(values: Values) -> tuple[Mechanism, Question, dict[str, Any]]:
    asked, question = _asked(values)
    mechanism, given = parse.described(asked, question)
    return mechanism, question, given


def _asked(values: Values) -> tuple[dict[str, Any], Question]:
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    asked = resolve_spellings(given)
    return asked, parse.question(asked, values.get("adjacency"))


PARTS = {"choose": ("found", "demands"), "plan-choose": ("found-and-drawn", "demands")}
"""Kinds of requests whose parts do not need each other."""
_KINDS: dict[str, Callable[[Values], Any]] = {
    "explain": _explained,
    "curves": _curves,
    "plan-explain": _explained_plan,
    "found": _found,
    "found-and-drawn": _found_and_drawn,
    "demands": _demands,
}
