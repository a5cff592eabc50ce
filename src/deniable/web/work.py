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

import msgspec

from deniable.answers import rows, sentences
from deniable.answers.choose import find_demands, find_noise, join_demands
from deniable.answers.curves import curves
from deniable.answers.explain import explain_input
from deniable.answers.parse import parse_choice, parse_release
from deniable.answers.written import WRITTEN
from deniable.checks import RefusedError
from deniable.mechanisms import Mechanism
from deniable.promises import Promise, resolve_spellings
from deniable.results.base import encode
from deniable.results.explain_result import AnswerInput, ChooseResult, CurvesResult, Demand, ExplainResult
from deniable.web import exports
from deniable.web.exports import opacus_code, pytorch_code
from deniable.web.promise_costs import PlannerAnswer, find_costs

BUDGET = 2.0
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
        return 200, encode(_within_budget(_KINDS[kind], values))
    except RefusedError as refused:
        found = values.get(refused.field or "")
        return 422, refusal(refused.field, found if isinstance(found, int | float | str) else None, str(refused))
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
    return encode({"error": {"field": field, "value": value, "message": message}})


def _too_costly(kind: str, values: Values) -> str:
    if kind == "costs":
        return f"to tell this frontier in the unit of the promise costs more than {BUDGET:g} s of computing"
    what = "choose" if kind in PARTS["choose"] + PARTS["plan-choose"] else "explain"
    command = exports.command(what, values)
    return f"this corner costs more than {BUDGET:g} s of computing: take more noise or more steps, or run: {command}"


class _Drawn(msgspec.Struct, frozen=True):
    """A choice without weaker analyses, and its curves."""

    document: ChooseResult
    curves: CurvesResult


def _explain(values: Values) -> ExplainResult:
    return explain_input(*_release(values))


def _curves(values: Values) -> CurvesResult:
    return curves(*_release(values))


def _plan_explain(values: Values) -> PlannerAnswer:
    mechanism, given = _release(values)
    return _plan(values, explain_input(mechanism, given), curves(mechanism, given))


def _find_noise(values: Values) -> ChooseResult:
    return find_noise(*_choice(values))


def _find_and_draw(values: Values) -> _Drawn:
    family, promise, given = _choice(values)
    found = find_noise(family, promise, given)
    return _Drawn(found, curves(family(found.noise), given))


def _find_demands(values: Values) -> tuple[Demand, ...]:
    return find_demands(*_choice(values))


def _plan(values: Values, result: ExplainResult, drawn: CurvesResult) -> PlannerAnswer:
    choice = result if isinstance(result, ChooseResult) else None
    return PlannerAnswer(
        document=result,
        curves=drawn,
        caution=sentences.caution(result),
        headline=sentences.belief_sentence(result),
        warning=sentences.warning(result),
        meaning=f"{sentences.guess_sentence(result)} {sentences.risk_sentences(result)}".strip(),
        kept=sentences.promise_kept(choice) if choice else "",
        engineering=sentences.engineering(choice) if choice else "",
        signal=sentences.signal(result),
        assessment=sentences.assessment(result),
        setting=sentences.setting(result),
        figures=rows.figures(result),
        scores=tuple(rows.score_rows(result)),
        demands=tuple(rows.demand_rows(choice)) if choice else (),
        analyses=tuple(rows.analysis_rows(result)) if not choice and rows.has_analyses(result) else (),
        notes=(*(note for note in result.notes if note != sentences.caution(result)), *rows.reasons(result)),
        command=exports.command(result.kind, values),
        python=exports.python(result, values),
        opacus=opacus_code(result),
        pytorch=pytorch_code(result),
    )


def put_together(kind: str, text: str, parts: Sequence[bytes]) -> bytes:
    """The answer whose parts two workers computed at the same time."""
    exact, weaker = parts
    demands = msgspec.json.decode(weaker, type=tuple[Demand, ...])
    if kind == "choose":
        return encode(join_demands(msgspec.json.decode(exact, type=ChooseResult), demands))
    found = msgspec.json.decode(exact, type=_Drawn)
    return encode(_plan(json.loads(text), join_demands(found.document, demands), found.curves))


def _release(values: Values) -> tuple[Mechanism, AnswerInput]:
    return parse_release(_resolve(values), values.get("adjacency"))


def _choice(values: Values) -> tuple[Callable[[float], Mechanism], Promise, AnswerInput]:
    return parse_choice(_resolve(values), values.get("adjacency"), values.get("mechanism"))


def _resolve(values: Values) -> dict[str, Any]:
    return resolve_spellings(
        {
            name: tuple(value) if isinstance(value, list) and name not in WRITTEN else value
            for name, value in values.items()
        }
    )


PARTS = {"choose": ("found", "demands"), "plan-choose": ("found-and-drawn", "demands")}
"""Kinds of requests whose parts do not need each other."""
_KINDS: dict[str, Callable[[Values], Any]] = {
    "explain": _explain,
    "curves": _curves,
    "plan-explain": _plan_explain,
    "found": _find_noise,
    "found-and-drawn": _find_and_draw,
    "demands": _find_demands,
    "costs": find_costs,
}
