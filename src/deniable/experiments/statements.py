"""Ours against the paper's: comparisons that are stated before the run, and what they say after it.

Every comparison can fail: a wrong value, a broken order or a missing key makes a judgement that has not passed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from math import inf, isfinite
from typing import Any, Generic, TypeVar

from msgspec import convert

Tree = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Judgement:
    """The outcome of one comparison."""

    what: str
    passed: bool
    deviation: float | None
    """In the comparison's own unit (`words` names it); None where there is no number to give."""
    words: str
    reasons: tuple[str, ...] = ()
    """Why ours differs from the paper where that was known beforehand."""


class Comparison(ABC):
    """One statement about an item's values, fixed before the run."""

    what: str
    smallest: str
    """The least scale at which it is judged: noise hides some orders in a small run."""
    hindsight: bool
    """Whether its limit was settled with measurements in sight, rather than derived or read from the paper."""

    @abstractmethod
    def judge(self, values: Tree, printed: Tree) -> Judgement:
        """Hold the values against the paper's."""

    @property
    @abstractmethod
    def tolerance_text(self) -> str:
        """The tolerance in words."""


def at(tree: Tree, key: str) -> Any:
    """The value under a dotted key, as in "advantage.MNIST" or, for a list's first, "belief.0"."""
    return reduce(lambda part, name: part[int(name) if isinstance(part, Sequence) else name], key.split("."), tree)


@dataclass(frozen=True)
class Known:
    """One printed value that ours is known not to meet: what ours is instead, and why."""

    ours: str
    reason: str


@dataclass(frozen=True)
class Printed(Comparison):
    """Formula values equal the printed ones to every printed digit.

    A value may be an interval [low, high]: what the formula gives over the rounding of the paper's own inputs; the
    printed value's rounding interval must then meet it. `known` lists by dotted place (as "naive.0") what differs.
    """

    key: str
    known: Mapping[str, Known] = field(default_factory=dict)
    what: str = ""
    smallest: str = "test"
    hindsight: bool = False

    @property
    def tolerance_text(self) -> str:
        return "equal to every printed digit"

    def judge(self, values: Tree, printed: Tree) -> Judgement:
        pairs = list(_pair_values(at(values, self.key), at(printed, self.key), self.key))
        strays = [place for place in self.known if place not in {place for place, _, _ in pairs}]
        wrong, worst, reasons = [f"{place} is not printed" for place in strays], 0.0, []
        for place, ours, text in pairs:
            known = self.known.get(place)
            low, high = _interval(ours)
            away = _distance(low, high, known.ours if known else text)
            if away > 0:
                expected = f"{known.ours} (the paper prints {text})" if known else text
                wrong.append(f"{place} is {_show_value(ours)}, not {expected}")
            elif known:
                reasons.append(f"{place}: ours {known.ours}, printed {text}. {known.reason}")
            worst = max(worst, away)
        met = f"{len(pairs) - len(reasons)} of {len(pairs)} printed values met"
        words = "; ".join(wrong) if wrong else met if reasons else f"all {len(pairs)} printed values met"
        return Judgement(self.what or self.key, bool(pairs) and not wrong, worst, words, tuple(reasons))


@dataclass(frozen=True)
class Close(Comparison):
    """Values lie within a stated distance of others (numbers, or those under another key)."""

    what: str
    key: str
    target: float | str
    tolerance: float
    smallest: str = "test"
    hindsight: bool = False

    @property
    def tolerance_text(self) -> str:
        return f"within {self.tolerance:g}" + ("" if isinstance(self.target, str) else f" of {self.target:g}")

    def judge(self, values: Tree, printed: Tree) -> Judgement:
        ours, target = _numbers(at(values, self.key)), _target(values, printed, self.target)
        gaps = [abs(a - b) for a, b in _align(ours, target)]
        worst = max(gaps, default=inf)
        return Judgement(self.what, worst <= self.tolerance, worst, f"largest distance {worst:.3g}")


