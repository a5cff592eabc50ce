"""Whether the weights moved by the gradient that the training says it applied.

SGD with momentum, Nesterov's or not, weight decay and any schedule moves every layer within the span of five vectors.
Adam, RMSprop and Adagrad are replayed with their usual constants. A training that follows none of these may be right
all the same and is not judged, unless its weights move by the clean gradient, or not at all by the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum

import torch
from torch import Tensor

from deniable.audit.recomputed import Recomputed
from deniable.audit.trainer import Seen

__all__ = ["Rule", "followed_rule"]

TOLERANCE = 0.02
"""A rule fits if this share of a layer's move, at most, is left over."""
ULP = 2.0**-22
"""float32 weights: two roundings."""


class Rule(IntEnum):
    """What the weights do."""

    UNKNOWN = 0
    """Nothing that is known, but they do follow the noise."""
    LINEAR = 1
    """SGD, momentum, weight decay."""
    ADAPTIVE = 2
    """Adam, RMSprop or Adagrad."""
    CLEAN = 3
    """They move by the gradient without noise, or with less of it."""
    OTHER = 4
    """They do not follow the gradient's noise at all."""
    STILL = 5
    """One step, or none of them moves."""


def followed_rule(seen: Seen, found: Recomputed) -> Rule:
    """The rule that all steps of one training follow."""
    moves = [(w[1:] - w[:-1]).flatten(1).double() for w in seen.weights]
    if len(seen) < 2 or all(bool((move == 0).all()) for move in moves):
        return Rule.STILL
    sizes = [move.shape[1] for move in moves]
    applied = [s.flatten(1).double() for s in seen.sums]
    clean = list(torch.split(found.clean.double(), sizes, 1))
    weights = [w.flatten(1).double() for w in seen.weights]
    if _all(_linear(moves, applied, weights)):
        return Rule.LINEAR
    if any(_all(_adaptive(moves, applied, weights, rule)) for rule in ADAPTIVE):
        return Rule.ADAPTIVE
    with_clean = _all(_linear(moves, applied, weights, clean))
    if with_clean or any(_all(_adaptive(moves, clean, weights, rule)) for rule in ADAPTIVE):
        return Rule.CLEAN
    return Rule.UNKNOWN if _follows(torch.cat(moves, 1), found.residual.double()) else Rule.OTHER


def _all(fits: Iterator[bool]) -> bool:
    return all(fits)


def _linear(
    moves: list[Tensor], applied: list[Tensor], weights: list[Tensor], clean: list[Tensor] | None = None
) -> Iterator[bool]:
    """Whether each layer's move lies in the span of gradient, weights, and the last move, gradient and weights."""
    for layer, (move, gradient, weight) in enumerate(zip(moves, applied, weights, strict=True)):
        for t in range(len(move)):
            span = [gradient[t], weight[t]]
            span += [move[t - 1], gradient[t - 1], weight[t - 1]] if t else []
            span += [clean[layer][i] for i in {t, max(0, t - 1)}] if clean is not None else []
            if len(move[t]) >= 4 * len(span):
                yield _fits(move[t], torch.stack(span, 1), weight[t])


def _adam(gradient: Tensor) -> Tensor:
    return _average(gradient, 0.9) / (_average(gradient.square(), 0.999).sqrt() + 1e-8)


def _rmsprop(gradient: Tensor) -> Tensor:
    return gradient / (_average(gradient.square(), 0.99, corrected=False).sqrt() + 1e-8)


def _adagrad(gradient: Tensor) -> Tensor:
    return gradient / (gradient.square().cumsum(0).sqrt() + 1e-10)


ADAPTIVE: tuple[Callable[[Tensor], Tensor], ...] = (_adam, _rmsprop, _adagrad)


def _average(values: Tensor, decay: float, corrected: bool = True) -> Tensor:
    running, rows = torch.zeros_like(values[0]), []
    for step, row in enumerate(values, start=1):
        running = decay * running + (1 - decay) * row
        rows.append(running / (1 - decay**step) if corrected else running)
    return torch.stack(rows)


def _adaptive(
    moves: list[Tensor], applied: list[Tensor], weights: list[Tensor], rule: Callable[[Tensor], Tensor]
) -> Iterator[bool]:
    for move, gradient, weight in zip(moves, applied, weights, strict=True):
        towards = rule(gradient)
        for t in range(len(move)):
            if len(move[t]) >= 8:
                yield _fits(move[t], torch.stack([towards[t], weight[t]], 1), weight[t])


def _fits(move: Tensor, span: Tensor, weight: Tensor) -> bool:
    span = span / span.norm(dim=0).clamp(min=1e-300)
    values, vectors = torch.linalg.eigh(span.T @ span)
    kept = vectors[:, values > 1e-10] / values[values > 1e-10].sqrt()
    left = move - span @ (kept @ (kept.T @ (span.T @ move)))
    return bool(left.norm() <= TOLERANCE * move.norm() + ULP * weight.norm())


def _follows(moves: Tensor, residual: Tensor) -> bool:
    """Whether the moves have a component along the noise, beyond four standard errors."""
    noise = residual[: len(moves)]
    cosines = (moves * noise).sum(1) / (moves.norm(dim=1) * noise.norm(dim=1)).clamp(min=1e-300)
    return bool(-cosines.sum() * moves.shape[1] ** 0.5 > 4 * len(moves) ** 0.5)
