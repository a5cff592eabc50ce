"""Whether the weights moved by the gradient that the training says it applied.

SGD with momentum, Nesterov's or not, weight decay and any schedule moves every layer within the span of five vectors.
Adam, RMSprop and Adagrad are replayed with their usual constants. A training that follows none of these may be right
all the same and is not judged, unless its weights move by the clean gradient, or not at all by the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.audit.recomputed import Recomputed, Recomputer, flat
from deniable.audit.trainer import Seen

__all__ = [
    "Ended",
    "Ending",
    "Rule",
    "ending",
    "first_decay",
    "followed_rule",
    "learning_rates",
    "next_weights",
    "rates_of_any_rule",
]

TOLERANCE = 0.02
"""A rule fits if this share of a layer's move, at most, is left over."""
ULP = 2.0**-22
"""float32 weights: two roundings."""
SCALED = 4
"""Numbers of a layer from which on a multiple of its own is told."""


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
    applied = [s.flatten(1).double() for s in seen.applied]
    clean = list(torch.split(found.clean.double(), sizes, 1))
    weights = [w.flatten(1).double() for w in seen.weights]
    if _linear(moves, applied, weights):
        return Rule.LINEAR
    if _adaptive(moves, applied, weights) or _largest(moves, applied, weights):
        return Rule.ADAPTIVE
    with_clean = _linear(moves, applied, weights, clean) or _scaled_by(moves, applied, weights, clean)
    if with_clean or _adaptive(moves, clean, weights):
        return Rule.CLEAN
    return Rule.UNKNOWN if _follows(torch.cat(moves, 1), found.residual.double()) else Rule.OTHER


def _linear(
    moves: list[Tensor], applied: list[Tensor], weights: list[Tensor], clean: list[Tensor] | None = None
) -> bool:
    """Whether each move lies in the span of gradient, weights, and the last move, gradient and weights."""

    def span(layer: int, t: int) -> list[Tensor]:
        gradient, weight, move = applied[layer], weights[layer], moves[layer]
        vectors = [weight[t], gradient[t]]
        vectors += [weight[t - 1], gradient[t - 1], move[t - 1]] if t else []
        return vectors + ([clean[layer][i] for i in sorted({t, max(0, t - 1)})] if clean is not None else [])

    return all(
        _fits([move[t] for move in moves], [span(layer, t) for layer in range(len(moves))], [w[t] for w in weights])
        for t in range(len(moves[0]))
    )


def _adam(gradient: Tensor) -> Tensor:
    return _average(gradient, 0.9) / (_average(gradient.square(), 0.999).sqrt() + 1e-8)


def _rmsprop(gradient: Tensor) -> Tensor:
    return gradient / (_average(gradient.square(), 0.99, corrected=False).sqrt() + 1e-8)


def _adagrad(gradient: Tensor) -> Tensor:
    return gradient / (gradient.square().cumsum(0).sqrt() + 1e-10)


ADAPTIVE: tuple[Callable[[Tensor], Tensor], ...] = (_adam, _rmsprop, _adagrad, torch.sign)


def _average(values: Tensor, decay: float, corrected: bool = True) -> Tensor:
    running, rows = torch.zeros_like(values[0]), []
    for step, row in enumerate(values, start=1):
        running = decay * running + (1 - decay) * row
        rows.append(running / (1 - decay**step) if corrected else running)
    return torch.stack(rows)


def _scaled_by(moves: list[Tensor], applied: list[Tensor], weights: list[Tensor], clean: list[Tensor]) -> bool:
    """Whether noisy gradients are divided, number by number, by the running size of the clean ones (Adam, RMSprop)."""
    for decay, first in ((0.999, 0.9), (0.99, 0.0)):
        towards = [
            (_average(g, first) if first else g) / (_average(c.square(), decay, corrected=first > 0).sqrt() + 1e-8)
            for g, c in zip(applied, clean, strict=True)
        ]
        if _along(moves, towards, weights):
            return True
    return False


def _largest(moves: list[Tensor], applied: list[Tensor], weights: list[Tensor]) -> bool:
    """Whether only the largest numbers of the gradients move the weights (compressed after the noise)."""
    for t in range(len(moves[0])):
        moved, sizes = torch.cat([m[t] != 0 for m in moves]), torch.cat([g[t].abs() for g in applied])
        if bool(moved.all()) or not bool(moved.any()) or float(sizes[moved].min()) < float(sizes[~moved].max()):
            return False
    return _along(moves, [g * (m != 0) for g, m in zip(applied, moves, strict=True)], weights)


def _along(moves: list[Tensor], towards: list[Tensor], weights: list[Tensor]) -> bool:
    """Whether each move is a multiple of a direction, and of the weights."""
    return all(
        _fits(
            [move[t] for move in moves],
            [[weight[t], direction[t]] for direction, weight in zip(towards, weights, strict=True)],
            [weight[t] for weight in weights],
        )
        for t in range(len(moves[0]))
    )


