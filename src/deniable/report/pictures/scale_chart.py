"""Promise against measurement on one scale: the picture of the first screen.

It is drawn by a template, with lengths in per cent and text in its own size: a plot library's picture shrinks its text
with the screen. The scale is that of the promise (how sure, how often right, epsilon), so that nothing is translated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

from deniable.formatting import at_most, percent_at_most
from deniable.report.words.amount_text import figure, share
from deniable.results.attack_result import AttackResult
from deniable.results.compare_result import CompareResult, LevelResult


@dataclass(frozen=True)
class Axis:
    """What is measured, from `low` to `high`, and how its values are written."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    written: Callable[[float], str]
    endless: str
    """What stands for a value that has no limit."""
    limited: Callable[[float], str] = at_most
    """How a limit from above is written: rounded up."""

    def at(self, value: float | None) -> float:
        """The place of a value in per cent of the width; the end for None, which is infinite."""
        if value is None:
            return 100.0
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 3)

    def tell(self, value: float | None) -> str:
        """The value for people."""
        return self.endless if value is None else self.written(value)

    def tell_limit(self, value: float | None) -> str:
        """The limit for people."""
        return self.endless if value is None else self.limited(value)


def share_axis(title: str) -> Axis:
    """From 50 %, a coin's toss, to 100 %, certainty."""
    ticks = tuple((tick / 100, f"{tick} %") for tick in (50, 60, 70, 80, 90, 100))
    return Axis(title, 0.5, 1.0, ticks, share, "100 %", percent_at_most)


def epsilon_axis(title: str, values: list[float | None]) -> Axis:
    """From 0 to somewhat more than the largest of the values."""
    high = 1.12 * max([0.1, *(value for value in values if value is not None and isfinite(value))])
    step = next(s for power in range(-2, 309) for s in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if high / s <= 6)
    ticks = tuple((number * step, f"{number * step:.6g}") for number in range(int(high / step) + 1))
    return Axis(title, 0.0, high, ticks, figure, "any value")


@dataclass(frozen=True)
class Row:
    """What is to be shown in one row: a limit from above, or an interval with or without its middle."""

    name: str
    tone: str
    low: float | None
    high: float | None
    middle: float | None = None
    interval: bool = False
    told: str | None = None
    allowed: float | None = None


@dataclass(frozen=True)
class Bar:
    """A row in per cent of the width."""

    name: str
    told: str
    tone: str
    start: float
    end: float
    middle: float | None
    allowed: float | None
    endless: bool


@dataclass(frozen=True)
class ScaleChart:
    """Rows on one axis; beyond `limit` lies what was not to be reached."""

    title: str
    axis: str
    description: str
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    limit: float | None
    note: str
    beyond: str = "break the promise"
    """What a measurement beyond the limit would do."""

    def data(self) -> dict[str, Any]:
        """For the machine-readable copy."""
        return asdict(self)


@dataclass(frozen=True)
class Aim:
    """What was not to be exceeded, and what it is called: promised, or only tested."""

    name: str
    value: float | None


def promise_scale(axis: Axis, aim: Aim, exact: tuple[str, float | None], measured: Row | None, note: str) -> ScaleChart:
    """Promised or tested (where something is), what the noise allows (its name and value), and what was measured."""
    name, most = exact
    rows = [] if aim.value is None else [Row(aim.name, "promise", axis.low, aim.value)]
    rows.append(Row(name, "exact", axis.low, most))
    rows += [measured] if measured is not None else []
    limit = most if aim.value is None else aim.value
    title = f"{aim.name} against measured" if aim.value is not None else "Allowed against measured"
    drawn = _scale(title, axis, rows, None if limit is None else axis.at(limit), note)
    return replace(drawn, beyond="break the promise" if aim.name == "Promised" else "contradict the theory")


def claim_scale(axis: Axis, claimed: float, exact: float | None, measured: Row, note: str) -> ScaleChart:
    """As `promise_scale`, where the noise behind a claim may be unknown."""
    rows = [Row("Claimed", "promise", axis.low, claimed)]
    rows += [] if exact is None else [Row("The claimed noise allows", "exact", axis.low, exact)]
    drawn = _scale("Claimed against measured", axis, [*rows, measured], axis.at(claimed), note)
    return replace(drawn, beyond="break the claim")


def precision_scale(document: CompareResult) -> ScaleChart:
    """A comparison's levels: the attack's average precision beside the most that each level's promise allows."""
    bars = "Bars: from the smallest to the largest repeat (a range, no confidence interval), and their mean. "
    note = bars * (document.input.repeats > 1) + "Pale: the most that the level's promise allows."
    rows = [_level(row) for row in document.levels]
    return _scale("What the attack achieves at each level of protection", _precision_axis(), rows, None, note)


def attack_scale(document: AttackResult) -> ScaleChart:
    """One model's attack, beside one that never sees the model."""
    limits, blind = document.average_precision_interval, document.blind
    attack = Row("Attack", "measured", limits.low, limits.high, document.average_precision.mean, True)
    rows = [attack]
    if blind is not None:
        most = max(blind.average_precision, 0.5)
        rows.append(Row("Without the model", "exact", 0.5, most, told=f"{blind.average_precision:.2f}"))
    sure = f"{100 * document.input.confidence:.4g} %"
    note = f"The bar: limits, of the first time, which hold together with the bound on epsilon: {sure} confidence."
    if document.input.repeats > 1:
        note += f" The point: the mean of {document.input.repeats} times."
    return _scale("What the attack achieves", _precision_axis(), rows, None, note)


def _precision_axis() -> Axis:
    ticks = tuple((tick / 10, f"{tick / 10:g}") for tick in range(5, 11))
    title = "Average precision of the attack: 0.5 is guessing, 1 is certainty"
    return Axis(title, 0.5, 1.0, ticks, lambda value: f"{value:.2f}", "1")


def _level(row: LevelResult) -> Row:
    precision = row.average_precision
    allowed = 1.0 if row.epsilon is None else row.epsilon.average_precision_at_most
    kind = {"original": "No protection", "central": "Central", "local": "Local"}[row.kind]
    name = kind if row.value is None else f"{kind}, {row.name}"
    told = f"{precision.mean:.2f}; accuracy {share(row.test_accuracy.mean)}"
    return Row(name, row.kind, *precision.ends, precision.mean, interval=True, told=told, allowed=allowed)


def _scale(title: str, axis: Axis, rows: list[Row], limit: float | None, note: str) -> ScaleChart:
    bars = tuple(_bar(axis, row) for row in rows)
    described = "; ".join(f"{bar.name}: {bar.told}" for bar in bars)
    ticks = tuple((axis.at(value), label) for value, label in axis.ticks)
    return ScaleChart(title, axis.title, f"{described}.", bars, ticks, limit, note)


def _bar(axis: Axis, row: Row) -> Bar:
    told = row.told or (
        f"{axis.tell(row.low)} to {axis.tell(row.high)}" if row.interval else f"at most {axis.tell_limit(row.high)}"
    )
    middle, allowed = (None if value is None else axis.at(value) for value in (row.middle, row.allowed))
    return Bar(row.name, told, row.tone, axis.at(row.low), axis.at(row.high), middle, allowed, row.high is None)
