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

from deniable.training import columns
from deniable.training.kernels import Buffers
from deniable.training.networks.listed import ListedInputs, list_inputs

FEW_EXAMPLES = 8
"""Up to so many kept examples a matrix product is slower than `multiply_few`."""


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

    A pass goes through the trials in waves that fit the cache: ``begin`` once, then for each wave ``select``,
    ``forward``, ``backward``, ``add_square_norms``, ``keep`` and ``clipped_sum`` (which overwrites the deltas).
    ``gram`` and ``project`` are about the kept examples of all trials. Where no example needs a gradient of its own,
    ``whole_sum`` follows on ``backward``.
    """

    def __init__(self, weights: list[Tensor]) -> None:
        self.weights, self._now = weights, weights
        self._buffers = Buffers()

    def begin(self, apart: bool) -> None:
        """Forget the kept gradients; examples need gradients of their own only if they are told `apart`."""
        self._apart = apart

    def select(self, trials: slice) -> None:
        """Go on with these trials."""
        self._now = [w[trials] for w in self.weights]

    @property
    def now(self) -> list[Tensor]:
        """The selected trials' weights."""
        return self._now

    @abstractmethod
    def add_square_norms(self, total: Tensor) -> None:
        """Add the squared norm of every example's gradient to `total` (trials, examples)."""

    @abstractmethod
    def keep(self, examples: slice) -> None:
        """Keep these examples' own gradients (x, or x and x')."""

    @abstractmethod
    def clipped_sum(self, factors: Tensor, out: list[Tensor]) -> None:
        """The sum over examples of factor (trials, examples) times gradient."""

    @abstractmethod
    def whole_sum(self, out: list[Tensor]) -> None:
        """The sum over examples of their gradients, each weighed by the delta that came in."""

    @abstractmethod
    def gram(self, rows: slice, columns: slice) -> Tensor:
        """Inner products of some of the kept gradients with others, (trials, rows, columns), in float64."""

    @abstractmethod
    def project(self, noise: list[Tensor]) -> Tensor:
        """Inner products of the kept gradients with `noise`, (trials, kept), in float64."""


class Dense(Weighted):
    """`nn.Linear` with inputs (trials, features, examples) of each trial's own, then `nn.ReLU` or nothing."""

    relu = False

    def begin(self, apart: bool) -> None:
        """Nothing is kept."""
        super().begin(apart)
        self._kept_deltas: list[Tensor] = []
        self._kept_inputs: list[Tensor] = []

    def forward(self, inputs: Tensor) -> Tensor:
        """W a + b, or the larger of it and 0."""
        bias = self._now[1] if len(self._now) == 2 else None
        self.multiply(inputs, None if self.relu else bias)
        if self.relu:
            columns.rectify(self._outputs, bias)
        return self._outputs

    def multiply(self, inputs: Tensor, bias: Tensor | None) -> Tensor:
        """W a, plus the bias if one is given, (trials, width, examples)."""
        self._inputs = inputs
        self._outputs = self._buffers.get("out", *self._now[0].shape[:2], inputs.shape[2])
        self._multiply(inputs, bias)
        return self._outputs

    def _multiply(self, inputs: Tensor, bias: Tensor | None) -> None:
        columns.multiply(self._now[0], inputs, self._outputs)
        if bias is not None:
            self._outputs.add_(bias.unsqueeze(2))

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """W^T delta."""
        self._delta = delta
        self._delta_squares = self._stop(delta) if self.relu else self._squares("delta", delta)
        if last:
            return delta
        trials, features, examples = len(delta), self._now[0].shape[2], delta.shape[2]
        if self._inputs.is_contiguous():
            return columns.multiply(self._now[0].mT, delta, self._buffers.get("back", trials, features, examples))
        turned = self._buffers.get("back", trials, examples, features)  # as the inputs are in memory
        return columns.multiply(delta.mT, self._now[0], turned).mT

    def _stop(self, delta: Tensor) -> Tensor:
        return columns.stop(delta, self._outputs, self._buffers.get("delta", len(delta), delta.shape[2]))

    def add_square_norms(self, total: Tensor) -> None:
        """|delta|^2 (|a|^2 + 1)."""
        total.addcmul_(self._delta_squares, self.input_squares())

    def _squares(self, name: str, values: Tensor) -> Tensor:
        return columns.squares(values, self._buffers.get(name, len(values), values.shape[2]))

    def input_squares(self) -> Tensor:
        """|a|^2 of the inputs, + 1 with a bias, (1 or trials, examples)."""
        squares = self._squares("inputs", self._inputs.contiguous())
        return squares.add_(1) if len(self._now) == 2 else squares

    def keep(self, examples: slice) -> None:
        """Delta and input of these examples."""
        self._kept_deltas.append(self._delta[:, :, examples].double())
        self._kept_inputs.append(self._inputs[:, :, examples].clone())

    def clipped_sum(self, factors: Tensor, out: list[Tensor]) -> None:
        """(delta * factors) a^T."""
        columns.weigh(self._delta, factors, out[1] if len(out) == 2 else None)
        self.outer(self._delta, out[0])

    def whole_sum(self, out: list[Tensor]) -> None:
        """Delta a^T."""
        if len(out) == 2:
            torch.sum(self._delta, 2, out=out[1])
        self.outer(self._delta, out[0])

    def outer(self, scaled: Tensor, out: Tensor) -> None:
        """The sum over examples of deltas, weighed already, times inputs."""
        columns.multiply(scaled, self._inputs.mT, out)

    def gram(self, rows: slice, columns: slice) -> Tensor:
        """(delta_i . delta_j) (a_i . a_j + 1)."""
        deltas, inputs = torch.cat(self._kept_deltas), torch.cat(self._kept_inputs).double()
        alike = torch.bmm(inputs[:, :, rows].mT, inputs[:, :, columns]).add_(len(self.weights) - 1)
        return torch.bmm(deltas[:, :, rows].mT, deltas[:, :, columns]).mul_(alike)

    def project(self, noise: list[Tensor]) -> Tensor:
        """delta_i^T Z a_i, plus the bias's part."""
        deltas, inputs = torch.cat(self._kept_deltas), torch.cat(self._kept_inputs)
        few = inputs.shape[2] <= FEW_EXAMPLES
        products = (columns.multiply_few(noise[0], inputs) if few else self._times(noise[0], inputs)).double()
        if len(noise) == 2:
            products = products + noise[1].unsqueeze(2)
        return (products * deltas).sum(1)

    @staticmethod
    def _times(noise: Tensor, inputs: Tensor) -> Tensor:
        return torch.bmm(noise, inputs)


