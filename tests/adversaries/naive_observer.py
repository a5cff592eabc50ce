"""A_DI without any shortcut: it takes what was seen of one training, computes every record's gradient on its own and
compares distances."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deniable.training.engine import Observation
from deniable.training.networks.losses import loss_function
from deniable.training.networks.usual_models import model_factory
from deniable.training.settings import Neighbours, TrainingSettings


@dataclass(frozen=True)
class SeenStep:
    """One step of one training: the weights before it, the noisy sum applied to them, who else was in the batch."""

    weights: list[Tensor]
    noisy_sum: list[Tensor]
    sigma: float
    others: Tensor


class Recorder:
    """Give it to `run_block` as `watch`; it records what is seen of one trial."""

    def __init__(self, trial: int, differing: int) -> None:
        self.steps: list[SeenStep] = []
        self._trial, self._differing = trial, differing

    def __call__(self, observation: Observation) -> None:
        """Copy the trial's part of the observation."""
        t, batch = self._trial, observation.batch
        others = batch[t, : batch.shape[1] - self._differing].bool().clone()
        weights, sums = ([v[t].clone() for v in values] for values in (observation.weights, observation.noisy_sum))
        self.steps.append(SeenStep(weights, sums, float(observation.sigma[t]), others))


def replay(settings: TrainingSettings, neighbours: Neighbours, steps: list[SeenStep]) -> NDArray[np.float64]:
    """The log-likelihood ratio after every step, the naive way: one example at a time, autograd, float64.

    The readable twin of the engine's arithmetic; far too slow for campaigns.
    """
    records, labels, differing = neighbours.columns(settings.adjacency)
    examples = list(zip(records.double(), labels, strict=True))
    model = model_factory(settings.model)().double()
    ratios = [_step_ratio(settings, model, examples, differing, seen) for seen in steps]
    return np.cumsum(ratios)


def _step_ratio(
    settings: TrainingSettings, model: nn.Module, examples: list[tuple[Tensor, Tensor]], differing: int, seen: SeenStep
) -> float:
    if seen.sigma == 0:
        return 0.0
    for parameter, value in zip((p for p in model.parameters() if p.requires_grad), seen.weights, strict=True):
        parameter.data.copy_(value)
    clipped = [_clipped_gradient(settings, model, x, y) for x, y in examples]
    observed = torch.cat([v.flatten() for v in seen.noisy_sum]).double()
    others = sum((g for g, drawn in zip(clipped, seen.others, strict=False) if drawn), torch.zeros_like(observed))
    candidates = [others + clipped[i] for i in range(len(clipped) - differing, len(clipped))]

    def log_density(centre: Tensor) -> float:
        return -float((observed - centre).square().sum()) / (2 * seen.sigma**2)

    def log_mixture(centre: Tensor) -> float:
        if settings.rate == 1:
            return log_density(centre)
        absent, drawn = log(1 - settings.rate) + log_density(others), log(settings.rate) + log_density(centre)
        return float(np.logaddexp(absent, drawn))

    other = log_mixture(candidates[1]) if differing == 2 else log_density(others)
    return log_mixture(candidates[0]) - other


def _clipped_gradient(settings: TrainingSettings, model: nn.Module, record: Tensor, label: Tensor) -> Tensor:
    model.zero_grad()
    loss_function(settings.loss)(model(record[None]), label[None]).sum().backward()  # type: ignore[no-untyped-call]
    parameters = [p for p in model.parameters() if p.requires_grad]
    gradient = torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in parameters])
    return gradient * min(1.0, settings.clip / max(float(gradient.norm()), 1e-300))