@dataclass(frozen=True)
class Within(Comparison):
    """Measured values lie within `k` standard errors (values under `error`) of what they estimate."""

    what: str
    key: str
    target: float | str
    error: str
    k: float = 3.0
    smallest: str = "test"
    hindsight: bool = False

    @property
    def tolerance_text(self) -> str:
        return f"within {self.k:g} standard errors"

    def judge(self, values: Tree, printed: Tree) -> Judgement:
        ours, target = _numbers(at(values, self.key)), _target(values, printed, self.target)
        errors = _numbers(at(values, self.error))
        if len(errors) != len(ours):
            return Judgement(self.what, False, None, f"{len(ours)} values have {len(errors)} standard errors")
        gaps = [_ratio(abs(a - b), error) for (a, b), error in zip(_align(ours, target), errors, strict=True)]
        worst = max(gaps, default=inf)
        return Judgement(self.what, worst <= self.k, worst, f"at most {worst:.2g} standard errors away")


@dataclass(frozen=True)
class Ordered(Comparison):
    """The values under `lower` are, one by one, at most those under `upper` (with `slack`, at most that much above)."""

    what: str
    lower: str
    upper: str
    slack: float = 0.0
    strict: bool = False
    smallest: str = "test"
    hindsight: bool = False

    @property
    def tolerance_text(self) -> str:
        return f"but for {self.slack:g}" if self.slack else "without slack"

    def judge(self, values: Tree, printed: Tree) -> Judgement:
        pairs = _align(_numbers(at(values, self.lower)), _numbers(at(values, self.upper)))
        margin = min((high - low for low, high in pairs), default=-inf)
        passed = margin > 0 if self.strict else margin >= -self.slack
        least = "margin" if len(pairs) == 1 else f"least of {len(pairs)} margins"
        return Judgement(self.what, passed, margin, f"{least} {margin:.3g}")


@dataclass(frozen=True)
class Claim(Comparison, Generic[T]):
    """Anything else the paper says or shows (a shape, a crossing): a test of the values, in the words of `what`."""

    what: str
    holds: Callable[[T], bool]
    read_as: type[T]
    """What the values are read as: the item's own type, or one that has the fields which `holds` looks at."""
    smallest: str = "test"
    hindsight: bool = False

    @property
    def tolerance_text(self) -> str:
        return "holds"

    def judge(self, values: Tree, printed: Tree) -> Judgement:
        held = bool(self.holds(convert(values, self.read_as)))
        return Judgement(self.what, held, None, "holds" if held else "does not hold")


def _pair_values(ours: Any, printed: Any, place: str) -> Iterator[tuple[str, Any, str]]:
    """Every printed text with our value in the same place; None in the print is an empty cell."""
    if printed is None:
        return
    if isinstance(printed, str):
        yield place, ours, printed
        return
    names = printed.keys() if isinstance(printed, Mapping) else range(len(printed))
    if isinstance(printed, Sequence) and len(ours) != len(printed):
        raise ValueError(f"{place} has {len(ours)} values where the paper prints {len(printed)}")
    for name in names:
        yield from _pair_values(ours[name], printed[name], f"{place}.{name}")


def _interval(ours: Any) -> tuple[float, float]:
    low, high = ours if isinstance(ours, Sequence) else (ours, ours)
    return float(low), float(high)


def _distance(low: float, high: float, text: str) -> float:
    """How far [low, high] lies from the interval of all numbers that round to `text`; 0 where they meet."""
    if not (isfinite(low) and isfinite(high)):
        return inf
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), text
    half = 0.5 * 10.0**exponent * (1 + 1e-9)
    return max(0.0, low - float(number) - half, float(number) - half - high)


def _numbers(found: Any) -> list[float]:
    """All numbers of a value, list or table, in order."""
    if isinstance(found, Mapping):
        return [number for part in found.values() for number in _numbers(part)]
    if isinstance(found, Sequence) and not isinstance(found, str):
        return [number for part in found for number in _numbers(part)]
    return [float(found)]


def _target(values: Tree, printed: Tree, target: float | str) -> list[float]:
    """A number, the values under a key, or (with "printed:" before the key) the paper's."""
    if not isinstance(target, str):
        return [float(target)]
    kind, _, key = target.rpartition(":")
    return _numbers(at(printed if kind == "printed" else values, key))


def _align(ours: list[float], target: list[float]) -> list[tuple[float, float]]:
    if len(target) == 1:
        target = target * len(ours)
    if len(ours) != len(target):
        raise ValueError(f"{len(ours)} values cannot be held against {len(target)}")
    return list(zip(ours, target, strict=True))


def _ratio(distance: float, error: float) -> float:
    return distance / error if error > 0 else 0.0 if distance == 0 else inf


def _show_value(ours: Any) -> str:
    low, high = _interval(ours)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
