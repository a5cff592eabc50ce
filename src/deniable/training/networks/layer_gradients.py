"""Every record's gradient of a large model, in one pass over the records and one product for each layer.

The gradient in a layer's weights is a product of what the layer was given and of the loss's gradient in what it put
out, and both are known for all records after one pass. So no record passes through the model by itself, and the
backward pass makes no gradient of the weights that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad

from deniable.training.networks.losses import LOSSES, Loss

ROUNDING = 1e-3
"""Relative: gradients of a record that differ by less are the same."""


class _Use(NamedTuple):
    """Of one call of a layer: its name, itself, what it was given, and what it put out or its gradient."""

    name: str
    layer: nn.Module
    given: Tensor
    out: Tensor


class LayerGradients:
    """Gradients of single records of a model whose trained parameters all belong to `_LAYERS`, each used once."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        self._model, self._loss, self._room = model, loss, list[Tensor]()
        self._names = [name for name, p in model.named_parameters() if p.requires_grad]
        self._layers = {prefix: m for prefix, m in model.named_modules() if _is_trained(m)}

    @classmethod
    def of(
        cls, model: nn.Module, loss: Loss, weights: list[Tensor], records: Tensor, labels: Tensor
    ) -> LayerGradients | None:
        """None where it has another gradient of the first record than a pass of its own: not all layers are known."""
        found, tied = cls(model, loss), len(list(model.parameters())) < len(_all_names(model))
        known = all(type(layer) in _LAYERS for layer in found._layers.values())
        if tied or not known or loss not in LOSSES.values():
            return None
        try:
            together = torch.cat([g[0].flatten() for g in found(weights, records[:2], labels[:2])])
        except (LookupError, RuntimeError):  # a layer that is used twice or never, or in another way
            return None
        alone = found._of_one(weights, records[:1], labels[:1])
        return found if bool((together - alone).norm() <= ROUNDING * alone.norm()) else None

    def __call__(self, weights: list[Tensor], records: Tensor, labels: Tensor) -> list[Tensor]:
        """(records, ...) of each trained parameter at these weights, in memory that the next call may use again."""
        uses = self._pass(weights, records, labels)
        if sorted(use.name for use in uses) != sorted(self._layers):
            raise LookupError("a layer is used twice, or not at all")
        if not self._room or len(self._room[0]) < len(records):
            self._room = [w.new_empty(len(records), *w.shape) for w in weights]
        room = dict(zip(self._names, (part[: len(records)] for part in self._room), strict=True))
        for use in uses:
            own = {name: room[key] for name in ("weight", "bias") if (key := f"{use.name}.{name}".lstrip(".")) in room}
            _LAYERS[type(use.layer)](use, own)
        return list(room.values())

    def _pass(self, weights: list[Tensor], records: Tensor, labels: Tensor) -> list[_Use]:
        """What every layer was given, and the gradient of the records' losses in what it put out."""
        uses = list[_Use]()
        hooks = [layer.register_forward_hook(_keeper(name, uses)) for name, layer in self._layers.items()]
        try:
            with torch.enable_grad():
                state = dict(zip(self._names, weights, strict=True))
                losses = self._loss(functional_call(self._model, state, (records,)), labels)
                deltas = torch.autograd.grad(losses.sum(), [use.out for use in uses])
        finally:
            for hook in hooks:
                hook.remove()
        return [use._replace(out=delta) for use, delta in zip(uses, deltas, strict=True)]

    def _of_one(self, weights: list[Tensor], record: Tensor, label: Tensor) -> Tensor:
        """The gradient of one record, by itself."""

        def of(values: list[Tensor]) -> Tensor:
            state = dict(zip(self._names, values, strict=True))
            return self._loss(functional_call(self._model, state, (record,)), label).sum()

        return torch.cat([g.flatten() for g in grad(of)(weights)])


def _is_trained(module: nn.Module) -> bool:
    return any(p is not None and p.requires_grad for p in module._parameters.values())


def _all_names(model: nn.Module) -> list[str]:
    """Of parameters, tied ones by all their names."""
    return [name for name, _ in model.named_parameters(remove_duplicate=False)]


def _keeper(name: str, uses: list[_Use]) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
    """A forward hook that keeps what a layer is given and puts out; a copy goes on, which may be overwritten."""

    def keep(layer: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> Tensor:
        out = out if out.requires_grad else out.detach().requires_grad_()
        uses.append(_Use(name, layer, given[0].detach(), out))
        return out.clone()

    return keep


def _linear(use: _Use, room: Mapping[str, Tensor]) -> None:
    given, delta = (v.unsqueeze(1) if v.dim() == 2 else v.flatten(1, -2) for v in (use.given, use.out))
    if "weight" in room:
        torch.bmm(delta.mT, given, out=room["weight"])
    if "bias" in room:
        torch.sum(delta, 1, out=room["bias"])


def _convolution(use: _Use, room: Mapping[str, Tensor]) -> None:
    layer, delta = use.layer, use.out.flatten(2)
    if not isinstance(layer, nn.Conv2d) or layer.groups > 1 or layer.padding_mode != "zeros":
        raise LookupError("a convolution of another kind")
    if "weight" in room:
        if isinstance(layer.padding, str):
            raise LookupError("a padding by name")
        patches = nn.functional.unfold(use.given, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        torch.bmm(delta, patches.mT, out=room["weight"].flatten(2))
    if "bias" in room:
        torch.sum(delta, 2, out=room["bias"])


def _group_norm(use: _Use, room: Mapping[str, Tensor]) -> None:
    layer = use.layer
    assert isinstance(layer, nn.GroupNorm)
    _fill_scale_and_shift(
        use.out.flatten(2), nn.functional.group_norm(use.given, layer.num_groups, eps=layer.eps), room, 2
    )


def _layer_norm(use: _Use, room: Mapping[str, Tensor]) -> None:
    layer = use.layer
    assert isinstance(layer, nn.LayerNorm)
    shape = layer.normalized_shape
    normal = nn.functional.layer_norm(use.given, shape, eps=layer.eps)
    _fill_scale_and_shift(use.out.reshape(len(normal), -1, *shape), normal, room, 1)


def _fill_scale_and_shift(delta: Tensor, normal: Tensor, room: Mapping[str, Tensor], dim: int) -> None:
    """Scale and shift: summed over all places that share them."""
    if "weight" in room:
        torch.sum(normal.reshape(delta.shape) * delta, dim, out=room["weight"])
    if "bias" in room:
        torch.sum(delta, dim, out=room["bias"])


def _embedding(use: _Use, room: Mapping[str, Tensor]) -> None:
    layer, total = use.layer, room["weight"]
    if not isinstance(layer, nn.Embedding) or layer.padding_idx is not None or layer.max_norm is not None:
        raise LookupError("an embedding of another kind")
    first = torch.arange(len(total)).mul(total.shape[1]).view(-1, *[1] * (use.given.dim() - 1))
    total.zero_()
    total.flatten(0, 1).index_add_(0, (use.given + first).flatten(), use.out.reshape(-1, total.shape[2]))


_LAYERS: dict[type[nn.Module], Callable[[_Use, Mapping[str, Tensor]], None]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.GroupNorm: _group_norm,
    nn.LayerNorm: _layer_norm,
    nn.Embedding: _embedding,
}
"""How each kind fills the room of its parameters, (records, ...) each."""
