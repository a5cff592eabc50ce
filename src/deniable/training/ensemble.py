"""The weights of many trainings and the moves of a step: draw a batch, sum clipped gradients, add noise, update.

SGD and Adam see the noisy gradient only, so they are post-processing.

"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from math import sqrt
from threading import Lock

import torch
from torch import Tensor, nn

from deniable.training import kernels
from deniable.training.gradients import trainable
from deniable.training.networks.losses import loss_function
from deniable.training.networks.usual_models import model_factory, refuse
from deniable.training.noise_source import RandomSource
from deniable.training.settings import Columns, Course
from deniable.training.stack import example_gradients


class Updater(ABC):
    """Applies noisy sums of gradients to the weights, in place."""

    def __init__(self, learning_rate: float | Tensor) -> None:
        self.learning_rate = learning_rate

    def move(self, weight: Tensor, direction: Tensor, share: float) -> None:
        """Take ``learning rate * share`` of the direction from the weight, each trial at its own rate."""
        if isinstance(self.learning_rate, Tensor):
            rates = self.learning_rate.view(-1, *[1] * (weight.ndim - 1))
            weight.addcmul_(direction, rates, value=-share)
        else:
            weight.add_(direction, alpha=-self.learning_rate * share)

    @abstractmethod
    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """One step along ``sums / count``, count the (expected) number of records in the batch."""


class Sgd(Updater):
    """weights - learning rate * gradient."""

    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """Algorithm 1, step 12."""
        for weight, total in zip(weights, sums, strict=True):
            self.move(weight, total, 1 / count)


class Adam(Updater):
    """Adam with its usual constants: decay .9 and .999, epsilon 1e-8, bias corrected."""

    def __init__(self, learning_rate: float | Tensor) -> None:
        super().__init__(learning_rate)
        self._step = 0
        self._moments: list[tuple[Tensor, Tensor]] = []
        self._scratch: list[Tensor] = []

    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """One Adam step on the noisy mean gradient."""
        self._moments = self._moments or [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights]
        self._step += 1
        if kernels.KERNELS is not None and kernels.suit(*weights, *sums):
            self._apply_compiled(weights, sums, count)
        else:
            self._apply_torch(weights, sums, count)

    def _apply_compiled(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        left = (ctypes.c_float * 3)(1 / count, 1 - 0.9**self._step, 1 - 0.999**self._step)
        rates = torch.as_tensor(self.learning_rate, dtype=torch.float32).reshape(-1).contiguous()
        for weight, total, moments in zip(weights, sums, self._moments, strict=True):
            shape = kernels.sizes(len(rates), weight.numel() // len(rates))
            kernels.call("adam", weight, total, *moments, rates, shape, left)

    def _apply_torch(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        first_left, second_left = 1 - 0.9**self._step, 1 - 0.999**self._step
        self._scratch = self._scratch or [torch.empty_like(w) for w in weights]
        for place, (weight, total, (first, second)) in enumerate(zip(weights, sums, self._moments, strict=True)):
            first.mul_(0.9).add_(total, alpha=0.1 / count)
            second.mul_(0.999).addcmul_(total, total, value=0.001 / count**2)
            if isinstance(self.learning_rate, Tensor):
                # the same in fewer passes over memory: both corrections are numbers of the step
                root = torch.sqrt(second, out=self._scratch[place]).add_(1e-8 * sqrt(second_left))
                self.move(weight, torch.div(first, root, out=root), sqrt(second_left) / first_left)
            else:
                root = torch.div(second, second_left, out=self._scratch[place]).sqrt_().add_(1e-8)
                weight.addcdiv_(first, root, value=-self.learning_rate / first_left)


def updater(settings: Course) -> Updater:
    """The settings' optimizer."""
    return {"sgd": Sgd, "adam": Adam}[settings.optimizer](settings.learning_rate)


_global_generator = Lock()
"""Factories draw from torch's one generator: blocks in several threads take turns with it."""
GATHER_BELOW_RATE = 0.5
"""Below this rate each trial's batch is copied together; above it, all records are computed and left out by weight."""