def _adaptive(moves: list[Tensor], applied: list[Tensor], weights: list[Tensor]) -> bool:
    return any(_along(moves, [rule(gradient) for gradient in applied], weights) for rule in ADAPTIVE)


def _fits(moves: list[Tensor], spans: list[list[Tensor]], weights: list[Tensor]) -> bool:
    """Whether one step moves each layer by one combination of its vectors, of which the first and third are weights.

    Large layers may have combinations of their own. A layer too small for that must follow the one of all layers
    together, or of a large layer: without the weights (no decay on biases) or another multiple of it, at will.
    """
    matrices = [torch.stack(span, 1) for span in spans]
    large = [len(move) >= 4 * matrix.shape[1] for move, matrix in zip(moves, matrices, strict=True)]
    found = [_combination(torch.cat(moves), torch.cat(matrices))]
    own = {i: _combination(moves[i], matrices[i]) for i in range(len(moves)) if large[i]}
    found += own.values()
    bare = torch.tensor([0.0 if place in (0, 2) else 1.0 for place in range(matrices[0].shape[1])]).double()
    found += [one * bare for one in found]
    return all(
        any(_is_left(move, matrix @ one, weight) for one in found)
        for move, matrix, weight in zip(moves, matrices, weights, strict=True)
    )


def _is_left(move: Tensor, towards: Tensor, weight: Tensor) -> bool:
    """Whether a move is a vector, or a multiple of it if it is long enough to tell."""
    most = TOLERANCE * move.norm() + ULP * weight.norm()
    scale = float(towards @ move / (towards @ towards).clamp(min=1e-300)) if len(move) >= SCALED else 1.0
    return bool((move - towards).norm() <= most) or bool((move - scale * towards).norm() <= most)


def _combination(move: Tensor, span: Tensor) -> Tensor:
    """The coefficients that leave least of a move; nearly parallel vectors share theirs."""
    lengths = span.norm(dim=0).clamp(min=1e-300)
    values, vectors = torch.linalg.eigh((span / lengths).T @ (span / lengths))
    kept = vectors[:, values > 1e-10] / values[values > 1e-10].sqrt()
    coefficients: Tensor = kept @ (kept.T @ ((span / lengths).T @ move)) / lengths
    return coefficients


def _follows(moves: Tensor, residual: Tensor) -> bool:
    """Whether the moves have a component along the noise, beyond four standard errors."""
    noise = residual[: len(moves)]
    cosines = (moves * noise).sum(1) / (moves.norm(dim=1) * noise.norm(dim=1)).clamp(min=1e-300)
    return bool(-cosines.sum() * moves.shape[1] ** 0.5 > 4 * len(moves) ** 0.5)


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
HOLDS = 0.5
"""The cosine from which on what is left of a move is a clean gradient; far above chance from 60 weights on."""


class Ended(NamedTuple):
    """What the final weights are, and how they are made."""

    kind: Ending
    step: int = -1
    """The step whose weights they are, counted from 0."""
    shares: Tensor | None = None
    """(steps,) the share of each move of the weights that a combination holds."""


def ending(recomputer: Recomputer, seen: Seen, found: Recomputed, members: NDArray[np.int64]) -> Ended:
    """What the final weights of one training are."""
    if seen.final is None:
        return Ended(Ending.UNSEEN)
    final = torch.cat([f.flatten() for f in seen.final]).double()
    weights, applied = flat(seen.weights).double(), flat(seen.applied).double()
    near = (weights - final).norm(dim=1) <= ALIKE * final.norm()
    if bool(near.any()):
        return Ended(Ending.EARLIER, int(near.nonzero()[-1]))
    if _continued(seen):
        return Ended(Ending.LAST)
    if (shares := _shares(final, seen)) is not None:
        return Ended(Ending.MIXED, shares=shares)
    left = _left_over(final, weights, applied)
    clean = [found.clean[-1].double(), found.whole[-1].double(), found.everybody[-1].double()]
    clean += [_mean_gradient(recomputer, [w[-1] for w in seen.weights], members)]
    clean += [_mean_gradient(recomputer, seen.final, members)]
    cosines = [abs(float(_outside(g, weights, applied) @ left)) / max(float(left.norm()), 1e-300) for g in clean]
    whole = len(weights) <= weights.shape[1] // 8  # else older weights may be in it, and gradients in them
    return Ended(Ending.CLEAN if whole and max(cosines) > HOLDS else Ending.OTHER)


