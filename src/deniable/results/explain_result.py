"""What `explain` and `choose` found."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType

from deniable.mechanisms import Adjacency
from deniable.results.base import Part, Result
from deniable.results.shared import ReleaseScores

StrengthName = Literal["strong", "moderate", "weak", "hardly any"]


class AnswerInput(Part, frozen=True, kw_only=True):
    """What was described and asked, by the names of the options; what was not given is None or empty."""

    epsilon: float | None = None
    """Of a guarantee, or promised."""
    tvd: float | None = None
    gdp: float | None = None
    noise: float | None = None
    laplace: float | None = None
    randomized_response: float | None = None
    release: str | None = None
    """In Python, a release that no options describe."""
    mechanism: str | None = None
    """What `choose` finds the noise of, where it is not a training: laplace or randomized-response."""
    belief: float | None = None
    advantage: float | None = None
    accuracy: float | None = None
    tpr: float | None = None
    ppv: float | None = None
    success: float | None = None
    records: int | None = None
    batch: int | None = None
    epochs: int | None = None
    rate: float | None = None
    steps: int | None = None
    sampling: str | None = None
    """How batches are drawn, where that is not by Poisson."""
    steps_per_epoch: int | None = None
    cap: int | None = None
    bands: int | None = None
    with_replacement: bool | None = None
    records_per_person: int | None = None
    """Where neighbours differ in more than one record."""
    categories: int | None = None
    features: int | None = None
    delta: float
    prior: float
    fpr: tuple[float, ...] = ()
    baseline: tuple[float, ...] = ()
    adjacency: Adjacency

    @property
    def is_response(self) -> bool:
        """Whether answers are randomized before they leave a person's device."""
        return self.randomized_response is not None or self.mechanism == "randomized-response"

    @property
    def is_laplace(self) -> bool:
        """Whether Laplace noise is added."""
        return self.laplace is not None or self.mechanism == "laplace"

    @property
    def is_training(self) -> bool:
        """Whether Gaussian noise is added in several steps, or to a sample."""
        sampled = self.sampling is not None or (self.rate is not None and self.rate < 1)
        return sampled or (self.steps or 1) > 1

    @property
    def is_bare(self) -> bool:
        """Whether `explain` was told of a guarantee alone."""
        return not (self.epsilon is self.tvd is self.gdp is None)


class Analysis(Part, frozen=True, kw_only=True):
    """What a weaker analysis says, or why it says nothing; of its score, None stands for infinite or unknown."""

    epsilon: float | UnsetType | None = UNSET
    advantage: float | UnsetType | None = UNSET
    belief: float | UnsetType = UNSET
    why: str | None = None
    proved: bool | None = None
    source: str | None = None


class Demand(Part, frozen=True, kw_only=True):
    """The noise that an analysis demands for the promise, or why it cannot tell."""

    name: str
    noise: float | None
    why: str | None = None
    proved: bool | None = None


class NumericalErrors(Part, frozen=True, kw_only=True):
    """The truth lies between value - error and value; None where no error is known."""

    epsilon: float | None
    advantage: float | None
    accuracy: float | None
    belief: float | None


class ExpectedQuality(Part, frozen=True, kw_only=True):
    """How good a model is to be expected at the promise, as a frontier measured it."""

    metric: str
    low: float
    high: float
    """One more training with the frontier's settings lies between `low` and `high`, with the frontier's confidence."""
    data: str
    text: str


class ExpectedPiece(Part, frozen=True, kw_only=True):
    """What is to be expected at every bound of a promise above `above` and up to `up_to` (None: any).

    Where both are equal it is that bound alone.
    """

    above: float
    up_to: float | None
    expected: ExpectedQuality


class Strength(Part, frozen=True, kw_only=True):
    """How strong the protection is on a scale of four names, the figures that decide it, and why."""

    name: StrengthName
    belief: float
    """Of one who starts at 50 %."""
    baseline: float
    success: float
    """The largest success of an attack that succeeds with probability `baseline` without the release."""
    reasons: tuple[str, ...]
    advice: str
    """What follows for those who decide."""


class ExplainResult(Result, frozen=True, kw_only=True, tag="deniable/explain/2"):
    """What a release means for a person."""

    kind: ClassVar[str] = "explain"
    input: AnswerInput
    scores: ReleaseScores
    errors: NumericalErrors
    method: str
    bounds: dict[str, Analysis]
    """By the name of the analysis; theorem_2 is the belief that textbooks read off epsilon and delta."""
    notes: tuple[str, ...]
    strength: Strength | None = None
    """None in documents of older versions."""


class ChooseResult(ExplainResult, frozen=True, kw_only=True, tag="deniable/choose/2"):
    """The least noise that keeps a promise, what it means for a person, and what weaker analyses demand."""

    kind: ClassVar[str] = "choose"
    noise: float
    noise_error: float | None = None
    """At most so much more than necessary; None in documents before 0.2.0."""
    methods: tuple[Demand, ...]
    expected: ExpectedQuality | None = None
    """Where a frontier was named."""


class RocCurve(Part, frozen=True, kw_only=True):
    """The best attack's true positive rate over its false positive rate."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


class BeliefShares(Part, frozen=True, kw_only=True):
    """Shares of releases by how sure the observer ends, between the edges, the person being inside or outside."""

    edges: tuple[float, ...]
    inside: tuple[float, ...]
    outside: tuple[float, ...]


class CurvesResult(Part, frozen=True, kw_only=True, tag_field="schema", tag="deniable/curves/1"):
    """The best attack's ROC curve, and shares of releases by the observer's belief, the person inside or outside."""

    input: AnswerInput
    roc: RocCurve
    beliefs: BeliefShares
