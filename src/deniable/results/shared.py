"""Parts that results of several kinds have in common."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from deniable.results.base import Part

VerdictName = Literal["violated", "other recipe", "consistent", "cannot judge"]


class MeasuredLimits(Part, frozen=True, kw_only=True):
    """A measured value and the ends of its confidence interval."""

    value: float
    low: float
    high: float


class Ends(Part, frozen=True, kw_only=True):
    """The ends of an interval."""

    low: float
    high: float


class Spread(Part, frozen=True, kw_only=True):
    """The mean over repeats, the deviation of one repeat (None of a single one), all values."""

    mean: float
    deviation: float | None
    values: tuple[float, ...]

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest: a range over repeats, no confidence interval."""
        return min(self.values), max(self.values)


class TprAt(Part, frozen=True, kw_only=True):
    """The largest true positive rate of any attack with this false positive rate."""

    fpr: float
    tpr: float


class PpvAt(Part, frozen=True, kw_only=True):
    """The largest share of members among those whom any attack with this false positive rate accuses."""

    fpr: float
    prior: float
    ppv: float


class SuccessAt(Part, frozen=True, kw_only=True):
    """The largest success of an attack that succeeds with probability `baseline` without the release."""

    baseline: float
    success: float


class GaussianFit(Part, frozen=True, kw_only=True):
    """The tightest mu of Gaussian DP, for attacks with rates of false alarms and misses from `least_rate` on."""

    mu: float
    error: float
    """The tightest mu lies between mu - error and mu."""
    regret: float
    """By how much (in false alarms and misses) the release may protect better than mu tells (Gomez 2026)."""
    least_rate: float


class SinglingOut(Part, frozen=True, kw_only=True):
    """What the release adds to predicate singling out (Cohen 2020), by a description that fits a share `weight`."""

    weight: float
    people: int
    targeted: float
    """Of one person."""
    untargeted: float
    """Of anybody among `people`."""


class ReleaseScores(Part, frozen=True, kw_only=True):
    """What a mechanism allows at worst; epsilon is None where it is infinite."""

    epsilon: float | None
    delta: float
    belief: float
    belief_delta: float
    """How often the belief may be exceeded."""
    prior: float
    advantage: float
    accuracy: float
    tpr: tuple[TprAt, ...] = ()
    ppv: tuple[PpvAt, ...] = ()
    success: tuple[SuccessAt, ...] = ()
    epsilon_at_least: float | UnsetType = UNSET
    """Where epsilon is only a bound: one that some data are known to have."""
    singling_out: tuple[SinglingOut, ...] = ()
    """For every baseline, where the number of records is known."""
    gaussian: GaussianFit | UnsetType = UNSET


class Claimed(Part, frozen=True, kw_only=True):
    """The promised scores; None where nothing is promised."""

    belief: float | None
    advantage: float | None
    epsilon: float | None
    delta: float


class Assumed(Part, frozen=True, kw_only=True):
    """What a bound rests on; `holds` is None where it is taken on trust, False where the scores speak against it."""

    text: str
    holds: bool | None
    p_value: float | None


class EpsilonBound(Part, frozen=True, kw_only=True):
    """A lower bound on epsilon, and what it rests on; None stands for infinite or for nothing to say."""

    name: str
    method: str
    rule: str | None
    value: float | None
    upper: float | None
    """The most that this attack shows; no limit on the true epsilon."""
    delta: float
    mu: float | None
    noise: float | None
    confidence: float | None = None
    credible: float | None = None
    """In place of `confidence`, of a bound that makes no statement of confidence."""
    kind: Literal["confidence", "credible"]
    assumptions: tuple[Assumed, ...]
    valid: bool
    note: str | None = None


class Watched(Part, frozen=True, kw_only=True):
    """Evidence against the claim, looked at again and again; it holds whenever the watch ends."""

    trials: int
    """At the last look."""
    risk: float
    """A claim that is kept is ever refuted with probability at most this."""
    wealth: float
    """The most that bets against the claim ever made of 1; at 1/risk the claim is refuted."""
    refuted_after: int | None
    """Trials at the look that refuted the claim."""
    trials_in_sight: int | None
    """How many in all will probably refute the claim, if they go on as so far; None if none will."""
    trials_at_half_noise: int | None = None
    """How many would probably refute the claim, had the training half of the noise: from theory."""
    epsilon: EpsilonBound
    """The lower bound that holds at every time."""
    looks: tuple[int, ...] = ()
    """After so many trials the evidence was looked at; of many looks some."""
    evidence: tuple[float, ...] = ()
    """What the bets had made of 1 at each of them."""
    text: str


class Curve(Part, frozen=True, kw_only=True):
    """Points of a curve of precision over recall."""

    precision: tuple[float, ...]
    recall: tuple[float, ...]


class Provenance(Part, frozen=True, kw_only=True):
    """Where a result comes from: the data as they were named, versions, and how to get the result again."""

    versions: dict[str, str]
    command: str | None = None
    call: str | None = None
    data: str | None = None
    label: str | None = None
    asked_classes: int | None = None
    shape: tuple[int, ...] | None = None
    classes: int | None = None
    kind: str | None = None
    weights: int | None = None
    layers: tuple[str, ...] | None = None
    usual_block: bool | None = None
    usual_model: str | None = None
    by_statistics: tuple[str, ...] = ()
    """Columns of a table that became numbers by statistics of its records."""
    sha256: str | None = None
