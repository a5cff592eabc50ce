"""The records' shares in an applied gradient, fitted on their own gradients, and other ways to sum them.

Residual = applied sum - clipped sum = sum of (s_i - c_i) u_i + noise, where u_i is the direction of record i's
gradient, c_i its clipped length and s_i the share that it really has. With all |s_i| <= C the sums form a convex set.
The squared distance of what was applied from that set, within the space of the records' gradients, is at most that from
the true sum, which is a chi-square with as many degrees as the space has dimensions. A longer one shows that some
record's share is above C, whatever rule made it. Rules that are known are compared by one vector each. So are sums of
gradients of a multiple of the loss, clipped then, or clipped at a multiple of the norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from torch import Tensor

from deniable.examination.recorded.class_counts import POWERS, class_of, weights_by_counts

Array = NDArray[np.float64]
SHARES = (1.05, 1.5, 2.0, 4.0, 8.0)
"""In clipping norms: bounds of every record's share, one after the other."""
THRESHOLDS = (1.25, 1.5, 2.0, 3.0, 5.0)
"""In clipping norms: gradients up to so long may be left as they are."""
_BY_COUNTS = tuple(f"by counts {power:g}, {mean}" for power in POWERS for mean in ("of classes", "of records"))
WAYS_TO_SUM = (
    *(f"left up to {most:g}" for most in THRESHOLDS),
    "less the mean",
    "by class",
    "squared norm",
    "by value",
    *_BY_COUNTS,
)
"""Gradients below a threshold are not clipped; the batch's mean is taken away first; they are weighted by how rare
their class is in the batch, divided by their squared norm, clipped number by number, or, before they are clipped,
weighted by how rare their class is among all records."""
_NUMBERS_HELD = 2**22
"""Of all records of a batch together."""
_MOST_RECORDS = 128
"""Of a batch whose shares are fitted, as unknowns of least squares with bounds."""
_OUTSIDE = 2
"""So many numbers a record are needed, so that the noise is seen outside their gradients."""


class RecordShares(msgspec.Struct, frozen=True):
    """What the fit of one step finds. Lengths are squared."""

    fitted: int
    """The dimension of the space of the records' gradients."""
    inside: float
    """Of the residual, within that space."""
    outside: float
    numbers: int
    """The dimension outside."""
    beyond: tuple[float, ...]
    """Within that space: the distance from the nearest sum of shares of at most each of `SHARES`."""