class SharedDense(Dense):
    """A first layer whose inputs (1, features, examples) are the same in all trials: one product for all of them."""

    _listed: ListedInputs | None = None

    def load(self, inputs: Tensor) -> None:
        """The inputs of the steps that follow: those that are mostly zero are listed once for all trials."""
        self._listed = list_inputs(inputs[0], self.weights[0].shape[0] * self.weights[0].shape[1])
        self._loaded = inputs

    def begin(self, apart: bool) -> None:
        """Nothing is kept; the inputs' norms are computed once a pass."""
        super().begin(apart)
        self._shared_squares: Tensor | None = None

    def input_squares(self) -> Tensor:
        """Computed once a pass."""
        if self._shared_squares is None:
            self._shared_squares = super().input_squares()
        return self._shared_squares

    def _lists(self) -> ListedInputs | None:
        return self._listed if self._inputs is self._loaded else None

    def _multiply(self, inputs: Tensor, bias: Tensor | None) -> None:
        # one product of all trials' weights, stacked, with the inputs
        stacked, out = self._now[0].flatten(0, 1), self._outputs.flatten(0, 1)
        if bias is not None:
            torch.addmm(bias.view(-1, 1), stacked, inputs[0], out=out)
        elif listed := self._lists():
            listed.multiply(stacked, out)
        else:
            columns.multiply(stacked[None], inputs, out[None])

    def outer(self, scaled: Tensor, out: Tensor) -> None:
        """One product for all trials."""
        flat, sums = scaled.view(-1, scaled.shape[2]), out.view(-1, out.shape[2])
        if listed := self._lists():
            listed.outer(flat, sums)
        else:
            columns.multiply(flat[None], self._inputs.mT, sums[None])

    def keep(self, examples: slice) -> None:
        """Delta of these examples; their inputs once."""
        self._kept_deltas.append(self._delta[:, :, examples].double())
        self._kept_inputs = [self._inputs[:, :, examples]]

    @staticmethod
    def _times(noise: Tensor, inputs: Tensor) -> Tensor:
        return torch.mm(noise.view(-1, noise.shape[2]), inputs[0]).view(*noise.shape[:2], -1)


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

    def __init__(self) -> None:
        self._buffers = Buffers()

    def forward(self, inputs: Tensor) -> Tensor:
        """Features in the module's order, examples next to each other in memory."""
        turned = inputs.movedim(1, -1)
        self._shape = turned.shape
        if turned.is_contiguous():
            return turned.flatten(1, -2)
        return self._buffers.get("flat", *turned.shape).copy_(turned).flatten(1, -2)

    def backward(self, delta: Tensor, last: bool) -> Tensor:
        """The same, back: a view."""
        return delta.reshape(self._shape).movedim(-1, 1)
