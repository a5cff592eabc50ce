"""What the truth about a release may be, by every route that applies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf, isfinite, log

import numpy as np

import deniable as dn
from hunt.composed import Bracket, Release
from hunt.exact import OneStep, atoms_counted
from hunt.laws import Base, Description, Law, Side, describe, laws_of
from hunt.line import line_estimate

__all__ = ["Truth"]

_HIDDEN_DEVIATIONS = 8.0  # frequency times the spread of a Gaussian whose transform is then e^-32


class BothDirections:
    """The worse of both directions, of whatever brackets each of them."""

    lopsided: bool

    def stick(self, k: float, backward: bool = False) -> Bracket:
        """The hockey-stick divergence."""
        raise NotImplementedError

    def tail(self, t: float, backward: bool = False) -> Bracket:
        """P(L > t)."""
        raise NotImplementedError

    def delta(self, k: float) -> Bracket:
        """The smallest delta at epsilon k."""
        found = self.stick(k)
        return found.worse(self.stick(k, backward=True)) if self.lopsided else found

    def exceedance(self, t: float) -> Bracket:
        """How often the loss exceeds t."""
        found = self.tail(t)
        return found.worse(self.tail(t, backward=True)) if self.lopsided else found


class Truth(BothDirections):
    """Brackets of the hockey-stick divergence and both tails of a release's loss, in both directions."""

    _no_line = False

    def __init__(self, mechanism: dn.Mechanism, adjacency: str, side: Side = "exact", points: int = 2**14) -> None:
        self.steps: list[Description] = describe(mechanism, adjacency, side)
        self.adjacency, self.points, self.fineness, self.quick = adjacency, points, 5_000, True

    def finer(self) -> Truth:
        """The same on a grid sixteen times as fine: for what looks like a find."""
        other = object.__new__(Truth)
        other.steps, other.adjacency = self.steps, self.adjacency
        other.points, other.fineness, other.quick = 16 * self.points, 4 * self.fineness, False
        return other

    def _parts(self, fineness: int, backward: bool) -> list[tuple[Law, int]]:
        return [(laws_of(step, self.adjacency, fineness)[backward], step.runs) for step in self.steps]

    @cached_property
    def releases(self) -> tuple[Release, Release]:
        """With the person's data set first, and with the other one first."""
        return Release(self._parts(self.fineness, False), self.points), Release(
            self._parts(self.fineness, True), self.points
        )

    @cached_property
    def nulls(self) -> tuple[Release, Release]:
        """L under Q: the other direction's loss with its sign changed, L = -inf left out."""
        return tuple(  # type: ignore[return-value]
            Release([(_mirrored(law), runs) for law, runs in release.parts], self.points)
            for release in self.releases[::-1]
        )

    @cached_property
    def one(self) -> OneStep | None:
        if len(self.steps) == 1 and self.steps[0].runs == 1 and _is_plain_base(self.steps[0].base):
            return OneStep(self.steps[0], self.adjacency)
        return None

    @cached_property
    def _lines(self) -> tuple[list[list[tuple[Law, int]]], ...] | None:
        """Parts for line integrals: where every loss is a Gaussian's, or one wider than all other losses is beside."""
        others = [abs(step.base.values[0]) for step in self.steps if step.base.kind != "gaussian"]
        if others and not (self._smooth and self._spread >= max(others)):
            return None
        return tuple([self._parts(fineness, back) for fineness in (300, 420)] for back in (False, True))

    @cached_property
    def _quiet(self) -> float:
        """The frequency from which on the Gaussian beside them hides atoms and steep densities, which come back."""
        return _HIDDEN_DEVIATIONS / self._spread if any(step.base.kind != "gaussian" for step in self.steps) else 0.0

    @cached_property
    def _null_lines(self) -> tuple[list[list[tuple[Law, int]]], ...] | None:
        """The same of L under Q."""
        if self._lines is None:
            return None
        return tuple([[(_mirrored(law), runs) for law, runs in parts] for parts in both] for both in self._lines[::-1])

    @cached_property
    def _atoms(self) -> list[tuple[np.ndarray, np.ndarray] | None]:
        return [atoms_counted(release.parts) for release in self.releases]

    @cached_property
    def slack(self) -> float:
        """Losses that differ by round-off only are not told apart."""
        one = 1e-12 * max((abs(step.base.values[0]) for step in self.steps), default=0.0)
        return max(one, *(release.roundoff for release in self.releases))

    # --- one direction ---

    def stick(self, k: float, backward: bool = False) -> Bracket:
        """H(k) = sup of P(event) - e^k Q(event)."""
        if not self.steps:
            value = -float(np.expm1(min(k, 0.0)))
            return Bracket(value * (1 - 1e-15), value * (1 + 1e-15), "nothing is released")
        if self.one is not None:
            return self.one.stick(k, backward)
        return self._around(k, lambda at: self._composed(at, backward, gain=True))

    def tail(self, t: float, backward: bool = False) -> Bracket:
        """P(L > t), where t may be off by round-off."""
        return self._around(t, lambda at: self._tail(at, backward))

    def null_tail(self, t: float, backward: bool = False) -> Bracket:
        """Q(L > t) = P'(L' < -t) of the other direction, L = -inf not included."""
        return self._around(t, lambda at: self._null_tail(at, backward))

    def _around(self, t: float, answer: Callable[[float], Bracket]) -> Bracket:
        slack = self.slack + 4e-16 * abs(t)
        if self._smooth and slack < 1e-9 * self._spread:  # a Gaussian's tail falls by e^{-10 slack / sd} at most
            found, share = answer(t), 1e3 * slack / self._spread + 1e-12
            return Bracket(found.low * (1 - share), found.high * (1 + share), found.by)
        left, right = answer(t - slack), answer(t + slack)
        return Bracket(right.low, left.high, left.by)

    @property
    def _smooth(self) -> bool:
        return any(_is_plain(step) for step in self.steps)

    @cached_property
    def _spread(self) -> float:
        """Standard deviation of what Gaussians alone add to the loss."""
        return max(step.base.values[0] for step in self.steps if _is_plain(step))

    def _tail(self, t: float, backward: bool) -> Bracket:
        if not self.steps:
            return Bracket(float(t < 0), float(t < 0), "nothing is released")
        if self.one is not None:
            return self.one.tail(t, backward)
        return self._composed(t, backward, gain=False)

    def _null_tail(self, t: float, backward: bool) -> Bracket:
        if not self.steps:
            return Bracket(float(t < 0), float(t < 0), "nothing is released")
        if self.one is not None:
            return self.one.null_tail(t, backward)
        if len(self.steps) == 1 and self.steps[0].runs == 1:
            ((law, _),) = self.nulls[backward].parts
            masses = np.exp(law.log_mass)
            low, high = (float(masses[law.loss + sign * law.width > t].sum()) for sign in (-1, 1))
            return Bracket(low * (1 - 1e-11), min(1.0, high * (1 + 1e-11) + 1e-300), "panels")
        line = self._null_line(t, backward)
        if line is not None and self.quick:
            return line
        found, mass = self.nulls[backward].tail(t), 1 - self.releases[not backward].escape
        found = found if line is None else found.meet(line)
        return Bracket(max(0.0, found.low - 1e-15), min(mass + 1e-15, found.high + 1e-15), found.by)

    def _composed(self, t: float, backward: bool, gain: bool) -> Bracket:
        """Counted atoms are exact; a line integral is next best, and what it suspects all routes must confirm."""
        if len(self.steps) == 1 and self.steps[0].runs == 1:
            return self._panelled(t, backward, gain)
        counted = self._counted(t, backward, gain)
        if counted is not None:
            return counted
        line = self._line(t, backward, gain)
        if line is not None and self.quick:
            return line
        release = self.releases[backward]
        found = release.stick(t) if gain else release.tail(t)
        return found if line is None else found.meet(line)

    def _panelled(self, t: float, backward: bool, gain: bool) -> Bracket:
        """Of one run, with every panel's mass at its lower and at its upper end."""
        release = self.releases[backward]
        ((law, _),) = release.parts
        ends = []
        for losses in (law.loss - law.width, law.loss + law.width):
            above = losses > t
            mass = np.exp(law.log_mass[above])
            ends.append(float((mass * -np.expm1(t - losses[above]) if gain else mass).sum()) + release.escape)
        return Bracket(ends[0] * (1 - 1e-11), min(1.0, ends[1] * (1 + 1e-11) + 1e-300), "panels")

    def _counted(self, t: float, backward: bool, gain: bool) -> Bracket | None:
        atoms = self._atoms[backward]
        if atoms is None:
            return None
        losses, logs = atoms
        above = losses > t
        mass = np.exp(logs[above])
        if gain:
            mass = mass * -np.expm1(t - losses[above])
        escape = self.releases[backward].escape
        value = float(mass.sum()) + escape
        runs = sum(step.runs for step in self.steps)
        share = 1e-11 + 4e-15 * runs * log(runs + 1)  # round-off of ln n!, and of ln p taken n times
        return Bracket(value * (1 - share), value * (1 + share) + 1e-320, "atoms counted")

    def _line(self, t: float, backward: bool, gain: bool) -> Bracket | None:
        if self._lines is None or self._no_line or not isfinite(t) or not self.releases[backward].finite:
            return None
        found = _estimated(self._lines[backward], t, gain, self.releases[backward].escape, self._quiet)
        self._no_line = found is None  # it would not die out sooner elsewhere
        return found

    def _null_line(self, t: float, backward: bool) -> Bracket | None:
        if self._null_lines is None or self._no_line or not isfinite(t) or not self.nulls[backward].finite:
            return None
        found = _estimated(self._null_lines[backward], t, False, 0.0, self._quiet)
        self._no_line = found is None
        return found

    # --- the worse of both directions ---

    @property
    def lopsided(self) -> bool:
        """Whether the two directions differ."""
        return any(
            step.base.lopsided or (self.adjacency != "replace" and step.rate < 1 and not step.base.exchanges)
            for step in self.steps
        )

    @property
    def largest(self) -> Bracket:
        """The largest loss of either direction: in the last panel."""
        if any(step.base.kind in ("gaussian", "several", "numbers") for step in self.steps):
            return Bracket(inf, inf, "a Gaussian")
        ends = [_last_losses(release) for release in self.releases]
        return Bracket(max(low for low, _ in ends), max(high for _, high in ends), "panels")


