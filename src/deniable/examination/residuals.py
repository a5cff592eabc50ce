"""One training of somebody else: what the observer learns from it, and what is left over as noise.

The auditor knows which data set was trained on, so it knows the clean clipped sum of every step. Applied minus clean,
divided by the claimed standard deviation, must be independent standard normal numbers, given everything before the
step. Everything here is a statistic of these numbers with a known law under the claim; `diagnostics`
judges them over all trials.

*Towards.* The residual's component along a direction that is known before the noise is drawn (the clean sum, what
clipping took away, the previous step's gradient, each record's gradient) is standard normal under the claim, and far
from it if the training uses another gradient.

*Noise.* Those gradient directions are then exchanged for fresh normal numbers of the auditor's own. Under the claim the
result is again independent standard normal; if the training sums the wrong gradients it is the noise alone. So errors
of the gradient and errors of the noise show in different places.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import log
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.final_weights import find_ending
from deniable.examination.recomputation import RecomputedSteps, Recomputer
from deniable.examination.trainer import WatchedTraining
from deniable.examination.updates.learning_rates import next_weights, rates_of_any_rule
from deniable.examination.updates.update_rules import followed_rule
from deniable.training.engine import local_sensitivity, log_likelihood_ratio

Array = NDArray[np.float64]
DIRECTIONS = ("clean sum", "clipped off", "outside the batch", "previous gradient", "previous clean sum")
ROUNDING, SMOOTHING = 2e-6, 1e-6
"""float32, relative to the batch's clipped gradients; and what many add to a norm before dividing by it."""
IMPOSSIBLE = 1e-6
"""The chance below which numbers that are left out are not the smallest noisy ones."""
LARGE = 2**22
"""Numbers of a training's sums above which 32 bits have to do for what is left of them."""
PARALLEL = {torch.float64: 1e-9, torch.float32: 1e-4}
"""The share of its square that a direction has outside of others, below which it is one of theirs."""
COMPARED = 2000
"""Numbers of a step of which those that come again are counted."""
NEGLIGIBLE = 1e-4
"""A direction shorter than this share of the clean sum (plus the clipping norm) is rounding."""


@dataclass(frozen=True)
class TrialStatistics:
    """What one trial gave; rows are steps."""

    trained_on_d: NDArray[np.bool_]
    ratio: Array
    """ln p(step | D) / p(step | D') under the claim."""
    sensitivity: Array
    squares: Array
    """(steps, layers) sum of squared noise; chi-square with a layer's size as degrees of freedom."""
    plain: Array
    """(steps, layers) the same of the residual as it is."""
    sums: Array
    """(steps, layers, 3) squared standardised sums of all, by rows, by columns; chi-square."""
    adjacent: Array
    """(steps, layers) sum of products of adjacent numbers."""
    totals: Array
    """(steps, layers) standardised sum of a layer's noise."""
    sketch: NDArray[np.float32]
    """(steps, some coordinates) noise: the first ones of each layer."""
    raw: NDArray[np.float32]
    """Some numbers of the residual as they are."""
    raw_moved: NDArray[np.bool_]
    """Whether the clean sum is not zero there."""
    inner: Array
    """(steps, directions) inner products of the residual with each of `DIRECTIONS`; nan where it does not exist."""
    length: Array
    """(steps, directions) their lengths."""
    records: Array
    """(6, watched) of each record in the batch: sum of the components along its gradient, their number, and the mean
    of the multiple of its gradient that is too much; the same outside the batch."""
    batch: NDArray[np.uint8]
    """(steps, columns) how often each record was in the batch."""
    divisor: Array
    """(steps,) what the noisy sum was divided by."""
    clipped: Array
    """(steps,) share of the batch that clipping shortened."""
    allowance: Array
    """(steps,) the largest component that rounding may cause."""
    fresh: Array
    """(steps, 2) sum of squares and number of the auditor's own numbers in the noise."""
    rule: NDArray[np.int64]
    """The `Rule` that the weights follow."""
    taken: NDArray[np.int64]
    """How many steps the training took."""
    losses: Array
    """(steps,) the records' mean loss at each step's weights."""
    last_loss: Array
    """The same after the last step: at the final weights, or where the rule leads; nan if neither is known."""
    batch_losses: Array
    """(steps,) the mean loss of each step's batch at its weights; nan for an empty one."""
    right: Array
    """(steps,) the share of the records that each step's weights label rightly."""
    last_right: Array
    """The same after the last step."""
    clip: Array
    """(steps,) the clipping norm."""
    length_applied: Array
    """(steps,) the length of the noisy sum, in claimed standard deviations."""
    coarse: Array
    """The share of numbers in the noisy sums that are zero, or come again, where the clean ones are not zero."""
    kept_by_clean: NDArray[np.bool_]
    """Whether the numbers that are not zero are those of largest clean sum, in every layer that has zeros."""
    ending: NDArray[np.int64]
    """The `Ending` of the training, and the step whose weights are the final ones (-1: none)."""
    rates: Array
    """(steps,) the learning rate of each move; nan where it is not known."""
    shares: Array
    """(steps,) the share of each move in final weights that are a combination; nan where they are none."""


