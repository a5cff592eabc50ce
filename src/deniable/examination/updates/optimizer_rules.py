"""Directions in which known optimizers move the weights, number by number, replayed from the yielded gradients.

torch's own classes are the twins of these formulas in the tests; replaying them takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product

import torch
from torch import Tensor

OptimizerRule = Callable[[Tensor, Tensor], Tensor]
"""From gradients and weights before each step, (steps, numbers), to the directions of the moves, (steps, numbers)."""
FIRST_DECAYS, SECOND_DECAYS = (0.9, 0.0, 0.5, 0.8, 0.95, 0.99), (0.999, 0.9, 0.95, 0.98, 0.99, 0.995)
"""Decays of Adam's two averages that are tried, the usual ones first."""
WEIGHT_DECAYS = (1e-2, 1e-1, 5e-2, 5e-3, 1e-3)
"""Weight decays that are tried where Adam adds them to the gradient; smaller ones are within the tolerance."""
LION_DECAYS = ((0.9, 0.99), (0.95, 0.98))
"""Of Lion: the sign of a running average of the gradients, and the usual decays of what is compared and kept."""
EPS, MOMENTUM_DECAY = 1e-8, 4e-3
"""torch's usual constants."""
_BLOCK_STEPS = 32
"""Rows that are averaged by one product of matrices."""


def running_average(values: Tensor, decay: float, corrected: bool = True) -> Tensor:
    """(steps, numbers) exponentially weighted averages of the rows so far."""
    averages: list[Tensor] = []
    for start in range(0, len(values), _BLOCK_STEPS):
        rows = values[start : start + _BLOCK_STEPS]
        of_rows, of_before = _row_weights(len(rows), decay, values.dtype)
        average = of_rows @ rows
        averages.append(average + of_before * averages[-1][-1] if averages else average)
    together = averages[0] if len(averages) == 1 else torch.cat(averages)
    return together / _sums_of_weights(len(values), decay, values.dtype) if corrected else together


@lru_cache(maxsize=256)
def _row_weights(steps: int, decay: float, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """In the averages so far: the weights of the rows, (steps, steps), and of the average before them, (steps, 1)."""
    ages = torch.arange(steps).double().unsqueeze(1)
    of_rows = (1 - decay) * (decay ** (ages - ages.T).clamp(min=0)).tril()
    return of_rows.to(kind), (decay ** (1 + ages)).to(kind)


@lru_cache(maxsize=256)
def _sums_of_weights(steps: int, decay: float, kind: torch.dtype) -> Tensor:
    """(steps, 1) of all rows so far."""
    return (1 - decay ** torch.arange(1, steps + 1).double()).to(kind).unsqueeze(1)


def velocity(values: Tensor, decay: float) -> Tensor:
    """(steps, ...) sums of the rows so far, each step's `decay` times that before and the row."""
    return running_average(values, decay, corrected=False) / (1 - decay)


def _adam(
    gradients: Tensor, weights: Tensor, first: float = 0.9, second: float = 0.999, weight_decay: float = 0.0
) -> Tensor:
    """Adam, and RMSprop with `first` 0."""
    summed = gradients + weight_decay * weights[: len(gradients)]
    return running_average(summed, first) / (running_average(summed.square(), second).sqrt() + EPS)


def _amsgrad(gradients: Tensor, _: Tensor, second: float) -> Tensor:
    largest = running_average(gradients.square(), second, corrected=False).cummax(0).values
    return running_average(gradients, 0.9) / (largest.sqrt() + EPS)


def _nadam(gradients: Tensor, _: Tensor, first: float = 0.9, second: float = 0.999) -> Tensor:
    steps = torch.arange(1, len(gradients) + 2).double()
    weight = (first * (1 - 0.5 * 0.96 ** (steps * MOMENTUM_DECAY))).unsqueeze(1)
    product_so_far, average = weight.cumprod(0), running_average(gradients, first, corrected=False)
    ahead = gradients * (1 - weight[:-1]) / (1 - product_so_far[:-1]) + average * weight[1:] / (1 - product_so_far[1:])
    return ahead / (running_average(gradients.square(), second).sqrt() + EPS)


def _adamax(gradients: Tensor, _: Tensor, second: float = 0.999) -> Tensor:
    largest, rows = torch.zeros_like(gradients[0]), []
    for gradient in gradients:
        largest = torch.maximum(second * largest, gradient.abs() + EPS)
        rows.append(largest)
    return running_average(gradients, 0.9) / torch.stack(rows)


def _adagrad(gradients: Tensor, _: Tensor) -> Tensor:
    return gradients / (gradients.square().cumsum(0).sqrt() + 1e-10)


def _rmsprop(gradients: Tensor, weights: Tensor, alpha: float, momentum: float) -> Tensor:
    scaled = gradients / (running_average(gradients.square(), alpha, corrected=False).sqrt() + EPS)
    return velocity(scaled, momentum)


def _signs(gradients: Tensor, _: Tensor) -> Tensor:
    return gradients.sign()


def _lion(gradients: Tensor, _: Tensor, first: float, second: float) -> Tensor:
    before = running_average(gradients, second, corrected=False)
    before = torch.cat([torch.zeros_like(before[:1]), before[:-1]])
    return (first * before + (1 - first) * gradients).sign()


USUAL_RULES: tuple[OptimizerRule, ...] = (_adam, partial(_rmsprop, alpha=0.99, momentum=0.0), _adagrad, _signs)
RULES: tuple[OptimizerRule, ...] = (
    *USUAL_RULES,
    *(partial(_adam, weight_decay=decay) for decay in WEIGHT_DECAYS),
    *(partial(_adam, first=first, second=second) for first, second in list(product(FIRST_DECAYS, SECOND_DECAYS))[1:]),
    *(partial(_amsgrad, second=second) for second in SECOND_DECAYS),
    *(partial(_nadam, second=second) for second in SECOND_DECAYS),
    *(partial(_adamax, second=second) for second in SECOND_DECAYS),
    *(partial(_rmsprop, alpha=alpha, momentum=m) for alpha, m in product(SECOND_DECAYS, (0.0, 0.5, 0.9))),
    *(partial(_lion, first=first, second=second) for first, second in LION_DECAYS),
)
"""The usual ones first."""
