"""A claim about epsilon and how scores are to examine it: all that is settled before the scores are seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from deniable.bounds.risk_bounds import kairouz_advantage
from deniable.checks import one_of, probability
from deniable.evidence.anytime.watch import WatchEvidence
from deniable.evidence.anytime.watched_rows import claimed_loss, order_assumption, watch_rows
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import INDEPENDENT, Assumption, Bound
from deniable.evidence.estimators import (
    AdvantageBound,
    Estimator,
    GaussianCurve,
    MechanismCurve,
    Region,
    estimate,
)
from deniable.evidence.likelihood import likelihood, separation
from deniable.evidence.one_run import one_run, one_run_gaussian, withdraw_if_refuted
from deniable.evidence.one_run_curves import one_run_mechanism, order_statistics
from deniable.evidence.thresholds import RULES, Bonferroni, Fixed, ThresholdRule
from deniable.mechanisms import Training
from deniable.promises import Epsilon
from deniable.scores import privacy_loss

METHODS = (
    *("region", "gaussian", "mechanism", "separation", "likelihood", "advantage", "watch"),
    *("one-run", "one-run-gaussian", "one-run-mechanism", "order-statistics"),
)
"""Estimators that a verdict may rest on."""
ONE_RUN = ("one-run", "one-run-gaussian", "one-run-mechanism", "order-statistics")
"""Those of them that are sound for the canaries of one training; the others take a training for each row."""
OF_TRAINING: dict[str, Callable[[Scores, MechanismCurve, float], Bound]] = {
    "one-run-mechanism": one_run_mechanism,
    "order-statistics": order_statistics,
}
"""Those of one run that take the curve of the claimed training."""
ORIGINS = ("trainings", "one-run")


@dataclass(frozen=True)
class Asked:
    """How a claim is to be examined: all that must be settled before the scores are seen."""

    claim: Epsilon
    training: Training | None = None
    """The training that is claimed, if its noise is known."""
    method: str | None = None
    rule: ThresholdRule | None = None
    confidence: float = 0.95
    rows_from: str | None = None
    """trainings or one-run; where it is not stated, one-run methods imply the latter and others assume the former."""
    shown: tuple[Assumption, ...] = ()
    """What is known beside the scores of what the primary estimator assumes."""

    def __post_init__(self) -> None:
        probability("confidence", self.confidence, open_ends=True)
        if self.method is not None:
            one_of("method", self.method, METHODS)
        if self.rows_from is not None:
            one_of("rows_from", self.rows_from, ORIGINS)
        if self.rows_from == "one-run" and self.method not in (None, *ONE_RUN):
            raise ValueError(
                f"method {self.method!r} takes rows of independent trainings; for the canaries of one training use "
                f"{' or '.join(ONE_RUN)}"
            )
        if self.method in ("mechanism", *OF_TRAINING) and self.training is None:
            raise ValueError(
                f"method {self.method!r} needs the claimed noise, and rate and steps if there are more than one"
            )

    @property
    def primary(self) -> str:
        """The estimator that the verdict rests on."""
        if self.method is not None:
            return self.method
        if self.rows_from == "one-run":
            return "one-run" if self.training is None else _curve_method(self.training)
        return "mechanism" if self.training is not None else "region"

    @property
    def of_one_run(self) -> bool:
        """Whether the rows are taken for the canaries of one training."""
        return self.primary in ONE_RUN

    @property
    def thresholds(self) -> ThresholdRule:
        return self.rule or Bonferroni()

    @property
    def delta(self) -> float:
        return self.claim.delta

    @property
    def largest_advantage(self) -> float:
        """Of the training, where it is named; else the largest under the guarantee."""
        if self.training is None:
            return kairouz_advantage(self.claim.bound, self.delta)
        return float(privacy_loss(self.training.mechanism, self.training.adjacency).advantage())

    def estimator(self, name: str) -> Callable[[Scores], Bound]:
        """Scores to a bound with all that it assumes, by the estimator's name."""
        if name in OF_TRAINING and self.training is not None:
            curve = MechanismCurve.of(self.training, self.delta)
            return lambda scores: self._with_shown(OF_TRAINING[name](scores, curve, self.confidence))
        if name in ONE_RUN:
            return lambda scores: self._with_shown(WITHOUT_THRESHOLD[name](scores, self.delta, self.confidence))
        if name == "watch":
            return lambda scores: self.watched_bound(scores, self.watch(scores))
        found = self._of_trainings(name)
        return lambda scores: with_assumption(INDEPENDENT, found(scores))

    def _with_shown(self, bound: Bound) -> Bound:
        return withdraw_if_refuted(replace(bound, assumptions=(*bound.assumptions, *self.shown)))

    def watch(self, scores: Scores) -> WatchEvidence:
        """What a watch over the rows, in their order, shows against the claim."""
        return watch_rows(scores, claimed_loss(self.claim, self.training), 1 - self.confidence)

    def watched_bound(self, scores: Scores, evidence: WatchEvidence) -> Bound:
        """The bound on epsilon that holds after every row, with all that it assumes."""
        training = self.training
        found = evidence.bare_bound(self.delta) if training is None else evidence.mechanism_bound(training, self.delta)
        return with_assumption(INDEPENDENT, with_assumption(order_assumption(scores), found))

    def _of_trainings(self, name: str) -> Callable[[Scores], Bound]:
        if name in WITHOUT_THRESHOLD:
            return lambda scores: WITHOUT_THRESHOLD[name](scores, self.delta, self.confidence)
        reading = self.reading(name)
        return lambda scores: estimate(reading, scores, self.thresholds, self.confidence)

    def reading(self, name: str) -> Estimator:
        """The estimator of this name that reads limits on the error rates."""
        if name == "mechanism" and self.training is not None:
            return MechanismCurve.of(self.training, self.delta)
        readings: dict[str, Callable[[float], Estimator]] = {
            "region": Region,
            "gaussian": GaussianCurve,
            "advantage": AdvantageBound,
        }
        return readings[name](self.delta)


WITHOUT_THRESHOLD: dict[str, Callable[[Scores, float, float], Bound]] = {
    "separation": separation,
    "likelihood": likelihood,
    "one-run": one_run,
    "one-run-gaussian": one_run_gaussian,
}
"""Estimators that need no threshold."""


def _curve_method(training: Training) -> str:
    """The estimator that reads one run by the training's own curve and holds for every mechanism with that curve."""
    return "one-run-gaussian" if training.rate == 1 else "one-run-mechanism"


def with_assumption(assumption: Assumption, bound: Bound) -> Bound:
    """A bound that rests on one more assumption, told first."""
    return replace(bound, assumptions=(assumption, *bound.assumptions))


def rule_named(name: str | None, threshold: float | None) -> ThresholdRule | None:
    """The rule of this name; a threshold names the fixed one."""
    if name is not None:
        one_of("rule", name, tuple(RULES))
    if threshold is not None:
        if name not in (None, "fixed"):
            raise ValueError(f"a threshold goes with rule 'fixed', got {name!r}")
        return Fixed(threshold)
    return None if name is None else RULES[name]()
