"""Who is exposed among the members: by LiRA's likelihoods of the model, and exactly, by an observer of every step."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deniable.adversaries.shadow_recipes import fresh_copy
from deniable.campaigns.exposure import exposure
from deniable.comparison.attack_plan import AttackPlan
from deniable.mechanisms import Adjacency
from deniable.results.attack_result import MemberExposure
from deniable.tradeoff import rank_correlation
from deniable.training.settings import TrainingSettings

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
