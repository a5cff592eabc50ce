"""An odometer: what a promise has left after each release.

- `planned`: which releases there will be does not depend on their outputs. Their losses are composed exactly. Stopping
  by the composed curve is no valid rule for releases that are chosen after looking.
- `gaussian`: releases may be chosen after looking, each mu-GDP; the sum of mu^2 stays below that of the largest GDP
  guarantee that keeps the promise (Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023). Nothing is lost against
  planning, but only Gaussian noise without sampling counts.
- `renyi`: releases may be chosen after looking, all that have a finite Renyi divergence of one order, which is fixed in
  advance; divergences add up below the largest one that keeps the promise (Feldman, Zrnic 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt

import numpy as np

from deniable.checks import RefusedError, one_of, refuse
from deniable.loss import renyi_divergences
from deniable.mechanisms import (
    Adjacency,
    Composed,
    Gaussian,
    GaussianDP,
    Mechanism,
    RenyiDP,
    compose,
    named_adjacency,
)
from deniable.promises import Noise, Promise, check_promise
from deniable.results.budget_result import BudgetReading, BudgetRule
from deniable.scores import privacy_loss

_RULES = ("planned", "gaussian", "renyi")
_HALVINGS = 50
_MOST = 1e6  # of mu or a divergence, which keeps no promise
_TOLD = {
    "planned": "proved for releases that were planned without looking at outputs",
    "gaussian": "proved also for releases chosen after looking at earlier outputs (a Gaussian privacy filter)",
    "renyi": "proved also for releases chosen after looking at earlier outputs (a Renyi privacy filter)",
}


class SpentError(RefusedError):
    """A release that the budget has no room for; nothing of it was spent."""


@dataclass
class Budget:
    """A promise that releases are charged to: `spend` each before it is made, and make it only if nothing is raised.

    `adjacency` says what neighbours are, where batches are sampled. `rule` says how the next release is chosen:
    "planned" (without looking), "gaussian" or "renyi" (see the module). `order` is that of the Renyi rule.

    Examples:
        >>> import deniable as dn
        >>> budget = dn.Budget(dn.Epsilon(1.0, delta=1e-5))
        >>> round(budget.spend(dn.Gaussian(8.0)).score, 3)
        0.434
        >>> budget.has_room(dn.Gaussian(8.0)), budget.has_room(dn.Gaussian(2.0))
        (True, False)
    """

    promise: Promise
    adjacency: Adjacency | str | None = None
    rule: BudgetRule = "planned"
    order: float = 12.0
    _releases: list[Mechanism] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        one_of("rule", self.rule, _RULES)
        check_promise(self.promise)
        if isinstance(self.promise, Noise):
            raise refuse("promise", self.promise, "a score of the release", "a noise is not used up")
        if not self.order > 1:
            raise refuse("order", self.order, "a number above 1")
        self._limit = 0.0 if self.rule == "planned" else self._largest_kept()

    def spend(self, release: Mechanism) -> BudgetReading:
        """Charge a release; raises `SpentError`, and charges nothing, where the promise has no room for it."""
        if not self.has_room(release):
            raise SpentError(
                f"the budget has no room for {release}: {self.promise} would not be kept", "release", release
            )
        self._releases.append(release)
        return self.reading

    def has_room(self, release: Mechanism) -> bool:
        """Whether the promise is kept with this release, too."""
        if self.rule == "planned":
            return self._keeps(compose(*self._releases, release))
        return self._total_cost + self._cost(release) <= self._limit

    @property
    def reading(self) -> BudgetReading:
        """What has been spent so far, and what that is proved for."""
        score = float(self.promise.score(privacy_loss(self._known, self.adjacency)))
        counted, limit = (score, self.promise.bound) if self.rule == "planned" else (self._total_cost, self._limit)
        return BudgetReading(
            releases=len(self._releases),
            score=score,
            promised=self.promise.bound,
            share=counted / limit if limit > 0 else inf,
            left=max(limit - counted, 0.0),
            rule=self.rule,
            adaptive=self.rule != "planned",
            sentence=f"{len(self._releases)} releases have spent {counted / max(limit, 1e-300):.3g} of the budget; "
            f"{_TOLD[self.rule]}.",
        )

    @property
    def _known(self) -> Mechanism:
        """A release with as much loss as is counted."""
        if self.rule == "planned":
            return compose(*self._releases)
        return self._guarantee(self._total_cost)

    def _guarantee(self, counted: float) -> Mechanism:
        return GaussianDP(sqrt(counted)) if self.rule == "gaussian" else RenyiDP(self.order, counted)

    @property
    def _total_cost(self) -> float:
        return sum(self._cost(release) for release in self._releases)

    def _cost(self, release: Mechanism) -> float:
        """In the rule's unit: mu^2, or the divergence of the order."""
        if self.rule == "gaussian":
            return sum(count * _squared_mu(part) for part, count in _parts(release))
        adjacency = named_adjacency(release, self.adjacency)
        return float(renyi_divergences(release, adjacency, np.array([self.order]))[0])

    def _keeps(self, release: Mechanism) -> bool:
        loss = privacy_loss(release, self.adjacency)
        return self.promise.risk(loss) <= self.promise.level

    def _largest_kept(self) -> float:
        """The most that may be counted, by halving, from below."""
        low, high = 0.0, 1.0
        while high < _MOST and self._keeps(self._guarantee(high)):
            low, high = high, 4 * high
        for _ in range(_HALVINGS):
            if high - low <= 1e-9 * high:
                break
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._keeps(self._guarantee(middle)) else (low, middle)
        return low


def _parts(release: Mechanism) -> tuple[tuple[Mechanism, int], ...]:
    return release.parts if isinstance(release, Composed) else ((release, 1),)


def _squared_mu(part: Mechanism) -> float:
    match part:
        case Gaussian(noise):
            return 1 / noise**2
        case GaussianDP(mu):
            return mu**2
    why = "count others by their Renyi divergences, rule='renyi'"
    raise RefusedError(f"the Gaussian rule counts Gaussian noise without sampling, not {type(part).__name__}: {why}")
