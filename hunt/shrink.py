"""A find in its simplest form: fewer parts, rounder numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TypeVar

import deniable as dn
from hunt.questions import Question

__all__ = ["shrunk", "simpler_mechanisms", "simpler_questions"]

T = TypeVar("T")


def rounder(value: float) -> Iterator[float]:
    """1, and the number with one, two, three digits."""
    if value in (1.0, 0.5):
        return
    for candidate in (1.0, 0.5, *(float(f"{value:.{digits}g}") for digits in (1, 2, 3))):
        if candidate != value and len(repr(candidate)) <= len(repr(value)):
            yield candidate


def fewer(runs: int) -> Iterator[int]:
    for candidate in (1, 2, 10, runs // 10, runs // 2, int(float(f"{runs:.0e}"))):
        if 0 < candidate < runs or (candidate == int(float(f"{runs:.0e}")) and candidate != runs > 0):
            yield candidate


def simpler_mechanisms(mechanism: dn.Mechanism) -> Iterator[dn.Mechanism]:
    """Each a little simpler than the mechanism."""
    if isinstance(mechanism, dn.Composed):
        yield from _simpler_compositions(mechanism)
    elif isinstance(mechanism, dn.Subsampled):
        yield mechanism.mechanism
        yield from (mechanism.mechanism.subsampled(rate) for rate in rounder(mechanism.rate))
        yield from (inner.subsampled(mechanism.rate) for inner in simpler_mechanisms(mechanism.mechanism))
    elif isinstance(mechanism, dn.Sampled):
        yield mechanism.mechanism
        yield from (simpler.subsampled(mechanism.sampling) for simpler in simpler_mechanisms(mechanism.mechanism))
    else:
        for field in fields(mechanism):
            simpler = _simpler_values(getattr(mechanism, field.name))
            yield from _allowed(replace(mechanism, **{field.name: other}) for other in simpler)


def _simpler_values(value: object) -> Iterator[object]:
    match value:
        case int():
            yield from fewer(value)
        case float():
            yield from rounder(value)
        case dn.Mechanism():
            yield from simpler_mechanisms(value)


def _allowed(mechanisms: Iterator[dn.Mechanism]) -> Iterator[dn.Mechanism]:
    while True:
        try:
            yield next(mechanisms)
        except ValueError:  # not one that the checks admit; a generator that raised is over
            return
        except StopIteration:
            return


def _simpler_compositions(mechanism: dn.Composed) -> Iterator[dn.Mechanism]:
    parts = mechanism.parts
    if len(parts) == 1 and parts[0][1] == 1:
        yield parts[0][0]
    for i in range(len(parts) if len(parts) > 1 else 0):
        yield dn.Composed(parts[:i] + parts[i + 1 :])
    for i, (part, runs) in enumerate(parts):
        before, after = parts[:i], parts[i + 1 :]
        for count in fewer(runs):
            yield dn.Composed((*before, (part, count), *after))
        for simpler in simpler_mechanisms(part):
            yield dn.Composed((*before, (simpler, runs), *after))


def simpler_questions(question: Question) -> Iterator[Question]:
    for i, value in enumerate(question.values):
        for other in rounder(value):
            yield Question(question.name, (*question.values[:i], other, *question.values[i + 1 :]))


def shrunk(start: T, simpler: Callable[[T], Iterator[T]], still: Callable[[T], bool], most: int = 60) -> T:
    """The simplest that still shows the fault, looking at no more than `most` candidates."""
    looked = 0
    progress = True
    while progress:
        progress = False
        for candidate in simpler(start):
            looked += 1
            if looked > most:
                return start
            if still(candidate):
                start, progress = candidate, True
                break
    return start
