"""Whether the weights moved by the gradient that the training says it applied.

SGD with momentum, Nesterov's or not, weight decay and any schedule moves every layer within the span of five vectors.
Adam and its kin are replayed (`optimizer_rules`). A training that follows none of these may be right all the same and
is not judged, unless its weights move by the clean gradient, or not at all by the noise.
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from deniable.examination.recomputation import RecomputedSteps
from deniable.examination.thinned import thin, thin_steps
from deniable.examination.trainer import WatchedTraining
from deniable.examination.updates.optimizer_rules import RULES, USUAL_RULES, OptimizerRule
from deniable.tradeoff import rank_correlation

TOLERANCE = 0.02
"""A rule fits if this share of a layer's move, at most, is left over."""
ULP = 2.0**-22
"""float32 weights: two roundings."""
SCALED = 2
"""Numbers of a layer from which on a multiple of its own is told, by all steps together."""
RANKED, IN_ORDER = 12, 0.95
"""Numbers of a layer from which on their order is told, and the rank correlation of numbers in one order."""
BLOCK_STEPS = 32
"""Steps that are compared at once."""
SCREENED = 3
"""The step on which every rule is tried; those that fit are tried on all."""


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


def followed_rule(seen: WatchedTraining, found: RecomputedSteps, linear: bool = False) -> Rule:
    """The rule that all steps of one training follow; `linear` where `is_linear` is known of its moves."""
    seen, found = thin(seen), thin_steps(found, seen)
    moves = [(w[1:] - w[:-1]).flatten(1).double() for w in seen.weights]
    if len(seen) < 2 or all(bool((move == 0).all()) for move in moves):
        return Rule.STILL
    if linear:
        return Rule.LINEAR
    sizes = [move.shape[1] for move in moves]
    applied = yielded_gradients(seen)
    clean = [c / _divisors(seen) for c in torch.split(found.clean.double(), sizes, 1)]
    weights = [w.flatten(1).double() for w in seen.weights]
    if is_linear(moves, applied, weights):
        return Rule.LINEAR
    if is_adaptive(moves, applied, weights) or moves_largest(moves, applied, weights):
        return Rule.ADAPTIVE
    with_clean = is_linear(moves, applied, weights, clean) or _scaled_by(moves, applied, clean)
    if with_clean or is_adaptive(moves, clean, weights):
        return Rule.CLEAN
    return Rule.UNKNOWN if _follows(torch.cat(moves, 1), found.residual.double()) else Rule.OTHER


def yielded_gradients(seen: WatchedTraining) -> list[Tensor]:
    """What moves the weights, (steps, numbers) of each layer: the noisy sums as they were yielded, divided."""
    return [s.flatten(1).double() / _divisors(seen) for s in seen.applied]


def _divisors(seen: WatchedTraining) -> Tensor:
    return torch.tensor(seen.divisors).double().unsqueeze(1)


def is_linear(
    moves: list[Tensor], applied: list[Tensor], weights: list[Tensor], clean: list[Tensor] | None = None
) -> bool:
    """Whether each move lies in the span of gradient, weights, and the last move, gradient and weights."""

    def span(layer: int, now: slice) -> Tensor:
        before = slice(now.start - 1, now.stop - 1)
        gradient, weight, move = applied[layer], weights[layer], moves[layer]
        vectors = [weight[now], gradient[now]]
        vectors += [weight[before], gradient[before], move[before]] if now.start else []
        true = [] if clean is None else [clean[layer][at] for at in ((before, now) if now.start else (now,))]
        return torch.stack(vectors + true, 2)

    return all(
        _fits(
            [move[now] for move in moves], [span(layer, now) for layer in range(len(moves))], [w[now] for w in weights]
        )
        for now in _blocks(len(moves[0]))
    )


def _blocks(steps: int) -> list[slice]:
    """The first step, which has none before it, and the others, so many at once."""
    starts = [0, *range(1, steps, BLOCK_STEPS)]
    return [slice(start, min(end, steps)) for start, end in zip(starts, [*starts[1:], steps], strict=True)]


def _scaled_by(moves: list[Tensor], applied: list[Tensor], clean: list[Tensor]) -> bool:
    """Whether the first move scales the noisy gradient, number by number, by the size of the clean one.

    So do Adam, RMSprop and Adagrad whose second moment is taken from clean gradients, whatever their constants: the
    factors are in the order of the clean numbers, and by far less in that of the noisy ones.
    """
    found = []
    for move, noisy, true in zip(moves, applied, clean, strict=True):
        there = (noisy[0] != 0) & (true[0] != 0) & (move[0] != 0)
        if int(there.sum()) >= RANKED:
            factors = (move[0] / noisy[0]).abs()[there].numpy()
            orders = [abs(rank_correlation(factors, v[0].abs()[there].numpy()) or 0.0) for v in (true, noisy)]
            found.append(orders[0] > IN_ORDER and 1 - orders[0] < 0.1 * (1 - orders[1]))
    return bool(found) and all(found)


