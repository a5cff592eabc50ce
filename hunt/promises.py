"""Random calibrations: the noise, steps or rate found keeps the promise, and what is beyond its error breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p
from random import Random

import deniable as dn
from hunt.composed import Bracket
from hunt.questions import tpr_bracket
from hunt.sandwich import Sandwich, truth_of
from hunt.trees import logarithmic, random_adjacency
from hunt.truth import Truth

__all__ = ["Promise", "random_promise"]

_MOST_STEPS = 10**9


@dataclass(frozen=True)
class Promise:
    """One calibration: a family of releases by their noise, steps or rate `s`, and a target."""

    family: str
    target: str
    adjacency: str
    over: str = "noise"

    def __str__(self) -> str:
        over = "" if self.over == "noise" else f', over="{self.over}"'
        return f'dn.calibrate(lambda s: {self.family}, dn.{self.target}, adjacency="{self.adjacency}"{over})'

    def release(self, value: float) -> dn.Mechanism:
        return eval(self.family, {"dn": dn, "s": value})  # type: ignore[no-any-return]  # our own text

    @property
    def aim(self) -> dn.Epsilon:
        return eval(f"dn.{self.target}", {"dn": dn})  # type: ignore[no-any-return]

    def ask(self) -> dn.Calibration:
        return dn.calibrate(self.release, self.aim, adjacency=self.adjacency, over=self.over)

    def judge(self, found: dn.Calibration) -> str | None:
        """What is wrong with the value."""
        risk, level = _risk(self.aim, truth_of(found.mechanism, self.adjacency)), self.aim.level
        if risk.low > level * (1 + 1e-9):
            return f"safer: the risk is at least {risk.low!r} > {level!r} ({risk.by})"
        nearer = self._nearer(found)
        if nearer is None:
            return None
        risk = _risk(self.aim, truth_of(self.release(nearer), self.adjacency))
        if risk.high < level * (1 - 1e-9):
            return f"less careful: beyond its error, at {nearer!r}, the risk is {risk.high!r} < {level!r} ({risk.by})"
        return None

    def _nearer(self, found: dn.Calibration) -> float | None:
        """The value just beyond its error, where the promise must break; None where there is none."""
        if self.over == "noise":
            least = found.value - found.error * (1 + 1e-6)
            return least if least > 1.01e-3 else None
        if self.over == "steps":
            more = found.value + found.error + 1
            return more if more < _MOST_STEPS else None
        rate = found.value + found.error * (1 + 1e-6)
        return rate if rate < 1 else None


def _risk(target: object, truth: Truth | Sandwich) -> Bracket:
    """What must stay below the target's level."""
    match target:
        case dn.Epsilon(bound, _):
            return truth.delta(bound)
        case dn.Advantage(_):
            return truth.delta(0.0)
        case dn.Accuracy(_, prior):
            found = truth.delta(log1p(-prior) - log(prior))
            return Bracket(1 - prior + prior * found.low, 1 - prior + prior * found.high, found.by)
        case dn.Belief(bound, _, prior):
            return truth.exceedance(log(bound) - log1p(-bound) - log(prior) + log1p(-prior))
        case dn.TruePositiveRate(_, fpr) | dn.PositivePredictiveValue(_, fpr, _):
            return tpr_bracket(truth, fpr)
    raise TypeError(f"no risk for {target!r}")


def _random_family(draw: Random, over: str) -> str:
    """Gaussian or Laplace noise, sampled or not, with `s` for what is sought."""
    kind = draw.choice(["Gaussian", "Gaussian", "Laplace"])
    noise = "s" if over == "noise" else repr(logarithmic(draw, 0.1, 100))
    rate = "" if over != "rate" and draw.random() < 0.3 else f".subsampled({logarithmic(draw, 1e-5, 0.9)!r})"
    runs = "" if draw.random() < 0.1 else f".composed({int(logarithmic(draw, 1, 1e6 if kind == 'Gaussian' else 1e4))})"
    rate, runs = ".subsampled(s)" if over == "rate" else rate, ".composed(int(s))" if over == "steps" else runs
    return f"dn.{kind}({noise}){rate}{runs}"


def random_promise(draw: Random) -> Promise:
    """A promise that is neither trivial nor impossible."""
    over = draw.choice(["noise", "noise", "steps", "rate"])
    small, share = logarithmic(draw, 1e-9, 0.1), draw.uniform(0.05, 0.95)
    prior = draw.choice([0.5, draw.uniform(0.05, 0.9)])
    above = max(prior, 1 - prior)
    target = draw.choice(
        [
            f"Epsilon({logarithmic(draw, 0.01, 30)!r}, {small!r})",
            f"Advantage({share!r})",
            f"Accuracy({above + (1 - above) * share!r}, {prior!r})",
            f"Belief({prior + (1 - prior) * share!r}, {small!r}, {prior!r})",
            f"TruePositiveRate({small + (1 - small) * share!r}, {small!r})",
            f"PositivePredictiveValue({prior + (1 - prior) * share!r}, {small!r}, {prior!r})",
        ]
    )
    return Promise(_random_family(draw, over), target, random_adjacency(draw), over)
