"""A convolution, a ReLU and a 2 x 2 max pooling as one compiled layer.

The hand-written kernel has a reason: after pooling at most a quarter of the positions carry a gradient, which no
library call makes use of. Where the extension was not built, the builder uses the separate layers instead.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from deniable.training import kernels
from deniable.training.images import Convolution, Materialised, channels_last

__all__ = ["PooledConvolution", "can_pool"]


def can_pool(convolution: nn.Module, pool: nn.Module) -> bool:
    """Whether the compiled kernel was built and does what these two modules do."""
    if kernels.KERNELS is None or type(convolution) is not nn.Conv2d or type(pool) is not nn.MaxPool2d:
        return False
    plain = Convolution.knows(convolution) and set(convolution.stride) == {1} and set(convolution.padding) == {0}
    halves = {pool.kernel_size, pool.stride} <= {2, (2, 2)} and pool.padding in {0, (0, 0)}
    return plain and halves and pool.dilation in {1, (1, 1)} and not pool.ceil_mode and not pool.return_indices


class PooledConvolution(Materialised):
    """`nn.Conv2d` without padding or stride, `nn.ReLU` or nothing, `nn.MaxPool2d(2)`."""

    def __init__(self, weights: list[Tensor], relu: bool) -> None:
        super().__init__(weights)
        self._relu = relu
        self._places = torch.empty(0, dtype=torch.int32)

    def forward(self, inputs: Tensor) -> Tensor:
        """The convolution, and the largest of each window."""
        self._inputs = channels_last(inputs)
        examples, rows, columns, channels = self._inputs.shape[1:]
        trials, filters, _, height, width = self._now[0].shape
        self._sizes = kernels.sizes(examples, rows, columns, channels, filters, height, width)
        shape = (trials, examples, (rows - height + 1) // 2, (columns - width + 1) // 2, filters)
        outputs = self._buffers.get("pooled", *shape)
        if self._places.shape != shape:
            self._places = torch.empty(shape, dtype=torch.int32)
        for trial, kernel in enumerate(self._now[0].permute(0, 3, 4, 2, 1).contiguous()):
            bias = self._now[1][trial] if len(self._now) == 2 else None
            outs = outputs[trial], self._places[trial], self._sizes, int(self._relu)
            kernels.call("convolve_and_pool", self._images(trial), kernel, bias, *outs)
        return outputs.movedim(-1, 2)

    def _images(self, trial: int) -> Tensor:
        return self._inputs[trial if len(self._inputs) > 1 else 0]

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """Gradients, their norms and deltas at once, from the positions that were the largest."""
        passed = channels_last(delta)
        trials, examples = passed.shape[:2]
        values = sum(weight[0].numel() for weight in self._now)
        self._gradient = self._buffers.get("gradient", trials, examples, values)
        self._squares = self._buffers.get("squares", trials, examples).zero_()
        back = None if last else self._buffers.get("back", *self._inputs.shape)
        for trial, turned in enumerate(self._now[0].permute(0, 1, 3, 4, 2).contiguous()):
            ins = self._images(trial), passed[trial], self._places[trial], turned
            outs = self._gradient[trial], self._squares[trial], None if back is None else back[trial]
            kernels.call("pooled_backward", *ins, *outs, self._sizes, int(len(self._now) == 2))
        return delta if back is None else back.movedim(-1, 2)

    def add_square_norms(self, total: Tensor) -> None:
        """The kernel has them."""
        self._current = self._gradients()
        total += self._squares

    def _gradients(self) -> list[Tensor]:
        weights = self._now[0][0].numel()
        return [self._gradient[:, :, :weights], self._gradient[:, :, weights:]][: len(self._now)]

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        if number == 1:
            return values
        outputs, channels, rows, columns = self.weights[0].shape[1:]
        return values.reshape(*values.shape[:2], outputs, rows, columns, channels).permute(0, 1, 2, 5, 3, 4)
