"""Convolutions with ReLU, and what stands between them, as compiled layers (`_kernels.c`).

The hand-written kernels have a reason: no library gives every example its own gradient without a product over all
positions, and after a 2 x 2 pooling at most a quarter of them carry one. Where the extension was not built, the builder
uses the layers of `images` instead.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from ctypes import c_float
from typing import Any

import torch
from torch import Tensor, nn

from deniable.training import kernels
from deniable.training.networks.images import Materialised, channels_last


def can_compile(module: nn.Module) -> bool:
    """Whether the kernels were built and do what this convolution or group norm does."""
    if kernels.KERNELS is None:
        return False
    if isinstance(module, nn.GroupNorm):
        return module.num_channels % 8 == 0
    return isinstance(module, nn.Conv2d) and set(module.stride) == {1} and set(module.padding) == {0}


def halves(pool: nn.MaxPool2d) -> bool:
    """Whether the pooling takes the largest of 2 x 2 windows next to each other."""
    return {pool.kernel_size, pool.stride} <= {2, (2, 2)} and pool.padding in {0, (0, 0)}


Call = Callable[[int], None]
"""A kernel for one trial, by its number."""


def call_all(calls: list[Call], trials: int) -> None:
    """All calls for one trial after the other: what one kernel leaves in the cache the next one finds there."""
    for trial in range(trials):
        for call in calls:
            call(trial)


class Compiled(Materialised):
    """A layer whose kernel gives each example's gradient, all parameters in a row, and its square."""

    sums_itself = True
    """Whether its kernel sums gradients over the examples where none is needed apart."""

    def forward(self, inputs: Tensor) -> Tensor:
        """One kernel for each trial."""
        outputs, call = self.plan_forward(inputs)
        call_all([call], self._trials)
        return outputs

    def plan_forward(self, inputs: Tensor) -> tuple[Tensor, Call]:
        """Where the outputs will be, and the call that puts a trial's there."""
        self._inputs = channels_last(inputs)
        self._sizes = self._measure()
        self._trials = len(self._now[0])
        self._outputs = self._buffers.get("out", self._trials, self._inputs.shape[1], *self._output_shape())
        return self._as_images(self._outputs), self._forward()

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """Gradients, their squares and the inputs' deltas at once; one gradient, the sum, if none is needed apart."""
        back, call = self.plan_backward(delta, last, self._trials)
        call_all([call], self._trials)
        return back

    def plan_backward(self, delta: Tensor, last: bool, backs: int) -> tuple[Tensor, Call]:
        """Where the inputs' deltas will be, with memory for so many trials (1: one after the other), and the call."""
        passed = self._in_memory_order(delta)
        rows = passed.shape[1] if self._apart or not self.sums_itself else 1
        self._gradient = self._buffers.get("gradient", self._trials, rows, sum(w[0].numel() for w in self._now))
        self._squares = self._buffers.get("squares", self._trials, rows).zero_() if self._apart else None
        back = None if last else self._buffers.get("back", backs, *self._inputs.shape[1:])
        call = self._backward(passed, back)
        return delta if back is None else back.movedim(-1, 2), call

    @abstractmethod
    def _measure(self) -> Any:
        """The kernels' sizes."""

    @abstractmethod
    def _output_shape(self) -> tuple[int, ...]:
        """Rows, columns and channels."""

    @abstractmethod
    def _forward(self) -> Call:
        """Fills the outputs."""

    @abstractmethod
    def _backward(self, delta: Tensor, back: Tensor | None) -> Call:
        """Fills gradients, squares and `back`."""

    def _bias(self) -> Tensor | None:
        return self._now[1] if len(self._now) == 2 else None

    def _places(self) -> Tensor:
        """For every output, which of its window it is: a byte each, (trials, bytes)."""
        words = -(-self._outputs[0].numel() // 4)
        return self._buffers.get("places", self._trials, words).view(torch.uint8)

    def _as_images(self, outputs: Tensor) -> Tensor:
        """(trials, examples, channels, rows, columns), a view."""
        return outputs.movedim(-1, 2)

    def _in_memory_order(self, delta: Tensor) -> Tensor:
        """As the outputs are in memory."""
        return channels_last(delta)

    def add_square_norms(self, total: Tensor) -> None:
        """The kernel has them."""
        self._current = self._gradients()
        assert self._squares is not None
        total += self._squares

    def _gradients(self) -> list[Tensor]:
        weights = self._now[0][0].numel()
        return [self._gradient[:, :, :weights], self._gradient[:, :, weights:]][: len(self._now)]


class CompiledConvolution(Compiled):
    """`nn.Conv2d` without padding or stride, then `nn.ReLU` or nothing."""

    def __init__(self, weights: list[Tensor], relu: bool = False) -> None:
        super().__init__(weights)
        self.relu = relu

    def _measure(self) -> Any:
        filters, channels, height, width = self._now[0].shape[1:]
        if self._inputs.shape[4] != channels or self._inputs.shape[2] < height or self._inputs.shape[3] < width:
            shown = tuple(self._inputs.shape[2:])
            raise ValueError(
                f"images (rows, columns, channels) {shown} do not fit kernels of {channels} channels, "
                f"{height} x {width}"
            )
        return kernels.sizes(*self._inputs.shape[1:], filters, height, width)

    def _output_shape(self) -> tuple[int, ...]:
        (rows, columns), (filters, _, height, width) = self._inputs.shape[2:4], self._now[0].shape[1:]
        return rows - height + 1, columns - width + 1, filters

    def _kernels_last(self) -> Tensor:
        return self._now[0].permute(0, 3, 4, 2, 1).contiguous()

    def _forward(self) -> Call:
        ins = self._inputs, self._kernels_last(), self._bias()
        return kernels.plan_each("convolve", self._trials, *ins, self._outputs, self._sizes, int(self.relu))

    def _backward(self, delta: Tensor, back: Tensor | None) -> Call:
        turned = self._now[0].flip(3, 4).permute(0, 3, 4, 1, 2).contiguous()
        ins = self._inputs, self._outputs if self.relu else None, delta, turned
        outs = self._gradient, self._squares, back, self._sizes, int(len(self._now) == 2)
        return kernels.plan_each("convolve_backward", self._trials, *ins, *outs)

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        if number == 1:
            return values
        filters, channels, height, width = self.weights[0].shape[1:]
        return values.reshape(*values.shape[:2], height, width, channels, filters).permute(0, 1, 5, 4, 2, 3)


class PooledConvolution(CompiledConvolution):
    """The same, then `nn.MaxPool2d(2)`, then `nn.Flatten` or nothing."""

    flat = False
    """Whether its outputs are features (trials, features, examples), in memory one example after the other."""

    def _output_shape(self) -> tuple[int, ...]:
        rows, columns, filters = super()._output_shape()
        return (filters, rows // 2, columns // 2) if self.flat else (rows // 2, columns // 2, filters)

    def _as_images(self, outputs: Tensor) -> Tensor:
        return outputs.flatten(2).mT if self.flat else super()._as_images(outputs)

    def _in_memory_order(self, delta: Tensor) -> Tensor:
        return delta.mT.contiguous() if self.flat else super()._in_memory_order(delta)

    def _forward(self) -> Call:
        ins = self._inputs, self._now[0], self._bias()
        outs = self._outputs, self._places(), self._sizes, int(self.relu), int(self.flat)
        name = "winograd_and_pool" if self._suits_winograd() else "convolve_and_pool"
        return kernels.plan_each(name, self._trials, *ins, *outs)

    def _suits_winograd(self) -> bool:
        """What `_winograd.c` asks for: 3 x 3 kernels, eight channels, sixteen filters and five windows at a time."""
        filters, channels, *kernel = self._now[0].shape[1:]
        windows = self._outputs[0, 0].numel() // filters
        return kernel == [3, 3] and channels % 8 == 0 and filters % 16 == 0 and windows >= 5

    def _backward(self, delta: Tensor, back: Tensor | None) -> Call:
        ins = self._inputs, delta, self._places(), self._now[0]
        outs = self._gradient, self._squares, back, self._sizes, int(len(self._now) == 2), int(self.flat)
        return kernels.plan_each("pooled_backward", self._trials, *ins, *outs)

    def whole_sum(self, out: list[Tensor]) -> None:
        """The kernel has it, in the order of the parameters."""
        for gradient, total in zip(self._gradients(), out, strict=True):
            total.view(len(total), 1, -1).copy_(gradient)

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        if number == 1:
            return values
        filters, channels, height, width = self.weights[0].shape[1:]
        return values.reshape(*values.shape[:2], filters, height, width, channels).permute(0, 1, 2, 5, 3, 4)


class NormalisedPool(Compiled):
    """`nn.GroupNorm`, then `nn.MaxPool2d(2)`."""

    sums_itself = False

    def __init__(self, weights: list[Tensor], module: nn.GroupNorm) -> None:
        super().__init__(weights)
        self._groups, self._eps = module.num_groups, module.eps

    def _measure(self) -> Any:
        return kernels.sizes(*self._inputs.shape[1:], self._groups)

    def _output_shape(self) -> tuple[int, ...]:
        rows, columns, channels = self._inputs.shape[2:]
        return rows // 2, columns // 2, channels

    def _statistics(self) -> Tensor:
        return self._buffers.get("statistics", *self._outputs.shape[:2], 2, self._outputs.shape[-1])

    def _forward(self) -> Call:
        ins = self._inputs, self._now[0], self._now[1]
        outs = self._outputs, self._places(), self._statistics()
        return kernels.plan_each("normalise_and_pool", self._trials, *ins, *outs, self._sizes, c_float(self._eps))

    def _backward(self, delta: Tensor, back: Tensor | None) -> Call:
        ins = self._inputs, delta, self._places(), self._now[0], self._statistics()
        outs = self._gradient, self._squares, back
        return kernels.plan_each("normalised_backward", self._trials, *ins, *outs, self._sizes)
