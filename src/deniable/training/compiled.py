"""Convolutions with ReLU, and what stands between them, as compiled layers (`_kernels.c`).

The hand-written kernels have a reason: no library gives every example its own gradient without a product over all
positions, and after a 2 x 2 pooling at most a quarter of them carry one. Where the extension was not built, the builder
uses the layers of `images` instead.
"""

from __future__ import annotations

from abc import abstractmethod
from ctypes import c_float
from typing import Any

import torch
from torch import Tensor, nn

from deniable.training import kernels
from deniable.training.networks.images import Materialised, channels_last

__all__ = ["CompiledConvolution", "NormalisedPool", "PooledConvolution", "can_compile", "halves"]


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


class Compiled(Materialised):
    """A layer whose kernel gives each example's gradient, all parameters in a row, and its square, trial by trial."""

    def forward(self, inputs: Tensor) -> Tensor:
        """One kernel a trial."""
        self._inputs = channels_last(inputs)
        self._sizes = self._measure()
        shape = len(self._now[0]), self._inputs.shape[1], *self._output_shape()
        self._outputs = self._buffers.get("out", *shape)
        for trial in range(len(self._outputs)):
            self._forward(trial)
        return self._outputs.movedim(-1, 2)

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """Gradients, their squares and the inputs' deltas at once."""
        passed = channels_last(delta)
        shape = len(passed), passed.shape[1]
        self._gradient = self._buffers.get("gradient", *shape, sum(weight[0].numel() for weight in self._now))
        self._squares = self._buffers.get("squares", *shape).zero_()
        back = None if last else self._buffers.get("back", len(passed), *self._inputs.shape[1:])
        for trial in range(len(passed)):
            self._backward(trial, passed[trial], None if back is None else back[trial])
        return delta if back is None else back.movedim(-1, 2)

    @abstractmethod
    def _measure(self) -> Any:
        """The kernels' sizes."""

    @abstractmethod
    def _output_shape(self) -> tuple[int, ...]:
        """Rows, columns and channels."""

    @abstractmethod
    def _forward(self, trial: int) -> None:
        """Fill the trial's outputs."""

    @abstractmethod
    def _backward(self, trial: int, delta: Tensor, back: Tensor | None) -> None:
        """Fill the trial's gradients, squares and `back`."""

    def _images(self, trial: int) -> Tensor:
        return self._inputs[trial if len(self._inputs) > 1 else 0]

    def _bias(self, trial: int) -> Tensor | None:
        return self._now[1][trial] if len(self._now) == 2 else None

    def _places(self) -> Tensor:
        """For every output, which of its window it is."""
        return self._buffers.get("places", *self._outputs.shape).view(torch.int32)

    def add_square_norms(self, total: Tensor) -> None:
        """The kernel has them."""
        self._current = self._gradients()
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

    def _forward(self, trial: int) -> None:
        kernel = self._now[0][trial].permute(2, 3, 1, 0).contiguous()
        ins = self._images(trial), kernel, self._bias(trial)
        kernels.call("convolve", *ins, self._outputs[trial], self._sizes, int(self.relu))

    def _backward(self, trial: int, delta: Tensor, back: Tensor | None) -> None:
        turned = self._now[0][trial].flip(2, 3).permute(2, 3, 0, 1).contiguous()
        ins = self._images(trial), self._outputs[trial] if self.relu else None, delta, turned
        outs = self._gradient[trial], self._squares[trial], back
        kernels.call("convolve_backward", *ins, *outs, self._sizes, int(len(self._now) == 2))

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        if number == 1:
            return values
        filters, channels, height, width = self.weights[0].shape[1:]
        return values.reshape(*values.shape[:2], height, width, channels, filters).permute(0, 1, 5, 4, 2, 3)


class PooledConvolution(CompiledConvolution):
    """The same, then `nn.MaxPool2d(2)`."""

    def _output_shape(self) -> tuple[int, ...]:
        rows, columns, filters = super()._output_shape()
        return rows // 2, columns // 2, filters

    def _forward(self, trial: int) -> None:
        kernel = self._now[0][trial].permute(2, 3, 1, 0).contiguous()
        ins = self._images(trial), kernel, self._bias(trial)
        outs = self._outputs[trial], self._places()[trial], self._sizes, int(self.relu)
        kernels.call("convolve_and_pool", *ins, *outs)

    def _backward(self, trial: int, delta: Tensor, back: Tensor | None) -> None:
        turned = self._now[0][trial].permute(0, 2, 3, 1).contiguous()
        ins = self._images(trial), delta, self._places()[trial], turned
        outs = self._gradient[trial], self._squares[trial], back
        kernels.call("pooled_backward", *ins, *outs, self._sizes, int(len(self._now) == 2))

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        if number == 1:
            return values
        filters, channels, height, width = self.weights[0].shape[1:]
        return values.reshape(*values.shape[:2], filters, height, width, channels).permute(0, 1, 2, 5, 3, 4)


class NormalisedPool(Compiled):
    """`nn.GroupNorm`, then `nn.MaxPool2d(2)`."""

    def __init__(self, weights: list[Tensor], module: nn.GroupNorm) -> None:
        super().__init__(weights)
        self._groups, self._eps = module.num_groups, module.eps

    def _measure(self) -> Any:
        return kernels.sizes(*self._inputs.shape[1:], self._groups)

    def _output_shape(self) -> tuple[int, ...]:
        rows, columns, channels = self._inputs.shape[2:]
        return rows // 2, columns // 2, channels

    def _statistics(self, trial: int) -> Tensor:
        return self._buffers.get("statistics", *self._outputs.shape[:2], 2, self._outputs.shape[-1])[trial]

    def _forward(self, trial: int) -> None:
        ins = self._images(trial), self._now[0][trial], self._now[1][trial]
        outs = self._outputs[trial], self._places()[trial], self._statistics(trial)
        kernels.call("normalise_and_pool", *ins, *outs, self._sizes, c_float(self._eps))

    def _backward(self, trial: int, delta: Tensor, back: Tensor | None) -> None:
        ins = self._images(trial), delta, self._places()[trial], self._now[0][trial], self._statistics(trial)
        outs = self._gradient[trial], self._squares[trial], back
        kernels.call("normalised_backward", *ins, *outs, self._sizes)
