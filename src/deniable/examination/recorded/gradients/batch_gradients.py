"""The clipped sum of a batch at the present weights, recomputed record by record in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import hypot, nan
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils._pytree import tree_map
from torch.utils.data import default_collate

from deniable.examination.recorded.gradients.record_shares import RecordGradients
from deniable.examination.recorded.gradients.rounded_norms import rounded_norms
from deniable.training.networks.losses import loss_function

LossOfBatch = str | Callable[[Tensor, Tensor], Tensor]
"""Of outputs and targets, one number for each example: by name or a function."""
BatchLoss = Callable[[nn.Module, Any], Tensor]
"""The loss of a batch as the loader makes it, of any form, for the model: one number."""
Places = Sequence[Tensor | None]
"""Of each parameter the places of its flat numbers that are looked at; None for all."""
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_NUMBERS_AT_ONCE = 2**22
"""Of single records' gradients that are held at once, if more than one record's."""
_ROUNDING = 1e-4
"""Relative: the same record's gradient, computed twice, differs by less."""


@dataclass
class RecordLoss:
    """The loss of one record, as the training computes it of a batch with nothing else in it.

    Records are pairs (features, target), or mappings for models that compute their own loss, unless `batch_loss` knows
    better; `collate` makes a batch of a list of records.
    """

    loss: LossOfBatch = "cross-entropy"
    batch_loss: BatchLoss | None = None
    collate: Callable[[list[Any]], Any] = default_collate
    together: bool = field(default=True, init=False)
    """Whether several records' gradients are computed at once; some models' code does not allow it."""
    trained: frozenset[int] | None = field(default=None, init=False)
    """The ids of the parameters that are trained, of those that take gradients; None for all of these."""

    def parameters_of(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """Those that are trained."""
        named = ((name, p) for name, p in model.named_parameters() if p.requires_grad)
        return {name: p for name, p in named if self.trained is None or id(p) in self.trained}

    def of(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        """Of a batch of one record; and whether the model names its class (1 or 0), nan where that is not known."""
        if self.batch_loss is not None:
            return self.batch_loss(model, batch).sum(), torch.tensor(nan)
        if isinstance(batch, Mapping):
            own = model(**batch)
            outputs = own if isinstance(own, Mapping) else {"loss": own.loss, "logits": getattr(own, "logits", None)}
            return outputs["loss"].sum(), _is_right(outputs.get("logits"), batch.get("labels"))
        features, target = batch
        outputs = model(features)
        return loss_function(self.loss)(outputs, target).sum(), _is_right(outputs, target)

    def batch_of(self, *items: Any) -> Any:
        """These records, or one, as a batch."""
        batch = self.collate(list(items))
        batch = dict(batch) if isinstance(batch, Mapping) else batch
        known = self.batch_loss is not None or isinstance(batch, dict)
        if not known and not (isinstance(batch, tuple | list) and len(batch) == 2):
            raise ValueError(
                "records must be pairs (features, target) or mappings that the model takes as keywords; for others "
                "name batch_loss=, a function of the model and a batch"
            )
        return batch


@dataclass(frozen=True)
class BatchSums:
    """Sums over a batch, one tensor a parameter: of clipped gradients, and of gradients as they are."""

    clean: list[Tensor]
    whole: list[Tensor]
    others: dict[str, list[Tensor]]
    """Of gradients that are clipped otherwise, see `CLIPPINGS`."""
    longest: float
    loss: float
    """Of all records together."""
    right: float
    """How many records' classes the model names; nan where that is not known."""
    gradients: RecordGradients
    """Of the single records."""


CLIPPINGS = ("normalised", "each parameter", "equal parts")
"""Scaled to the clipping norm; each parameter's part clipped to that norm; to that norm / sqrt(parameters)."""


def uses_chance(model: nn.Module) -> str:
    """The module that makes gradients random, so that none can be recomputed; empty without one."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0 and module.training:
            return f"{name or 'the model'} ({type(module).__name__})"
    return ""


def mixes_records(model: nn.Module) -> str:
    """The module that makes a record's gradient depend on the rest of its batch; empty without one."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            return f"{name or 'the model'} ({type(module).__name__})"
    return ""


def changes(model: nn.Module, read: Callable[[], Any], loss: RecordLoss) -> bool:
    """Whether a record's gradient differs between two looks: its data or its loss are drawn at random."""
    with _without_hooks(model) as plain:
        one, other = (_plain_gradient(plain, read(), loss)[0] for _ in range(2))
    off = torch.stack([(a - b).norm() for a, b in zip(one, other, strict=True)]).norm()
    return bool(off > _ROUNDING * torch.stack([a.norm() for a in one]).norm())


def recompute_sums(
    model: nn.Module,
    items: Sequence[Any],
    loss: LossOfBatch | RecordLoss,
    clip: float | Sequence[float],
    places: Places | None = None,
    *,
    fewer_digits: bool = False,
) -> BatchSums:
    """The sums over these records, at these `places` of the trained parameters (all of them without).

    Each gradient is clipped to norm `clip` over all parameters together, or each parameter's part to its own norm.
    With `fewer_digits`, the records' `rounded` norms are computed, too.
    """
    record_loss = loss if isinstance(loss, RecordLoss) else RecordLoss(loss)
    parameters = list(record_loss.parameters_of(model).values())
    chosen = [None] * len(parameters) if places is None else places
    clean, whole, *others = (
        [torch.zeros_like(_at(p.detach(), at)) for p, at in zip(parameters, chosen, strict=True)]
        for _ in range(2 + len(CLIPPINGS))
    )
    longest, right, losses, single, lengths = 0.0, 0.0, list[Tensor](), list[Tensor](), list[Tensor]()
    rounded = list[Tensor]()
    held = RecordGradients.places_of(sum(part.numel() for part in clean), len(items))
    with _without_hooks(model) as plain:
        for found, some_losses, right_sum in _gradients(plain, items, record_loss):
            right += right_sum
            losses.append(some_losses)
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in found])
            factors = [_clip_factors(norms, clip), *_other_factors(norms, clip)]
            parts = [g if at is None else g.flatten(1)[:, at.to(g.device)] for g, at in zip(found, chosen, strict=True)]
            for place, part in enumerate(parts):
                sums = torch.stack([each[place] for each in factors]).to(part) @ part.flatten(1)
                for totals, total in zip((clean, *others), sums, strict=True):
                    totals[place].add_(total.view_as(totals[place]))
                whole[place].add_(part.sum(0))
            longest = max(longest, float(norms.norm(dim=0).max()))
            flat = torch.cat([part.flatten(1) for part in parts], dim=1)
            single.append(flat if held is None else flat[:, held.to(flat.device)])
            lengths.append(norms)
            if fewer_digits:
                rounded.append(rounded_norms(found, hypot(*clip) if isinstance(clip, Sequence) else clip))
    numbers = sum(part.numel() for part in clean) if held is None else len(held)
    values = torch.cat(single) if single else clean[0].new_zeros(0, numbers)
    norms = torch.cat(lengths, dim=1) if lengths else clean[0].new_zeros(len(parameters), 0)
    vectors = tuple(place for place, p in enumerate(parameters) if p.dim() == 1)
    each_loss = torch.cat(losses) if losses else torch.zeros(0)
    short = torch.cat(rounded, dim=1) if rounded else None
    gradients = RecordGradients(values, held, norms.norm(dim=0), norms, vectors, each_loss, short)
    loss_sum = float(each_loss.double().sum())
    return BatchSums(clean, whole, dict(zip(CLIPPINGS, others, strict=True)), longest, loss_sum, right, gradients)


