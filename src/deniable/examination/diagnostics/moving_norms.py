"""A clipping norm, or a divisor of all gradients, that is taken from the records.

Of a norm that follows a count with noise, the noise is judged: a norm that follows count + noise moves by some function
of it. However that function bends, what is left of the moves after a straight line in the count has at least the line's
slope squared times the variance of the noise (Cauchy and Schwarz: Var h(Z) >= E[h'(Z)]^2 Var Z for normal Z). Too
little is left only where the noise is less than claimed.

Twins show one norm for each of them. A clipped sum is linear in the norm C between two lengths of gradients: the sum of
those shorter than C, plus C times the directions of the others. So the two norms that explain the difference of twins
are found exactly, one pair of pieces at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special

from deniable.examination.claim import Adaptive
from deniable.examination.diagnostics.p_values import any_of
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.twins.twin_run import Run, drawn_places
from deniable.examination.twins.twins import Twins

COUNT = "noise of the count"
SLOPE_ERRORS = 7.0
"""Standard errors by which the slope may be overestimated; more has probability 3e-12, which the p-value includes."""
MOST_UNCERTAIN = 0.1
"""A slope with a larger relative error tells nothing about the noise."""
MISSING = 0.01
"""Noise of a smaller share of the claimed one is none."""


class _Line(NamedTuple):
    """A straight line through the moves of the norm: its noise as a share of the claimed one, and the p-value."""

    ratio: float
    p_value: float


def count_noise(evidence: Evidence) -> Diagnosis:
    """The count that the clipping norm follows has as much noise as claimed, or more."""
    clipping = evidence.claim.recipe.clipping
    if not isinstance(clipping, Adaptive):
        return Diagnosis(COUNT, 1.0, "no count is claimed", "none", checked=False)
    expected = f"a standard deviation of {clipping.count_noise:g}"
    lines = [line for line in _lines(evidence, clipping.count_noise) if line is not None]
    if not lines:
        return Diagnosis(COUNT, 1.0, "the norm hardly follows a count", expected, checked=False)
    ratio = min(line.ratio for line in lines)
    has = "has no noise" if ratio < MISSING else f"has {ratio:.3g} x the claimed noise"
    text = f"the count of gradients that the clipping norm follows {has}: add normal noise with {expected} to it"
    return Diagnosis(COUNT, any_of([line.p_value for line in lines]), f"{ratio:.3g} x the claimed one", expected, text)


def _lines(evidence: Evidence, noise: float) -> list[_Line | None]:
    """The logarithm of the norm by the count itself, and by its share of the batch."""
    clips, size = evidence.trials.clip, evidence.trials.batch.sum(2)[:, :-1].astype(float)
    count, move = size * (1 - evidence.trials.clipped[:, :-1]), np.log(clips[:, 1:] / clips[:, :-1])
    ends = (clips[:, 1:] == clips.max()) | (clips[:, 1:] == clips.min())
    free = (~ends if ends.sum() > 2 else np.ones_like(ends)) & (size > 0)  # at a bound the norm follows nothing
    count, size, move = count[free], size[free], move[free]
    ones = np.ones_like(size)
    return [_fit(move, count, [ones, size], noise), _fit(size * move, count, [ones, size], noise)]


def _fit(moves: Array, count: Array, others: list[Array], noise: float) -> _Line | None:
    """None where the slope is not known."""
    basis = np.linalg.qr(np.stack(others, 1))[0] if len(count) else np.empty((0, len(others)))
    count, moves = (values - basis @ (basis.T @ values) for values in (count, moves))
    spread, degrees = float(count @ count), len(count) - len(others) - 1
    uncertain = noise / np.sqrt(max(spread, 1e-300))
    slope = float(count @ moves) / max(spread, 1e-300)
    if degrees < 1 or uncertain > MOST_UNCERTAIN or slope == 0:
        return None
    left = float(np.square(moves - slope * count).sum()) / (slope * noise) ** 2
    beyond = 2 * float(special.ndtr(-SLOPE_ERRORS))
    p_value = float(special.chdtr(degrees, left * (1 + SLOPE_ERRORS * uncertain) ** 2)) + beyond
    return _Line(float(np.sqrt(left / degrees)), min(1.0, p_value))


Array = NDArray[np.float64]
LEFT = 1e-3
"""The share of twins' difference that rounding may leave."""
APART = 1e-3
"""Norms that differ by this share are other ones."""
FAR = 0.15
"""Norms that differ by this share are other ones, also where one of them is interpolated."""
_PARALLEL, _ROUNDING = 1e-6, 1e-8
"""Shares of squares: of a vector beside another below which both are parallel, and what inner products leave unsaid."""
MOST_RECORDS = 50
"""In larger batches no norms are looked for."""
_OWN_SIZES = (
    "the gradients are clipped at the claimed norm times the batch's own size, as if each example's loss were divided "
    "by it before clipping and the sum multiplied again: clip the gradients of the examples' own losses"
)
_ADVICE = "has no noise: fix it beforehand, or follow a noisy count (recipe=Recipe(Adaptive(...)))"


