"""Which models the fast path knows: sequences of known layers, each used once."""

from __future__ import annotations

from torch import Tensor, nn

from deniable.training.compiled import CompiledConvolution, NormalisedPool, PooledConvolution, can_compile, halves
from deniable.training.gradients import trainable
from deniable.training.networks.images import Convolution, GroupNorm, MaxPool, SharedConvolution
from deniable.training.networks.layers import Dense, Flatten, Layer, ReLU, SharedDense, Tanh, Weighted

ACTIVATIONS: dict[type[nn.Module], type[Layer]] = {nn.ReLU: ReLU, nn.Tanh: Tanh}


def _leaves(model: nn.Module) -> list[nn.Module]:
    if not isinstance(model, nn.Sequential):
        return [model]
    return [leaf for child in model for leaf in _leaves(child)]


def known_layers(model: nn.Module, weights: list[Tensor], record: Tensor, shared: bool) -> list[Layer] | None:
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
        if self.layers and isinstance(self.layers[-1], PooledConvolution):
            self.layers[-1].flat = True
        elif not self.flat:
            self.layers.append(Flatten())
        self.flat = True

    def _take(self, module: nn.Module) -> list[Tensor]:
        count = len(list(module.parameters()))
        taken, self._weights = self._weights[:count], self._weights[count:]
        return taken

    @property
    def _is_started(self) -> bool:
        return any(isinstance(layer, Weighted) for layer in self.layers)

    def add(self, module: nn.Module) -> bool:
        """Whether the module is known here; then it is added."""
        if isinstance(module, nn.Identity):
            return True
        if type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1):
            self._flatten()
            return True
        if type(module) in ACTIVATIONS:
            return self._add_activation(ACTIVATIONS[type(module)]())
        return self._add_dense(module) if self.flat else self._images and self._add_image_layer(module)

    def _add_activation(self, layer: Layer) -> bool:
        # activations work in place, so the layer before must not read its own outputs again
        if not self.layers or not isinstance(self.layers[-1], Weighted | MaxPool) or not self._is_started:
            return False
        if isinstance(layer, ReLU) and isinstance(self.layers[-1], CompiledConvolution | Dense):
            self.layers[-1].relu = True
        else:
            self.layers.append(layer)
        return True

    def _add_dense(self, module: nn.Module) -> bool:
        if type(module) is not nn.Linear:
            return False
        kind = Dense if self._is_started or not self._shared else SharedDense
        self.layers.append(kind(self._take(module)))
        return True

    def _add_image_layer(self, module: nn.Module) -> bool:
        if type(module) is nn.Conv2d and Convolution.knows(module):
            self._add_convolution(module)
        elif type(module) is nn.GroupNorm and module.affine and self._is_started:
            self.layers.append(GroupNorm(self._take(module), module))
        elif type(module) is nn.MaxPool2d and MaxPool.knows(module) and self._is_started:
            self._add_pool(module)
        else:
            return False
        return True

    def _add_convolution(self, module: nn.Conv2d) -> None:
        weights = self._take(module)
        if can_compile(module):
            self.layers.append(CompiledConvolution(weights))
            return
        kind = Convolution if self.layers or not self._shared else SharedConvolution
        self.layers.append(kind(weights, module))

    def _add_pool(self, module: nn.MaxPool2d) -> None:
        # the largest value is the same before and after a ReLU, which costs a quarter after it
        place = len(self.layers) - isinstance(self.layers[-1], ReLU)
        before = self.layers[place - 1]
        if halves(module) and type(before) is CompiledConvolution:
            self.layers[place - 1] = PooledConvolution(before.weights, before.relu)
        elif halves(module) and type(before) is GroupNorm and can_compile(before.module):
            self.layers[place - 1] = NormalisedPool(before.weights, before.module)
        else:
            self.layers.insert(place, MaxPool(module))