def loss_of_batch(
    model: nn.Module, items: Sequence[Any], loss: RecordLoss, places: Places | None
) -> tuple[float, list[Tensor]] | None:
    """The loss of all these records as one batch, and with `places` its gradient there; None if that is no batch."""
    with _without_hooks(model) as plain, torch.set_grad_enabled(places is not None):
        parameters = list(loss.parameters_of(plain).values())
        try:
            value, _ = loss.of(plain, _moved(loss.batch_of(*items), parameters[0].device))
            found = [] if places is None else torch.autograd.grad(value, parameters, allow_unused=True)
        except _USERS:
            return None
    each = [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=False)]
    return float(value.detach()), [_at(g, at) for g, at in zip(each, places or (), strict=True)]


_SEEN_NUMBERS = 2**20
_USERS = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError)
"""What code that was not written for a batch may raise."""


def run_forward(
    model: nn.Module,
    items: Sequence[Any],
    loss: RecordLoss,
    seen: dict[str, Tensor],
    inputs_of: Collection[str] = (),
) -> bool:
    """A forward pass on these records as one batch; `seen` gets what the model is given and its modules make of it.

    Also what the modules `inputs_of` are given. False if the records are no batch for the model.
    """

    def note(name: str, value: Any) -> None:
        tensor = next((one for one in value if isinstance(one, Tensor)), None) if isinstance(value, tuple) else value
        if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.numel() <= _SEEN_NUMBERS:
            seen[name] = tensor.detach()

    with _without_hooks(model) as plain:
        hooks = [plain.register_forward_pre_hook(lambda _, given: note("input", given))]
        hooks += [
            module.register_forward_hook(lambda _, __, made, name=name: note(name, made))
            for name, module in plain.named_modules()
        ]
        hooks += [
            module.register_forward_pre_hook(lambda _, given, name=name: note(f"input of {name}", given))
            for name, module in plain.named_modules()
            if name in inputs_of
        ]
        try:
            loss.of(plain, _moved(loss.batch_of(*items), next(plain.parameters()).device))
        except _USERS:
            return False
        finally:
            for hook in hooks:
                hook.remove()
    return True


def _moved(batch: Any, device: torch.device) -> Any:
    return tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, Tensor) else leaf, batch)


def _clip_factors(norms: Tensor, clip: float | Sequence[float]) -> Tensor:
    """For each parameter (rows) and record (columns)."""
    own = isinstance(clip, Sequence)
    lengths = norms if own else norms.norm(dim=0).expand_as(norms)
    return (torch.as_tensor(clip, device=norms.device).reshape(-1, 1) / lengths.clamp(min=1e-12)).clamp(max=1.0)


