"""Learning rates and weight decay, read off the moves of the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.recomputation import flat
from deniable.examination.thinned import thin
from deniable.examination.trainer import WatchedTraining
from deniable.examination.updates.optimizer_rules import USUAL_RULES, OptimizerRule, velocity
from deniable.examination.updates.update_rules import ULP

T = TypeVar("T")

FEWEST = 4
"""Numbers of a layer from which on a rate and a decay of its own are told."""


def next_weights(seen: WatchedTraining) -> list[Tensor] | None:
    """Where the last step leads, if the steps before are plain gradient descent; a single step tells no rate."""
    rates = _WeightMoves.of(seen).rates()
    if not len(rates) or not np.isfinite(rates[-1]):
        return None
    scale = float(rates[-1]) / seen.divisors[-1]
    return [w[-1] - scale * s[-1] for w, s in zip(seen.weights, seen.applied, strict=True)]


class FirstMove(NamedTuple):
    """Of one layer: weights change by -rate x direction - decay x weights; the decay of other layers is not told."""

    rate: float
    decay: float
    error: float
    """Of the rate, relative, by rounding and by what the rule leaves; nan where the layer does not move so."""
    decay_error: float
    """Likewise: of weights that move by many times their size it is larger than that of the rate."""


def first_moves(*trainings: WatchedTraining) -> list[list[FirstMove]]:
    """Of each training and layer, along the gradient or a usual rule's direction, the same in all trainings.

    The rule is that of most layers, and of all large ones. Rules that differ by a factor alone in the first step (Adam
    and RMSprop) must not be mistaken for rates that differ.
    """
    if any(len(seen) < 2 for seen in trainings):
        return []
    every = ([_moves_by_rule(seen, rule) for seen in trainings] for rule in (None, *USUAL_RULES))
    best = _best_rule(every, lambda found: [np.isfinite(one.error) for moves in found for one in moves])
    large = [w[0].numel() >= 4 * FEWEST for w in trainings[0].weights]
    known = all(np.isfinite(one.error) for moves in best for one, told in zip(moves, large, strict=True) if told)
    return best if known else []


def _best_rule(by_rule: Iterable[T], known: Callable[[T], Sequence[bool]]) -> T:
    """What the first rule gives by which most is known; rules after one by which all is known are not tried."""
    found: list[T] = []
    for one in by_rule:
        found.append(one)
        if all(known(one)):
            return one
    return max(found, key=lambda one: sum(known(one)))


def _moves_by_rule(seen: WatchedTraining, rule: OptimizerRule | None) -> list[FirstMove]:
    weights = [w[:2].flatten(1).double() for w in seen.weights]
    gradients = [s[:1].flatten(1).double() / seen.divisors[0] for s in seen.applied]
    towards = [(g if rule is None else rule(g, w))[0] for g, w in zip(gradients, weights, strict=True)]
    return [_first_move(w[1] - w[0], d, w[0]) for w, d in zip(weights, towards, strict=True)]


def _first_move(move: Tensor, direction: Tensor, weight: Tensor) -> FirstMove:
    span = torch.stack([direction, weight], 1)
    lengths = span.norm(dim=0).clamp(min=1e-300)
    apart = 1 - float((span[:, 0] @ span[:, 1] / lengths.prod()).square())
    least = float(move.norm())
    if len(move) < FEWEST or apart < 1e-3 or least == 0:
        return FirstMove(*[float("nan")] * 4)
    parts = torch.linalg.lstsq(span / lengths, move.unsqueeze(1)).solution.flatten() / lengths
    rounding, left = ULP * float(weight.norm()), float((move - span @ parts).norm())
    error = (rounding + left) / least / apart**0.5 if left <= 1e-3 * least + rounding else float("nan")
    decay_error = (rounding + left + ULP * least) / float(lengths[1]) / apart**0.5
    return FirstMove(-float(parts[0]), -float(parts[1]), error, decay_error)


class _WeightMoves(NamedTuple):
    """Of a training: weights before each move (the final weights give the last, if shown), moves, yielded gradients."""

    weights: Tensor
    moves: Tensor
    gradients: Tensor

    @classmethod
    def of(cls, seen: WatchedTraining) -> _WeightMoves:
        seen = thin(seen)
        weights = flat(seen.weights).double()
        if seen.final is not None:
            weights = torch.cat([weights, torch.cat([f.flatten() for f in seen.final]).double().unsqueeze(0)])
        gradients = flat(seen.applied).double() / torch.tensor(seen.divisors).double().unsqueeze(1)
        return cls(weights, weights[1:] - weights[:-1], gradients)

    def rates(self, rule: OptimizerRule | None = None) -> NDArray[np.float64]:
        """Of each move: weights change by -rate x gradient, or what a rule makes of it; nan where they do not."""
        weights, moves, gradients = self
        gradients = (gradients if rule is None else rule(gradients, weights))[: len(moves)]
        rates = -(moves * gradients).sum(1) / gradients.square().sum(1).clamp(min=1e-300)
        left = (moves + rates.unsqueeze(1) * gradients).norm(dim=1)
        rounding = ULP * weights[:-1].norm(dim=1)
        plain = (left <= 1e-3 * moves.norm(dim=1) + rounding) & (rates != 0)
        return np.where(plain.numpy(), rates.numpy(), np.nan)


def _momentum(gradients: Tensor, _: Tensor, decay: float) -> Tensor:
    return velocity(gradients, decay)


def rates_of_any_rule(*trainings: WatchedTraining) -> list[NDArray[np.float64]]:
    """(steps,) of each training every move's learning rate, by the rule that fits most moves; nan where it does not.

    The rule is the same in all trainings.
    """
    moves = [_WeightMoves.of(seen) for seen in trainings]
    momenta = [partial(_momentum, decay=decay) for decay in (0.5, 0.8, 0.9, 0.95, 0.99)]
    found = ([one.rates(rule) for one in moves] for rule in (None, *USUAL_RULES, *momenta))
    best = _best_rule(found, lambda every: [known for rates in every for known in np.isfinite(rates)])
    return [
        np.concatenate([rates, np.full(len(seen) - len(rates), np.nan)])
        for rates, seen in zip(best, trainings, strict=True)
    ]
