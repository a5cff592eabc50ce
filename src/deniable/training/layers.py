"""Layers of many trainings at once, with the gradient norm of every example but without the gradients.

Activations of dense layers are laid out (trials, features, examples). A layer's ``forward`` keeps what its
``backward`` needs; activations and deltas are overwritten in place where nothing reads them again. For example i a
dense layer's gradient is the outer product ``delta_i a_i^T``, so its squared norm is ``|delta_i|^2 (|a_i|^2 + 1)``
(the 1 is the bias), the sum of the clipped gradients is one matrix product with the deltas scaled, and a product
with noise is a bilinear form. Nothing of size examples x weights is ever stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

__all__ = ["Buffers", "Dense", "Flatten", "Layer", "ReLU", "SharedDense", "Tanh", "Weighted"]


class Buffers:
    """Memory that is used again in every step; freed buffers would go back to the system each time."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def get(self, name: str, *shape: int) -> Tensor:
        """The buffer of this name, grown if it is too small; its content is undefined."""
        size = 1
        for side in shape:
            size *= side
        held = self._held.get(name)
        if held is None or held.numel() < size:
            held = self._held[name] = torch.empty(size)
        return held[:size].view(shape)


class Layer(ABC):
    """One layer of every trial."""

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """The outputs of all trials and examples."""

    @abstractmethod
    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """The losses' gradient in the inputs, from that in the outputs; not needed if this layer is the `last`."""


class Weighted(Layer):
    """A layer with weights, each (trials, ...), in the order of the module's parameters.

    The methods below are valid after ``backward``; `differing` counts the examples at the end whose own gradients
    the observer compares (x, or x and x'). ``keep`` must precede ``clipped_sum``, which overwrites the deltas.
    """

    weights: list[Tensor]

    @abstractmethod
    def square_norms(self) -> Tensor:
        """The squared norm of every example's gradient, (trials, examples)."""

    @abstractmethod
    def keep(self, differing: int) -> None:
        """Keep the last examples' own gradients, in factors."""

    @abstractmethod
    def clipped_sum(self, factors: Tensor, out: list[Tensor]) -> None:
        """The sum over examples of factor (trials, examples) times gradient."""

    @abstractmethod
    def gram(self) -> Tensor:
        """Inner products of the kept gradients, (trials, differing, differing), in float64."""

    @abstractmethod
    def project(self, noise: list[Tensor]) -> Tensor:
        """Inner products of the kept gradients with `noise`, (trials, differing), in float64."""