def _last_losses(release: Release) -> tuple[float, float]:
    if release.escape > 0:
        return inf, inf
    low = sum(runs * float(law.loss.max()) for law, runs in release.parts)
    return low, sum(runs * float((law.loss + law.width).max()) for law, runs in release.parts)


def _is_plain_base(base: Base) -> bool:
    """One for which there are 40 digits."""
    return base.kind in ("gaussian", "laplace", "atoms") and base.cut is None


def _is_plain(step: Description) -> bool:
    """Gaussian noise on all records."""
    return step.base.kind == "gaussian" and step.rate == 1 and step.base.cut is None


def _mirrored(law: Law) -> Law:
    """The law of -L, L = inf left out."""
    return Law(-law.loss, law.log_mass, law.width, 0.0, (-law.nodes[0], law.nodes[1]))


def _estimated(parts: list[list[tuple[Law, int]]], t: float, gain: bool, escape: float, quiet: float) -> Bracket | None:
    """A line integral with twenty times the difference of two computations; None where there is none to be trusted."""
    few, more = parts
    found = line_estimate(few, more, t, gain, quiet)
    if found is None or found.spread > 1e-6 * found.value:
        return None
    runs = sum(count for _, count in few)  # a moment's round-off enters the line so many times
    slack = 20 * found.spread + (1e-10 + 4e-15 * runs) * found.value + 1e-300
    return Bracket(max(0.0, found.value - slack) + escape, found.value + slack + escape * (1 + 1e-12), "line")
