"""Learning rates and weight decay, read off the moves of the weights."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.optimizer_rules import USUAL_RULES, OptimizerRule, velocity
from deniable.examination.recomputation import flat
from deniable.examination.trainer import WatchedTraining
from deniable.examination.update_rules import ULP

__all__ = ["first_decay", "learning_rates", "next_weights", "rates_of_any_rule"]


def next_weights(seen: WatchedTraining) -> list[Tensor] | None:
    """Where the last step leads, if the steps before are plain gradient descent; a single step tells no rate."""
    rates = learning_rates(seen)
    if not len(rates) or not np.isfinite(rates[-1]):
        return None
    scale = float(rates[-1]) / seen.divisors[-1]
    return [w[-1] - scale * s[-1] for w, s in zip(seen.weights, seen.applied, strict=True)]


def first_decay(seen: WatchedTraining) -> float:
    """The share of the weights that the first move takes away beside the gradient's; nan if it is no such move."""
    if len(seen) < 2:
        return float("nan")
    weights = flat([w[:2] for w in seen.weights]).double()
    move, span = weights[1] - weights[0], torch.stack([flat([s[:1] for s in seen.applied])[0].double(), weights[0]], 1)
    scaled = span / span.norm(dim=0).clamp(min=1e-300)
    parts = torch.linalg.lstsq(scaled, move.unsqueeze(1)).solution
    left = (move - (scaled @ parts).flatten()).norm()
    known = left <= 1e-3 * move.norm() + ULP * weights[0].norm()
    return -float(parts[1] / span[:, 1].norm().clamp(min=1e-300)) if known else float("nan")


def learning_rates(seen: WatchedTraining, rule: OptimizerRule | None = None) -> NDArray[np.float64]:
    """Of each move, in units of the yielded gradient: weights change by -rate x gradient; nan where they do not.

    `rule` makes another direction of the gradients (see `optimizer_rules`). The final weights give the last move, if
    they were shown.
    """
    weights = flat(seen.weights).double()
    if seen.final is not None:
        weights = torch.cat([weights, torch.cat([f.flatten() for f in seen.final]).double().unsqueeze(0)])
    moves = weights[1:] - weights[:-1]
    gradients = flat(seen.applied).double() / torch.tensor(seen.divisors).double().unsqueeze(1)
    gradients = (gradients if rule is None else rule(gradients, weights))[: len(moves)]
    rates = -(moves * gradients).sum(1) / gradients.square().sum(1).clamp(min=1e-300)
    left = (moves + rates.unsqueeze(1) * gradients).norm(dim=1)
    rounding = ULP * weights[:-1].norm(dim=1)
    plain = (left <= 1e-3 * moves.norm(dim=1) + rounding) & (rates != 0)
    return np.where(plain.numpy(), rates.numpy(), np.nan)


def _momentum(gradients: Tensor, _: Tensor, decay: float) -> Tensor:
    return velocity(gradients, decay)


def rates_of_any_rule(seen: WatchedTraining) -> NDArray[np.float64]:
    """(steps,) the learning rate of each move by the rule that fits most moves; nan where it does not."""
    momenta = [partial(_momentum, decay=decay) for decay in (0.5, 0.8, 0.9, 0.95, 0.99)]
    found = [learning_rates(seen, rule) for rule in (None, *USUAL_RULES, *momenta)]
    best = max(found, key=lambda rates: int(np.isfinite(rates).sum()))
    return np.concatenate([best, np.full(len(seen) - len(best), np.nan)])
