"""Other ways to sum a batch's gradients than each clipped: known rules, each compared by one vector.

Of what a rule's sum has more than the clipped one, a step keeps the product with the residual and the squared length.
Where noise alone is left the former is normal, with the latter for its variance, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor

from deniable.examination.recorded.gradients.class_counts import POWERS, class_of, weights_by_counts
from deniable.examination.recorded.gradients.record_shares import RecordGradients, RecordShares, fit_shares, shorten
from deniable.examination.recorded.gradients.rounded_norms import FLOORS

THRESHOLDS = (1.25, 1.5, 2.0, 3.0, 5.0)
"""In clipping norms: gradients up to so long may be left as they are."""
BY_COUNTS = tuple(f"by counts {power:g}, {mean}" for power in POWERS for mean in ("of classes", "of records"))
USUAL_NORMS = ("longest", "mean", "median")
"""Of a batch's gradients."""
COMMON_FACTORS = (
    *(f"{rule} {usual}" for usual in USUAL_NORMS for rule in ("over the", "shortened over the")),
    *(f"{rule} {usual}" for usual in USUAL_NORMS[1:] for rule in ("clipped, over the", "clipped at the")),
)
"""All gradients of a batch times C over a usual norm of theirs, or only where that shortens them; then clipped; or
clipped at that norm in place of C."""
BY_LOSSES = ("by loss", "by exponential of loss")
"""Weighted by their share in the losses of the batch."""
ADDED_UP = ("added up and clipped", "added up")
"""Gradients that are not cleared between records: each is clipped with those before it, as they are clipped or not."""
LARGEST_ENTRY = "largest entry"
"""Gradients are clipped by it in place of their Euclidean norm."""
ROUNDED = tuple(f"rounded below {floor:.2g}" for floor in FLOORS)
"""Clipped by norms in which numbers below so many clipping norms vanish."""
WAYS_TO_SUM = (
    *(f"left up to {most:g}" for most in THRESHOLDS),
    "less the mean",
    "by class",
    "squared norm",
    "by value",
    *BY_COUNTS,
    *COMMON_FACTORS,
    *BY_LOSSES,
    *ADDED_UP,
    LARGEST_ENTRY,
    *ROUNDED,
)
"""Gradients below a threshold are not clipped; the batch's mean is taken away first; they are weighted by how rare
their class is in the batch, divided by their squared norm, clipped number by number, or, before they are clipped,
weighted by how rare their class is among all records; and the tuples above. New ones come last: recordings name them by
their place."""
_MOST_ADDED = 1024
"""Records of a batch that are added up one by one."""
_WHOLE = 1e-4
"""Relative: numbers with the length of a gradient are all of them."""
Product = tuple[float, float]
"""Of what a sum has more than the clipped one: its product with the residual, its squared length."""


class RecordProducts(TypedDict, total=False):
    """Fields of `ExaminedStep` that follow from single records' gradients; none where these are not known."""

    ways: tuple[Product, ...]
    norms: tuple[Product, ...]
    shares: RecordShares | None


def products_of_records(
    gradients: RecordGradients, residual: Tensor, clip: float, items: Sequence[Any], counts: Tensor | None
) -> RecordProducts:
    """All of them, at one step."""
    return {
        "ways": products_of_ways(gradients, residual, clip, items, counts),
        "norms": products_of_norms(gradients, residual, clip),
        "shares": fit_shares(gradients, residual, clip),
    }


def products_of_ways(
    gradients: RecordGradients, residual: Tensor, clip: float, items: Sequence[Any], counts: Tensor | None = None
) -> tuple[Product, ...]:
    """Of each of `WAYS_TO_SUM`; zeros where one cannot be told. `counts` are those of all records' classes."""
    factors = gradients.clipped_factors(clip)
    clean = factors @ gradients.values
    centred = _centred_sum(gradients, clip) if gradients.places is None else clean
    others = {"less the mean": centred, "by value": gradients.values.clamp(-clip, clip).sum(0)}
    found = {
        name: (shorten((total - clean).double() @ residual), shorten((total - clean).double().square().sum()))
        for name, total in others.items()
    }
    more = {name: one - factors for name, one in _factors(gradients, clip, items, counts)}
    found |= zip(more, _products(gradients, residual, torch.stack(list(more.values()))), strict=True)
    return tuple(found.get(name, (0.0, 0.0)) for name in WAYS_TO_SUM)


def products_of_norms(gradients: RecordGradients, residual: Tensor, clip: float) -> tuple[Product, ...]:
    """The same of sums that are clipped by a norm without one parameter, each in turn, and without all `vectors`."""
    left_out = [[place] for place in range(len(gradients.parts))] + [list(gradients.vectors)]
    squares = gradients.parts.square()
    norms = [(squares.sum(0) - squares[some].sum(0)).clamp(min=0.0).sqrt() for some in left_out]
    factors = torch.stack([(clip / norm.clamp(min=1e-12)).clamp(max=1.0) for norm in norms])
    return _products(gradients, residual, factors - gradients.clipped_factors(clip))


