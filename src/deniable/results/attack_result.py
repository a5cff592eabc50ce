"""What `attack` found of one trained model."""

from __future__ import annotations

from typing import ClassVar, Literal

from deniable.results.base import Part, Result
from deniable.results.shared import Curve, Ends, EpsilonBound, MeasuredLimits, Provenance, Spread, TprAt
from deniable.results.verdict_result import TprLimits


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
    task: Literal["classification", "regression"] = "classification"
    model: str | None = None
    weights: str | None = None
    label: str | None = None
    train: str | None = None
    """The user's own training of shadow models, as module:function."""
    shadows: int | None = None
    queries: int | None = None
    epochs: int | None = None
    batch: int | None = None
    learning_rate: float | None = None
    optimizer: str | None = None
    noise: float | None = None
    clip: float | None = None


class ModelAccuracy(Part, frozen=True, kw_only=True):
    """The attacked model's accuracy; of a regression, the share of the labels' variance that it explains."""

    members: float
    non_members: float


class BlindMean(Part, frozen=True, kw_only=True):
    """What the records alone give away, without the model."""

    average_precision: float
    stays_below: float | None = None
    differs: bool


class RocPoints(Part, frozen=True, kw_only=True):
    """Points of a ROC curve, from few accusations to all."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


class AttackRow(Part, frozen=True, kw_only=True):
    """What one attack achieves on the tested records of the first repeat; each limit holds by itself."""

    name: str
    auc: MeasuredLimits
    advantage: MeasuredLimits
    """At the threshold that was chosen on the known half."""
    tpr: tuple[TprLimits, ...]
    epsilon_lower_bound: EpsilonBound
    roc: RocPoints


class ShadowsUsed(Part, frozen=True, kw_only=True):
    """The attacker's own models."""

    shadows: int
    records: int
    """That each was trained on."""
    queries: int
    trained_by: Literal["engine", "loop", "own", "elsewhere"]
    """The vectorised engine, an ordinary loop, the user's own training; or only their confidences were given."""
    epochs: int | None
    learning_rate: float | None = None
    epochs_loss: float | None
    """The mean loss on their own records, where `epochs` were chosen to reach the target's; None where it was named."""
    target_loss: float | None = None
    """The target's mean loss on its members."""
    accuracy_inside: float | None = None
    """On the records that each was trained on, and on the others; None where only confidences were given."""
    accuracy_outside: float | None = None


class ExposedMember(Part, frozen=True, kw_only=True):
    """A member that the attack is sure of."""

    number: int
    """Its place among the members, from 0 on."""
    belief: float
    """That it was trained on, from 50 % before the model was seen: by the attack's own likelihoods, no limit."""
    observer: float | None = None
    """What an observer of every step may believe of it (`MemberExposure`)."""


class MemberExposure(Part, frozen=True, kw_only=True):
    """Two beliefs in every member, in the members' order, each from 50 %: personal data, and no guarantee."""

    method: str
    delta: float
    """How often the observer of every step may become surer."""
    lira: tuple[float, ...]
    """By the likelihoods of LiRA on this model: estimates."""
    observer: tuple[float, ...]
    """Of the strongest observer of every step, for one training with the same recipe: exact, or a bound (`method`)."""
    rank_correlation: float | None
    surer: int
    """Members of whom LiRA is surer than that."""


class ProvenLimits(Part, frozen=True, kw_only=True):
    """What no attack on a training with this noise exceeds; epsilon is None where it is infinite."""

    epsilon: float | None
    delta: float
    advantage: float
    tpr: tuple[TprAt, ...]


class AttackResult(Result, frozen=True, kw_only=True, tag="deniable/attack/1"):
    """How well the attack tells members from others."""

    kind: ClassVar[str] = "attack"
    input: AttackInput
    accuracy: ModelAccuracy | None = None
    """None where only confidences were given."""
    average_precision: Spread
    average_precision_interval: Ends
    advantage: Spread
    tpr_at_fpr: dict[str, float]
    epsilon_lower_bound: EpsilonBound
    precision_recall: Curve
    blind: BlindMean | None = None
    """None where the records are not known: whether they differ by themselves was not looked at."""
    warning: str | None
    judged: tuple[str, ...] = ()
    """The attack that was judged in each repeat: of several, the one that did best on the known half."""
    attacks: tuple[AttackRow, ...] = ()
    """Every attack that was played."""
    shadows: ShadowsUsed | None = None
    most_exposed: tuple[ExposedMember, ...] = ()
    """The members with the largest likelihood ratio, first the most exposed one."""
    exposure: MemberExposure | None = None
    """Where it was asked for: all members on one scale."""
    proven: ProvenLimits | None = None
    provenance: Provenance | None = None
    finished: str | None = None
