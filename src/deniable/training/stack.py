"""The fast path: a sequence of known layers, with ghost norms, for all trials at once."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from deniable.training.gradients import ExampleGradients, GenericGradients, clip_factors, trainable
from deniable.training.layers import Dense, Flatten, Layer, ReLU, SharedDense, Tanh, Weighted
from deniable.training.losses import Loss, output_gradient

__all__ = ["StackGradients", "example_gradients"]


class StackGradients(ExampleGradients):
    """One forward and one backward pass; gradients of dense layers are never materialised."""

    def __init__(self, layers: list[Layer], loss: Loss, differing: int) -> None:
        super().__init__(differing)
        self._layers = layers
        self._weighted = [layer for layer in layers if isinstance(layer, Weighted)]
        self._loss = loss

    def load(self, records: Tensor, labels: Tensor) -> None:
        """Keep them."""
        self._records, self._labels = records, labels

    def _sum(self, include: Tensor, clip: float, out: list[Tensor]) -> tuple[Tensor, Tensor]:
        self._run()
        squares = self._weighted[0].square_norms()
        for layer in self._weighted[1:]:
            squares += layer.square_norms()
        norms = squares.sqrt_()
        factors = clip_factors(norms, clip)
        used = factors * include
        for layer, sums in zip(self._weighted, self._by_layer(out), strict=True):
            layer.keep(self.differing)
            layer.clipped_sum(used, sums)
        return norms, factors

    def _run(self) -> None:
        values = self._records
        for layer in self._layers:
            values = layer.forward(values)
        delta = output_gradient(self._loss, values, self._labels)
        for layer in reversed(self._layers):
            last = layer is self._weighted[0]
            delta = layer.backward(delta, last)
            if last:
                return

    def _by_layer(self, tensors: list[Tensor]) -> Iterator[list[Tensor]]:
        start = 0
        for layer in self._weighted:
            yield tensors[start : start + len(layer.weights)]
            start += len(layer.weights)

    def _gram(self) -> Tensor:
        return torch.stack([layer.gram() for layer in self._weighted]).sum(0)

    def _project(self, noise: list[Tensor]) -> Tensor:
        pairs = zip(self._weighted, self._by_layer(noise), strict=True)
        return torch.stack([layer.project(part) for layer, part in pairs]).sum(0)


def example_gradients(
    model: nn.Module, loss: Loss, weights: list[Tensor], record: Tensor, *, differing: int, shared: bool
) -> ExampleGradients:
    """The fastest path for this model: known layers in sequence, else any module by `torch.func`.

    `record` is an example of the data, `shared` whether all trials see the same records (full batches).
    """
    layers = _known_layers(model, weights, record, shared)
    if layers is None:
        return GenericGradients(model, loss, weights, differing)
    return StackGradients(layers, loss, differing)


def _leaves(model: nn.Module) -> list[nn.Module]:
    if not isinstance(model, nn.Sequential):
        return [model]
    return [leaf for child in model for leaf in _leaves(child)]


def _known_layers(model: nn.Module, weights: list[Tensor], record: Tensor, shared: bool) -> list[Layer] | None:
    """The model's layers, or None where a layer, or the way the layers are joined, is not known."""
    modules = _leaves(model)
    weighted = sum(len(list(module.parameters())) for module in modules)
    if len(set(map(id, modules))) < len(modules) or weighted != len(trainable(model)):
        return None  # a layer used twice, tied or frozen weights
    build = _Builder(weights, record, shared)
    for module in modules:
        if not build.add(module):
            return None
    return build.layers if build.flat and isinstance(modules[-1], nn.Linear) else None


class _Builder:
    """Adds layer after layer while it knows the layer and the layout of its inputs."""

    def __init__(self, weights: list[Tensor], record: Tensor, shared: bool) -> None:
        self.layers: list[Layer] = []
        self.flat = False
        self._weights = list(weights)
        self._shared = shared
        self._images = record.ndim == 3
        if record.ndim == 1:
            self._flatten()

    def _flatten(self) -> None:
        if not self.flat:
            self.layers.append(Flatten())
        self.flat = True

    def _take(self, module: nn.Module) -> list[Tensor]:
        count = len(list(module.parameters()))
        taken, self._weights = self._weights[:count], self._weights[count:]
        return taken

    @property
    def _started(self) -> bool:
        return any(isinstance(layer, Weighted) for layer in self.layers)

    def add(self, module: nn.Module) -> bool:
        """Whether the module is known here; then it is added."""
        if isinstance(module, nn.Identity):
            return True
        if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
            self._flatten()
            return True
        if type(module) is nn.Linear and self.flat:
            kind = Dense if self._started or not self._shared else SharedDense
            self.layers.append(kind(self._take(module)))
            return True
        return self._add_activation(module)

    def _add_activation(self, module: nn.Module) -> bool:
        # activations work in place, so they need a weighted layer's outputs before them, which nothing else reads
        kinds: dict[type[nn.Module], type[Layer]] = {nn.ReLU: ReLU, nn.Tanh: Tanh}
        if type(module) not in kinds or not self.layers or not isinstance(self.layers[-1], Weighted):
            return False
        self.layers.append(kinds[type(module)]())
        return True
