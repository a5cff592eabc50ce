"""What `compare` found: local and central privacy side by side."""

from __future__ import annotations

from typing import ClassVar, Literal

from deniable.results.base import Part, Result
from deniable.results.shared import Curve, EpsilonBound, Provenance, Spread


class CompareInput(Part, frozen=True, kw_only=True):
    """The data, the levels and the attack."""

    data: str
    data_sha256: tuple[str, ...]
    classes: int
    records: int
    central: tuple[float, ...] = ()
    local: tuple[float, ...] = ()
    attack: str
    repeats: int
    seed: int
    epochs: int | None = None
    patience: int | None = None
    torch: str | None = None


class Chance(Part, frozen=True, kw_only=True):
    """What guessing achieves."""

    average_precision: float = 0.5
    stays_below: float
    accuracy: float
    """Of any answer at random: one over the classes."""
    majority_accuracy: float | None = None
    """Of always answering the most common class; None in documents before 0.2.0."""


class BlindSpread(Part, frozen=True, kw_only=True):
    """What the records alone give away, without any model."""

    average_precision: Spread | None = None
    stays_below: float | None = None
    differs: bool


class LevelEpsilon(Part, frozen=True, kw_only=True):
    """What a level promises; `value` is the steps' (central) or each value's (local) epsilon."""

    value: float
    planned: float | None = None
    record: float | None = None
    record_at_delta: float | None = None
    advantage_at_most: float | None = None
    average_precision_at_most: float


class LevelResult(Part, frozen=True, kw_only=True):
    """One level of protection."""

    kind: Literal["original", "central", "local"]
    name: str
    value: float | None
    epsilon: LevelEpsilon | None
    steps: tuple[int, ...] = ()
    judged: tuple[str, ...] = ()
    """The attack that was judged in each repeat, where it was chosen among several on the known half."""
    train_accuracy: Spread
    test_accuracy: Spread
    average_precision: Spread
    advantage: Spread
    tpr_at_fpr: dict[str, float]
    epsilon_lower_bound: EpsilonBound
    precision_recall: Curve
    phi: float | None
    phi_error: float | None
    phi_note: str | None
    blind_average_precision: float
    warning: str | None = None


class NamedEpsilons(Part, frozen=True, kw_only=True):
    """What weaker analyses prove of epsilon; None where one has nothing (finite) to say."""

    naive: float | None
    advanced: float | None
    rdp: float | None


class RegionRow(Part, frozen=True, kw_only=True):
    """Epsilon of one noise level at one delta, from above and from below."""

    noise: float
    exact: float
    """The exact privacy loss of the release: the least upper bound there is."""
    named: NamedEpsilons
    lower: float | None
    """What an attack has shown, at its confidence; None where it has shown nothing of the release."""


class Recommended(Part, frozen=True, kw_only=True):
    """Which protection is better, in sentences."""

    better: Literal["central", "local", "alike", "depends"] | None
    difference: float | None = None
    common: tuple[float, ...] | None = None
    favourable: dict[str, tuple[float, ...]] | None = None
    sentences: tuple[str, ...]
    text: str | None = None


class CompareResult(Result, frozen=True, kw_only=True, tag="deniable/compare/1"):
    """Every level's row, the region of privacy and the recommendation."""

    kind: ClassVar[str] = "compare"
    input: CompareInput
    delta: float
    confidence: float
    chance: Chance
    blind: BlindSpread
    warning: str | None
    levels: tuple[LevelResult, ...]
    region: tuple[RegionRow, ...]
    recommendation: Recommended
    provenance: Provenance | None = None
    seconds: float | None = None
    finished: str | None = None