@dataclass(frozen=True)
class RecordGradients:
    """The gradients of a batch's records, before clipping."""

    values: Tensor
    """(records, numbers) at some of the weights that are looked at."""
    places: Tensor | None
    """Which of them; None for all."""
    norms: Tensor
    """(records,) over all weights."""
    parts: Tensor
    """(parameters, records) of each parameter."""
    vectors: tuple[int, ...] = ()
    """The parameters of one dimension: biases, and scales of normalisations."""

    @property
    def usual_norms(self) -> tuple[float, float] | None:
        """Their mean and median; None without records."""
        if not len(self.norms):
            return None
        return shorten(float(self.norms.mean()), 5), shorten(float(self.norms.median()), 5)

    def clipped_factors(self, clip: float) -> Tensor:
        """(records,) c_i."""
        return (clip / self.norms.clamp(min=1e-12)).clamp(max=1.0)

    def held(self, values: Tensor) -> Tensor:
        """Of all weights that are looked at, those at which the gradients are held."""
        return values if self.places is None else values[self.places.to(values.device)]

    @staticmethod
    def places_of(numbers: int, records: int) -> Tensor | None:
        """Which of so many numbers are held of so many records; None for all."""
        held = max(1, _NUMBERS_HELD // max(1, records))
        return None if held >= numbers else torch.linspace(0, numbers - 1, held, dtype=torch.float64).long()


class RecordProducts(TypedDict, total=False):
    """Fields of `ExaminedStep` that follow from single records' gradients; none where these are not known."""

    ways: tuple[tuple[float, float], ...]
    norms: tuple[tuple[float, float], ...]
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


def fit_shares(gradients: RecordGradients, residual: Tensor, clip: float) -> RecordShares | None:
    """How far the residual is from any that shares within a bound explain; None where too little is left outside."""
    there = gradients.norms > 1e-6 * clip
    values, norms = gradients.values[there].double().cpu(), gradients.norms[there].double().cpu()
    records, numbers = values.shape
    if not 0 < records <= min(_MOST_RECORDS, numbers // (1 + _OUTSIDE)):
        return None
    basis, columns = torch.linalg.qr((values / norms[:, None]).T)  # on all weights the columns have length one
    along, clipped = (basis.T @ residual.cpu()).numpy(), norms.clamp(max=clip).numpy()
    inside = float(along @ along)
    beyond = tuple(shorten(_distance(columns.numpy(), along, clipped, share * clip), 5) for share in SHARES)
    outside = max(float(residual @ residual) - inside, 0.0)
    return RecordShares(records, shorten(inside, 5), shorten(outside, 5), numbers - records, beyond)


def _distance(columns: Array, along: Array, clipped: Array, most: float) -> float:
    """Squared, from the nearest sum of columns whose shares are at most `most`, as (share - clipped) x column."""
    found = lsq_linear(columns, along, bounds=(-most - clipped, most - clipped), method="bvls")
    return 2 * float(found.cost) if found.status > 0 else 0.0  # a search that has not ended shows nothing


def products_of_ways(
    gradients: RecordGradients, residual: Tensor, clip: float, items: Sequence[Any], counts: Tensor | None = None
) -> tuple[tuple[float, float], ...]:
    """Of what each of `WAYS_TO_SUM` has more than the clipped sum: its product with the residual, its squared length.

    `counts` are those of all records' classes. Zeros where a way cannot be told.
    """
    factors = gradients.clipped_factors(clip)
    kept = [torch.where(gradients.norms <= most * clip, 1 - factors, 0.0) for most in THRESHOLDS]
    centred = _centred_sum(gradients, clip) if gradients.places is None else factors @ gradients.values
    clean = factors @ gradients.values
    others = [(total - clean).double() for total in (centred, gradients.values.clamp(-clip, clip).sum(0))]
    less_mean, by_value = ((shorten(more @ residual), shorten(more @ more)) for more in others)
    in_batch, *by_counts = _by_classes(gradients, clip, items, counts)
    by_square = clip / gradients.norms.clamp(min=1e-6).square() - factors
    return (
        *_products(gradients, residual, torch.stack(kept)),
        less_mean,
        *_products(gradients, residual, torch.stack([in_batch, by_square])),
        by_value,
        *_products(gradients, residual, torch.stack(by_counts)),
    )


def products_of_norms(gradients: RecordGradients, residual: Tensor, clip: float) -> tuple[tuple[float, float], ...]:
    """The same of sums that are clipped by a norm without one parameter, each in turn, and without all `vectors`."""
    left_out = [[place] for place in range(len(gradients.parts))] + [list(gradients.vectors)]
    squares = gradients.parts.square()
    norms = [(squares.sum(0) - squares[some].sum(0)).clamp(min=0.0).sqrt() for some in left_out]
    factors = torch.stack([(clip / norm.clamp(min=1e-12)).clamp(max=1.0) for norm in norms])
    return _products(gradients, residual, factors - gradients.clipped_factors(clip))


def _products(gradients: RecordGradients, residual: Tensor, more: Tensor) -> tuple[tuple[float, float], ...]:
    """Of sums with these factors (sums, records): product with the residual, and squared length."""
    values, more = gradients.values, more.to(gradients.values)
    along = more.double() @ (values @ residual.to(values)).double()
    squares = ((more @ (values @ values.T)) * more).double().sum(1)
    return tuple((shorten(one), shorten(other)) for one, other in zip(along, squares, strict=True))


def _by_classes(gradients: RecordGradients, clip: float, items: Sequence[Any], counts: Tensor | None) -> list[Tensor]:
    """(records,) more than the clipped factors: weighted by the batch's classes, and by those of all records."""
    factors, classes = gradients.clipped_factors(clip), [class_of(item) for item in items]
    nothing = torch.zeros_like(factors)
    if not classes or any(one is None for one in classes):
        return [nothing] * (1 + len(_BY_COUNTS))
    weights = torch.tensor([1 / classes.count(one) for one in classes]).to(factors)
    found = [(weights / weights.mean() - 1) * factors]
    if counts is None or int(counts.min()) == int(counts.max()):
        return found + [nothing] * len(_BY_COUNTS)
    limits = clip / gradients.norms.clamp(min=1e-12)
    return found + [torch.minimum(w[classes].to(factors), limits) - factors for w in weights_by_counts(counts)]


def shorten(value: float | Tensor, digits: int = 4) -> float:
    """In as many digits as a recording keeps."""
    return float(f"{float(value):.{digits}g}")


def _centred_sum(gradients: RecordGradients, clip: float) -> Tensor:
    """The sum of gradients less their mean, each clipped then."""
    values = gradients.values - gradients.values.mean(0)
    factors: Tensor = (clip / values.norm(dim=1).clamp(min=1e-12)).clamp(max=1.0)
    return factors @ values


Family = Literal["loss", "loss by size", "norm"]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""Multiples of the loss; those over the batch's own size; multiples of the clipping norm."""
MultipliedSum = tuple[float, float]
"""The multiple whose sums are nearest to the applied ones, and by how much more than the clipped sums, in all steps, in
variances of the noise."""
_MULTIPLES = np.geomspace(1e-4, 1e2, 240)
"""Each 6 % above the one before."""


class MultipliedSums:
    """What every multiple gains, over the steps so far."""

    def __init__(self) -> None:
        self._gains = np.zeros((len(FAMILIES), len(_MULTIPLES)))

    def note(self, gradients: RecordGradients, residual: Tensor, clip: float, variance: float) -> None:
        """Add a step; `residual` at the weights that are looked at."""
        residual = gradients.held(residual)
        limits, each = (clip / gradients.norms.clamp(min=1e-12)).double(), torch.tensor(_MULTIPLES)[:, None]
        each = each.to(limits.device)
        factors = [torch.minimum(each, limits), torch.minimum(each / max(1, len(limits)), limits)]
        more = torch.cat([*factors, (each * limits).clamp(max=1.0)]) - gradients.clipped_factors(clip)
        values = gradients.values.double()
        along, squares = more @ (values @ residual.to(values)), ((more @ (values @ values.T)) * more).sum(1)
        self._gains += (2 * along - squares).cpu().numpy().reshape(self._gains.shape) / variance

    def found(self) -> tuple[MultipliedSum, ...]:
        """Of each of `FAMILIES` the best one; nothing without steps."""
        best = self._gains.argmax(1)
        rows = zip(best, self._gains, strict=True)
        return tuple((shorten(_MULTIPLES[at]), shorten(gains[at], 8)) for at, gains in rows) if best.any() else ()
