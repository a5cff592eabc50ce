"""What the final weights of a training are: those after the last step, made of yielded ones, or something else."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.recomputation import RecomputedSteps, Recomputer, flat
from deniable.examination.thinned import thin, thin_steps, thin_vector
from deniable.examination.trainer import WatchedTraining
from deniable.examination.updates.optimizer_rules import RULES, OptimizerRule
from deniable.examination.updates.update_rules import (
    TOLERANCE,
    ULP,
    best_combination,
    is_adaptive,
    is_linear,
    moves_largest,
    yielded_gradients,
)


class Ending(IntEnum):
    """What the final weights are."""

    UNSEEN = 0
    """They were not shown."""
    LAST = 1
    """Those after the last step."""
    EARLIER = 2
    """Those of one of the steps."""
    MIXED = 3
    """An average, or another combination of the weights that were yielded and those after the last step."""
    CLEAN = 4
    """They hold a gradient of the records that was never yielded with noise."""
    OTHER = 5
    """Nothing that is known."""


ALIKE = 1e-5
"""Weights that differ by this share of their length are the same."""


MOST_MIXED = 3
"""Of so many numbers one may be fitted: the others tell whether a combination is right."""
HOLDS = 0.5
"""The cosine from which on what is left of a move is a clean gradient; far above chance from 60 weights on."""


class FinalWeights(NamedTuple):
    """What the final weights are, and how they are made."""

    kind: Ending
    step: int = -1
    """The step whose weights they are, counted from 0."""
    shares: Tensor | None = None
    """(steps,) the share of each move of the weights that a combination holds."""
    linear: bool = False
    """Whether every move, the last one too, is known to be one of SGD with momentum and weight decay."""


def find_ending(
    recomputer: Recomputer, seen: WatchedTraining, found: RecomputedSteps, members: NDArray[np.int64]
) -> FinalWeights:
    """What the final weights of one training are."""
    if seen.final is None:
        return FinalWeights(Ending.UNSEEN)
    full, seen, found = seen, thin(seen), thin_steps(found, seen)
    final = torch.cat([f.flatten() for f in seen.final or []]).double()
    weights, applied = flat(seen.weights).double(), flat(seen.applied).double()
    near = (weights - final).norm(dim=1) <= ALIKE * final.norm()
    if bool(near.any()):
        stood_still = bool(near[-1]) and not bool(applied[-1].any())  # a last gradient of zeros, and no momentum
        return FinalWeights(Ending.LAST) if stood_still else FinalWeights(Ending.EARLIER, int(near.nonzero()[-1]))
    if (linear := _follows_rule(seen)) is not None:
        return FinalWeights(Ending.LAST, linear=linear)
    if (shares := _shares(final, seen)) is not None:
        return FinalWeights(Ending.MIXED, shares=shares)
    left = _left_over(final, weights, applied)
    clean = [found.clean[-1].double(), found.whole[-1].double(), found.everybody[-1].double()]
    places = [w[-1] for w in full.weights], full.final or []
    clean += [thin_vector(recomputer.mean_gradient(place, members).double(), full) for place in places]
    clean += [(found.clean.double() / torch.tensor(seen.divisors).double().unsqueeze(1)).sum(0)]
    cosines = [abs(float(_outside(g, weights, applied) @ left)) / max(float(left.norm()), 1e-300) for g in clean]
    whole = len(weights) <= weights.shape[1] // MOST_MIXED  # else older weights may be in it, and gradients in them
    return FinalWeights(Ending.CLEAN if whole and max(cosines) > HOLDS else Ending.OTHER)


def _shares(final: Tensor, seen: WatchedTraining) -> Tensor | None:
    """The share of each move in the final weights, if these and the last step's own move make them; else None."""
    weights = flat(seen.weights).double()
    start = max(0, len(weights) - weights.shape[1] // MOST_MIXED)
    moves, before = weights[start + 1 :] - weights[start:-1], final - weights[-1]
    gradients = torch.cat(yielded_gradients(seen), 1)
    rules: tuple[OptimizerRule, ...] = (lambda gradient, _: gradient, *RULES)
    if len(weights) >= weights.shape[1]:
        return None
    last = torch.stack([rule(gradients, weights)[-1] for rule in rules])
    known = torch.cat([weights[start : start + 1], moves])
    most = float(TOLERANCE * before.norm() + ULP * final.norm())
    for at in (_least_left(final, known, last) <= 1.01 * most).nonzero().flatten():
        span = torch.cat([known, last[at].unsqueeze(0)])
        parts = best_combination(final, span.T)
        if (final - parts @ span).norm() <= most:
            return torch.cat([parts[0].expand(start + 1), parts[1:-1]])
    return None


def _least_left(final: Tensor, known: Tensor, last: Tensor) -> Tensor:
    """For each of the last vectors: how long what no combination of it and the known ones makes of the final one is."""
    basis = torch.linalg.qr(known.T).Q
    final, last = final - basis @ (basis.T @ final), last - (last @ basis) @ basis.T
    lengths = last.norm(dim=1, keepdim=True)
    directions = torch.where(lengths > 0, last / lengths.clamp(min=1e-300), 0.0)
    left: Tensor = (final - (directions @ final).unsqueeze(1) * directions).norm(dim=1)
    return left


def _follows_rule(seen: WatchedTraining) -> bool | None:
    """Whether the rule of all moves, the last one too, is linear (`is_linear`); None if they follow no known one."""
    longer = [torch.cat([w, f.unsqueeze(0)]) for w, f in zip(seen.weights, seen.final or [], strict=True)]
    moves = [(w[1:] - w[:-1]).flatten(1).double() for w in longer]
    applied, weights = yielded_gradients(seen), [w.flatten(1).double() for w in longer]
    if is_linear(moves, applied, weights):
        return True
    return False if is_adaptive(moves, applied, weights) or moves_largest(moves, applied, weights) else None


def _yielded_basis(weights: Tensor, applied: Tensor) -> Tensor:
    """An orthonormal basis (columns) of what was yielded, of the last steps if the weights are few."""
    kept = max(1, weights.shape[1] // 8)
    span = torch.cat([weights[-kept:], applied[-kept:]])
    _, sizes, basis = torch.linalg.svd(span / span.norm(dim=1, keepdim=True).clamp(min=1e-300), full_matrices=False)
    kept_directions: Tensor = basis[sizes > 1e-9]
    return kept_directions.T


def _left_over(final: Tensor, weights: Tensor, applied: Tensor) -> Tensor:
    """What the yielded weights and gradients do not explain of the final weights."""
    basis = _yielded_basis(weights, applied)
    return final - basis @ (basis.T @ final)


def _outside(gradient: Tensor, weights: Tensor, applied: Tensor) -> Tensor:
    """The direction of a gradient outside of what was yielded."""
    basis = _yielded_basis(weights, applied)
    left = gradient - basis @ (basis.T @ gradient)
    return left / left.norm().clamp(min=1e-300) if left.norm() > 1e-6 * gradient.norm() else torch.zeros_like(left)