def _shares(final: Tensor, seen: Seen) -> Tensor | None:
    """The share of each move in the final weights, if these and the last step's own move make them; else None."""
    weights = flat(seen.weights).double()
    start = max(0, len(weights) - weights.shape[1] // 8)
    moves, before = weights[start + 1 :] - weights[start:-1], final - weights[-1]
    layers = [s.flatten(1).double() for s in seen.applied]
    rules: tuple[Callable[[Tensor], Tensor], ...] = (lambda gradient: gradient, *ADAPTIVE)
    for rule in rules if len(weights) < weights.shape[1] else ():
        last = torch.cat([rule(gradient)[-1] for gradient in layers])
        span = torch.cat([weights[start : start + 1], moves, last.unsqueeze(0)])
        parts = _combination(final, span.T)
        if (final - parts @ span).norm() <= TOLERANCE * before.norm() + ULP * final.norm():
            return torch.cat([parts[0].expand(start + 1), parts[1:-1]])
    return None


def _continued(seen: Seen) -> bool:
    """Whether the last move follows the rule of those before; after one step, whether it follows any."""
    longer = [torch.cat([w, f.unsqueeze(0)]) for w, f in zip(seen.weights, seen.final or [], strict=True)]
    moves = [(w[1:] - w[:-1]).flatten(1).double() for w in longer]
    applied, weights = [s.flatten(1).double() for s in seen.applied], [w.flatten(1).double() for w in longer]
    return _linear(moves, applied, weights) or _adaptive(moves, applied, weights) or _largest(moves, applied, weights)


def _released(weights: Tensor, applied: Tensor) -> Tensor:
    """An orthonormal basis (columns) of what was yielded, of the last steps if the weights are few."""
    kept = max(1, weights.shape[1] // 8)
    span = torch.cat([weights[-kept:], applied[-kept:]])
    _, sizes, basis = torch.linalg.svd(span / span.norm(dim=1, keepdim=True).clamp(min=1e-300), full_matrices=False)
    kept_directions: Tensor = basis[sizes > 1e-9]
    return kept_directions.T


def _left_over(final: Tensor, weights: Tensor, applied: Tensor) -> Tensor:
    """What the yielded weights and gradients do not explain of the final weights."""
    basis = _released(weights, applied)
    return final - basis @ (basis.T @ final)


def _outside(gradient: Tensor, weights: Tensor, applied: Tensor) -> Tensor:
    """The direction of a gradient outside of what was yielded."""
    basis = _released(weights, applied)
    left = gradient - basis @ (basis.T @ gradient)
    return left / left.norm().clamp(min=1e-300) if left.norm() > 1e-6 * gradient.norm() else torch.zeros_like(left)


def _mean_gradient(recomputer: Recomputer, weights: list[Tensor], members: NDArray[np.int64]) -> Tensor:
    every = recomputer.every([w.unsqueeze(0) for w in weights])
    return torch.cat([g[0, members].mean(0).flatten() for g in every]).double()


def next_weights(seen: Seen) -> list[Tensor] | None:
    """Where the last step leads, if the steps before are plain gradient descent; a single step tells no rate."""
    rates = learning_rates(seen)
    if not len(rates) or not np.isfinite(rates[-1]):
        return None
    scale = float(rates[-1]) / seen.divisors[-1]
    return [w[-1] - scale * s[-1] for w, s in zip(seen.weights, seen.applied, strict=True)]


def first_decay(seen: Seen) -> float:
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


def learning_rates(seen: Seen, rule: Callable[[Tensor], Tensor] | None = None) -> NDArray[np.float64]:
    """Of each move, in units of the yielded gradient: weights change by -rate x gradient; nan where they do not.

    `rule` makes another direction of the gradients (steps, weights). The final weights give the last move, if they were
    shown.
    """
    weights = flat(seen.weights).double()
    if seen.final is not None:
        weights = torch.cat([weights, torch.cat([f.flatten() for f in seen.final]).double().unsqueeze(0)])
    moves = weights[1:] - weights[:-1]
    gradients = flat(seen.applied).double() / torch.tensor(seen.divisors).double().unsqueeze(1)
    gradients = (gradients if rule is None else rule(gradients))[: len(moves)]
    rates = -(moves * gradients).sum(1) / gradients.square().sum(1).clamp(min=1e-300)
    left = (moves + rates.unsqueeze(1) * gradients).norm(dim=1)
    rounding = ULP * weights[:-1].norm(dim=1)
    plain = (left <= 1e-3 * moves.norm(dim=1) + rounding) & (rates != 0)
    return np.where(plain.numpy(), rates.numpy(), np.nan)


def _velocity(gradient: Tensor, decay: float) -> Tensor:
    return _average(gradient, decay, corrected=False) / (1 - decay)


def rates_of_any_rule(seen: Seen) -> NDArray[np.float64]:
    """(steps,) the learning rate of each move by the rule that fits most moves; nan where it does not."""
    momenta = [partial(_velocity, decay=decay) for decay in (0.5, 0.8, 0.9, 0.95, 0.99)]
    found = [learning_rates(seen, rule) for rule in (None, *ADAPTIVE, *momenta)]
    best = max(found, key=lambda rates: int(np.isfinite(rates).sum()))
    return np.concatenate([best, np.full(len(seen) - len(best), np.nan)])