class Dense(Weighted):
    """`nn.Linear` with inputs (trials, features, examples) of each trial's own."""

    def __init__(self, weights: list[Tensor]) -> None:
        self.weights = weights
        self._buffers = Buffers()

    def forward(self, inputs: Tensor) -> Tensor:
        """W a + b."""
        self._inputs = inputs
        out = self._buffers.get("out", len(inputs), self.weights[0].shape[1], inputs.shape[2])
        if len(self.weights) == 1:
            return torch.bmm(self.weights[0], inputs, out=out)
        return torch.baddbmm(self.weights[1].unsqueeze(2), self.weights[0], inputs, out=out)

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """W^T delta."""
        self._delta = delta
        if last:
            return delta
        out = self._buffers.get("back", len(delta), self.weights[0].shape[2], delta.shape[2])
        return torch.bmm(self.weights[0].transpose(1, 2), delta, out=out)

    def square_norms(self) -> Tensor:
        """|delta|^2 (|a|^2 + 1)."""
        inputs = self._input_square_norms()
        return self._squares("out", self._delta).mul_(inputs + 1 if len(self.weights) == 2 else inputs)

    def _squares(self, name: str, values: Tensor) -> Tensor:
        # (v * v).sum(1) is several times faster than a vector_norm over a dimension that is not the last
        return torch.mul(values, values, out=self._buffers.get("squares " + name, *values.shape)).sum(1)

    def _input_square_norms(self) -> Tensor:
        return self._squares("in", self._inputs)

    def keep(self, differing: int) -> None:
        """Delta and input of the last examples."""
        first = self._delta.shape[2] - differing
        self._kept_delta = self._delta[:, :, first:].double()
        self._kept_inputs = self._inputs[..., first:].clone()

    def clipped_sum(self, factors: Tensor, out: list[Tensor]) -> None:
        """(delta * factors) a^T."""
        scaled = self._delta.mul_(factors.unsqueeze(1))
        self._outer(scaled, out[0])
        if len(out) == 2:
            torch.sum(scaled, 2, out=out[1])

    def _outer(self, scaled: Tensor, out: Tensor) -> None:
        torch.bmm(scaled, self._inputs.transpose(1, 2), out=out)

    def gram(self) -> Tensor:
        """(delta_i . delta_j) (a_i . a_j + 1)."""
        inputs = self._kept_inputs.double()
        bias = len(self.weights) - 1
        return (self._kept_delta.mT @ self._kept_delta) * (inputs.mT @ inputs + bias)

    def project(self, noise: list[Tensor]) -> Tensor:
        """delta_i^T Z a_i, plus the bias's part."""
        columns = [self._times_inputs(noise[0], i) for i in range(self._kept_inputs.shape[-1])]
        products = torch.stack(columns, 2).double() if columns else self._kept_delta
        if len(noise) == 2:
            products = products + noise[1].unsqueeze(2)
        return (products * self._kept_delta).sum(1)

    def _times_inputs(self, noise: Tensor, i: int) -> Tensor:
        return torch.bmm(noise, self._kept_inputs[:, :, i : i + 1]).squeeze(2)


class SharedDense(Dense):
    """A first layer whose inputs (1, features, examples) are the same in all trials: one product for all of them."""

    def forward(self, inputs: Tensor) -> Tensor:
        """One product of all trials' weights, stacked, with the inputs."""
        self._inputs = inputs[0]
        trials, width, features = self.weights[0].shape
        out = self._buffers.get("out", trials * width, inputs.shape[2])
        if len(self.weights) == 1:
            torch.mm(self.weights[0].view(-1, features), self._inputs, out=out)
        else:
            torch.addmm(self.weights[1].view(-1, 1), self.weights[0].view(-1, features), self._inputs, out=out)
        return out.view(trials, width, -1)

    def _input_square_norms(self) -> Tensor:
        return self._inputs.square().sum(0)

    def _outer(self, scaled: Tensor, out: Tensor) -> None:
        trials, width, features = out.shape
        flat = scaled.reshape(trials * width, -1)
        torch.mm(flat, self._inputs.t(), out=out.view(-1, features))

    def _times_inputs(self, noise: Tensor, i: int) -> Tensor:
        # one matrix-vector product a column: MKL is slow on products with two columns
        return torch.mv(noise.view(-1, noise.shape[2]), self._kept_inputs[:, i]).view(noise.shape[:2])


class ReLU(Layer):
    """max(a, 0), in place."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Overwrites its inputs: a weighted layer before it does not need its own outputs."""
        self._outputs = inputs.clamp_(min=0)
        return self._outputs

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """Zero where the output is zero; in place."""
        return torch.ops.aten.threshold_backward.grad_input(delta, self._outputs, 0, grad_input=delta)  # type: ignore[no-any-return]


class Tanh(Layer):
    """tanh(a), in place."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Overwrites its inputs."""
        self._outputs = inputs.tanh_()
        return self._outputs

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """delta (1 - output^2)."""
        return torch.ops.aten.tanh_backward.grad_input(delta, self._outputs, grad_input=delta)  # type: ignore[no-any-return]


class Flatten(Layer):
    """From images (trials, examples, channels, rows, columns) to (trials, features, examples)."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Features in the module's order; a view where the memory allows it."""
        self._shape = inputs.shape
        return inputs.flatten(2).transpose(1, 2)

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """The same, back."""
        return delta.transpose(1, 2).reshape(self._shape)
