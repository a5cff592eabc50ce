"""What `attack` found of one trained model."""

from __future__ import annotations

from typing import ClassVar

from deniable.results.base import Part, Result
from deniable.results.shared import Curve, Ends, EpsilonBound, Provenance, Spread

__all__ = ["AttackInput", "AttackResult", "BlindMean", "ModelAccuracy"]


class AttackInput(Part, frozen=True, kw_only=True):
    """The attack and the records."""

    attack: str
    repeats: int
    seed: int
    delta: float
    confidence: float
    model_sha256: str | None = None
    data_sha256: tuple[str, ...]
    members: int
    non_members: int
    tested: int
    model: str | None = None
    weights: str | None = None
    label: str | None = None


class ModelAccuracy(Part, frozen=True, kw_only=True):
    """The attacked model's accuracy."""

    members: float
    non_members: float


class BlindMean(Part, frozen=True, kw_only=True):
    """What the records alone give away, without the model."""

    average_precision: float
    stays_below: float | None = None
    differs: bool


class AttackResult(Result, frozen=True, kw_only=True, tag="deniable/attack/1"):
    """How well the attack tells members from others."""

    kind: ClassVar[str] = "attack"
    input: AttackInput
    accuracy: ModelAccuracy
    average_precision: Spread
    average_precision_interval: Ends
    advantage: Spread
    tpr_at_fpr: dict[str, float]
    epsilon_lower_bound: EpsilonBound
    precision_recall: Curve
    blind: BlindMean
    warning: str | None
    provenance: Provenance | None = None
    finished: str | None = None
