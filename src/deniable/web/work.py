"""The planner's answers, computed in worker processes: a request's values in, a status and one JSON text out.

Guarantee. No answer costs more than `BUDGET` seconds of a processor: a timer of the process's own processor time ends
it, whatever else the machine does meanwhile.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from deniable import requests, rows
from deniable.curves import curves
from deniable.document import Document, Question, choose, explain
from deniable.mechanisms import Mechanism
from deniable.web import exports
from deniable.words import assessment, guessed, meaning, noise_to_add, observed, setting

__all__ = ["BUDGET", "Answer", "answer", "get_ready", "refusal"]

BUDGET = 0.8
Answer = tuple[int, bytes]
Values = Mapping[str, Any]


class TooCostlyError(Exception):
    """The budget is spent."""


def get_ready() -> None:
    """Begin a worker: Ctrl-C is for the server, and the budget's alarm is heard."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _spent)


def _spent(number: int, frame: FrameType | None) -> None:
    raise TooCostlyError


def answer(kind: str, text: str) -> Answer:
    """The answer to a request of this kind, whose values are a JSON object."""
    values = json.loads(text)
    signal.setitimer(signal.ITIMER_PROF, BUDGET)
    try:
        found = _KINDS[kind](values)
    except ValueError as refused:
        return 422, refusal(*_named(str(refused), values))
    except TooCostlyError:
        return 422, refusal(None, None, _too_costly(kind, values))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return 200, _encoded(found)


def refusal(field: str | None, value: Any, message: str) -> bytes:
    """Why there is no answer, as JSON."""
    return _encoded({"error": {"field": field, "value": value, "message": message}})


def _encoded(document: Any) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _named(message: str, values: Values) -> tuple[str | None, Any, str]:
    """The field that a refusal is about; the library spells fields as options of the command line."""
    plain = re.sub(r"--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_"), message)
    field = re.match(r"[a-z_]+", plain)
    known = field[0] if field and f"--{field[0]}".replace("_", "-") in message else None
    return known, values.get(known) if known else None, plain


def _too_costly(kind: str, values: Values) -> str:
    what = "explain" if "explain" in kind or kind == "curves" else "choose"
    command = exports.command(what, values)
    return f"this corner costs more than {BUDGET:g} s of computing: take more noise or more steps, or run: {command}"


def _explained(values: Values) -> Document:
    return explain(*_release(values))


def _chosen(values: Values) -> Document:
    asked, question = _asked(values)
    target = requests.promised(asked, question)
    training, given = requests.trained(asked, values.get("mechanism"))
    return choose(training, target, question, given)


def _curves(values: Values) -> Document:
    return curves(*_release(values))


def _explained_plan(values: Values) -> Document:
    mechanism, question, given = _release(values)
    return _plan("explain", values, explain(mechanism, question, given), mechanism)


def _chosen_plan(values: Values) -> Document:
    document = _chosen(values)
    training, _ = requests.trained(_asked(values)[0], values.get("mechanism"))
    return _plan("choose", values, document, training(document["noise"]))


def _plan(what: str, values: Values, document: Document, mechanism: Mechanism) -> Document:
    given, question = document["input"], _asked(values)[1]
    return {
        "document": document,
        "curves": curves(mechanism, question, given),
        "headline": noise_to_add(document) if what == "choose" else observed(document),
        "meaning": meaning(document) if what == "choose" else guessed(document),
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


def _release(values: Values) -> tuple[Mechanism, Question, dict[str, Any]]:
    asked, question = _asked(values)
    mechanism, given = requests.described(asked, question.delta)
    return mechanism, question, given


def _asked(values: Values) -> tuple[dict[str, Any], Question]:
    asked = {name: tuple(value) if name == "fpr" else value for name, value in values.items()}
    return asked, requests.question(asked, values.get("adjacency"))


_KINDS: dict[str, Callable[[Values], Document]] = {
    "explain": _explained,
    "choose": _chosen,
    "curves": _curves,
    "plan-explain": _explained_plan,
    "plan-choose": _chosen_plan,
}
