"""What `deniable verdict` found: somebody else's scores against a claim."""

from __future__ import annotations

from typing import ClassVar, Literal

from deniable.mechanisms import Adjacency
from deniable.results.base import Part, Result
from deniable.results.shared import EpsilonBound, MeasuredLimits, Provenance, VerdictName, Watched


class VerdictInput(Part, frozen=True, kw_only=True):
    """The claim and how it was examined, all settled before the scores were seen."""

    scores: str | None = None
    claimed_epsilon: float
    delta: float
    noise: float | None = None
    rate: float | None = None
    steps: int | None = None
    adjacency: Adjacency | None = None
    rows_from: str | None
    method: str
    rule: str
    threshold: float | None = None
    confidence: float


class VerdictClaim(Part, frozen=True, kw_only=True):
    """What is claimed of the release."""

    epsilon: float
    delta: float
    noise: float | None


class ExactScores(Part, frozen=True, kw_only=True):
    """What the claimed noise allows; epsilon is None where it is infinite."""

    epsilon: float | None
    advantage: float


class TprLimits(Part, frozen=True, kw_only=True):
    """The attack's true positive rate at a false positive rate."""

    fpr: float
    value: float
    low: float
    high: float


class BoundsOnEpsilon(Part, frozen=True, kw_only=True):
    """The bound on which the verdict rests, and every estimator's."""

    lower_bound: EpsilonBound
    estimators: tuple[EpsilonBound, ...]


class Achieved(Part, frozen=True, kw_only=True):
    """What the attack achieved."""

    trials: int
    members: int
    others: int
    advantage: MeasuredLimits
    auc: MeasuredLimits
    average_precision: MeasuredLimits
    tpr: tuple[TprLimits, ...]
    epsilon: BoundsOnEpsilon


class VerdictResult(Result, frozen=True, kw_only=True, tag="deniable/verdict/1"):
    """Claimed and measured side by side, and the verdict of the primary estimator."""

    kind: ClassVar[str] = "verdict"
    input: VerdictInput
    claimed: VerdictClaim
    exact: ExactScores | None
    measured: Achieved
    verdict: VerdictName
    closeness: Literal["tight", "loose"] | None
    verdict_text: str
    notes: tuple[str, ...]
    watched: Watched | None = None
    """With --watch: the evidence from the first row on."""
    provenance: Provenance | None = None
