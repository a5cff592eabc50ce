"""Convolution, group norm and max pooling of many trainings at once.

Images are (trials, examples, channels, rows, columns) in memory order channels-last, in which small convolutions are
several times faster on CPUs. Their per-example gradients are materialised: for small kernels that costs less than
ghost norms, which grow with the square of the number of positions. `patches` are the inputs under the kernel at each
position (im2col); an example's gradient is the product patches^T delta.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from deniable.training.kernels import Buffers
from deniable.training.networks.layers import Layer, Weighted


def channels_last(images: Tensor) -> Tensor:
    """(trials, examples, rows, columns, channels), contiguous; no copy if the memory is in this order already."""
    return images.movedim(2, -1).contiguous()


def _trials(images: Tensor, shape: torch.Size) -> Tensor:
    """(trials * examples, ...) with trials and examples apart again, in the same memory order."""
    return images.movedim(1, -1).reshape(shape[0], shape[1], *images.shape[2:], images.shape[1]).movedim(-1, 2)


def _stack_trials(images: list[Tensor]) -> Tensor:
    """Trials joined in memory order channels-last; one trial is not copied."""
    if len(images) == 1:
        return images[0].unsqueeze(0)
    return torch.stack([each.permute(0, 2, 3, 1) for each in images]).movedim(-1, 2)


class Materialised(Weighted):
    """A layer whose per-example gradients are small enough to be held, one (trials, examples, size) per parameter."""

    def begin(self, apart: bool) -> None:
        """Nothing is kept."""
        super().begin(apart)
        self._kept: list[list[Tensor]] = []
        self._rows: Tensor | None = None

    @abstractmethod
    def _gradients(self) -> list[Tensor]:
        """Per-example gradients of the current wave, in the layer's own order of values."""

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        """`values` (trials, n, size) in the order of the parameter's values, (trials, n, ...)."""
        return values

    def add_square_norms(self, total: Tensor) -> None:
        """Sums of squares."""
        self._current = self._gradients()
        for gradient in self._current:
            squares = torch.mul(gradient, gradient, out=self._buffers.get("squares", *gradient.shape))
            total += squares.sum(2)

    def keep(self, examples: slice) -> None:
        """Copies of these examples' gradients."""
        self._kept.append([gradient[:, examples].clone() for gradient in self._current])

    def _kept_rows(self) -> Tensor:
        """All parameters' gradients of the kept examples in a row, (trials, kept, size)."""
        if self._rows is None:
            waves = (torch.cat(parts) for parts in zip(*self._kept, strict=True))
            rows = [self._as_parameter(number, values).flatten(2) for number, values in enumerate(waves)]
            self._rows = torch.cat(rows, 2).double()
        return self._rows

    def clipped_sum(self, factors: Tensor, out: list[Tensor]) -> None:
        """factors^T gradients."""
        for number, (gradient, total) in enumerate(zip(self._current, out, strict=True)):
            summed = torch.bmm(factors.unsqueeze(1), gradient)
            total.copy_(self._as_parameter(number, summed).view_as(total))

    def whole_sum(self, out: list[Tensor]) -> None:
        """Over the examples."""
        for number, (gradient, total) in enumerate(zip(self._gradients(), out, strict=True)):
            total.copy_(self._as_parameter(number, gradient.sum(1, keepdim=True)).view_as(total))

    def gram(self, rows: slice, columns: slice) -> Tensor:
        """Inner products."""
        kept = self._kept_rows()
        return kept[:, rows] @ kept[:, columns].mT

    def project(self, noise: list[Tensor]) -> Tensor:
        """Inner products."""
        flat = torch.cat([z.flatten(1) for z in noise], 1).double()
        return (self._kept_rows() @ flat.unsqueeze(2)).squeeze(2)


class Convolution(Materialised):
    """`nn.Conv2d` without groups, dilation or other padding than zeros."""

    def __init__(self, weights: list[Tensor], module: nn.Conv2d) -> None:
        super().__init__(weights)
        self._kernel = tuple(module.kernel_size)
        self._stride = tuple(module.stride)
        self._padding = (int(module.padding[0]), int(module.padding[1]))

    @staticmethod
    def knows(module: nn.Conv2d) -> bool:
        """Whether this class computes what the module does."""
        plain = module.groups == 1 and set(module.dilation) == {1} and not isinstance(module.padding, str)
        return plain and module.padding_mode == "zeros"

    def forward(self, inputs: Tensor) -> Tensor:
        """One convolution a trial."""
        self._inputs = channels_last(inputs)
        return _stack_trials([self._convolve(trial) for trial in range(len(self._now[0]))])

    def _convolve(self, trial: int) -> Tensor:
        images = self._inputs[trial if len(self._inputs) > 1 else 0].permute(0, 3, 1, 2)
        bias = self._now[1][trial] if len(self._now) == 2 else None
        return functional.conv2d(images, self._kernel_of(trial), bias, self._stride, self._padding)

    def _kernel_of(self, trial: int) -> Tensor:
        return self._now[0][trial].contiguous(memory_format=torch.channels_last)

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """One transposed convolution a trial."""
        self._delta = channels_last(delta)
        if last:
            return delta
        return _stack_trials([self._back(trial) for trial in range(len(delta))])

    def _back(self, trial: int) -> Tensor:
        delta, images = (values[trial].permute(0, 3, 1, 2) for values in (self._delta, self._inputs))
        options = (None, self._stride, self._padding, (1, 1), False, (0, 0), 1, [True, False, False])
        return torch.ops.aten.convolution_backward(delta, images, self._kernel_of(trial), *options)[0]  # type: ignore[no-any-return]

    def _patches(self) -> Tensor:
        """(trials, examples, positions, kernel rows * kernel columns * channels)."""
        padding = (0, 0, self._padding[1], self._padding[1], self._padding[0], self._padding[0])
        images = functional.pad(self._inputs, padding) if any(self._padding) else self._inputs
        windows = images.unfold(2, self._kernel[0], self._stride[0]).unfold(3, self._kernel[1], self._stride[1])
        windows = windows.movedim(4, 6)  # trials, examples, rows, columns, kernel rows, kernel columns, channels
        buffer = self._buffers.get("patches", *windows.shape)
        return buffer.copy_(windows).flatten(4).flatten(2, 3)

    def _gradients(self) -> list[Tensor]:
        # patches^T delta is four times faster here than delta^T patches, whose result has few columns
        patches, delta = self._patches(), self._delta.flatten(2, 3)
        trials, examples = delta.shape[:2]
        gradient = self._buffers.get("gradient", trials, examples, patches.shape[3], delta.shape[3])
        for trial in range(trials):
            inputs = patches[trial if len(patches) > 1 else 0]
            torch.bmm(inputs.transpose(1, 2), delta[trial], out=gradient[trial])
        return [gradient.flatten(2), delta.sum(2)][: len(self._now)]

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        if number == 1:
            return values
        outputs, channels, rows, columns = self.weights[0].shape[1:]
        return values.reshape(*values.shape[:2], rows, columns, channels, outputs).permute(0, 1, 5, 4, 2, 3)