def moves_largest(moves: list[Tensor], applied: list[Tensor], weights: list[Tensor]) -> bool:
    """Whether only the largest numbers of the gradients move the weights (compressed after the noise)."""
    for t in range(len(moves[0])):
        moved, sizes = torch.cat([m[t] != 0 for m in moves]), torch.cat([g[t].abs() for g in applied])
        if bool(moved.all()) or not bool(moved.any()) or float(sizes[moved].min()) < float(sizes[~moved].max()):
            return False
    return _along(moves, [g * (m != 0) for g, m in zip(applied, moves, strict=True)], weights)


def _along(moves: list[Tensor], towards: list[Tensor], weights: list[Tensor]) -> bool:
    """Whether each move is a multiple of a direction, and of the weights."""
    spans = [torch.stack([w[: len(d)], d], 2) for w, d in zip(weights, towards, strict=True)]
    return all(
        _fits([move[now] for move in moves], [span[now] for span in spans], [w[now] for w in weights])
        for now in _blocks(len(moves[0]))
    )


def is_adaptive(moves: list[Tensor], applied: list[Tensor], weights: list[Tensor]) -> bool:
    """Whether the moves are those of one of `RULES`, each step at a learning rate and a weight decay of its own."""

    return any(
        _along(moves, [rule(g, w) for g, w in zip(applied, weights, strict=True)], weights)
        for rules in (USUAL_RULES, RULES[len(USUAL_RULES) :])
        for rule in _rules_of_an_early_step(rules, moves, applied, weights)
    )


def _rules_of_an_early_step(
    rules: tuple[OptimizerRule, ...], moves: list[Tensor], applied: list[Tensor], weights: list[Tensor]
) -> list[OptimizerRule]:
    """Those that an early step of the largest layer follows: most rules are sorted out by that, all at once."""
    large, step = max(range(len(moves)), key=lambda layer: moves[layer].shape[1]), min(SCREENED, len(moves[0])) - 1
    gradients, before = applied[large][: step + 1], weights[large][: step + 1]
    towards = torch.stack([rule(gradients, before)[step] for rule in rules])
    move, weight = moves[large][step], weights[large][step]
    span = torch.stack([towards, weight.expand_as(towards)], 2)
    left = move - (span @ best_combination(move, span).unsqueeze(2)).squeeze(2)
    fits = left.norm(dim=1) <= TOLERANCE * move.norm() + ULP * weight.norm()
    return [rule for rule, one in zip(rules, fits.tolist(), strict=True) if one]


def _fits(moves: list[Tensor], spans: list[Tensor], weights: list[Tensor]) -> bool:
    """Whether every step moves each layer by one combination of its vectors, of which the first and third are weights.

    Of each layer: moves and weights (steps, numbers), spans (steps, numbers, vectors). Large layers may have
    combinations of their own. A layer too small for that must follow the one of all layers together, or of a large
    layer: without the weights (no decay on biases) or another multiple of it, at will.
    """
    found = [best_combination(torch.cat(moves, 1), torch.cat(spans, 1))]
    large = [span.shape[1] >= 4 * span.shape[2] for span in spans]
    found += [best_combination(m, span) for m, span, own in zip(moves, spans, large, strict=True) if own]
    bare = torch.tensor([0.0 if place in (0, 2) else 1.0 for place in range(spans[0].shape[2])]).double()
    every = torch.stack([*found, *(one * bare for one in found)], 2)  # (steps, vectors, combinations)
    return all(
        bool(_is_left(move, span @ every, weight).any(1).all())
        for move, span, weight in zip(moves, spans, weights, strict=True)
    )


def _is_left(move: Tensor, towards: Tensor, weight: Tensor) -> Tensor:
    """(steps, combinations) whether a move is a vector, or a multiple of it if it is long enough to tell."""
    most = (TOLERANCE * move.norm(dim=1) + ULP * weight.norm(dim=1)).unsqueeze(1)
    move = move.unsqueeze(2)
    fits: Tensor = (move - towards).norm(dim=1) <= most
    if move.shape[1] < SCALED:
        return fits
    scale = (towards * move).sum(1, keepdim=True) / towards.square().sum(1, keepdim=True).clamp(min=1e-300)
    return torch.logical_or(fits, (move - scale * towards).norm(dim=1) <= most)


def best_combination(move: Tensor, span: Tensor) -> Tensor:
    """The coefficients that leave least of a move, (..., vectors) for a span (..., numbers, vectors).

    Nearly parallel vectors share theirs.
    """
    lengths = span.norm(dim=-2, keepdim=True).clamp(min=1e-300)
    unit = span / lengths
    values, vectors = torch.linalg.eigh(unit.mT @ unit)
    kept = torch.where(values > 1e-10, 1 / values.clamp(min=1e-10), 0.0)
    along = vectors.mT @ (unit.mT @ move.unsqueeze(-1))
    coefficients: Tensor = (vectors @ (kept.unsqueeze(-1) * along)).squeeze(-1) / lengths.squeeze(-2)
    return coefficients


def _follows(moves: Tensor, residual: Tensor) -> bool:
    """Whether the moves have a component along the noise, beyond four standard errors."""
    noise = residual[: len(moves)]
    cosines = (moves * noise).sum(1) / (moves.norm(dim=1) * noise.norm(dim=1)).clamp(min=1e-300)
    return bool(-cosines.sum() * moves.shape[1] ** 0.5 > 4 * len(moves) ** 0.5)