def _products(gradients: RecordGradients, residual: Tensor, more: Tensor) -> tuple[Product, ...]:
    """Of sums with these factors (sums, records)."""
    values, more = gradients.values, more.to(gradients.values)
    along = more.double() @ (values @ residual.to(values)).double()
    squares = ((more @ (values @ values.T)) * more).double().sum(1)
    return tuple((shorten(one), shorten(other)) for one, other in zip(along, squares, strict=True))


def _factors(
    gradients: RecordGradients, clip: float, items: Sequence[Any], counts: Tensor | None
) -> Iterator[tuple[str, Tensor]]:
    """(records,) of every way that has them."""
    factors = gradients.clipped_factors(clip)
    for most in THRESHOLDS:
        yield f"left up to {most:g}", torch.where(gradients.norms <= most * clip, 1.0, factors)
    yield "squared norm", clip / gradients.norms.clamp(min=1e-6).square()
    yield from _by_classes(gradients, clip, items, counts)
    yield from _over_usual_norms(gradients, clip)
    yield from _by_losses(gradients, factors)
    if torch.allclose(gradients.values.norm(dim=1), gradients.norms, rtol=_WHOLE, atol=0.0):
        yield LARGEST_ENTRY, (clip / gradients.values.abs().amax(1).clamp(min=1e-12)).clamp(max=1.0)
    if gradients.rounded is not None:
        yield from zip(ROUNDED, (clip / gradients.rounded.clamp(min=1e-12)).clamp(max=1.0).to(factors), strict=True)
    if len(factors) <= _MOST_ADDED:
        yield from zip(ADDED_UP, _added_up(gradients, clip), strict=True)


def _by_classes(
    gradients: RecordGradients, clip: float, items: Sequence[Any], counts: Tensor | None
) -> Iterator[tuple[str, Tensor]]:
    """Weighted by the batch's classes, and by those of all records."""
    factors, classes = gradients.clipped_factors(clip), [class_of(item) for item in items]
    if not classes or any(one is None for one in classes):
        return
    weights = torch.tensor([1 / classes.count(one) for one in classes]).to(factors)
    yield "by class", weights / weights.mean() * factors
    if counts is not None and int(counts.min()) < int(counts.max()):
        limits = clip / gradients.norms.clamp(min=1e-12)
        for name, w in zip(BY_COUNTS, weights_by_counts(counts), strict=True):
            yield name, torch.minimum(w[classes].to(factors), limits)


def _over_usual_norms(gradients: RecordGradients, clip: float) -> Iterator[tuple[str, Tensor]]:
    norms, limits = gradients.norms, clip / gradients.norms.clamp(min=1e-12)
    for name, usual in zip(USUAL_NORMS, (norms.max(), norms.mean(), norms.median()), strict=True):
        common = (clip / usual.clamp(min=1e-12)).expand_as(norms)
        yield f"over the {name}", common
        yield f"shortened over the {name}", common.clamp(max=1.0)
        if name != "longest":
            yield f"clipped, over the {name}", torch.minimum(common, limits)
            yield f"clipped at the {name}", (usual / norms.clamp(min=1e-12)).clamp(max=1.0)


def _by_losses(gradients: RecordGradients, factors: Tensor) -> Iterator[tuple[str, Tensor]]:
    if gradients.losses is None or float(gradients.losses.min()) < 0:
        return
    losses = gradients.losses.to(factors)
    for name, weights in zip(BY_LOSSES, (losses, (losses - losses.max()).exp()), strict=True):
        yield name, factors * weights / weights.mean().clamp(min=1e-12)


def _added_up(gradients: RecordGradients, clip: float) -> tuple[Tensor, Tensor]:
    """Of sums over i of clip(G + g_i), where G is the clipped sum before it, or that of all gradients before it."""
    values = gradients.values
    larger = (gradients.norms / values.norm(dim=1).clamp(min=1e-12)).double().cpu()  # of a sample
    products, found = (values @ values.T).double().cpu() * larger * larger[:, None], []
    for keeps in (False, True):
        shares, along = torch.zeros(len(values)).double(), torch.zeros(len(values)).double()
        total = torch.zeros_like(shares)
        for record, row in enumerate(products):
            shares[record] += 1
            along += row
            scale = min(1.0, clip / max(float(shares @ along), 1e-24) ** 0.5)
            total += scale * shares
            if not keeps:
                shares, along = scale * shares, scale * along
        found.append(total.to(gradients.norms))
    return found[0], found[1]


def _centred_sum(gradients: RecordGradients, clip: float) -> Tensor:
    """The sum of gradients less their mean, each clipped then."""
    values = gradients.values - gradients.values.mean(0)
    factors: Tensor = (clip / values.norm(dim=1).clamp(min=1e-12)).clamp(max=1.0)
    return factors @ values
