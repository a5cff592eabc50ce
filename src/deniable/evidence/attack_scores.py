"""Scores of an attack, by what was really trained on: all that an estimator needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from deniable.evidence.measured import Trials

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Errors:
    """How often the observer named the wrong data set."""

    false_positives: int
    """Named D though D' was trained on."""
    negatives: int
    """Trials that trained on D'."""
    false_negatives: int
    """Named D' though D was trained on."""
    positives: int
    """Trials that trained on D."""

    @classmethod
    def at(cls, score: Floats, member: NDArray[np.bool_], threshold: float) -> Errors:
        """Of the decision "member" for scores above `threshold`; a tie is no accusation."""
        named = score > threshold
        wrong = int(np.sum(named & ~member)), int(np.sum(~named & member))
        return cls(wrong[0], int(np.sum(~member)), wrong[1], int(np.sum(member)))

    @classmethod
    def of(cls, trials: Trials) -> Errors:
        """Decisions of Algorithm 1 after the last step: the threshold, belief = prior, is fixed in advance."""
        return cls.at(trials.log_likelihood_ratio[:, -1], trials.trained_on_d, 0.0)


@dataclass(frozen=True)
class Scores:
    """Scores of trials with b = 1 (`members`) and with b = 0 (`others`); a larger score speaks for b = 1.

    They are finite, independent within and between the two sets, and there is at least one of each. Their order is
    kept: halves are drawn from it.
    """

    members: Floats
    others: Floats

    def __post_init__(self) -> None:
        for name in ("members", "others"):
            object.__setattr__(self, name, _check_scores(name, getattr(self, name)))

    @classmethod
    def of(cls, score: ArrayLike, member: ArrayLike) -> Scores:
        """From one array of scores and one that says, for each, whether b = 1."""
        values, belongs = np.asarray(score, dtype=np.float64), np.asarray(member, dtype=bool)
        if values.shape != belongs.shape:
            raise ValueError(f"score and member must be equally long, got {values.size} and {belongs.size}")
        return cls(values[belongs], values[~belongs])

    def __len__(self) -> int:
        return self.members.size + self.others.size

    @cached_property
    def ascending(self) -> tuple[Floats, Floats]:
        """The members' scores and the others', each in ascending order."""
        return np.sort(self.members), np.sort(self.others)

    @cached_property
    def members_among_others(self) -> tuple[Places, Places]:
        """Of each member, in ascending order: how many others score less, and how many do not score more."""
        return places(*self.ascending)

    @cached_property
    def others_among_members(self) -> tuple[Places, Places]:
        """The same of each of the others among the members."""
        members, others = self.ascending
        return places(others, members)

    @cached_property
    def values(self) -> Floats:
        """The scores that occur, ascending, each once."""
        both = np.sort(np.concatenate(self.ascending), kind="stable")  # two ascending runs: merged, not sorted
        return np.asarray(both[np.append(True, both[1:] > both[:-1])])

    @cached_property
    def members_by_score(self) -> NDArray[np.bool_]:
        """(trials,) whether b = 1, by ascending score; equal scores in an order that knows nothing of b."""
        both = np.concatenate([self.members, self.others])
        member = np.repeat([True, False], [self.members.size, self.others.size])
        return np.asarray(member[np.lexsort((self.generator(0).random(both.size), both))])

    def generator(self, seed: int) -> np.random.Generator:
        """Random numbers that are the same for the same scores, and have nothing to do with their order.

        A seed alone would draw the same places from every file: from sorted scores the same ranks, and halves of
        given ranks are not independent.
        """
        digest = blake2b(digest_size=16)
        for values in (self.members, self.others):
            digest.update(values.tobytes())
        return np.random.default_rng([seed, int.from_bytes(digest.digest(), "little")])

    def errors(self, threshold: float) -> Errors:
        """Of the decision "member" for scores above `threshold`; a tie is no accusation."""
        wrong = int(np.sum(self.others > threshold)), int(np.sum(self.members <= threshold))
        return Errors(wrong[0], self.others.size, wrong[1], self.members.size)


def _check_scores(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be scores of at least one trial, in one dimension, got shape {array.shape}")
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite numbers, got {float(array[place])!r} at place {place}")
    return array


def places(points: Floats, ordered: Floats) -> tuple[Places, Places]:
    """How many of `ordered` are below each of `points`, both ascending, and how many are not above it."""
    below = np.searchsorted(ordered, points, side="left")
    tied = ordered[np.minimum(below, ordered.size - 1)] == points
    # most scores have no ties, and the second search takes as long as the first
    return below, np.searchsorted(ordered, points, side="right") if tied.any() else below