def initial_weights(settings: Course, trials: int, generator: torch.Generator) -> tuple[nn.Module, list[Tensor]]:
    """A model, refused if it mixes examples, and each trial's own first weights, as the factory draws them."""
    factory = model_factory(settings.model)
    with _global_generator, torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator.get_state())
        models = [factory() for _ in range(trials)]
    refuse(models[0])
    drawn = [trainable(model).values() for model in models]
    return models[0], [torch.stack(values) for values in zip(*drawn, strict=True)]


class Ensemble:
    """Trainings on the same records, of which the last, differing ones are in a trial's data set or not."""

    def __init__(
        self,
        settings: Course,
        model: nn.Module,
        weights: list[Tensor],
        columns: Columns,
        source: RandomSource,
    ) -> None:
        self._settings, self._source, self.model, self.weights = settings, source, model, weights
        records, labels, differing = self._records, self._labels, self._differing = columns
        self.sums = [torch.empty_like(w) for w in weights]
        self._noise = [torch.empty_like(w) for w in weights]
        self._updater = updater(settings)
        self._shared = settings.rate >= GATHER_BELOW_RATE
        loss = loss_function(settings.loss)
        self.gradients = example_gradients(model, loss, weights, records[0], shared=self._shared)
        # D has all records but x'; a public constant, the same under both hypotheses
        self._count = settings.rate * (len(records) - max(0, differing - 1))
        self._everybody = torch.ones(len(weights[0]), len(records))
        if self._shared:
            self.gradients.load(records[None], labels[None], differing)

    def draw_batch(self, members: Tensor) -> Tensor:
        """Draw the step's batch, given which differing records are `members` (trials, differing) of the data set.

        Returns which of them were drawn; `batch` (trials, records) says it of all.
        """
        self.batch = self._draw_members()
        common = self.batch.shape[1] - self._differing
        present = self.batch[:, common:].mul_(members)
        if self._shared:
            self._include = self.batch
        else:
            self._gather(self.batch[:, :common], present)
        return present

    def _draw_members(self) -> Tensor:
        shape = len(self.weights[0]), len(self._records)
        if self._settings.rate == 1:
            return self._everybody.clone()
        return (self._source.uniform(*shape) < self._settings.rate).float()

    def _gather(self, drawn: Tensor, present: Tensor) -> None:
        """Copy each trial's batch together, padded with record 0 at weight 0 to the longest batch, of at least one."""
        counts = drawn.sum(1).long()
        longest = max(1, int(counts.max()))
        trial, record = drawn.nonzero(as_tuple=True)
        place = torch.arange(len(trial)) - (counts.cumsum(0) - counts)[trial]
        index = torch.zeros(len(drawn), longest, dtype=torch.long)
        index[trial, place] = record
        differing = torch.arange(len(self._records) - self._differing, len(self._records))
        index = torch.cat([index, differing.expand(len(drawn), -1)], 1)
        padding = torch.arange(longest) < counts.unsqueeze(1)
        self._include = torch.cat([padding.float(), present], 1)
        self.gradients.load(self._records[index], self._labels[index], self._differing)

    def sum_gradients(self) -> Tensor:
        """Sum the batch's clipped gradients into `sums`; returns the differing records' norms before clipping."""
        norms = self.gradients.clipped_sum(self._include, self._settings.clip, self.sums)
        return norms[:, norms.shape[1] - self._differing :]

    def add_noise(self, sigma: Tensor) -> Tensor:
        """Add noise of standard deviation `sigma` (trials,) to `sums`.

        Returns the projections of the unscaled noise on the differing records' clipped gradients.
        """
        scale = sigma.float()
        for noise, total in zip(self._noise, self.sums, strict=True):
            self._source.normal_(noise)
            total.addcmul_(noise, scale.view(-1, *[1] * (total.ndim - 1)))
        return self.gradients.project(self._noise)

    def apply(self) -> None:
        """Update the weights with `sums`, the very ones that an observer sees."""
        self._updater.apply(self.weights, self.sums, self._count)

    def state(self, trial: int) -> dict[str, Tensor]:
        """One trial's trained parameters, by name."""
        return {name: w[trial] for name, w in zip(trainable(self.model), self.weights, strict=True)}
