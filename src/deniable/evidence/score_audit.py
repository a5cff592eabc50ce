"""`deniable verdict`: somebody else's scores against a claim, as one JSON document.

The verdict rests on one estimator with one rule, named before the scores are seen (`method`, `rule`); by default the
exact trade-off curve where the noise is named, else the (epsilon, delta) region. The others are shown beside it.

How the rows arose decides which estimators are sound: many independent trainings, one row each, or the canaries of one
training, whose scores share its randomness (`rows_from`). Every bound carries the assumption that it makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, isfinite

import numpy as np

from deniable.evidence.anytime.sequential import hockey_sticks
from deniable.evidence.anytime.watch import WatchEvidence, expected_trials, observer_tally, shift_of
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import INDEPENDENT, Bound
from deniable.evidence.estimators import credible_bound
from deniable.evidence.examined_claim import ONE_RUN, WITHOUT_THRESHOLD, Asked, with_assumption
from deniable.evidence.intervals import (
    advantage_interval,
    auc_interval,
    average_precision_interval,
    best_advantage_interval,
    tpr_interval,
)
from deniable.evidence.limits import Interval
from deniable.evidence.thresholds import Fixed
from deniable.evidence.verdict import RowCount, Verdict, judge_bound, trials_to_decide
from deniable.formatting import as_given, at_most
from deniable.mechanisms import ApproximateDP
from deniable.results.shared import Watched
from deniable.results.verdict_result import (
    Achieved,
    BoundsOnEpsilon,
    ExactScores,
    TprLimits,
    VerdictClaim,
    VerdictInput,
    VerdictResult,
)
from deniable.scores import privacy_loss

FPRS = (0.001, 0.01, 0.1)
"""At which false positive rates the true positive rate is shown."""
NOT_STATED = (
    "This takes each row for a training of its own, which was not stated: say --rows-from trainings, or, "
    "for the canaries of one training, --rows-from one-run."
)
ONE_LOOK = "The verdict may be asked again after every new row; all other limits are for one look."


def judge_scores(scores: Scores, asked: Asked) -> VerdictResult:
    """The document: claimed and measured side by side, and the verdict of the primary estimator."""
    evidence = asked.watch(scores) if asked.primary == "watch" else None
    bounds = list(_bounds(scores, asked, evidence))
    claim, primary = asked.claim, bounds[0]
    achieved = _measure_attack(scores, asked, bounds)
    unit = "canaries" if asked.of_one_run else "trials"
    rows = RowCount(len(scores), unit, lambda: _rows_needed(asked), lambda: _provable(scores, asked))
    found = judge_bound(primary, claim, rows)
    if found.name == "consistent" and (refuted := "".join(_too_little_noise(asked, ROUNDED_CLAIM))):
        found = Verdict("cannot judge", f"The claim contradicts itself. {refuted} The scores contradict neither.")
    if scores.values.size == 1:
        found = replace(found, text=f"All {len(scores):,} scores are equal: they say nothing about membership.")
    elif found.name == "cannot judge" and achieved.auc.high < 0.5:
        found = replace(found, text=WRONG_WAY)
    if asked.rows_from is None and not asked.of_one_run:
        found = replace(found, text=f"{found.text} {NOT_STATED}")
    watched = None if evidence is None else evidence.result(primary, "row")
    return VerdictResult(
        input=_input(asked),
        claimed=VerdictClaim(
            epsilon=claim.bound, delta=claim.delta, noise=None if asked.training is None else asked.training.noise
        ),
        exact=_exact(asked),
        measured=achieved,
        verdict=found.name,
        closeness=found.closeness,
        verdict_text=found.text,
        notes=tuple(_notes(achieved, asked, found, watched)),
        watched=watched,
    )


def _bounds(scores: Scores, asked: Asked, evidence: WatchEvidence | None) -> Iterator[Bound]:
    """The primary estimator's first, then those that go with rows of this kind."""
    yield asked.estimator(asked.primary)(scores) if evidence is None else asked.watched_bound(scores, evidence)
    if asked.of_one_run:
        yield from (asked.estimator(name)(scores) for name in ("one-run", "one-run-gaussian") if name != asked.primary)
        return
    shown = ["region", "advantage", "gaussian", *(["mechanism"] if asked.training is not None else []), "separation"]
    for name in shown:
        if name != asked.primary:
            yield asked.estimator(name)(scores)
    if isinstance(asked.thresholds, Fixed):
        bound = credible_bound(scores.errors(asked.thresholds.threshold), asked.delta, asked.confidence)
        yield with_assumption(INDEPENDENT, bound)