def moving_norm(twins: Twins | None, clipped_only: bool) -> str:
    """What is taken from the records, in words, if it explains the first step of all twins; "" if it does not.

    Twins whose exchanged gradients are shorter than the norm fit many norms. They are left out (`clipped_only`) where a
    fixed norm explains the sums, too.
    """
    pairs = twins.exchanged_pairs if twins is not None and twins.looked and twins.synchronous else []
    pairs = [(one, two) for one, two in pairs if not (clipped_only and _is_whole(one, two))]
    norms = [_two_norms(one, two) for one, two in pairs]
    if text := _if_moving(norms, "the clipping norm"):
        return _OWN_SIZES if _follow_sizes(pairs, norms, twins) else text
    factors = [_two_factors(one, two) for one, two in pairs]
    return _if_moving(factors, "one number by which all gradients are shortened (as by their largest norm)")


def _follow_sizes(pairs: list[tuple[Run, Run]], norms: list[tuple[float, float] | None], twins: Twins | None) -> bool:
    """Whether every norm is the claimed one times the size of its batch."""
    clip = 0.0 if twins is None else twins.clip
    wanted = [(clip * len(_gradients(one)), pair) for (one, _), pair in zip(pairs, norms, strict=True) if pair]
    return bool(wanted) and all(abs(norm - size) <= LEFT * size for size, pair in wanted for norm in pair)


def _if_moving(found: list[tuple[float, float] | None], what: str) -> str:
    """What depends on the records, if it was found in all twins and is not the same in all of them."""
    known = [pair for pair in found if pair is not None]
    if not known or len(known) < len(found) or np.ptp(known) <= APART * np.max(known):
        return ""
    return _sentence(what, float(np.min(known)), float(np.max(known)))


def _sentence(what: str, first: float, second: float) -> str:
    return f"{what} depends on the records ({first:.4g} and {second:.4g} for others) and {_ADVICE}"


def norm_of_other_records(twins: Twins | None, norm: float) -> str:
    """That records of other gradients are clipped to another norm than the one found, in words; "" if they are not."""
    others = twins.on_provoking_records if twins is not None else None
    pairs = others.exchanged_pairs if others is not None else []
    norms = [_two_norms(one, two) for one, two in pairs]
    known = [value for pair in norms if pair is not None for value in pair]
    apart = [value for value in known if abs(value - norm) > FAR * norm]
    if apart and _follow_sizes(pairs, norms, twins):
        return _OWN_SIZES
    if len(apart) == len(known) > 0:
        return _sentence("the clipping norm", norm, apart[0])
    moved = max((_move_of_norm(one, two) for one, two in pairs), default=0.0)
    if moved <= FAR * norm:
        return ""
    return f"the clipping norm depends on the records (on others, one of them moves it by {moved:.4g}) and {_ADVICE}"


def _gradients(run: Run) -> Array:
    """(records of the first batch, weights)"""
    layers = run.recomputer.every([w[:1] for w in run.seen.weights])
    drawn = np.sort(run.members[drawn_places(run, 0)])
    return np.asarray(torch.cat([g[0, drawn].flatten(1) for g in layers], 1).double())


def _difference(one: Run, two: Run) -> Array:
    return np.asarray(one.sums[0] - two.sums[0])


def _is_whole(one: Run, two: Run) -> bool:
    """Whether the difference is that of the gradients as they are."""
    target = _difference(one, two)
    left = _gradients(one).sum(0) - _gradients(two).sum(0) - target
    return bool(np.linalg.norm(left) <= LEFT * np.linalg.norm(target))


def _pieces(gradients: Array) -> tuple[Array, Array, Array]:
    """Knots of C, and of each piece between two of them the constant part and the factor of C, (pieces, weights)."""
    lengths = np.linalg.norm(gradients, axis=1)
    order = np.argsort(lengths)
    units = gradients[order] / np.maximum(lengths[order], 1e-300)[:, None]
    nothing = np.zeros((1, gradients.shape[1]))
    below = np.concatenate([nothing, np.cumsum(gradients[order], 0)])
    above = np.concatenate([np.cumsum(units[::-1], 0)[::-1], nothing])
    return np.concatenate([[0.0], lengths[order], [np.inf]]), below, above


