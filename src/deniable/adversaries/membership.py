"""Membership inference: members, non-members and a trained model in, a score for every tested record out.

An attacker knows one half of the members and of the non-members, and is tested on the other (Bernau 2021b, Section 3).
The halves depend on the seed alone, so all attacks of a repeat are tested on the very same records, in equal numbers.
Whatever an attack chooses (weights, a threshold) it chooses on the known half. Attackers see original records even
where the model was trained on perturbed ones (Bernau 2021b, Section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deniable.checks import whole
from deniable.data import Dataset

FEWEST_RECORDS = 4
"""Members and non-members that can be halved with at least two of each on either side."""


@dataclass(frozen=True)
class Scored:
    """What an attack says of the records it was tested on, as many members as non-members.

    Scores are higher for likelier members. `threshold` was chosen without the tested records: a score of at least
    `threshold` means "member".
    """

    members: NDArray[np.float64]
    non_members: NDArray[np.float64]
    threshold: float
    rule: str = ""
    """Of an attack that chooses among several scores: the one that it chose on the known half."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """All scores, the members' first."""
        return np.concatenate([self.members, self.non_members])

    @property
    def member(self) -> NDArray[np.bool_]:
        """Which of `scores` belong to members."""
        return np.repeat([True, False], [len(self.members), len(self.non_members)])


class Attack(Protocol):
    """One attack on one trained model; the same arguments give the same scores."""

    def __call__(self, model: nn.Module, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """Scores of the tested half of `members` and `non_members`."""


class Half(NamedTuple):
    """Equally many members and non-members."""

    members: Dataset
    non_members: Dataset

    @classmethod
    def of(cls, members: Dataset, non_members: Dataset, places: HalfPlaces) -> Half:
        """The records at these places."""
        return cls(members.take(places.members), non_members.take(places.non_members))

    @property
    def records(self) -> Dataset:
        """Both, the members first."""
        first, second = self.members, self.non_members
        features = np.concatenate([first.features, second.features])
        labels = np.concatenate([first.labels, second.labels])
        return Dataset(first.name, features, labels, max(first.classes, second.classes), first.kind)

    @property
    def member(self) -> NDArray[np.bool_]:
        """Which of `records` are members."""
        return np.repeat([True, False], [len(self.members), len(self.non_members)])

    def with_scores(self, scores: NDArray[np.float64], threshold: float) -> Scored:
        """Scores of `records`, divided again."""
        return Scored(scores[: len(self.members)], scores[len(self.members) :], threshold)


class HalfPlaces(NamedTuple):
    """Which members and which non-members are in a half."""

    members: NDArray[np.int64]
    non_members: NDArray[np.int64]


def check_groups(members: Dataset, non_members: Dataset) -> None:
    """Refuse groups that are too small to be halved, or of different shapes."""
    if min(len(members), len(non_members)) < FEWEST_RECORDS:
        found = f"{len(members)} and {len(non_members)}"
        raise ValueError(f"members and non_members must be at least {FEWEST_RECORDS} records each, got {found}")
    if members.features.shape[1:] != non_members.features.shape[1:]:
        shapes = f"{members.features.shape[1:]} and {non_members.features.shape[1:]}"
        raise ValueError(f"members and non_members must have records of one shape, got {shapes}")


def half_places(members: Dataset, non_members: Dataset, seed: int) -> tuple[HalfPlaces, HalfPlaces]:
    """(known, tested): disjoint, drawn at random from `seed`, each with equally many members and non-members."""
    check_groups(members, non_members)
    count = min(len(members), len(non_members))
    generator = np.random.default_rng(whole("seed", seed, low=0))
    drawn = [generator.permutation(len(group))[:count] for group in (members, non_members)]
    known, tested = (
        HalfPlaces(*(order[part] for order in drawn)) for part in (slice(count // 2), slice(count // 2, count))
    )
    return known, tested


def halves(members: Dataset, non_members: Dataset, seed: int) -> tuple[Half, Half]:
    """The records of `half_places`."""
    known, tested = half_places(members, non_members, seed)
    return Half.of(members, non_members, known), Half.of(members, non_members, tested)


def best_threshold(scores: NDArray[np.float64], member: NDArray[np.bool_]) -> float:
    """The threshold with the largest TPR - FPR on these scores; the highest such one."""
    order = np.argsort(-scores, kind="stable")
    gained = np.cumsum(member[order] / member.sum() - ~member[order] / (~member).sum())
    last_of_tie = np.append(np.diff(scores[order]) != 0, True)
    best = np.argmax(np.where(last_of_tie, gained, -np.inf))
    return float(scores[order][best])


def as_input(dataset: Dataset) -> tuple[Tensor, Tensor]:
    """Records and labels as models take them."""
    labels = dataset.labels.astype(np.float32) if dataset.regression else dataset.labels
    return torch.from_numpy(np.ascontiguousarray(dataset.inputs)), torch.from_numpy(labels)