STEPWISE = (
    *("ratio", "sensitivity", "squares", "plain", "sums", "adjacent", "totals", "sketch", "inner", "length", "batch"),
    *("divisor", "clipped", "allowance", "fresh", "losses", "batch_losses", "right", "clip", "length_applied"),
    *("shares", "rates"),
)
"""The fields whose first axis is the steps."""


def examine_trial(
    recomputer: Recomputer,
    seen: WatchedTraining,
    members: NDArray[np.int64],
    on_d: bool,
    own: torch.Generator,
    *,
    sketch: list[int],
    raw: int,
) -> TrialStatistics:
    """All statistics of one trial; `own` draws the auditor's numbers.

    `sketch` and `raw` tell how many numbers of the noise and of the residual are kept.
    """
    claim, found = recomputer.claim, recomputer.recompute(seen, members)
    differing = recomputer.columns.differing
    seen_of_pair = found.onto[:, found.onto.shape[1] - differing :], found.include[:, -differing:]
    directions = _directions(found)
    noise, fresh = _exchange_directions(found.residual, directions, own)
    inner, length = _products(found, directions, [[s.flatten(1) for s in seen.sums], [found.clean]])
    ending = find_ending(recomputer, seen, found, members)
    used, rule = found.include.sum(1).double(), followed_rule(seen, found, ending.linear)
    final = seen.final if seen.final is not None else next_weights(seen)
    scores = recomputer.mean_scores(seen.weights, members, found.include)
    after = [np.nan, np.nan] if final is None else recomputer.mean_scores([f[None] for f in final], members)[0]
    return TrialStatistics(
        trained_on_d=np.array(on_d),
        ratio=log_likelihood_ratio(found.gram, *seen_of_pair, found.sigma, claim.rate).numpy(),
        sensitivity=local_sensitivity(found.gram).numpy(),
        inner=inner.numpy(),
        length=length.numpy(),
        records=_by_record(found),
        batch=found.include.numpy().astype(np.uint8),
        divisor=np.array(seen.divisors),
        clipped=(((found.norms > found.clip[:, None]) * found.include).sum(1) / used.clamp(min=1)).numpy(),
        allowance=(used * (ROUNDING * found.clip + SMOOTHING) / found.sigma).numpy(),
        raw=_some(found.residual, raw).numpy().astype(np.float32),
        raw_moved=_some(found.clean != 0, raw).numpy(),
        rule=np.array(rule, dtype=np.int64),
        fresh=fresh.numpy(),
        plain=torch.stack([_inner(r, r) for r in torch.split(found.residual, _sizes(recomputer), 1)], 1).numpy(),
        taken=np.array(len(seen), dtype=np.int64),
        losses=scores[:, 0],
        batch_losses=scores[:, 2],
        last_loss=np.array(after[0]),
        right=scores[:, 1],
        last_right=np.array(after[1]),
        clip=found.clip.numpy(),
        length_applied=(torch.stack([s.flatten(1).norm(dim=1) for s in seen.sums]).norm(dim=0) / found.sigma).numpy(),
        coarse=np.array(_coarse([s[-1] for s in seen.sums], found.clean[-1])),
        kept_by_clean=np.array(_kept_by_clean(seen.sums, found)),
        ending=np.array([ending.kind, ending.step], dtype=np.int64),
        rates=rates_of_any_rule(seen)[0],
        shares=np.full(len(seen), np.nan) if ending.shares is None else ending.shares.numpy(),
        **_noise(noise, [tuple(p.shape) for p in recomputer.parameters.values()], sketch),
    )


def _sizes(recomputer: Recomputer) -> list[int]:
    return [p.numel() for p in recomputer.parameters.values()]


