"""What `audit` and `examine` found: claimed, exact and measured side by side; and who is exposed."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

from deniable.mechanisms import Adjacency
from deniable.results.base import Part, Result
from deniable.results.shared import (
    Claimed,
    Ends,
    EpsilonBound,
    MeasuredLimits,
    Provenance,
    ReleaseScores,
    VerdictName,
    Watched,
)

Band = tuple[tuple[float, ...], ...]
"""Low, middle and high over the steps."""


class AuditInput(Part, frozen=True, kw_only=True):
    """The data, the training and the promise."""

    data: str
    data_sha256: str | None = None
    records: int
    seed: int
    noise: float
    rate: float
    steps: int
    clip: float
    adjacency: Adjacency
    sensitivity: str
    model: str
    delta: float | None = None
    belief: float | None = None
    advantage: float | None = None
    epsilon: float | None = None
    calibration: str | None = None
    measure: str | None = None
    record: int | None = None
    replacement: int | None = None
    dissimilarity: float | None = None
    search: str | None = None
    learning_rate: float | None = None
    optimizer: str | None = None
    loss: str | None = None
    trials: int | None = None
    trials_per_block: int | None = None
    torch: str | None = None
    trainer: str | None = None
    recipe: Any = None
    schedule: tuple[float, ...] | None = None


class BeliefMeasured(Part, frozen=True, kw_only=True):
    """The observer's final belief in the truth."""

    max: float
    bound: float
    """The belief whose exceeding is counted."""
    violation_rate: float
    violation_interval: Ends
    at_delta: MeasuredLimits | None = None
    """The belief that only a share delta of the trainings exceeds."""
    quantiles: dict[str, float] | None = None


class FixedBound(Part, frozen=True, kw_only=True):
    """The lower bound on epsilon at the threshold belief = prior."""

    value: float | None
    confidence: float
    method: str | None = None


class EpsilonMeasured(Part, frozen=True, kw_only=True):
    """Readings of epsilon; None where one is infinite or undefined."""

    sensitivity: float | None
    belief: float | None
    advantage: float | None
    advantage_theorem_3: float | None
    lower_bound: FixedBound
    estimators: tuple[EpsilonBound, ...]


class MeasuredScores(Part, frozen=True, kw_only=True):
    """What the trials show; nothing but their number where there were none."""

    trials: int
    advantage: MeasuredLimits | None = None
    belief: BeliefMeasured | None = None
    epsilon: EpsilonMeasured | None = None


class GameResult(NamedTuple):
    """What the trials show, where there were any."""

    trials: int
    advantage: MeasuredLimits
    belief: BeliefMeasured
    epsilon: EpsilonMeasured


class FinalBeliefs(Part, frozen=True, kw_only=True):
    """Histograms of the final belief in D over [0, 1], where D or its neighbour was trained on."""

    d: tuple[int, ...]
    other: tuple[int, ...]


class BeliefCourse(Part, frozen=True, kw_only=True):
    """Bands of the belief in D over the steps, where D or its neighbour was trained on."""

    d: Band | None
    other: Band | None


class Roc(Part, frozen=True, kw_only=True):
    """Rates at some of the thresholds."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    thresholds: int


class CourseResult(Part, frozen=True, kw_only=True):
    """What pictures show of the trials."""

    quantiles: tuple[float, ...]
    steps: tuple[int, ...]
    steps_in_all: int
    final_beliefs: FinalBeliefs
    belief: BeliefCourse
    sensitivity: Band | None
    roc: Roc | None


class Test(Part, frozen=True, kw_only=True):
    """One diagnostic of somebody else's training."""

    name: str
    p_value: float
    passed: bool
    checked: bool
    observed: str | float | None
    expected: str | float | None
    weakens_privacy: bool | None = None
    sentence: str | None


