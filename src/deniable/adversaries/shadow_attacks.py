"""Attacks that compare the target's confidence with that of shadow models (`shadow_scores`), by the one protocol.

They need no known record to score one: the known half chooses the rule and the threshold, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.adversaries.membership import HalfPlaces, Scored, best_threshold, half_places
from deniable.adversaries.model_observation import closeness
from deniable.adversaries.shadow_models import Shadows, pool_of, query
from deniable.adversaries.shadow_scores import RULES
from deniable.checks import one_of
from deniable.data import Dataset
from deniable.tradeoff import average_precision

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ShadowAttack:
    """The strongest of some rules of `shadow_scores.RULES`: the one that does best on the known half.

    The shadows' pool is the members, then the non-members.
    """

    shadows: Shadows
    rules: tuple[str, ...] = tuple(RULES)

    def __post_init__(self) -> None:
        for rule in self.rules:
            one_of("rules", rule, tuple(RULES))

    def __call__(self, model: Any, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """The chosen rule's score of each tested record."""
        scores = score_pool(model, pool_of(members, non_members), self.shadows, self.rules)
        known, tested = half_places(members, non_members, seed)
        rule = strongest_rule(scores, known, len(members))
        return replace(divide_scores(scores[rule], known, tested, len(members)), rule=rule)


def score_pool(model: Any, pool: Dataset, shadows: Shadows, rules: Sequence[str]) -> dict[str, Floats]:
    """Each rule's score of every record of the shadows' pool."""
    if shadows.inside.shape[1] != len(pool):
        found = f"{shadows.inside.shape[1]} records, not {len(pool)}"
        raise ValueError(f"shadows must be of the members and the non-members together, they are of {found}")
    target, others = query(model, pool, shadows.confidence.shape[1]), shadows.confidence.astype(np.float64)
    if pool.regression:
        scale = float(np.square(target).mean())
        target, others = closeness(target, scale), closeness(others, scale)
    return {rule: RULES[rule](target, others, shadows.inside) for rule in rules}


class _Half(NamedTuple):
    scores: Floats
    member: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: Floats, half: HalfPlaces, members: int) -> _Half:
        both = np.concatenate([scores[half.members], scores[members + half.non_members]])
        return cls(both, np.repeat([True, False], [len(half.members), len(half.non_members)]))


def strongest_rule(scores: Mapping[str, Floats], known: HalfPlaces, members: int) -> str:
    """The rule with the largest average precision on the known half."""
    halves = {rule: _Half.of(values, known, members) for rule, values in scores.items()}
    return max(halves, key=lambda rule: average_precision(*halves[rule]))


def divide_scores(scores: Floats, known: HalfPlaces, tested: HalfPlaces, members: int) -> Scored:
    """The tested half's scores, and the threshold that is best on the known half."""
    threshold = best_threshold(*_Half.of(scores, known, members))
    return Scored(scores[tested.members], scores[members + tested.non_members], threshold)