def _coarse(applied: list[Tensor], clean: Tensor) -> float:
    """Of the first numbers whose clean ones are not next to nothing."""
    least, kept = NEGLIGIBLE * max(clean.max(), -clean.min()), clean.new_empty(0)
    for layer, own in zip(applied, torch.split(clean, [layer.numel() for layer in applied]), strict=True):
        if len(kept) < COMPARED:
            kept = torch.cat([kept, layer.flatten()[own.abs() > least]])
    numbers = kept[:COMPARED]
    return 1 - len(torch.unique(numbers.abs())) / len(numbers) if len(numbers) else 0.0


def _kept_by_clean(sums: list[Tensor], found: RecomputedSteps) -> bool:
    """Whether zeros are where the clean sum of their layer is smallest, in all steps, and not the noisy one.

    Were the smallest noisy numbers left out, each would be below the smallest that is kept, with noise as claimed.
    """
    told, chance = [], 0.0
    for shown, clean in zip(
        [s.flatten(1) for s in sums], torch.split(found.clean, [s[0].numel() for s in sums], 1), strict=True
    ):
        for numbers, clean_numbers, sigma in zip(shown, clean, found.sigma.double(), strict=True):
            zero = numbers == 0
            if bool(zero.any()) and not bool(zero.all()) and bool((clean_numbers[zero] != 0).any()):
                row, own = numbers.double(), clean_numbers.double()
                told.append(bool(own[zero].abs().max() <= own[~zero].abs().min()))
                least = row[~zero].abs().min()
                below = torch.special.ndtr((least - own[zero]) / sigma) - torch.special.ndtr(
                    (-least - own[zero]) / sigma
                )
                chance += float(below.clamp(min=1e-300).log().sum())
    return bool(told) and all(told) and chance < log(IMPOSSIBLE)


def _inner(x: Tensor, y: Tensor) -> Tensor:
    """(steps,) of rows, in float64; of very long ones summed in 32 bits."""
    if x.numel() <= LARGE:
        return (x * y).sum(1, dtype=torch.float64)
    return torch.stack([torch.dot(a, b) for a, b in zip(x, y, strict=True)]).double()


class _Direction(NamedTuple):
    """(steps, weights), and in which steps it is there: not zero but for rounding."""

    values: Tensor
    there: Tensor


def _directions(found: RecomputedSteps) -> list[_Direction]:
    """The first three of `DIRECTIONS`."""
    clean = found.clean
    least = NEGLIGIBLE * (_inner(clean, clean).sqrt() + found.clip)
    none = found.everybody.data_ptr() == clean.data_ptr()  # whole batches
    named = [clean, found.whole - clean, torch.zeros(1, 1).expand_as(clean) if none else found.everybody - clean]
    return [_Direction(d, _inner(d, d).sqrt() > least) for d in named]


def _products(
    found: RecomputedSteps, directions: list[_Direction], before: list[list[Tensor]]
) -> tuple[Tensor, Tensor]:
    """(steps, `DIRECTIONS`) inner products with the residual, and lengths; nan where there is no direction.

    `before` are those of which the previous step's vector is the direction, each by its layers.
    """
    inner = [torch.where(there, _inner(found.residual, d), torch.nan) for d, there in directions]
    length = [torch.where(there, _inner(d, d).sqrt(), torch.nan) for d, there in directions]
    for layers in before:
        parts = torch.split(found.residual[1:], [layer.shape[1] for layer in layers], 1)
        along = [_inner(part, layer[:-1]) for part, layer in zip(parts, layers, strict=True)]
        inner.append(_after_nothing(torch.stack(along).sum(0)))
        length.append(_after_nothing(torch.stack([_inner(layer[:-1], layer[:-1]) for layer in layers]).sum(0).sqrt()))
    return torch.stack(inner, 1), torch.stack(length, 1)


def _after_nothing(values: Tensor) -> Tensor:
    """Behind a nan for the first step, which has none before."""
    return torch.cat([torch.full((1,), torch.nan, dtype=values.dtype), values])


