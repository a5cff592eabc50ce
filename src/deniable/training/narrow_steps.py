"""Steps of many private trainings of a small dense network, a single kernel call each (`_together.c`).

Drawing, gathering, products, clipping, noise and update of a step take less time than the calls that would ask for them
one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_float, c_long
from typing import Any

import torch
from torch import Tensor, nn

from deniable.training import kernels
from deniable.training.builder import known_layers
from deniable.training.networks.layers import Flatten
from deniable.training.networks.listed import FEWEST_ROWS, LARGEST_SHARE
from deniable.training.networks.losses import check_classes, loss_function
from deniable.training.networks.narrow import NarrowPass, narrow_pass
from deniable.training.noise_source import SeededSource
from deniable.training.settings import Course

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