def _rows_needed(asked: Asked) -> int | None:
    """How many rows would let an observer as strong as the claim allows be told from guessing."""
    threshold = asked.thresholds.threshold if isinstance(asked.thresholds, Fixed) else 0.0
    if asked.primary == "watch":
        nothing = hockey_sticks(privacy_loss(ApproximateDP(0.0, asked.delta)))
        return expected_trials(observer_tally(shift_of(asked.largest_advantage)), nothing, 1 - asked.confidence)
    if asked.primary in (*WITHOUT_THRESHOLD, *ONE_RUN):
        # the Gaussian reading of right guesses tells as well as the training's own curve, and sooner
        whole_scores = asked.estimator("one-run-gaussian" if asked.primary == "one-run-mechanism" else asked.primary)
        return trials_to_decide(lambda ideal: whole_scores(ideal).value > 0, asked.largest_advantage, threshold)
    # the Gaussian reading of the same limits tells as well as the mechanism's, and sooner; no upper limit is needed
    strength = asked.reading("gaussian" if asked.primary == "mechanism" else asked.primary).strength

    def shows(ideal: Scores) -> bool:
        return asked.thresholds.limits(ideal, strength, asked.confidence).lower(strength) > 0

    return trials_to_decide(shows, asked.largest_advantage, threshold)


def _provable(scores: Scores, asked: Asked) -> float:
    """The bound that as many scores give if all members score above all others; infinite if numbers set no limit.

    Few different scores, as 0 and 1, need fewer thresholds, and show more.
    """
    if asked.primary in ("separation", "likelihood", "watch"):
        return inf
    cut = asked.thresholds.threshold if isinstance(asked.thresholds, Fixed) else 0.0
    members, others = (np.arange(1.0, ordered.size + 1) for ordered in scores.ascending)
    ranked, tied = Scores(cut + members, cut - others), Scores(cut + np.ones_like(members), cut - np.ones_like(others))
    return max(asked.estimator(asked.primary)(perfect).value for perfect in (ranked, tied))


def _measure_attack(scores: Scores, asked: Asked, bounds: list[Bound]) -> Achieved:
    """What the attack achieved; the first bound is the one on which the verdict rests."""
    rates = ((fpr, tpr_interval(scores, fpr, asked.confidence)) for fpr in FPRS)
    shown = tuple(bound.result() for bound in bounds)
    return Achieved(
        trials=len(scores),
        members=scores.members.size,
        others=scores.others.size,
        advantage=_advantage(scores, asked).result(),
        auc=auc_interval(scores, asked.confidence).result(),
        average_precision=average_precision_interval(scores, asked.confidence).result(),
        tpr=tuple(TprLimits(fpr=fpr, value=float(r.value), low=float(r.low), high=float(r.high)) for fpr, r in rates),
        epsilon=BoundsOnEpsilon(lower_bound=shown[0], estimators=shown),
    )


def _advantage(scores: Scores, asked: Asked) -> Interval:
    """At the fixed threshold, or at the best of all."""
    rule = asked.thresholds
    if isinstance(rule, Fixed):
        return advantage_interval(scores.errors(rule.threshold), asked.confidence)
    return best_advantage_interval(scores, rule, asked.confidence)


def _exact(asked: Asked) -> ExactScores | None:
    if asked.training is None:
        return None
    loss = privacy_loss(asked.training.mechanism, asked.training.adjacency)
    epsilon = float(loss.epsilon(asked.delta))
    return ExactScores(epsilon=epsilon if isfinite(epsilon) else None, advantage=float(loss.advantage()))


def _input(asked: Asked) -> VerdictInput:
    training, rule = asked.training, asked.thresholds
    return VerdictInput(
        claimed_epsilon=asked.claim.bound,
        delta=asked.delta,
        noise=None if training is None else training.noise,
        rate=None if training is None else training.rate,
        steps=None if training is None else training.steps,
        adjacency=None if training is None else training.adjacency,
        rows_from="one-run" if asked.of_one_run else asked.rows_from,
        method=asked.primary,
        rule=_rule_name(asked),
        threshold=rule.threshold if isinstance(rule, Fixed) else None,
        confidence=asked.confidence,
    )


def _rule_name(asked: Asked) -> str:
    if asked.primary == "watch":
        return "places among earlier rows"
    return "abstention" if asked.of_one_run else asked.thresholds.name


def _notes(measured: Achieved, asked: Asked, found: Verdict, watched: Watched | None) -> Iterator[str]:
    yield from _too_little_noise(asked)
    if measured.auc.high < 0.5:
        yield WRONG_WAY
    if measured.epsilon.lower_bound.valid:
        yield f"The verdict rests on {asked.primary} alone; the other estimators decide nothing."
    if watched is not None:
        yield f"{watched.text} {ONE_LOOK}"
    if asked.of_one_run:
        yield "The limits of advantage, AUC, average precision and TPR take the canaries for independent."
    if found.name == "consistent":
        yield "Consistent is no proof: a stronger attack may show more."


WRONG_WAY = "Members score lower than others: a score must grow with membership; negate it if it is a loss."
ROUNDED_CLAIM = 0.01
"""By so much a claim may lie below its own noise's epsilon and yet be that, rounded."""


def _too_little_noise(asked: Asked, slack: float = 1e-9) -> Iterator[str]:
    """A claim that its own noise refutes, whatever the scores are."""
    exact = _exact(asked)
    if exact is None or (exact.epsilon is not None and exact.epsilon <= asked.claim.bound * (1 + slack)):
        return
    epsilon = "infinite" if exact.epsilon is None else at_most(exact.epsilon)
    claimed = as_given(asked.claim.bound)
    yield f"Before any score: the exact epsilon of this noise is {epsilon}, more than the {claimed} that is claimed."
