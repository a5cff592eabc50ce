"""A_DI: the observer that differential privacy assumes, who knows D, D', the model, the noise, and sees every step.

Bernau 2021, Algorithm 1. The training engine keeps the observer's running log-likelihood ratio ``ln p(seen | D) /
p(seen | D')`` while it trains; here it becomes beliefs and decisions. `replay` is the same observer without any
shortcut: it takes what was seen of one training, computes every record's gradient on its own and compares distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from torch import Tensor, nn

from deniable.adversaries.membership import Scored
from deniable.checks import probability, whole
from deniable.scores import beliefs
from deniable.training.engine import Observation
from deniable.training.losses import loss_function
from deniable.training.models import model_factory
from deniable.training.pool import run_blocks
from deniable.training.settings import Neighbours, TrainingSettings

__all__ = ["Identifiability", "Recorder", "SeenStep", "beliefs", "decisions", "replay"]


def decisions(log_likelihood_ratio: ArrayLike, prior: float = 0.5) -> NDArray[np.bool_]:
    """True where the observer names D: its belief in D is the larger (Algorithm 1, step 14; a tie names D')."""
    start = logit(probability("prior", prior, open_ends=True))
    return np.asarray(start + np.asarray(log_likelihood_ratio, dtype=np.float64) > 0)


@dataclass(frozen=True)
class Identifiability:
    """A_DI as the upper reference of membership attacks: by Bernau 2021 (Proposition 1) none of them does better.

    Its "records" are trainings: a member is a training on D, a non-member one on D', and the score is the observer's
    log-likelihood ratio after the last step. The threshold is Algorithm 1's, a belief above 1/2.
    """

    settings: TrainingSettings
    neighbours: Neighbours
    trials: int

    def scored(self, seed: int, processes: int | None = 1) -> Scored:
        """Scores of about `trials` trainings; the surplus of one kind is left out."""
        blocks = range(-(-whole("trials", self.trials, low=2) // self.settings.trials_per_block))
        played = dict(run_blocks(self.settings, self.neighbours, seed, blocks, processes=processes))
        ratios = np.concatenate([played[number].log_likelihood_ratio[:, -1] for number in blocks])[: self.trials]
        on_d = np.concatenate([played[number].trained_on_d for number in blocks])[: self.trials]
        count = min(int(on_d.sum()), int((~on_d).sum()))
        return Scored(ratios[on_d][:count], ratios[~on_d][:count], float(np.nextafter(0, 1)))


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
