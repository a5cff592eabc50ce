"""What `frontier` found: how good a model is at every promise, and what that rests on."""

from __future__ import annotations

from typing import ClassVar, Literal

from deniable.results.base import Part, Result
from deniable.results.explain_result import StrengthName
from deniable.results.shared import Ends, Provenance

LOWER_IS_BETTER = ("error", "absolute_error")
"""The measures of `Quality` that are errors."""


class Repeated(Part, frozen=True, kw_only=True):
    """One measure over repeats: its mean, limits of the mean, and limits of one more training."""

    mean: float
    low: float
    high: float
    next_low: float
    """One more training lies between `next_low` and `next_high`, with the result's confidence."""
    next_high: float
    values: tuple[float, ...]


class PartQuality(Part, frozen=True, kw_only=True):
    """A class's or a group's own: the share of its test records that is right, or their error."""

    name: str
    records: int
    measure: Repeated


class Quality(Part, frozen=True, kw_only=True):
    """How good the trained models are on the test records; a classification or a regression has its own measures."""

    accuracy: Repeated | None = None
    balanced_accuracy: Repeated | None = None
    auc: Repeated | None = None
    """Area under the ROC curve; of several classes the mean of each against the others."""
    error: Repeated | None = None
    """Root of the mean squared error, in the label's unit."""
    absolute_error: Repeated | None = None
    explained: Repeated | None = None
    """Share of the label's variance that is explained (R squared)."""
    classes: tuple[PartQuality, ...] = ()
    groups: tuple[PartQuality, ...] = ()


class TunedSetting(Part, frozen=True, kw_only=True):
    """How a training was set; `batch` is the expected one."""

    clip: float | None
    """The clipping norm; None where nothing is clipped."""
    learning_rate: float
    batch: float
    epochs: int
    rate: float
    steps: int


class FrontierLevel(Part, frozen=True, kw_only=True):
    """One promise, the noise that keeps it, and how good the model is that is left."""

    kind: Literal["none", "central", "local"]
    bound: float | None
    """What is promised; None without a promise."""
    noise: float | None = None
    """The noise multiplier that `choose` finds for it."""
    value_epsilon: float | None = None
    """Of local noise: epsilon for each value of a record."""
    epsilon: float | None = None
    """At the result's delta; None where it is infinite."""
    strength: StrengthName | None = None
    """Of the protection, on the scale of every answer; None where it was not judged."""
    setting: TunedSetting | None = None
    quality: Quality
    lost: Ends | None = None
    """What it loses against no promise in the tuned measure: limits of the mean, repeat by repeat."""
    diverged: int = 0
    """Trainings that ended without a usable model; they count as the answer without a model."""


class EncodedTold(Part, frozen=True, kw_only=True):
    """How a column became features; `looks_at_data` marks statistics that no noise protects."""

    name: str
    kind: str
    by: str
    features: int
    looks_at_data: bool


class Knee(Part, frozen=True, kw_only=True):
    """Where the frontier bends, in numbers and in sentences made of them."""

    useless_up_to: float | None
    """The weakest promise at which the model is not shown to beat the answer without a model; None: there is none."""
    cheap_from: float | None
    """From this promise on, most of what the model gains is kept; None where at no promise it is."""
    sentences: tuple[str, ...]


class FrontierInput(Part, frozen=True, kw_only=True):
    """All that the figures depend on."""

    data: str
    data_sha256: tuple[str, ...]
    label: str | None = None
    group: str | None = None
    task: Literal["classification", "regression"]
    promise: str
    bounds: tuple[float, ...]
    delta: float
    prior: float | None = None
    fpr: float | None = None
    baseline: float | None = None
    local: bool = False
    model: str
    optimizer: str
    metric: str
    tuning: Literal["uncovered", "public", "accounted"]
    public_data: str | None = None
    mean_runs: float | None = None
    """Of accounted tuning: runs on average, of which the best is kept."""
    settings: int
    """How many were searched."""
    repeats: int
    seed: int
    adjacency: str
    records: int
    validation_records: int
    test_records: int
    features: int
    classes: tuple[str, ...] = ()
    torch: str | None = None


class FrontierResult(Result, frozen=True, kw_only=True, tag="deniable/frontier/1"):
    """Every promise's row, the lines without noise and without a model, the knee and what the figures rest on."""

    kind: ClassVar[str] = "frontier"
    input: FrontierInput
    confidence: float
    without_model: Quality
    """Of the best answer that looks at no record: the most common class, or the mean."""
    usual_answer: str
    """That answer."""
    none: FrontierLevel
    levels: tuple[FrontierLevel, ...]
    """From the strictest promise on."""
    local: tuple[FrontierLevel, ...] = ()
    knee: Knee
    tuning_text: str
    """Whether the choice of settings is covered by the promise."""
    encoding: tuple[EncodedTold, ...] = ()
    cautions: tuple[str, ...] = ()
    provenance: Provenance | None = None
    seconds: float | None = None
    finished: str | None = None

    @property
    def metric(self) -> str:
        """The measure that was tuned for, by its name in `Quality`."""
        return self.input.metric

    def tuned_measure(self, quality: Quality) -> Repeated:
        """The tuned measure of a row."""
        found: Repeated = getattr(quality, self.input.metric)
        return found
