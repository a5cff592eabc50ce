"""Blocks of trials: many trainings advance together, watched by the strongest observer.

What a step tells the observer is computed in float64: local sensitivity and log-likelihood ratio. All that it needs
lies in the span of g(x) and g(x'), the differing records' clipped gradients: their inner products `gram` and the
noise's `projection` on them. ``gram`` is (trials, k, k) with k = 2 (replace) or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from deniable.training.ensemble import Ensemble, initial_weights
from deniable.training.gradients import trainable
from deniable.training.noise_source import SeededSource
from deniable.training.settings import Neighbours, TrainingSettings
from deniable.training.stack import activations
from deniable.training.threads import one_thread

RESOLUTION_SHARE = 1e-6
"""Gradients are float32: a distance below this share of their norms is rounding, not information."""


def local_sensitivity(gram: Tensor) -> Tensor:
    """||g(x) - g(x')|| for replace (Bernau 2021, Eq. 12), ||g(x)|| for add-remove (Bernau 2021, Eq. 10; erratum 7)."""
    squares = torch.diagonal(gram, dim1=1, dim2=2)
    distance = squares.sum(1) if gram.shape[1] == 1 else squares.sum(1) - 2 * gram[:, 0, 1]
    distance = distance.clamp(min=0).sqrt()
    return torch.where(distance <= RESOLUTION_SHARE * squares.amax(1).sqrt(), 0.0, distance)


def log_likelihood_ratio(gram: Tensor, projection: Tensor, present: Tensor, sigma: Tensor, rate: float) -> Tensor:
    """ln p(observed | D) / p(observed | D') of each trial (Bernau 2021, Lemma 1 and Algorithm 1, step 9).

    The observer knows the others' batch, so it looks at y = observed - (the others' sum), which has noise of standard
    deviation `sigma` (trials,) around 0, or around g(x) or g(x') where `present` (trials, k) says so. Relative to
    noise alone the density of y under D is ``1 - rate + rate exp((y . g(x) - |g(x)|^2 / 2) / sigma^2)``, since it is
    hidden whether x was drawn; under D' likewise with x' (replace), or 1 (add-remove). At rate 1 the difference of
    the two logarithms is Algorithm 1's. Without noise (local sensitivity 0) a step says nothing.
    """
    products = torch.bmm(present.double().unsqueeze(1), gram).squeeze(1) + sigma.unsqueeze(1) * projection
    squares = torch.diagonal(gram, dim1=1, dim2=2)
    exponent = (products - squares / 2) / sigma.square().unsqueeze(1)
    absent = torch.tensor(log(1 - rate) if rate < 1 else -torch.inf, dtype=torch.float64)
    density = torch.logaddexp(absent, log(rate) + exponent)
    ratio = density[:, 0] - density[:, 1] if gram.shape[1] == 2 else density[:, 0]
    return torch.where(sigma > 0, ratio, 0.0)


_BLOCK_SIZES = (100, 50, 20, 10, 5, 2, 1)
_BLOCK_NUMBERS = 2**26
"""Numbers that a block may hold or compute in a step, about: bounds its memory and the work that a crash loses."""
_COPIES = 5
"""Of the weights: themselves, their sums, the noise, and Adam's two moments."""


@dataclass(frozen=True)
class Observation:
    """What the observer sees of one step, for all trials: the weights before it and the noisy sum applied to them."""

    step: int
    weights: list[Tensor]
    noisy_sum: list[Tensor]
    sigma: Tensor
    batch: Tensor
    """Which of `Neighbours.columns` were in the batch, (trials, records); hidden for the differing ones."""


@dataclass(frozen=True)
class BlockResult:
    """What the trials of one block gave; rows are trials, columns are steps."""

    trained_on_d: NDArray[np.bool_]
    """The bit b of each trial: whether D (or D') was trained on."""
    log_likelihood_ratio: NDArray[np.float64]
    """ln p(all observed so far | D) / p(... | D') after every step."""
    local_sensitivity: NDArray[np.float64]
    """||g(x) - g(x')|| or ||g(x)|| of the clipped gradients at every step."""
    sigma: NDArray[np.float64]
    """Standard deviation of the noise that was added to the sum at every step."""
    gradient_norm: NDArray[np.float64]
    """Norm of x's gradient before clipping at every step."""
    accuracy: NDArray[np.float64] | None
    """Share of the test records that each final model classifies correctly; None without test records."""


def run_block(
    settings: TrainingSettings,
    neighbours: Neighbours,
    seed: int,
    block: int,
    watch: Callable[[Observation], None] | None = None,
) -> BlockResult:
    """Play `settings.trials_per_block` games of Experiment 2 (Bernau 2021), b drawn at random in each (erratum 10).

    The result depends on the arguments alone, not on order, process or number of threads: everything runs on one
    thread, and all draws come from generators whose states are made of (seed, block). Every trial has its own
    initial weights, as in Bernau 2021's repetitions. `watch` sees each step's observation before it is applied.
    """
    with one_thread(), torch.no_grad():
        game = _Block(settings, neighbours, seed, block)
        for step in range(settings.steps):
            game.advance(step, watch)
        return game.result()


class _Block:
    def __init__(self, settings: TrainingSettings, neighbours: Neighbours, seed: int, block: int) -> None:
        self._settings, self._neighbours = settings, neighbours
        trials = settings.trials_per_block
        columns = neighbours.columns(settings.adjacency)
        model, weights = initial_weights(settings, trials, SeededSource(seed, block, stream=0).generator)
        source = SeededSource(seed, block, stream=1)
        self._ensemble = Ensemble(settings, model, weights, columns, source)
        self._on_d = source.uniform(trials) < 0.5
        # x is in D; x', if there is one, is in D'
        self._members = torch.stack([self._on_d, ~self._on_d], 1)[:, : columns.differing].float()
        zeros = [torch.zeros(trials, settings.steps, dtype=torch.float64) for _ in range(4)]
        self._ratio, self._sensitivity, self._sigma, self._norm = zeros

    def advance(self, step: int, watch: Callable[[Observation], None] | None) -> None:
        """One step of all trials."""
        settings, ensemble = self._settings, self._ensemble
        present = ensemble.draw_batch(self._members)
        norms = ensemble.sum_gradients()
        gram = ensemble.gradients.gram()
        sensitivity = local_sensitivity(gram)
        local = settings.sensitivity == "local"
        sigma = settings.noise * (sensitivity if local else torch.full_like(sensitivity, settings.global_sensitivity))
        projection = ensemble.add_noise(sigma)
        self._ratio[:, step] = log_likelihood_ratio(gram, projection, present, sigma, settings.rate)
        self._sensitivity[:, step], self._sigma[:, step] = sensitivity, sigma
        self._norm[:, step] = norms[:, 0]
        if watch is not None:
            watch(Observation(step, ensemble.weights, ensemble.sums, sigma, ensemble.batch))
        ensemble.apply()

    def result(self) -> BlockResult:
        """The block's record; refused if a training diverged."""
        ratio = self._ratio.cumsum(1)
        finite = torch.isfinite(ratio).all(0)
        if not bool(finite.all()):
            step = int(finite.int().argmin()) + 1
            raise FloatingPointError(f"training diverged at step {step}: lower learning_rate or scale the records")
        sensitivity, sigma, norm = (a.numpy() for a in (self._sensitivity, self._sigma, self._norm))
        return BlockResult(self._on_d.numpy(), ratio.numpy(), sensitivity, sigma, norm, self._accuracy())

    def _accuracy(self) -> NDArray[np.float64] | None:
        records, labels = self._neighbours.test_records, self._neighbours.test_labels
        if records is None or labels is None:
            return None
        model, trials = self._ensemble.model, range(len(self._on_d))
        outputs = (functional_call(model, self._ensemble.state(trial), (records,)) for trial in trials)
        return np.array([float((output.argmax(1) == labels).double().mean()) for output in outputs])


def usual_block(model: nn.Module, neighbours: Neighbours, rate: float) -> int:
    """Trials in a block: many of a small model, few of a large one.

    Depends on the model, the data and the rate alone, so that it is the same on every machine.
    """
    records, record = len(neighbours.records), neighbours.records[0]
    weights = _COPIES * sum(value.numel() for value in trainable(model).values())
    with torch.no_grad():
        batch = rate * records * (record.numel() + activations(model, record))
    return next((size for size in _BLOCK_SIZES if size * (weights + batch) <= _BLOCK_NUMBERS), 1)
