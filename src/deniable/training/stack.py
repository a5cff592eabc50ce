"""The fast path: a sequence of known layers, each used once, with ghost norms, for all trials at once."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import torch
from torch import Tensor, nn

from deniable.training import kernels
from deniable.training.compiled import (
    Call,
    Compiled,
    CompiledConvolution,
    NormalisedPool,
    PooledConvolution,
    call_all,
    can_compile,
    halves,
)
from deniable.training.gradients import Clip, ExampleGradients, GenericGradients, clip_factors, trainable
from deniable.training.kernels import Buffers
from deniable.training.networks.images import Convolution, GroupNorm, MaxPool, SharedConvolution
from deniable.training.networks.layers import Dense, Flatten, Layer, ReLU, SharedDense, Tanh, Weighted
from deniable.training.networks.losses import Loss, output_gradient
from deniable.training.networks.narrow import Clipping, narrow_pass

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


PADDED_TO_EXAMPLES = 16
"""Examples of dense models are padded to a multiple of this: MKL multiplies 1008 columns half as fast again as 1001."""
WAVE_VALUES = 2**23
"""Activations of a wave of trials, as a number of values: what stays in the cache from layer to layer."""
IMAGE_WAVE_VALUES = 2**24
"""The same for images, whose layers go through the wave trial by trial: larger, for fewer calls."""
NARROW_WAVE_VALUES = 2**17
"""The same of the first layer alone, for networks that go through one kernel behind it: half of a second cache."""


def _pad(values: Tensor, width: int) -> Tensor:
    """Zeros behind the examples (dimension 1)."""
    missing = width - values.shape[1]
    if not missing:
        return values
    return torch.cat([values, values.new_zeros(len(values), missing, *values.shape[2:])], 1)


class StackGradients(ExampleGradients):
    """One forward and one backward pass; gradients of dense layers are never materialised."""

    def __init__(self, layers: list[Layer], loss: Loss, activations: int) -> None:
        self._activations = activations
        self._dense = isinstance(layers[0], Flatten)
        self._layers = layers[1:] if self._dense else layers
        self._weighted = [layer for layer in layers if isinstance(layer, Weighted)]
        self._output_gradient, self._kept_gradient = output_gradient(loss), output_gradient(loss)
        self._narrow = narrow_pass(self._layers, loss) if self._dense else None
        self._examples = 0
        self._buffers = Buffers()
        self._wave = 1

    def _load(self, records: Tensor, labels: Tensor) -> None:
        """Keep them; those of dense models flat, padded with empty records of weight 0: see `PADDED_TO_EXAMPLES`."""
        self._examples = records.shape[1]
        self._width = -(-self._examples // PADDED_TO_EXAMPLES) * PADDED_TO_EXAMPLES if self._dense else self._examples
        self._records = self._flat(records) if self._dense else records
        if isinstance(self._layers[0], SharedDense):
            self._layers[0].load(self._records)
        padded, classes = _pad(labels, self._width), self._weighted[-1].weights[0].shape[1]
        self._output_gradient.load(padded, classes)
        self._wave = max(1, (WAVE_VALUES if self._dense else IMAGE_WAVE_VALUES) // (self._activations * self._width))
        if self._narrow:
            self._narrow.load(padded)
            self._wave = max(1, NARROW_WAVE_VALUES // (self._narrow.widths[0] * self._width))
            if self._differing:
                self._kept_gradient.load(labels[:, self._examples - self._differing :], classes)

    def _flat(self, records: Tensor) -> Tensor:
        """(1 or trials, features, examples); copied where all steps use the same records, or some are missing."""
        turned = records.flatten(2).transpose(1, 2)
        if len(records) > 1 and self._width == self._examples:
            return turned
        flat = self._buffers.get("records", *turned.shape[:2], self._width)
        flat[:, :, : self._examples] = turned
        flat[:, :, self._examples :] = 0
        return flat

    def _sum(self, include: Tensor, clip: Clip, out: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Norms are left at 0 where nothing is clipped and no record differs: nobody asks for them."""
        shape = len(include), self._width
        norms, factors = self._buffers.get("norms", *shape).zero_(), self._buffers.get("factors", *shape)
        include = _pad(include, shape[1]).contiguous()
        apart = bool(self._differing) or isinstance(clip, Tensor) or clip < inf
        for layer in self._weighted:
            layer.begin(apart)
        for start in range(0, len(include), self._wave):
            trials = slice(start, start + self._wave)
            sums = [total[trials] for total in out]
            for weighted in self._weighted:
                weighted.select(trials)
            if self._narrow:
                clips = torch.as_tensor(clip, dtype=torch.float32).expand(len(include))[trials].contiguous()
                clipping = Clipping(clips, norms[trials], factors[trials]) if apart else None
                self._narrow.sum_wave(
                    trials, self._inputs(trials), include[trials], clipping, list(self._by_layer(sums))
                )
                self._keep_differing(trials)
            elif apart:
                self._run(trials, norms[trials])
                clip_factors(norms[trials], clip[trials] if isinstance(clip, Tensor) else clip, factors[trials])
                self._sum_wave(factors[trials] * include[trials], sums)
            else:
                self._run(trials, None, include[trials])
                self._sum_whole(sums)
        return norms[:, : self._examples], (factors if apart else include)[:, : self._examples]

    def _inputs(self, trials: slice) -> Tensor:
        return self._records if len(self._records) == 1 else self._records[trials]

    def _run(self, trials: slice, norms: Tensor | None, weights: Tensor | None = None) -> None:
        """Forward and backward; the examples' gradient norms go into `norms`, if given, which must be zero.

        Each example's loss is multiplied by its weight, if there are `weights` (trials, examples).
        """
        delta = self._output_gradient(self._forward(self._inputs(trials)), trials)
        if weights is not None:
            delta.mul_(weights.unsqueeze(1))
        self._backward(delta, norms)
        if norms is not None:
            norms.sqrt_()

    def _forward(self, values: Tensor) -> Tensor:
        calls: list[Call] = []
        for layer in self._layers:
            if isinstance(layer, Compiled):
                values, call = layer.plan_forward(values)
                calls.append(call)
            else:
                call_all(calls, self._trials())
                calls = []
                values = layer.forward(values)
        return values

    def _trials(self) -> int:
        return len(self._weighted[0].now[0])

    def _backward(self, delta: Tensor, norms: Tensor | None) -> None:
        used = self._layers[self._layers.index(self._weighted[0]) :]
        calls: list[Call] = []
        for layer, before in zip(used[::-1], [*used[-2::-1], None], strict=True):
            if isinstance(layer, Compiled):
                backs = 1 if isinstance(before, Compiled) else self._trials()
                delta, call = layer.plan_backward(delta, before is None, backs)
                calls.append(call)
            else:
                delta = layer.backward(delta, before is None)
            if not isinstance(before, Compiled):
                call_all(calls, self._trials())
                calls = []
            if norms is not None and isinstance(layer, Weighted) and not isinstance(layer, Compiled):
                layer.add_square_norms(norms)
        for layer in used:
            if norms is not None and isinstance(layer, Compiled):  # known once they were called
                layer.add_square_norms(norms)

    def _keep_differing(self, trials: slice) -> None:
        """Pass the differing records alone through the layers, which keep what `gram` and `project` need."""
        if self._differing:
            own = self._inputs(trials)[:, :, self._examples - self._differing : self._examples]
            self._backward(self._kept_gradient(self._forward(own.contiguous()), trials), None)
            for layer in self._weighted:
                layer.keep(slice(None))

    def _sum_wave(self, factors: Tensor, out: list[Tensor]) -> None:
        for layer, sums in zip(self._weighted, self._by_layer(out), strict=True):
            layer.keep(slice(self._examples - self._differing, self._examples))
            layer.clipped_sum(factors, sums)

    def _sum_whole(self, out: list[Tensor]) -> None:
        for layer, sums in zip(self._weighted, self._by_layer(out), strict=True):
            layer.whole_sum(sums)

    def _by_layer(self, tensors: list[Tensor]) -> Iterator[list[Tensor]]:
        start = 0
        for layer in self._weighted:
            yield tensors[start : start + len(layer.weights)]
            start += len(layer.weights)

    def _gram(self, rows: slice, columns: slice) -> Tensor:
        return torch.stack([layer.gram(rows, columns) for layer in self._weighted]).sum(0)

    def _project(self, noise: list[Tensor]) -> Tensor:
        if not self._differing:
            return torch.zeros(len(noise[0]), 0, dtype=torch.float64)
        pairs = zip(self._weighted, self._by_layer(noise), strict=True)
        return torch.stack([layer.project(part) for layer, part in pairs]).sum(0)


def example_gradients(
    model: nn.Module, loss: Loss, weights: list[Tensor], record: Tensor, *, shared: bool
) -> ExampleGradients:
    """The fastest path for this model: known layers in sequence and single precision, else any by `torch.func`.

    `record` is an example of the data, `shared` whether all trials see the same records (full batches).
    """
    layers = known_layers(model, weights, record, shared) if kernels.suit(record, *weights) else None
    if layers is None:
        return GenericGradients(model, loss, weights)
    return StackGradients(layers, loss, activations(model, record))


def activations(model: nn.Module, record: Tensor) -> int:
    """How many values the layers put out for one record."""
    sizes: list[int] = []
    leaves = [module for module in model.modules() if not list(module.children())]
    hooks = [leaf.register_forward_hook(lambda _, __, output: sizes.append(output.numel())) for leaf in leaves]
    model(record[None])
    for hook in hooks:
        hook.remove()
    return sum(sizes)