def _other_factors(norms: Tensor, clip: float | Sequence[float]) -> list[Tensor]:
    """Of `CLIPPINGS`, each for every parameter (rows) and record (columns)."""
    whole = hypot(*clip) if isinstance(clip, Sequence) else clip
    parts = (whole / norms.clamp(min=1e-12)).clamp(max=1.0)
    equal = (whole / len(norms) ** 0.5 / norms.clamp(min=1e-12)).clamp(max=1.0)
    return [(whole / norms.norm(dim=0).clamp(min=1e-12)).expand_as(norms), parts, equal]


def _at(values: Tensor, places: Tensor | None) -> Tensor:
    return values if places is None else values.flatten()[places.to(values.device)]


def _gradients(
    model: nn.Module, items: Sequence[Any], loss: RecordLoss
) -> Iterator[tuple[list[Tensor], Tensor, float]]:
    """Of a few records at a time, (records, ...) for each parameter: together where memory and the model allow it.

    Also their losses, and how many of their classes the model names.
    """
    size = _NUMBERS_AT_ONCE // max(1, sum(p.numel() for p in loss.parameters_of(model).values()))
    for start in range(0, len(items), max(1, size)):
        some = items[start : start + max(1, size)]
        if size > 1 and loss.together:
            try:
                yield _gradients_together(model, some, loss)
                continue
            except (RuntimeError, NotImplementedError):  # code that vmap cannot follow, or records of different shapes
                loss.together = False
        found, values, right = zip(*(_plain_gradient(model, item, loss) for item in some), strict=True)
        yield [torch.stack(parts) for parts in zip(*found, strict=True)], torch.tensor(values), sum(right)


def _plain_gradient(model: nn.Module, item: Any, loss: RecordLoss) -> tuple[list[Tensor], float, float]:
    """Of one record, by an ordinary backward pass; its loss, and whether the model names its class."""
    parameters = list(loss.parameters_of(model).values())
    with torch.enable_grad():
        value, right = loss.of(model, _moved(loss.batch_of(item), parameters[0].device))
        found = torch.autograd.grad(value, parameters, allow_unused=True)
    each = [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]
    return each, float(value.detach()), float(right)


def _gradients_together(model: nn.Module, items: Sequence[Any], loss: RecordLoss) -> tuple[list[Tensor], Tensor, float]:
    """Of all these records in one pass (`torch.func`)."""
    owner = _WithLoss(model, loss)
    values = {name: p.detach() for name, p in loss.parameters_of(owner).items()}
    stacked = _batches_of_one(items, loss, next(iter(values.values())).device)

    def single(at: dict[str, Tensor], batch: Any) -> tuple[Tensor, Tensor]:
        both: tuple[Tensor, Tensor] = functional_call(owner, at, (batch,))
        return both

    each = vmap(grad_and_value(single, has_aux=True), in_dims=(None, 0), randomness="different")
    found, (losses, right) = each(values, stacked)
    return [found[name].detach() for name in values], losses.detach().flatten().float().cpu(), float(right.sum())


def _batches_of_one(items: Sequence[Any], loss: RecordLoss, device: torch.device) -> Any:
    """Batches of one record each in one, on the device of the model; of pairs of tensors without looking into each."""
    if loss.collate is default_collate and all(map(_is_pair_of_tensors, items)):
        return [torch.stack(parts).unsqueeze(1).to(device) for parts in zip(*items, strict=True)]
    batches = [loss.batch_of(item) for item in items]
    if all(type(batch) in (tuple, list) and all(isinstance(part, Tensor) for part in batch) for batch in batches):
        return type(batches[0])(torch.stack(parts).to(device) for parts in zip(*batches, strict=True))
    return tree_map(lambda *leaves: torch.stack(leaves).to(device), *batches)


def _is_pair_of_tensors(item: Any) -> bool:
    return type(item) is tuple and len(item) == 2 and type(item[0]) is type(item[1]) is Tensor


def _is_right(outputs: Tensor | None, target: Tensor | None) -> Tensor:
    """Whether the largest output of a batch of one record is that of its class: 1 or 0; nan for other targets."""
    if outputs is None or target is None or outputs.dim() != 2 or target.dim() != 1 or target.is_floating_point():
        return torch.tensor(nan)
    return (outputs.detach().argmax(1) == target).float().sum()


class _WithLoss(nn.Module):
    """A model whose output is its loss, and whether it names the record's class."""

    def __init__(self, model: nn.Module, loss: RecordLoss) -> None:
        super().__init__()
        self.model, self._record_loss = model, loss

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        return self._record_loss.of(self.model, batch)


@contextmanager
def _without_hooks(model: nn.Module) -> Iterator[nn.Module]:
    """The model, out of its wrapper, with hooks such as those of Opacus at rest: they keep gradients of their own."""
    inner = getattr(model, "_module", model)
    kept = [(module, name, getattr(module, name)) for module in inner.modules() for name in _HOOKS]
    for module, name, hooks in kept:
        setattr(module, name, type(hooks)())
    try:
        yield inner
    finally:
        for module, name, hooks in kept:
            setattr(module, name, hooks)