def _exchange_directions(residual: Tensor, directions: list[_Direction], own: torch.Generator) -> tuple[Tensor, Tensor]:
    """The residual with its components along the directions exchanged for fresh standard normal ones.

    Guarantee: standard normal if the residual is, since the directions are known before it is drawn. Also returns,
    for every step, the squares of the fresh numbers and how many they are.
    """
    kind = torch.float64 if residual.numel() <= LARGE else torch.float32
    noise, given = residual.to(kind, copy=True), [values.to(kind) for values, _ in directions]
    exists = [there.double() for _, there in directions]
    products = torch.zeros(len(noise), len(given), len(given), dtype=torch.float64)
    for i, j in combinations_with_replacement(range(len(given)), 2):
        products[:, i, j] = products[:, j, i] = _inner(given[i], given[j]) * exists[i] * exists[j]
    units = _orthonormal(products, PARALLEL[kind])
    there = (units != 0).any(2).double()
    fresh = torch.randn(len(directions), len(noise), generator=own, dtype=torch.float64).T * there
    along = torch.stack([_inner(noise, d) for d in given], 1).unsqueeze(2)
    parts = (units.mT @ (fresh.unsqueeze(2) - units @ along)).squeeze(2).to(kind)
    for part, direction in zip(parts.T, given, strict=True):
        if bool(part.any()):
            noise.addcmul_(part.unsqueeze(1), direction)
    return noise, torch.stack([fresh.square().sum(1), there.sum(1)], 1)


def _orthonormal(grams: Tensor, least: float) -> Tensor:
    """Rows of coefficients that make vectors with these inner products orthonormal; zero for one that others span.

    Both are (steps, vectors, vectors).
    """
    rows = torch.zeros_like(grams)
    for place in range(grams.shape[1]):
        row = torch.eye(grams.shape[1], dtype=grams.dtype)[:, place : place + 1].expand(len(grams), -1, 1)
        for _ in range(2):  # since the vectors may be nearly parallel
            row = row - rows.mT @ (rows @ (grams @ row))
        left = (row.mT @ grams @ row).view(-1, 1)
        kept = left > least * grams[:, place, place].unsqueeze(1)
        rows[:, place] = torch.where(kept, row.squeeze(2) / left.clamp(min=1e-300).sqrt(), 0.0)
    return rows


def _by_record(found: RecomputedSteps) -> Array:
    watched, clip = found.onto.shape[1], found.clip.unsqueeze(1)
    lengths = torch.minimum(found.norms[:, -watched:].double(), clip)
    long = lengths > NEGLIGIBLE * clip
    sigma = float(found.sigma.mean())
    inside = found.include[:, -watched:] > 0
    rows = []
    for side in (inside & long, ~inside & long):
        components, number = torch.where(side, found.onto / lengths, 0.0).sum(0), side.sum(0)
        excess = torch.where(side, found.onto, 0.0).sum(0) / torch.where(side, lengths, 0.0).square().sum(0)
        rows += [components, number.double(), sigma * excess]
    return torch.stack(rows).numpy()


def _some(values: Tensor, number: int) -> Tensor:
    """Evenly from all steps and weights; an odd stride, so that no other weight is always left out."""
    every = values.flatten()
    return every[:: max(1, len(every) // number) | 1][:number]


def sketch_sizes(sizes: list[int], budget: int) -> list[int]:
    """How many coordinates of each layer are kept, about `budget` in all: small layers whole, large ones equally."""
    kept = [0] * len(sizes)
    for place, layer in enumerate(np.argsort(sizes)):
        kept[layer] = min(sizes[layer], max(1, (budget - sum(kept)) // (len(sizes) - place)))
    return kept


def _noise(noise: Tensor, shapes: list[tuple[int, ...]], sketch: list[int]) -> dict[str, NDArray[Any]]:
    sizes = [int(np.prod(shape)) for shape in shapes]
    parts = torch.split(noise, sizes, 1)
    rows = [shape[0] if len(shape) > 1 else 1 for shape in shapes]
    tables = [part.reshape(len(part), number, -1) for part, number in zip(parts, rows, strict=True)]
    kept = zip(parts, sketch, strict=True)
    return {
        "squares": torch.stack([_inner(part, part) for part in parts], 1).numpy(),
        "sums": torch.stack([_sums(table) for table in tables], 1).numpy(),
        "adjacent": torch.stack([_inner(part[:, 1:], part[:, :-1]) for part in parts], 1).numpy(),
        "totals": torch.stack([part.sum(1) / part.shape[1] ** 0.5 for part in parts], 1).numpy(),
        "sketch": torch.cat([part[:, :number].float() for part, number in kept], 1).numpy(),
    }


def _sums(table: Tensor) -> Tensor:
    """Squared sums of all numbers, of each row and of each column, each in its standard deviation."""
    rows, columns = table.shape[1:]
    everything = table.sum((1, 2)).square() / (rows * columns)
    return torch.stack([everything, table.sum(2).square().sum(1) / columns, table.sum(1).square().sum(1) / rows], 1)
