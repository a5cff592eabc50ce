"""The ground of theory: random releases and questions, against routes that share no code with `deniable.loss`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from types import FrameType

import deniable as dn
from hunt.find import Find
from hunt.questions import Question, random_question
from hunt.shrink import shrunk, simpler_mechanisms, simpler_questions
from hunt.trees import random_adjacency, random_mechanism, text
from hunt.truth import Truth

__all__ = ["Case", "check", "look", "random_case"]

LONGEST_CPU_SECONDS = 2.0
_GIVE_UP_CPU_SECONDS = 6.0


class TooLong(Exception):
    """The question took more CPU time than anybody waits for."""


@dataclass(frozen=True)
class Case:
    """One question about one release."""

    mechanism: dn.Mechanism
    adjacency: str
    question: Question

    def __str__(self) -> str:
        neighbours = "" if self.adjacency == "add-remove" else f', "{self.adjacency}"'
        return f"PL({text(self.mechanism)}{neighbours}).{self.question}"

    def answer(self) -> float:
        return self.question.ask(dn.privacy_loss(self.mechanism, self.adjacency))


def random_case(seed: int) -> tuple[Case, Truth]:
    draw = Random(seed)
    mechanism, adjacency = random_mechanism(draw), random_adjacency(draw)
    truth = Truth(mechanism, adjacency)
    return Case(mechanism, adjacency, random_question(draw, truth)), truth


def within(seconds: float, work: Callable[[], float]) -> tuple[float, float]:
    """What the work returns, and its CPU time; TooLong after so many CPU seconds."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    start = time.process_time()
    try:
        return work(), time.process_time() - start
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check(case: Case, truth: Truth | None = None, timed: bool = True) -> Find | None:
    """What is wrong with the answer to this case."""
    try:
        value, cost = within(_GIVE_UP_CPU_SECONDS, case.answer)
    except TooLong:
        return Find(str(case), f"nothing within {_GIVE_UP_CPU_SECONDS:g} s of CPU", "slow: an answer within 2 s")
    except ValueError as error:
        return None if "must be" in str(error) else Find(str(case), f"ValueError: {error}", "exception: none")
    except Exception as error:
        return Find(str(case), f"{type(error).__name__}: {error}", "exception: none")
    error = getattr(value, "error", 0.0)
    should = _judged(case, truth or Truth(case.mechanism, case.adjacency), value, error)
    if should is not None:
        return Find(str(case), f"{float(value)!r} - {error!r}", should)
    if timed and cost > LONGEST_CPU_SECONDS and within(60.0, case.answer)[1] > LONGEST_CPU_SECONDS:  # again
        return Find(str(case), f"{cost:.1f} s of CPU", "slow: an answer within 2 s")
    return None


def _judged(case: Case, truth: Truth, value: float, error: float) -> str | None:
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


def look(seed: int, shrink: bool = True) -> Find | None:
    """One random case, shrunk where it shows a fault."""
    case, truth = random_case(seed)
    found = check(case, truth)
    if found is None or not shrink:
        return found
    most = 10 if _kind(found) == "slow:" else 80
    smallest = shrunk(case, _simpler, lambda other: _kind(check(other)) == _kind(found), most)
    return check(smallest) or found
