"""Many trainings with settings of their own, on the same batches: what a search over settings needs.

Every training by itself is DP-SGD (or DP-Adam) with Poisson batches: who is in a batch is drawn once for all of them,
which no single training can tell. So the first dense layer is one matrix product for all trainings, and what differs
between two settings is not who happened to be drawn.

A step of small dense networks is a single kernel call (`_together.c`): drawing, gathering, products, clipping, noise
and update take less time than the calls that would ask for them one by one.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import c_float, c_long
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from deniable.training import kernels
from deniable.training.ensemble import initial_weights, updater
from deniable.training.gradients import trainable
from deniable.training.kernels import split_like
from deniable.training.networks.layers import Flatten
from deniable.training.networks.listed import FEWEST_ROWS, LARGEST_SHARE
from deniable.training.networks.losses import check_classes, loss_function
from deniable.training.networks.narrow import NarrowPass, narrow_pass
from deniable.training.noise_source import RandomSource, SeededSource
from deniable.training.settings import Course, ModelFactory, Optimizer
from deniable.training.stack import example_gradients, known_layers
from deniable.training.threads import one_thread

FEWEST_DRAWS = 16
"""Of a tensor's noise: from so many on, the kernel's draws are torch's."""


def narrow_network(course: Course, model: nn.Module, weights: list[Tensor], records: Tensor) -> NarrowPass | None:
    """The network if the kernel knows it and can draw the noise of these weights, each (trials, ...)."""
    if not kernels.suit(records, *weights) or min(w.numel() for w in weights) < FEWEST_DRAWS:
        return None
    layers = known_layers(model, weights, records[0], shared=True)
    if layers is None or not isinstance(layers[0], Flatten):
        return None
    return narrow_pass(layers[1:], loss_function(course.loss))


class NarrowSteps:
    """Each `step` draws a batch, sums clipped gradients, adds noise and moves the weights, in place.

    Guarantee: the same as of `together`'s moves one by one, to float32 accuracy, with the same draws.
    """

    def __init__(
        self,
        course: Course,
        network: NarrowPass,
        weights: Tensor,
        data: tuple[Tensor, Tensor],
        *,
        sigma: Tensor,
        sources: Sequence[SeededSource],
    ) -> None:
        """`weights` are all tensors (trials, ...) in a row, `sigma` (trials,) is the noise on the sums."""
        records, labels = data[0].flatten(1).contiguous(), data[1].contiguous()
        check_classes(labels, network.widths[-1])
        values = [weights, *(torch.zeros_like(weights) for _ in range(4))]
        of_trials = [torch.as_tensor(one).float().contiguous() for one in (course.clip, sigma, course.learning_rate)]
        states = [source.generator.get_state() for source in sources]
        numbers = (c_float * 2)(course.rate, 1 / (course.rate * len(records)))
        self._tensors = [records, labels, *states, *values, *of_trials]
        """The kernel knows their addresses alone."""
        pointers = kernels.addresses(*values)
        sizes = _sizes(network, len(sigma), records, course.optimizer == "adam")
        self._call = kernels.plan("step_together", records, labels, *states, pointers, *of_trials, numbers, sizes)
        self._step = 0

    def step(self) -> None:
        """The next one of all trainings."""
        self._step += 1
        self._call(c_long(self._step))


def _sizes(network: NarrowPass, trials: int, records: Tensor, adam: bool) -> Any:
    listed = int(256 * LARGEST_SHARE) if trials * network.widths[0] >= FEWEST_ROWS else 0
    return kernels.sizes(trials, *records.shape, listed, adam, len(network.widths), *network.widths, *network.biased)


EVALUATED_VALUES = 2**22
"""Outputs of layers that are held at once while trained models are evaluated, about."""


@dataclass(frozen=True)
class Together:
    """Trainings that differ in noise, clipping norm and learning rate alone, a value of each (trials,).

    `noise` is the multiplier: noise of standard deviation ``noise * clip`` is added to each step's sum of gradients,
    clipped to norm `clip`, under add-remove neighbours. Where it is 0, `clip` may be infinite: an ordinary training.
    """

    model: str | ModelFactory
    rate: float
    steps: int
    noise: Tensor
    clip: Tensor
    learning_rate: Tensor
    optimizer: Optimizer = "sgd"
    loss: str = "cross-entropy"

    def __len__(self) -> int:
        return len(self.noise)


