"""Do only some records of a batch count: those of the highest or lowest losses, or with long or short gradients?

Which of them do is decided beside the others of the batch (a share or a number of them, those above the batch's mean),
so that one record puts another in or out; or at a fixed level, which every record passes or not by itself.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.recorded.gradients.record_shares import RecordGradients, shorten

Array = NDArray[np.float64]
Order = Literal["highest losses", "lowest losses", "longest gradients", "shortest gradients"]
Rule = Literal["share", "number", "beyond the mean", "level"]
ChosenRecords = tuple[Order, Rule, float, float]
"""The rule whose sums are nearest to the applied ones: its share, number or level, and by how much they are nearer than
the clipped sums, in all steps, in variances of the noise."""
_ORDERS: tuple[Order, ...] = ("highest losses", "lowest losses", "longest gradients", "shortest gradients")
_SHARES = np.sort([*np.arange(1, 40) / 40, 1 / 3, 2 / 3])
_MOST = 256
"""Records that a rule may choose by their number; and of larger batches nothing is told of those."""
_LEVELS = np.geomspace(1e-3, 1e2, 240)
_LARGEST_BATCH = 1024


class RecordChoices:
    """What every rule gains, over the steps so far."""

    def __init__(self) -> None:
        self._shares = np.zeros((len(_ORDERS), len(_SHARES)))
        self._numbers = np.zeros((len(_ORDERS), _MOST))
        self._means = np.zeros((len(_ORDERS), 1))
        self._levels = np.zeros((len(_ORDERS), len(_LEVELS)))

    def note(self, gradients: RecordGradients, residual: Tensor, clip: float, variance: float) -> None:
        """Add a step; `residual` at the weights that are looked at."""
        size = len(gradients.norms)
        if not 0 < size <= _LARGEST_BATCH or gradients.losses is None or len(gradients.losses) != size:
            return
        values, factors = gradients.values, gradients.clipped_factors(clip).double().cpu()
        along = (values @ gradients.held(residual).to(values)).double().cpu() * factors
        products = (values @ values.T).double().cpu() * factors * factors[:, None]
        norms = (gradients.norms / clip).double().cpu()
        losses = gradients.losses.double().cpu()
        figures = (losses, -losses, norms, -norms)
        for at, figure in enumerate(figures):
            gains = _gains(figure, along, products) / variance
            places = (_SHARES * size).astype(int).clip(1)
            self._shares[at] += gains[places]
            self._numbers[at] += gains[np.arange(1, _MOST + 1).clip(max=size)]
            self._means[at] += gains[int((figure > figure.mean()).sum())]
            sign = 1.0 if at % 2 == 0 else -1.0
            ordered = np.sort(figure.numpy())
            self._levels[at] += gains[size - np.searchsorted(ordered, sign * _LEVELS)]

    def found(self) -> tuple[ChosenRecords, ...]:
        """The best rule that looks at the whole batch, and the best level; nothing where no rule is nearer."""
        tables: dict[Rule, tuple[Array, Array]] = {
            "share": (self._shares, _SHARES),
            "number": (self._numbers, np.arange(1.0, _MOST + 1)),
            "beyond the mean": (self._means, np.ones(1)),
            "level": (self._levels, _LEVELS),
        }
        best = {rule: _best(rule, *table) for rule, table in tables.items()}
        level = best.pop("level")
        others = max(best.values(), key=lambda one: one[-1])
        return tuple(one for one in (others, level) if one[-1] > 0)


def _gains(figure: Tensor, along: Tensor, products: Tensor) -> Array:
    """(records + 1,) of the sums of the first 0, 1, ... records in falling order of a figure."""
    order = torch.argsort(figure, descending=True)
    left_out = along[order].flip(0).cumsum(0)  # of the last 1, 2, ... records
    squares = products[order][:, order].flip(0, 1).cumsum(0).cumsum(1).diagonal()
    found = np.zeros(len(order) + 1)
    found[:-1] = (-2 * left_out - squares).flip(0).numpy()
    return found


def _best(rule: Rule, gains: Array, values: Array) -> ChosenRecords:
    order, place = np.unravel_index(int(gains.argmax()), gains.shape)
    return _ORDERS[order], rule, shorten(values[place]), shorten(gains[order, place], 8)
