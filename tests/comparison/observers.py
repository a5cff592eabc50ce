"""A_DI against A_MI on the very same trainings (Bernau 2021, Section 6.3, Figures 7d-9d)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from deniable.adversaries import LossThreshold
from deniable.campaigns.campaign import Ground, Plan
from deniable.comparison.repeat_measures import Spread, advantages, spread_of
from deniable.comparison.trained import Weights, members_of, non_members_of, trained_model
from deniable.data import Dataset, load
from deniable.evidence.attack_scores import Errors
from deniable.evidence.intervals import advantage_interval
from deniable.evidence.limits import Interval
from deniable.mechanisms import Adjacency
from deniable.scores import privacy_loss
from deniable.training import run_block

__all__ = ["Observers", "observers"]


@dataclass(frozen=True)
class Observers:
    """The advantages of the two observers at one epsilon, and the exact bound on both."""

    epsilon: float
    bound: float
    """Total variation of the release with the noise really added: no observer's advantage is larger."""
    identifiability: Interval
    """A_DI: tells D from D', seeing every step."""
    membership: Spread
    """A_MI (Yeom): tells members from non-members by the trained model's loss; one value a training."""


def observers(
    data: str | Path | Callable[[], Any],
    epsilons: Iterable[float],
    *,
    trials: int = 500,
    attacked: int = 50,
    records: int = 100,
    confidence: float = 0.95,
    seed: int = 0,
    **settings: Any,
) -> list[Observers]:
    """Play A_DI in `trials` trainings for each epsilon, and A_MI against the models of the first `attacked` of them.

    `settings` are those of `Ground.of`; by default the noise is scaled to the local sensitivity, as
    in Bernau 2021, an instrument without a privacy guarantee (erratum 8), so that A_DI reaches its bound.
    """
    known = {"sensitivity": "local", "delta": 1 / records, "adjacency": Adjacency.REPLACE, **settings}
    outside = non_members_of(load(data), records, seed)
    grounds = (Ground.of(data, {"epsilon": e}, records=records, seed=seed, **known) for e in epsilons)
    return [_observed(Plan.on(ground, trials), outside, attacked, confidence) for ground in grounds]


def _observed(plan: Plan, outside: Dataset, attacked: int, confidence: float) -> Observers:
    steps = plan.training.steps
    longer = replace(plan.training, steps=steps + 1)  # the weights before one more step are the trained model's
    members = members_of(plan, outside)
    ratios, on_d, found = [], [], list[float]()
    for block in range(plan.blocks):
        kept = Weights(steps)
        played = run_block(longer, plan.neighbours, plan.seed, block, kept)
        ratios.append(played.log_likelihood_ratio[:, steps - 1])
        on_d.append(played.trained_on_d)
        for weights in kept.at(steps)[: max(0, attacked - len(found))]:
            model = trained_model(plan, weights)
            found.append(advantages([LossThreshold()(model, members, outside, plan.seed + len(found))]).mean)
    errors = Errors.at(np.concatenate(ratios)[: plan.trials], np.concatenate(on_d)[: plan.trials], 0.0)
    bound = float(privacy_loss(plan.mechanism, plan.training.adjacency).advantage())
    return Observers(plan.promise.bound, bound, advantage_interval(errors, confidence), spread_of(found))