def _two_norms(one: Run, two: Run) -> tuple[float, float] | None:
    """The norms to which both are clipped, if some are."""
    mine, other = _gradients(one), _gradients(two)
    if not 1 < max(len(mine), len(other)) <= MOST_RECORDS:
        return None
    target, knots = _difference(one, two), (_pieces(mine), _pieces(other))
    for i, j in _pieces_that_may_fit(target, *(each[1:] for each in knots)):
        span = np.stack([knots[0][2][i], -knots[1][2][j]], 1)
        wanted = target - knots[0][1][i] + knots[1][1][j]
        norms, *_ = np.linalg.lstsq(span, wanted, rcond=None)
        inside = all(
            k[0][p] <= c * (1 + LEFT) and c <= k[0][p + 1] * (1 + LEFT)
            for k, p, c in zip(knots, (i, j), norms, strict=True)
        )
        if inside and np.linalg.norm(span @ norms - wanted) <= LEFT * np.linalg.norm(target):
            return None if _are_lengths(norms, mine, other) else (float(norms[0]), float(norms[1]))
    return None


def _pieces_that_may_fit(target: Array, mine: Sequence[Array], other: Sequence[Array]) -> list[list[int]]:
    """The pairs of pieces, in order, that may explain the difference: by inner products, which miss none that do.

    What two vectors leave of a third is known by the products of all, but for their rounding, and unless the two are
    nearly parallel.
    """
    (below, above), (other_below, other_above) = ((constant[:-1], factor[:-1]) for constant, factor in (mine, other))
    aims = target - below
    squares = (aims**2).sum(1)[:, None] + 2 * aims @ other_below.T + (other_below**2).sum(1)
    own, others, both = (above**2).sum(1)[:, None], (other_above**2).sum(1), above @ other_above.T
    along = (above * aims).sum(1)[:, None] + above @ other_below.T
    along_other = aims @ other_above.T + (other_below * other_above).sum(1)
    plane = own * others - both**2
    explained = own * along_other**2 - 2 * both * along * along_other + others * along**2
    most = 4 * LEFT**2 * float(target @ target) + _ROUNDING * squares
    found = (plane <= _PARALLEL * own * others) | (squares * plane - explained <= most * plane)
    return [[int(i), int(j)] for i, j in np.argwhere(found)]


def _move_of_norm(one: Run, two: Run) -> float:
    """How far the norms of both are apart, where the exchanged gradients are shorter than either; 0 if that is not so.

    Such twins do not tell the norms themselves: all other gradients that are clipped move by the same length, each in
    its own direction, which neither a fixed norm nor an exchanged gradient that is not clipped can do.
    """
    mine, other = _gradients(one), _gradients(two)
    if mine.shape != other.shape or not 1 < len(mine) <= MOST_RECORDS:
        return 0.0
    target, (ends, below, above) = _difference(one, two), _pieces(mine)
    other_ends, other_below, other_above = _pieces(other)
    for piece in range(len(mine) - 1):  # of one clipped gradient alone the direction may be the exchanged one's
        length = float(np.linalg.norm(above[piece]))
        if np.linalg.norm(above[piece] - other_above[piece]) > LEFT * length:
            continue  # other gradients are clipped
        wanted = target - below[piece] + other_below[piece]
        move = float(wanted @ above[piece]) / max(length, 1e-300) ** 2
        room = min(ends[piece + 1], other_ends[piece + 1]) - max(ends[piece], other_ends[piece])
        if abs(move) <= room and np.linalg.norm(wanted - move * above[piece]) <= LEFT * np.linalg.norm(target):
            return abs(move)
    return 0.0


def _are_lengths(norms: Array, mine: Array, other: Array) -> bool:
    """Whether both norms are those of the longest gradients, so that nothing is shortened; or one of an exchanged one.

    An exchanged gradient that alone is not clipped looks as if all were clipped at its length.
    """
    lengths = [np.linalg.norm(each, axis=1) for each in (mine, other)]
    longest = all(norm >= (1 - LEFT) * each.max() for norm, each in zip(norms, lengths, strict=True))
    if longest or mine.shape != other.shape:
        return bool(longest)
    changed = np.linalg.norm(mine - other, axis=1) > LEFT * np.maximum(*lengths)
    own = [each[changed] for each in lengths]
    return any(bool((np.abs(each - norm) <= LEFT * norm).any()) for norm, each in zip(norms, own, strict=True))


def _two_factors(one: Run, two: Run) -> tuple[float, float] | None:
    """The factors of both whole sums, if these explain the difference."""
    span, target = np.stack([_gradients(one).sum(0), -_gradients(two).sum(0)], 1), _difference(one, two)
    factors, *_ = np.linalg.lstsq(span, target, rcond=None)
    fits = np.linalg.norm(span @ factors - target) <= LEFT * np.linalg.norm(target)
    return (float(factors[0]), float(factors[1])) if fits and factors.min() > 0 else None
