"""Random attacks of which everything is known: laws of scores, with ties, atoms and heavy tails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from deniable.evidence.attack_scores import Scores
from deniable.evidence.estimators import Region

__all__ = ["Attack", "draw_attack"]

Floats = NDArray[np.float64]
BINS = 24_001


@dataclass(frozen=True)
class Attack:
    """Scores of members and others: values with their probabilities, each spread over a bin, or an atom of width 0."""

    name: str
    values: Floats
    member: Floats
    other: Floats
    width: Floats | float = 0.0

    def draw(self, members: int, others: int, generator: np.random.Generator) -> Scores:
        """As many scores of either class."""
        return Scores(self._drawn(self.member, members, generator), self._drawn(self.other, others, generator))

    def _drawn(self, mass: Floats, number: int, generator: np.random.Generator) -> Floats:
        place = np.searchsorted(np.cumsum(mass)[:-1], generator.random(number), side="right")
        return self.values[place] + self.widths[place] * generator.random(number)

    @cached_property
    def widths(self) -> Floats:
        """One a value."""
        return np.broadcast_to(self.width, self.values.shape)

    @cached_property
    def rates(self) -> tuple[Floats, Floats]:
        """(FPR, TPR) of accusing from each value on, ascending values, and of accusing nobody."""
        fpr, tpr = (np.append(mass[::-1].cumsum()[::-1], 0.0) for mass in (self.other, self.member))
        return np.minimum(fpr, 1.0), np.minimum(tpr, 1.0)

    def at(self, threshold: float) -> tuple[float, float]:
        """(FPR, FNR) of accusing above a threshold."""
        cut = (self.values - threshold) / np.where(self.widths > 0, self.widths, 1.0)  # the threshold may cut a bin
        above = np.where(self.widths > 0, np.clip(cut + 1, 0, 1), self.values > threshold)
        return float(self.other @ above), float(1 - self.member @ above)

    def epsilon(self, delta: float) -> float:
        """The most that any threshold shows."""
        fpr, tpr = self.rates
        return max(0.0, float(Region(delta).strength(fpr[1:-1], 1 - tpr[1:-1]).max(initial=0.0)))

    def advantage(self) -> float:
        """At the best threshold."""
        fpr, tpr = self.rates
        return float((tpr - fpr).max())

    def auc(self) -> float:
        """A tie counts one half."""
        fpr = self.rates[0]
        return float(self.member @ (1 - (fpr[:-1] + fpr[1:]) / 2))

    def average_precision(self, members: int, others: int) -> float:
        """At this ratio of members to others."""
        ends = [np.where(self.widths > 0, (rates[:-1] + rates[1:]) / 2, rates[:-1]) for rates in self.rates]
        right, wrong = members * ends[1], others * ends[0]
        return float(self.member @ np.divide(right, right + wrong, out=np.zeros_like(right), where=right > 0))

    def tpr(self, fpr: float) -> tuple[float, float]:
        """The largest TPR of a threshold with at most this FPR, and the one on the line between two thresholds."""
        known, reached = self.rates
        return float(reached[known <= fpr].max()), float(np.interp(fpr, known[::-1], reached[::-1]))

    def quantile(self, share: float) -> float:
        """The least score that a share of the members stays at or below."""
        below = np.cumsum(self.member)
        place = min(int(np.searchsorted(below, share)), below.size - 1)
        within = 1 - (below[place] - share) / self.member[place]
        return float(self.values[place] + self.widths[place] * within)


def draw_attack(generator: np.random.Generator) -> Attack:
    """Few values with random probabilities, hard labels, or two shifted densities, continuous, rounded or clipped.

    Of *rare* ones a few of a class lie far from the rest; *spiked* ones are a density with an atom, as losses that
    are exactly 0; *heavy* ones whole numbers with a power law, as counts.
    """
    kinds = ["labels", "categories", "gaussian", "laplace", "rounded", "clipped", "rare", "spiked", "heavy"]
    kind = generator.choice(kinds)
    if kind == "labels":
        epsilon = float(generator.choice([0.0, 0.2, 1.0, 3.0]))
        share = float(generator.choice([1.0, 0.1]))
        right, wrong = share * float(expit(epsilon)), share * float(expit(-epsilon))
        return Attack(f"labels {right:.3g} {wrong:.3g}", np.array([0.0, 1.0]), _two(right), _two(wrong))
    if kind == "categories":
        number = int(generator.integers(3, 9))
        first, second = generator.dirichlet(np.full(number, 0.7), 2)
        mixed = 0.5 * first + 0.5 * second if generator.random() < 0.5 else second
        return Attack(f"{number} categories", np.arange(number, dtype=np.float64) - number // 2, first, mixed)
    if kind == "heavy":
        values, powers = np.arange(1.0, 3001.0), generator.choice([1.2, 1.5, 2.0, 3.0], 2)
        first, second = (values**-power / np.sum(values**-power) for power in powers)
        return Attack(f"heavy {powers[0]:g} {powers[1]:g}", values, first, second)
    return _shifted(str(kind), generator)


def _two(right: float) -> Floats:
    return np.array([1 - right, right])


def _shifted(kind: str, generator: np.random.Generator) -> Attack:
    mu = float(generator.choice([0.0, 0.3, 1.0, 2.0, 6.0]))
    cdf = _laplace if kind == "laplace" else ndtr
    edges = np.linspace(-12, 12, BINS)
    member, other = np.diff(cdf(edges - mu / 2)), np.diff(cdf(edges + mu / 2))
    member, other = member / member.sum(), other / other.sum()
    values, width = edges[:-1], np.diff(edges)
    if kind == "rare":
        share, place = float(generator.choice([0.002, 0.02, 0.06])), float(generator.choice([-8.0, 8.0]))
        bump = np.diff(ndtr(edges - place))
        if generator.random() < 0.5:
            member = (1 - share) * member + share * bump / bump.sum()
        else:
            other = (1 - share) * other + share * bump / bump.sum()
        return Attack(f"{share:g} at {place:g} gaussian {mu:g}", values, member, other, width)
    if kind == "spiked":
        place, shares = float(generator.choice([-1.0, 0.0, 3.0])), generator.choice([0.01, 0.2, 0.5, 0.95], 2)
        at = int(np.searchsorted(values, place))
        masses = [np.insert((1 - s) * mass, at, s) for s, mass in zip(shares, (member, other), strict=True)]
        name = f"spikes {shares[0]:g} {shares[1]:g} at {place:g} gaussian {mu:g}"
        return Attack(name, np.insert(values, at, place), *masses, np.insert(width, at, 0.0))
    if kind not in ("rounded", "clipped"):
        return Attack(f"{kind} {mu:g}", values, member, other, width)
    step = float(generator.choice([0.1, 0.5, 2.0]))
    tied = np.round(values / step) * step if kind == "rounded" else np.clip(values, -step, step)
    seen, place = np.unique(tied, return_inverse=True)
    first, second = (np.bincount(place, mass, seen.size).astype(np.float64) for mass in (member, other))
    return Attack(f"{kind} {step:g} gaussian {mu:g}", seen, first, second)


def _laplace(x: Floats) -> Floats:
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)
