"""The clipped sum of a batch at the present weights, recomputed record by record in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import default_collate

from deniable.training.networks.losses import loss_function

__all__ = ["BatchSums", "LossOfBatch", "mean_gradient", "recompute_sums", "uses_chance"]

LossOfBatch = str | Callable[[Tensor, Tensor], Tensor]
"""Of outputs and targets, one number for each example: by name or a function."""
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_NUMBERS_AT_ONCE = 2**26
"""Of single records' gradients that are held at once."""


@dataclass(frozen=True)
class BatchSums:
    """Sums over a batch, one tensor a parameter: of clipped gradients, and of gradients as they are."""

    clean: list[Tensor]
    whole: list[Tensor]
    longest: float


def uses_chance(model: nn.Module) -> str:
    """The module that makes gradients random or mixes records, so that none can be recomputed; empty without one."""
    mixing = nn.modules.batchnorm._BatchNorm
    for name, module in model.named_modules():
        dropping = isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0 and module.training
        if dropping or (isinstance(module, mixing) and module.training):
            return f"{name or 'the model'} ({type(module).__name__})"
    return ""


def recompute_sums(model: nn.Module, items: Sequence[Any], loss: LossOfBatch, clip: float) -> BatchSums:
    """The sums over these records; each gradient is clipped to norm `clip` over all parameters together."""
    inner = getattr(model, "_module", model)
    parameters = {name: p.detach() for name, p in inner.named_parameters() if p.requires_grad}
    clean, whole = ([torch.zeros_like(p) for p in parameters.values()] for _ in range(2))
    longest, size = 0.0, max(1, _NUMBERS_AT_ONCE // max(1, sum(p.numel() for p in parameters.values())))
    with _without_hooks(inner) as plain:
        gradients = _per_record(plain, loss, parameters)
        for start in range(0, len(items), size):
            found = gradients(default_collate([_as_pair(item) for item in items[start : start + size]]))
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in found]).norm(dim=0)
            factors = (clip / norms.clamp(min=1e-12)).clamp(max=1.0)
            for total, plain_total, g in zip(clean, whole, found, strict=True):
                total.add_(torch.einsum("r,r...->...", factors, g))
                plain_total.add_(g.sum(0))
            longest = max(longest, float(norms.max()))
    return BatchSums(clean, whole, longest)


def mean_gradient(model: nn.Module, items: Sequence[Any], loss: LossOfBatch) -> list[Tensor]:
    """Of the records' loss at the present weights, without clipping."""
    sums = recompute_sums(model, items, loss, clip=1.0)
    return [total / max(1, len(items)) for total in sums.whole]


def _per_record(model: nn.Module, loss: LossOfBatch, parameters: dict[str, Tensor]) -> Callable[[Any], list[Tensor]]:
    """Gradients of every record of a batch, (records, ...) for each parameter."""

    def single(values: dict[str, Tensor], item: Any) -> Tensor:
        if isinstance(item, Mapping):
            batch = {name: value.unsqueeze(0) for name, value in item.items()}
            own: Tensor = functional_call(model, values, (), batch).loss
            return own
        features, target = item
        output = functional_call(model, values, (features.unsqueeze(0),))
        return loss_function(loss)(output, target.unsqueeze(0)).sum()

    each = vmap(grad(single), in_dims=(None, 0), randomness="different")

    def gradients(batch: Any) -> list[Tensor]:
        found = each(parameters, batch)
        return [found[name].detach() for name in parameters]

    return gradients


def _as_pair(item: Any) -> Any:
    """Records as pairs (features, target), or as mappings for models that compute their own loss."""
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, tuple | list) and len(item) == 2:
        return tuple(item)
    raise ValueError("records must be pairs (features, target), or mappings that the model takes as keywords")


@contextmanager
def _without_hooks(model: nn.Module) -> Iterator[nn.Module]:
    """The module whose hooks, such as those of Opacus, rest meanwhile: they do not go with function transforms."""
    kept = [(module, name, getattr(module, name)) for module in model.modules() for name in _HOOKS]
    for module, name, hooks in kept:
        setattr(module, name, type(hooks)())
    try:
        yield model
    finally:
        for module, name, hooks in kept:
            setattr(module, name, hooks)
