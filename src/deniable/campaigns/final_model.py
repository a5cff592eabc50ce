"""What hiding the steps buys: observers of the final model alone, beside the bound for an observer of every step.

The bound for all steps holds for the final model, too. What such observers reach is measured in trainings of their own
(`deniable.training.final_models`); what linear losses would give away is a heuristic (`linear_loss`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite, sqrt

import numpy as np

from deniable.campaigns.campaign import Plan, Progress
from deniable.campaigns.linear_loss import LinearLoss
from deniable.engines import Campaign, Engine, play_missing
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import Bound
from deniable.evidence.estimators import MechanismCurve, estimate
from deniable.evidence.intervals import best_advantage_interval
from deniable.evidence.likelihood import separation
from deniable.evidence.thresholds import Bonferroni
from deniable.mechanisms import Training
from deniable.results.audit_result import FinalModel, FinalObserver, LinearLosses
from deniable.results.shared import MeasuredLimits
from deniable.store import CampaignStore
from deniable.training.final_models import FinalScores, craft_gradient, crafted_block, loss_block, worst_weights

Block = Callable[[int], FinalScores]
OBSERVERS = ("crafted", "worst-weights", "usual-weights")


def observe_final(
    plan: Plan,
    engine: Engine,
    confidence: float = 0.95,
    progress: Progress | None = None,
    store: CampaignStore | None = None,
) -> FinalModel:
    """Play `plan.trials` trainings for each observer of the final model, and say what they show.

    Those that `store`, the store of the plan's trials, holds are not played again; the others are kept there.
    """
    campaign = final_campaign(plan)
    tell = None if progress is None else partial(_tell, progress, len(campaign.numbers))
    played = play_missing(campaign, engine, store, tell=tell)
    each = (played[start : start + plan.blocks] for start in range(0, len(played), plan.blocks))
    found = {name: _join(blocks, plan.trials) for name, blocks in zip(OBSERVERS, each, strict=True)}
    return judge_final(found, Training.of(plan.training), plan.delta, confidence)


def refuse_fitted_noise(plan: Plan) -> None:
    """Local sensitivity is refused: its noise would be fitted to gradients that nobody crafted."""
    if not plan.training.differentially_private:
        raise ValueError("final_model needs noise by the global sensitivity, got sensitivity 'local'")


def count_all_blocks(plan: Plan) -> int:
    """Of the trials and of all observers of the final model."""
    return (1 + len(OBSERVERS)) * plan.blocks


def final_campaign(plan: Plan) -> Campaign[FinalScores]:
    """The observers' blocks, one observer after another; their numbers follow those of the plan's trials."""
    refuse_fitted_noise(plan)
    game = plan.training, plan.neighbours
    observers: tuple[Block, ...] = (
        partial(crafted_block, *game, craft_gradient(*game, plan.seed), plan.seed),
        partial(loss_block, *game, worst_weights(*game, plan.seed), plan.seed),
        partial(loss_block, *game, None, plan.seed),
    )
    work = partial(_play_observer, observers, plan.blocks)
    return Campaign(plan.settings, count_all_blocks(plan), FinalScores, work, first=plan.blocks)


def _play_observer(observers: Sequence[Block], blocks: int, number: int) -> FinalScores:
    place, block = divmod(number - blocks, blocks)
    return observers[place](block)


def _tell(progress: Progress, total: int, done: int) -> None:
    progress(done, total)


def _join(blocks: list[FinalScores], trials: int) -> Scores:
    score, on_d = (np.concatenate([getattr(b, name) for b in blocks])[:trials] for name in ("score", "trained_on_d"))
    if on_d.all() or not on_d.any():
        raise ValueError(f"trials must be enough for both data sets to be trained on, got {trials}")
    return Scores.of(score, on_d)


def judge_final(found: dict[str, Scores], training: Training, delta: float, confidence: float) -> FinalModel:
    """What each observer's scores show of a training that claims this noise.

    The bounds on epsilon hold together for all observers with `confidence`; so do their advantages, and their mu.
    """
    loss, each = LinearLoss(training), 1 - (1 - confidence) / len(found)
    epsilon = loss.epsilon(delta)
    return FinalModel(
        confidence=confidence,
        delta=delta,
        linear=LinearLosses(advantage=loss.advantage(), epsilon=epsilon if isfinite(epsilon) else None),
        mu=sqrt(training.steps) / training.noise if training.rate == 1 else None,
        observers=tuple(_observer(name, scores, training, delta, each) for name, scores in found.items()),
    )


def _observer(name: str, scores: Scores, training: Training, delta: float, confidence: float) -> FinalObserver:
    rule = Bonferroni()
    curve = estimate(MechanismCurve.of(training, delta), scores, rule, confidence)
    apart = separation(scores, delta, confidence)
    return FinalObserver(
        name=name,
        trials=len(scores),
        advantage=best_advantage_interval(scores, rule, confidence).result(),
        epsilon_lower_bound=curve.result(),
        mu=_mu(scores, apart) if training.rate == 1 and apart.valid else None,
    )


def _mu(scores: Scores, apart: Bound) -> MeasuredLimits:
    """The distance of the two classes' means in standard deviations; limits of a Gaussian shift."""
    spread = sqrt((scores.members.var(ddof=1) + scores.others.var(ddof=1)) / 2)
    value = float((scores.members.mean() - scores.others.mean()) / spread)
    return MeasuredLimits(value=value, low=float(apart.mu or 0.0), high=float(apart.most_mu or 0.0))