def train_together(
    settings: Together, records: Tensor, labels: Tensor, *, seed: int, block: int, part: int = 0
) -> TrainedTogether:
    """The trained models; they depend on the arguments alone, and all start from weights of their own.

    Parts of one block have the same batches, too. For measurements only: who knows the seed can take the noise away.
    """
    weights_drawn, noise = (SeededSource(seed, block, stream=2 * part + one) for one in (1, 2))
    with one_thread(), torch.no_grad():
        model, drawn = initial_weights(settings, len(settings), weights_drawn.generator)
        flat = torch.cat([values.flatten() for values in drawn])
        weights, sources = split_like(flat, drawn), (SeededSource(seed, block, stream=0), noise)
        moves: NarrowSteps | _Moves
        if network := narrow_network(settings, model, weights, records):
            moves = NarrowSteps(settings, network, flat, (records, labels), sigma=_sigma(settings), sources=sources)
        else:
            moves = _Moves(settings, model, weights, (records, labels), sources)
        for _ in range(settings.steps):
            moves.step()
    return TrainedTogether(model, weights)


def _sigma(settings: Together) -> Tensor:
    """The noise's standard deviation on each training's sum."""
    return torch.where(settings.noise > 0, settings.noise * settings.clip, 0.0).float()


class _Moves:
    """One step of all trainings: draw the batch, sum clipped gradients, add noise, update."""

    def __init__(
        self,
        settings: Together,
        model: nn.Module,
        weights: list[Tensor],
        data: tuple[Tensor, Tensor],
        sources: tuple[RandomSource, RandomSource],
    ) -> None:
        self._settings, self._weights = settings, weights
        self._batch_source, self._noise_source = sources
        self._records, self._labels = data
        self._sums, self._noise = [[torch.empty_like(w) for w in weights] for _ in range(2)]
        self._sigma = _sigma(settings)
        self._updater = updater(settings)
        loss = loss_function(settings.loss)
        self._gradients = example_gradients(model, loss, weights, self._records[0], shared=True)

    def step(self) -> None:
        """The noisy sum is divided by the expected size of a batch, a public number."""
        drawn = self._batch_source.below(self._settings.rate, len(self._records))
        include = torch.ones(len(self._settings), max(1, len(drawn)))
        if not len(drawn):  # nobody was drawn: a record without weight, for the layers need one
            drawn, include = torch.zeros(1, dtype=torch.long), include.zero_()
        # index_select is several times as fast as indexing
        self._gradients.load(self._records.index_select(0, drawn)[None], self._labels[drawn][None])
        self._gradients.clipped_sum(include, self._settings.clip, self._sums)
        for noise, total in zip(self._noise, self._sums, strict=True):
            self._noise_source.normal_(noise)
            total.addcmul_(noise, self._sigma.view(-1, *[1] * (total.ndim - 1)))
        self._updater.apply(self._weights, self._sums, self._settings.rate * len(self._records))


@dataclass(frozen=True)
class TrainedTogether:
    """Trained models: one module, and each training's weights in the order of its parameters, (trials, ...)."""

    model: nn.Module
    weights: list[Tensor]

    def outputs(self, records: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """(trials, their outputs (trials, records, values)), some trials at a time."""
        names = list(trainable(self.model))
        widest = max(len(w[0].flatten()) // max(1, w.shape[-1]) for w in self.weights)
        some = max(1, EVALUATED_VALUES // (len(records) * max(1, widest)))
        for start in range(0, len(self.weights[0]), some):
            trials = slice(start, start + some)
            stacked = {name: w[trials] for name, w in zip(names, self.weights, strict=True)}
            with torch.no_grad():
                yield trials, vmap(lambda state: functional_call(self.model, state, (records,)))(stacked)