class SharedConvolution(Convolution):
    """A first layer whose inputs (1, examples, channels, rows, columns) are the same in all trials and steps."""

    _source: Tensor | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """One product of the inputs' patches, made once, with each trial's kernels."""
        if self._source is not inputs:
            self._source, self._inputs = inputs, channels_last(inputs)
            self._made = super()._patches().clone()
        kernels = self._now[0].permute(0, 3, 4, 2, 1).flatten(1, 3)
        patches = self._made.flatten(1, 2).expand(len(kernels), -1, -1)
        outputs = torch.bmm(patches, kernels, out=self._buffers.get("out", *patches.shape[:2], kernels.shape[2]))
        if len(self._now) == 2:
            outputs += self._now[1].unsqueeze(1)
        rows = (inputs.shape[3] + 2 * self._padding[0] - self._kernel[0]) // self._stride[0] + 1
        return outputs.view(len(kernels), inputs.shape[1], rows, -1, outputs.shape[2]).movedim(-1, 2)

    def _patches(self) -> Tensor:
        return self._made


class GroupNorm(Materialised):
    """`nn.GroupNorm` on images: normalises each example on its own."""

    def __init__(self, weights: list[Tensor], module: nn.GroupNorm) -> None:
        super().__init__(weights)
        self.module, self._groups, self._eps = module, module.num_groups, module.eps

    def forward(self, inputs: Tensor) -> Tensor:
        """scale * normalised + shift, per channel."""
        self._shape = inputs.shape
        self._inputs = inputs.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        examples, channels, rows, columns = self._inputs.shape
        sizes = (examples, channels, rows * columns, self._groups)
        normal, self._mean, self._inverse = torch.native_group_norm(self._inputs, None, None, *sizes, self._eps)
        self._normal = _trials(normal, self._shape)
        return self._normal * self._per_channel(0) + self._per_channel(1)

    def _per_channel(self, number: int) -> Tensor:
        return self._now[number][:, None, :, None, None]

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """Through the scale and the normalisation."""
        self._delta = delta
        # torch's kernel reads both in the memory order of the inputs, whatever the delta's is
        scaled = (delta * self._per_channel(0)).flatten(0, 1).contiguous(memory_format=torch.channels_last)
        examples, channels, rows, columns = scaled.shape
        sizes = (examples, channels, rows * columns, self._groups)
        statistics = (self._inputs, self._mean, self._inverse, None)
        back = torch.ops.aten.native_group_norm_backward(scaled, *statistics, *sizes, [True, False, False])[0]
        return _trials(back, self._shape)

    def _gradients(self) -> list[Tensor]:
        return [(self._delta * self._normal).sum((3, 4)), self._delta.sum((3, 4))]


class MaxPool(Layer):
    """`nn.MaxPool2d` without dilation or rounding up."""

    def __init__(self, module: nn.MaxPool2d) -> None:
        self._arguments = (_pair(module.kernel_size), _pair(module.stride), _pair(module.padding))
        self._buffers = Buffers()

    @staticmethod
    def knows(module: nn.MaxPool2d) -> bool:
        """Whether this class computes what the module does."""
        return module.dilation in {1, (1, 1)} and not module.ceil_mode and not module.return_indices

    def forward(self, inputs: Tensor) -> Tensor:
        """The largest value of each window."""
        self._shape, self._inputs = inputs.shape, inputs.flatten(0, 1)
        outputs, self._places = torch.ops.aten.max_pool2d_with_indices(self._inputs, *self._arguments)
        return _trials(outputs, self._shape)

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """To the place of the largest value."""
        examples, channels, rows, columns = self._inputs.shape
        back = self._buffers.get("back", examples, rows, columns, channels).permute(0, 3, 1, 2)
        options = (*self._arguments, [1, 1], False, self._places)
        torch.ops.aten.max_pool2d_with_indices_backward.grad_input(
            delta.flatten(0, 1), self._inputs, *options, grad_input=back
        )
        return _trials(back, self._shape)


def _pair(value: int | tuple[int, ...]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)
