"""The ground of theory: random releases and questions, against routes that share no code with `deniable.loss`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from types import FrameType
from typing import TypeVar

import deniable as dn
from hunt.find import Find
from hunt.promises import Promise, random_promise
from hunt.questions import Question, random_question
from hunt.relations import compare_releases, compare_routes, compare_scores, less_telling
from hunt.sandwich import Sandwich, truth_of
from hunt.shrink import shrunk, simpler_mechanisms, simpler_questions
from hunt.trees import random_adjacency, random_mechanism, text
from hunt.truth import Truth

__all__ = ["Case", "check", "look", "random_case"]

LONGEST_CPU_SECONDS = 2.0
PATIENT_CPU_SECONDS = 20.0  # for a share that any machine must pass
_SHARE_OF_PROMISES, _SHARE_OF_RELATIONS = 0.15, 0.25
_REFUSALS = ("must be", "keeps the promise", "breaks the promise", "is not proved")


Work = TypeVar("Work")


class TooLongError(Exception):
    """The question took more CPU time than anybody waits for."""


@dataclass(frozen=True)
class Case:
    """One question about one release."""

    mechanism: dn.Mechanism
    adjacency: str
    question: Question

    def __str__(self) -> str:
        return f'PL({text(self.mechanism)}, "{self.adjacency}").{self.question}'

    def answer(self) -> float:
        return self.question.ask(dn.privacy_loss(self.mechanism, self.adjacency))


def random_case(seed: int) -> tuple[Case, Truth | Sandwich]:
    draw = Random(seed)
    mechanism = random_mechanism(draw)
    adjacency = random_adjacency(draw, mechanism)
    truth = truth_of(mechanism, adjacency)
    return Case(mechanism, adjacency, random_question(draw, truth)), truth


def within(seconds: float, work: Callable[[], Work]) -> tuple[Work, float]:
    """What the work returns, and its CPU time; TooLongError after so many CPU seconds."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    start = time.process_time()
    try:
        return work(), time.process_time() - start
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _answered(call: str, work: Callable[[], Work], longest: float) -> tuple[Work, float] | Find:
    """What the work returns and its CPU time, or the find that it did not end well; three times `longest` is enough."""
    try:
        return within(3 * longest, work)
    except TooLongError:
        return Find(call, f"nothing within {3 * longest:g} s of CPU", f"slow: an answer within {longest:g} s")
    except Exception as error:
        return Find(call, f"{type(error).__name__}: {error}", "exception: none")


def _refused(found: Find) -> bool:
    """Whether the checks refused the parameters, or no noise keeps the promise, and said so."""
    return found.says.startswith(("ValueError", "RefusedError")) and any(word in found.says for word in _REFUSALS)


def check(case: Case, truth: Truth | Sandwich | None = None, longest: float = LONGEST_CPU_SECONDS) -> Find | None:
    """What is wrong with the answer to this case."""
    answered = _answered(str(case), case.answer, longest)
    if isinstance(answered, Find):
        return None if _refused(answered) else answered
    value, cost = answered
    error = getattr(value, "error", 0.0)
    should = _judged(case, truth or truth_of(case.mechanism, case.adjacency), value, error)
    if should is not None:
        return Find(str(case), f"{float(value)!r} - {error!r}", should)
    return _slow(str(case), cost, case.answer, longest)


def _slow(call: str, cost: float, work: Callable[[], object], longest: float) -> Find | None:
    """A find where the work takes too long twice."""
    if cost <= longest or within(30 * longest, work)[1] <= longest:
        return None
    return Find(call, f"{cost:.1f} s of CPU", f"slow: an answer within {longest:g} s")


def check_promise(promise: Promise, longest: float = LONGEST_CPU_SECONDS) -> Find | None:
    """What is wrong with a calibration."""
    answered = _answered(str(promise), promise.ask, longest)
    if isinstance(answered, Find):
        return None if _refused(answered) else answered
    found, cost = answered
    should = promise.judge(found)
    if should is not None:
        return Find(f"{promise}.value", f"{found.value!r} - {found.error!r}", should)
    return _slow(str(promise), cost, promise.ask, longest)


def check_relations(case: Case, draw: Random) -> Find | None:
    """What the answer owes to other answers."""
    less = less_telling(draw, case.mechanism)
    release = str(case).removesuffix(f".{case.question}")

    def compared() -> Find | None:
        loss, found = dn.privacy_loss(case.mechanism, case.adjacency), None
        if less is not None:
            found = compare_releases(case.question, less, case.mechanism, case.adjacency, case.question.ask(loss))
        return found or compare_routes(loss, release, draw) or compare_scores(loss, release, draw)

    answered = _answered(f"hunt.relations.compare_scores({release}, ...) less: {less}", compared, PATIENT_CPU_SECONDS)
    if isinstance(answered, Find):
        return None if "slow" in answered.should or _refused(answered) else answered
    return answered[0]


def _judged(case: Case, truth: Truth | Sandwich, value: float, error: float) -> str | None:
    """By a quick look; what it suspects, by a finer one."""
    if case.question.judge(truth, value, error) is None:
        return None
    return case.question.judge(truth.finer(), value, error)


def _simpler(case: Case) -> Iterator[Case]:
    for mechanism in simpler_mechanisms(case.mechanism):
        yield replace(case, mechanism=mechanism)
    if case.adjacency != "add-remove":
        yield replace(case, adjacency="add-remove")
    for question in simpler_questions(case.question):
        yield replace(case, question=question)


def _kind(found: Find | None) -> str:
    """Slow, exception, too low, too high: a smaller case must show the same."""
    return "" if found is None else found.should.split(" ", 1)[0]


def look(seed: int) -> Find | None:
    """One random case, shrunk where it shows a fault."""
    found = look_once(seed, LONGEST_CPU_SECONDS)
    if found is None or not found.call.startswith("PL(") or _kind(found) == "slow:":
        return found
    case, _ = random_case(seed)
    if _kind(check(case)) != _kind(found):
        return found  # a relation between scores: there is no smaller form of it here
    return check(shrunk(case, _simpler, lambda other: _kind(check(other)) == _kind(found), 80)) or found


def look_patiently(seed: int) -> Find | None:
    """One random case as it is, on a machine of any speed."""
    return look_once(seed, PATIENT_CPU_SECONDS)


def look_once(seed: int, longest: float) -> Find | None:
    """One random case: a calibration, or a question, at times with what its answer owes to other answers."""
    draw = Random(seed)
    if draw.random() < _SHARE_OF_PROMISES:
        return check_promise(random_promise(draw), longest)
    case, truth = random_case(seed)
    found = check(case, truth, longest)
    if found is None and draw.random() < _SHARE_OF_RELATIONS:
        return check_relations(case, draw)
    return found
