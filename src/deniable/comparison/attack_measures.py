"""What an attack achieves on the tested records, each figure with its limits; what is proven; and who is exposed."""

from __future__ import annotations

from functools import partial
from math import isfinite

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deniable.adversaries import Scored, ShadowTraining
from deniable.adversaries.shadow_recipes import fresh_copy
from deniable.campaigns.exposure import exposure
from deniable.comparison.attack_plan import AttackPlan
from deniable.comparison.repeat_measures import Shift, errors, lower_bound, void
from deniable.evidence.attack_scores import Scores
from deniable.evidence.intervals import advantage_interval, auc_interval, tpr_interval
from deniable.mechanisms import Adjacency
from deniable.results.attack_result import (
    AttackInput,
    AttackRow,
    ExposedMember,
    MemberExposure,
    ProvenLimits,
    RocPoints,
)
from deniable.results.shared import TprAt
from deniable.results.verdict_result import TprLimits
from deniable.scores import privacy_loss
from deniable.tradeoff import rank_correlation, rates
from deniable.training.settings import TrainingSettings

FPRS = (0.001, 0.01)
CURVE_POINTS = 300
EXPOSED_RECORDS = 10


def measure_attack(name: str, scored: Scored, given: AttackInput, shifted: Shift | None) -> AttackRow:
    """The row of one attack; every limit holds by itself with the given confidence."""
    scores, sure = Scores(scored.members, scored.non_members), given.confidence
    limits = ((fpr, tpr_interval(scores, fpr, sure)) for fpr in FPRS)
    return AttackRow(
        name=name,
        auc=auc_interval(scores, sure).result(),
        advantage=advantage_interval(errors([scored]), sure).result(),
        tpr=tuple(TprLimits(fpr=fpr, value=float(r.value), low=float(r.low), high=float(r.high)) for fpr, r in limits),
        epsilon_lower_bound=void(lower_bound([scored], given.delta, sure).result(), shifted),
        roc=_curve(scored),
    )


def _curve(scored: Scored) -> RocPoints:
    """At most `CURVE_POINTS` points, close together where few are accused."""
    found = rates(scored.scores, scored.member)
    last = len(found.fpr) - 1
    chosen = np.unique(np.r_[0, np.geomspace(1, max(1, last), CURVE_POINTS).astype(int).clip(max=last), last])
    return RocPoints(fpr=tuple(found.fpr[chosen].tolist()), tpr=tuple(found.tpr[chosen].tolist()))


def most_exposed(
    scores: NDArray[np.float64], members: int, people: MemberExposure | None = None
) -> tuple[ExposedMember, ...]:
    """The members with the largest log-likelihood ratio of membership, as beliefs with a prior of one half."""
    first = np.argsort(-scores[:members], kind="stable")[:EXPOSED_RECORDS].tolist()
    exact = [None if people is None else people.observer[place] for place in first]
    return tuple(
        ExposedMember(number=place, belief=float(expit(scores[place])), observer=observer)
        for place, observer in zip(first, exact, strict=True)
    )


def proven_limits(training: ShadowTraining | None, records: int, delta: float) -> ProvenLimits | None:
    """What the exact privacy loss of the target's training allows an attacker who sees every step; None without noise.

    It holds if the target was trained as `training` says, on `records` records: Poisson batches, clipping, noise.
    """
    if training is None or training.epochs is None or not training.noise:
        return None
    mechanism = training.settings("unnamed", training.epochs).mechanism(records)
    assert mechanism is not None
    loss = privacy_loss(mechanism, Adjacency.ADD_REMOVE)
    epsilon = float(loss.epsilon(delta))
    return ProvenLimits(
        epsilon=epsilon if isfinite(epsilon) else None,
        delta=delta,
        advantage=min(1.0, float(loss.advantage())),
        tpr=tuple(TprAt(fpr=fpr, tpr=min(1.0, float(loss.tpr(fpr)))) for fpr in FPRS),
    )


BELIEF_DIGITS = 6


def check_exposure(plan: AttackPlan) -> None:
    """Refuse what has no exact exposure, before anything is trained."""
    if plan.training is None or not plan.training.noise:
        raise ValueError(
            "exposure needs the training's noise and epochs: without noise an observer of every step is certain of "
            "every record"
        )
    if not plan.rules:
        raise ValueError(f"exposure needs shadow models, attack {plan.attack} has none: name strongest, all or lira")


def expose_members(plan: AttackPlan, likelihoods: NDArray[np.float64], delta: float) -> MemberExposure:
    """Both beliefs in every member, from 50 %.

    The exact one is that of `deniable.campaigns.exposure`: one training with the plan's recipe, and what each record
    changes in it. `likelihoods` are LiRA's, of members and non-members.
    """
    training, members = plan.training, plan.members
    assert training is not None
    assert training.epochs is not None
    target = training.settings(partial(fresh_copy, plan.model), training.epochs)
    settings = TrainingSettings(
        target.model,
        noise=target.noise,
        steps=target.steps(len(members)),
        clip=target.clip,
        learning_rate=target.learning_rate,
        optimizer=target.optimizer,
        rate=target.rate(len(members)),
        adjacency=Adjacency.ADD_REMOVE,
        loss="squared-error" if members.regression else "cross-entropy",
    )
    found = exposure(settings, members, seed=plan.seed, delta=delta)
    lira = expit(likelihoods[: len(members)])
    return MemberExposure(
        method=found.method,
        delta=delta,
        lira=_told(lira),
        observer=_told(found.belief),
        rank_correlation=rank_correlation(likelihoods[: len(members)], found.ranks()),
        surer=int(np.sum(lira > found.belief)),
    )


def _told(beliefs: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.round(beliefs, BELIEF_DIGITS).tolist())