class Diagnostics(Part, frozen=True, kw_only=True):
    """What the diagnostics found; `cause` names the part that is wrong."""

    cause: str | None
    false_alarm_rate: float
    level: float | None = None
    noise_ratio: float | None
    not_examined: tuple[str, ...] = ()
    findings: tuple[Test, ...] = ()
    tests: tuple[Test, ...]


class ExposedRecord(Part, frozen=True, kw_only=True):
    """A record by its number in D: how far it moves the training, and what that allows an observer."""

    record: int
    label: int | None = None
    change: float
    advantage: float
    belief: float


class Histogram(Part, frozen=True, kw_only=True):
    """Counts between edges."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


class ExposureSummary(Part, frozen=True, kw_only=True):
    """Who is exposed in D: for those who hold the data, and no guarantee."""

    file: str | None = None
    method: str
    records: int
    most_exposed: tuple[ExposedRecord, ...]
    equally_exposed: int | None = None
    least_advantage: float
    median_advantage: float
    distribution: Histogram | None = None
    rank_correlation: dict[str, float | None] | None = None
    ranked_by: str | None = None
    note: str


class LinearLosses(Part, frozen=True, kw_only=True):
    """A heuristic, no bound: what the final model would give away if losses were linear (Steinke 2024)."""

    advantage: float
    epsilon: float | None
    """None where it is infinite."""


class FinalObserver(Part, frozen=True, kw_only=True):
    """An observer of the final model alone, played in trainings of its own; limits of one kind hold together."""

    name: str
    """crafted (a crafted gradient in the person's place), worst-weights, usual-weights (initial ones; the observer sees
    the final model's loss on the person's record)."""
    trials: int
    advantage: MeasuredLimits
    """At the best threshold."""
    epsilon_lower_bound: EpsilonBound
    mu: MeasuredLimits | None
    """As a shift of unit Gaussians; None with sampled batches, or where the scores are not Gaussian."""


class FinalModel(Part, frozen=True, kw_only=True):
    """What hiding the steps buys; the bound for all steps (`exact`) holds here, too."""

    confidence: float
    delta: float
    linear: LinearLosses
    mu: float | None
    """Of all steps, with full batches."""
    observers: tuple[FinalObserver, ...]


class AuditResult(Result, frozen=True, kw_only=True, tag="deniable/audit/2"):
    """An audit of our own training, or the examination of somebody else's (which has diagnostics)."""

    kind: ClassVar[str] = "audit"
    input: AuditInput
    claimed: Claimed
    exact: ReleaseScores
    measured: MeasuredScores
    verdict: VerdictName
    closeness: Literal["tight", "loose"] | None
    verdict_text: str
    notes: tuple[str, ...]
    confidence: float | None = None
    """Of the verdict as a whole: limits, watch and diagnostics share its risk."""
    watched: Watched | None = None
    """Where the campaign was to end once the answer is certain: the evidence from the first trial on."""
    course: CourseResult | None = None
    diagnostics: Diagnostics | None = None
    exposure: ExposureSummary | None = None
    final_model: FinalModel | None = None
    """Where observers of the final model alone were played, too."""
    provenance: Provenance | None = None
    seconds: float | None = None
    trials_per_second: float | None = None
    forecast: str | None = None
    """How long an examination said that it would take, before it started."""
    finished: str | None = None

    @property
    def game(self) -> GameResult:
        """What the trials show; ask `measured.trials` first whether there were any."""
        shown = self.measured
        if shown.advantage is None or shown.belief is None or shown.epsilon is None:
            raise ValueError("nothing was played: measured.trials is 0")
        return GameResult(shown.trials, shown.advantage, shown.belief, shown.epsilon)


class ExposureResult(Result, frozen=True, kw_only=True, tag="deniable/exposure/2"):
    """Who is exposed, without a campaign."""

    kind: ClassVar[str] = "exposure"
    input: AuditInput
    claimed: Claimed
    exact: ReleaseScores
    exposure: ExposureSummary
    provenance: Provenance | None = None
    finished: str | None = None
