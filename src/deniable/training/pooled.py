"""A convolution, a ReLU and a 2 x 2 max pooling as one layer, with a compiled backward pass.

The hand-written kernel (`_kernels.c`) has a reason: after pooling at most a quarter of the positions carry a gradient,
which no library call makes use of. Where the extension was not built, the builder uses the separate layers instead.
"""

from __future__ import annotations

import ctypes
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from deniable.training.images import Convolution, SharedConvolution

__all__ = ["PooledConvolution", "SharedPooledConvolution", "can_pool"]


def _library() -> ctypes.CDLL | None:
    spec = find_spec("deniable.training._kernels")
    return ctypes.CDLL(spec.origin) if spec is not None and spec.origin is not None else None


_KERNELS = _library()


def can_pool(convolution: nn.Module, pool: nn.Module) -> bool:
    """Whether the compiled kernel was built and does what these two modules do."""
    if _KERNELS is None or type(convolution) is not nn.Conv2d or type(pool) is not nn.MaxPool2d:
        return False
    plain = Convolution.knows(convolution) and set(convolution.stride) == {1} and set(convolution.padding) == {0}
    halves = {pool.kernel_size, pool.stride} <= {2, (2, 2)} and pool.padding in {0, (0, 0)}
    return plain and halves and pool.dilation in {1, (1, 1)} and not pool.ceil_mode and not pool.return_indices


def _address(values: Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.data_ptr() if values is not None else None)


class PooledConvolution(Convolution):
    """`nn.Conv2d` without padding or stride, `nn.ReLU` or nothing, `nn.MaxPool2d(2)`."""

    def __init__(self, weights: list[Tensor], module: nn.Conv2d, relu: bool) -> None:
        super().__init__(weights, module)
        self._relu = relu

    def forward(self, inputs: Tensor) -> Tensor:
        """The convolution, and the largest of each window."""
        convolved = super().forward(inputs).movedim(2, -1).contiguous()
        trials, examples, rows, columns, channels = convolved.shape
        shape = (trials, examples, rows // 2, columns // 2, channels)
        self._outputs = self._buffers.get("pooled", *shape)
        self._places = torch.empty(shape, dtype=torch.int32)
        sizes = [ctypes.c_long(size) for size in (trials * examples, rows, columns, channels)]
        assert _KERNELS is not None
        _KERNELS.pool(_address(convolved), _address(self._outputs), _address(self._places), *sizes, int(self._relu))
        return self._outputs.movedim(-1, 2)

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """Gradients and deltas at once, from the positions that were the largest."""
        self._delta = delta.movedim(2, -1).contiguous()
        if self._relu:
            torch.ops.aten.threshold_backward.grad_input(self._delta, self._outputs, 0, grad_input=self._delta)
        trials, examples = self._delta.shape[:2]
        filters, channels, rows, columns = self._now[0].shape[1:]
        self._gradient = self._buffers.get("gradient", trials, examples, filters, rows, columns, channels)
        back = None if last else self._buffers.get("back", *self._inputs.shape)
        for trial in range(trials):
            self._backward_trial(trial, None if back is None else back[trial])
        return delta if back is None else back.movedim(-1, 2)

    def _backward_trial(self, trial: int, back: Tensor | None) -> None:
        inputs = self._inputs[trial if len(self._inputs) > 1 else 0]
        kernel = self._now[0][trial].permute(0, 2, 3, 1).contiguous()
        pooled = self._delta.shape[2:4]
        sizes = (ctypes.c_long * 9)(*inputs.shape, *pooled, len(kernel), *kernel.shape[1:3])
        tensors = (inputs, self._delta[trial], self._places[trial], kernel, self._gradient[trial], back)
        assert _KERNELS is not None
        _KERNELS.pooled_backward(*(_address(t) for t in tensors), sizes)

    def _gradients(self) -> list[Tensor]:
        return [self._gradient.flatten(2), self._delta.sum((2, 3))][: len(self._now)]

    def _as_parameter(self, number: int, values: Tensor) -> Tensor:
        if number == 1:
            return values
        outputs, channels, rows, columns = self.weights[0].shape[1:]
        return values.reshape(*values.shape[:2], outputs, rows, columns, channels).permute(0, 1, 2, 5, 3, 4)


class SharedPooledConvolution(PooledConvolution, SharedConvolution):
    """A first layer, whose inputs are the same in all trials and steps."""
