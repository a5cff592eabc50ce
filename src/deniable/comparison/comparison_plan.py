"""What is compared: the data and its division, the levels of protection, the attack, the repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch

from deniable.campaigns.provenance import data_source, no_source
from deniable.checks import positive, whole
from deniable.data import Dataset, load, purchases, skewed_purchases
from deniable.formatting import as_given
from deniable.results.shared import Provenance
from deniable.training.attacked.reference import reference_settings
from deniable.training.attacked.targets import TargetSettings

Kind = Literal["original", "central", "local"]
AttackName = Literal["strongest", "lira", "rmia", "bayes", "whitebox", "shadow", "threshold"]
CENTRAL_NOISES = (0.5, 2.0, 4.0, 6.0, 16.0)
LOCAL_EPSILONS = (3.0, 2.0, 1.0, 0.5, 0.1)
LOCAL_IMAGE_EPSILONS = (10_000.0, 1_000.0, 100.0, 10.0, 1.0)
"""Bernau 2021b, Section 5, from little protection to much; for images Bernau 2021b, Figure 4."""
GENERATED_RECORDS = 1000
GENERATED_CLASSES = 20
"""Generated purchases: so few records of so many classes that an unprotected network leaks and still generalises."""
GENERATED_SHARES = 5
"""How many times the members generated data has: members, non-members, one for validation, two for shadow models."""


class Level(NamedTuple):
    """One way to train: without protection, with central noise (its multiplier), with local epsilon for each value."""

    kind: Kind
    value: float | None

    @property
    def name(self) -> str:
        """For people."""
        if self.value is None:
            return "original"
        given = as_given(self.value)
        return f"noise {given}" if self.kind == "central" else f"epsilon {given} a value"


class Division(NamedTuple):
    """The records of one repeat, disjoint: trained on, never seen, for early stopping, for an attacker's own models."""

    members: Dataset
    non_members: Dataset
    validation: Dataset
    others: Dataset


@dataclass(frozen=True)
class ComparisonPlan:
    """All that the results depend on; equal plans give equal results on one machine.

    `shifted` is a second population, from which all but the members are drawn: skewed purchases have one, and there a
    membership attack finds the shift.
    """

    data: Dataset
    shifted: Dataset | None
    records: int
    levels: tuple[Level, ...]
    attack: AttackName
    repeats: int
    seed: int
    epochs: int | None
    patience: int | None
    source: Provenance = field(default_factory=no_source)
    """How the data was named, and its shape: for people alone."""

    @classmethod
    def of(
        cls,
        data: str | Path | Callable[[], Any] = "purchases",
        *,
        classes: int | None = None,
        central: Iterable[float] = CENTRAL_NOISES,
        local: Iterable[float] | None = None,
        attack: AttackName = "strongest",
        repeats: int = 5,
        records: int | None = None,
        seed: int = 0,
        epochs: int | None = None,
        patience: int | None = 5,
        label: str | None = None,
    ) -> ComparisonPlan:
        """Load the data, check the levels and order them from little protection to much.

        `local` is by default Bernau 2021b's for such data. `records` members and as many non-members are drawn for each
        repeat (default 1000, or a third of what there is). `epochs` replaces Bernau 2021b, Table 2's; `patience` None
        never stops early.
        """
        if attack not in get_args(AttackName):
            raise ValueError(f"attack must be one of {', '.join(get_args(AttackName))}, got {attack!r}")
        noises = sorted({positive("central", noise) for noise in central})
        found, shifted = _populations(data, classes, records, label)
        usual = LOCAL_IMAGE_EPSILONS if found.kind == "image" else LOCAL_EPSILONS
        epsilons = sorted({positive("local", epsilon) for epsilon in (usual if local is None else local)}, reverse=True)
        if not noises and not epsilons:
            raise ValueError("central and local must name at least one level between them, got none")
        whole("repeats", repeats)
        whole("seed", seed, low=0)
        levels = (
            Level("original", None),
            *(Level("central", z) for z in noises),
            *(Level("local", e) for e in epsilons),
        )
        count = _members(found, shifted, records)
        source = data_source(data, found, label, classes)
        return cls(found, shifted, count, levels, attack, repeats, seed, epochs, patience, source)

    def divide(self, repeat: int) -> Division:
        """The repeat's own members and other records."""
        order = np.random.default_rng([self.seed, repeat]).permutation(len(self.data))
        n = self.records
        if self.shifted is None:
            spare = len(order) - 2 * n
            cuts = np.cumsum([n, n, min(n, (spare + 1) // 2)])
            return Division(*(self.data.take(part) for part in np.split(order, cuts)))
        elsewhere = np.random.default_rng([self.seed, repeat, 1]).permutation(len(self.shifted))
        members, others = self.data.take(order[:n]), self.data.take(order[n:])
        return Division(members, self.shifted.take(elsewhere[:n]), self.shifted.take(elsewhere[n : 2 * n]), others)

    def training(self, level: Level) -> TargetSettings:
        """Bernau 2021b, Table 2's settings for this level."""
        noise = level.value if level.kind == "central" and level.value is not None else 0.0
        settings = replace(reference_settings(self.data, noise), patience=self.patience)
        return settings if self.epochs is None else replace(settings, epochs=self.epochs)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the results, as JSON values."""
        central, local = ([level.value for level in self.levels if level.kind == kind] for kind in ("central", "local"))
        populations = [part.sha256 for part in (self.data, self.shifted) if part is not None]
        return {
            "data": self.data.name,
            "data_sha256": populations,
            "classes": self.data.classes,
            "records": self.records,
            "central": central,
            "local": local,
            "attack": self.attack,
            "repeats": self.repeats,
            "seed": self.seed,
            "epochs": self.epochs,
            "patience": self.patience,
            "torch": str(torch.__version__),
        }


def _populations(
    data: str | Path | Callable[[], Any], classes: int | None, records: int | None, label: str | None
) -> tuple[Dataset, Dataset | None]:
    """The data set, and the second population of one that has it; generated ones only as large as they need be."""
    if data not in ("purchases", "skewed-purchases"):
        return load(data, classes=classes, label=label), None
    if label is not None:
        raise ValueError(f"label names a column of a .csv file, {data} is none: leave it out")
    size = GENERATED_SHARES * whole("records", GENERATED_RECORDS if records is None else records, low=4)
    kinds = GENERATED_CLASSES if classes is None else classes
    return (purchases(kinds, size), None) if data == "purchases" else skewed_purchases(kinds, 2 * size)


def _members(data: Dataset, shifted: Dataset | None, records: int | None) -> int:
    most = len(data) // 3 if shifted is None else min(len(data), len(shifted) // 2)
    if records is None:
        return min(GENERATED_RECORDS, most)
    if whole("records", records, low=8) > most:
        raise ValueError(f"records must be at most {most}, a third of what {data.name} has, got {records}")
    return records
