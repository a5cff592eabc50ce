"""Clipped sums of per-example gradients for many trials: the interface, and the path that takes any module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from deniable.training.networks.losses import Loss

Clip = float | Tensor
"""The largest norm of an example's gradient: one for all trials, or one for each, (trials,)."""


def trainable(model: nn.Module) -> dict[str, Tensor]:
    """The parameters that are trained, by name, each once."""
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


def _places(model: nn.Module) -> dict[str, int]:
    """Every name under which a trained parameter stands in a module (tied ones have several), and its number."""
    numbers = {id(p): i for i, p in enumerate(q for q in model.parameters() if q.requires_grad)}
    named = (
        (f"{prefix}.{name}".lstrip("."), p) for prefix, m in model.named_modules() for name, p in m._parameters.items()
    )
    return {name: numbers[id(p)] for name, p in named if id(p) in numbers}


class ExampleGradients(ABC):
    """One pass over the records of a step, for all trials; the last ones, if asked for, are those that differ.

    Guarantee: every record's contribution to the sum has norm at most `clip` (to float32 rounding), and depends on
    no other record.
    """

    def load(self, records: Tensor, labels: Tensor, differing: int = 0) -> None:
        """The step's records (1 or trials, examples, ...) and labels; 1 where all trials share them.

        The last `differing` examples (x, or x and x') are those that `gram` and `project` are about.
        """
        self._differing = differing
        self._load(records, labels)

    @abstractmethod
    def _load(self, records: Tensor, labels: Tensor) -> None:
        """Keep them."""

    @abstractmethod
    def _sum(self, include: Tensor, clip: Clip, out: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Norms and factors (trials, examples); the sum goes into `out`."""

    @abstractmethod
    def _gram(self, rows: slice, columns: slice) -> Tensor:
        """Inner products of some of the differing records' gradients with others, before clipping."""

    @abstractmethod
    def _project(self, noise: list[Tensor]) -> Tensor:
        """Inner products of `noise` with the differing records' gradients before clipping."""

    def clipped_sum(self, include: Tensor, clip: Clip, out: list[Tensor]) -> Tensor:
        """Write sum_i include_i clip(g_i) into `out`; returns the norms before clipping, (trials, examples)."""
        norms, factors = self._sum(include, clip, out)
        self._factors = factors[:, factors.shape[1] - self._differing :].double()
        return norms

    def gram(self) -> Tensor:
        """Inner products of the differing records' clipped gradients, (trials, differing, differing), in float64."""
        return self.cross_products(slice(None), slice(None))

    def cross_products(self, rows: slice, columns: slice) -> Tensor:
        """The part of `gram` in these rows and columns."""
        factors = self._factors[:, rows].unsqueeze(2) * self._factors[:, columns].unsqueeze(1)
        return self._gram(rows, columns) * factors

    def project(self, noise: list[Tensor]) -> Tensor:
        """Inner products of `noise` with the differing records' clipped gradients, (trials, differing), in float64."""
        return self._project(noise) * self._factors


def clip_factors(norms: Tensor, clip: Clip, out: Tensor) -> None:
    """min(1, clip / norm), written into `out`; `clip` is one for all trials or one for each, (trials,)."""
    torch.reciprocal(norms, out=out).mul_(clip.unsqueeze(1) if isinstance(clip, Tensor) else clip).clamp_(max=1.0)


class GenericGradients(ExampleGradients):
    """Any `nn.Module`: gradients by `torch.func`, materialised for a chunk of records at a time.

    Each example passes through the module alone, so no layer can mix examples here.
    """

    memory = 2**28
    """Bytes of gradients that are held at once, approximately."""
    own_room = False
    """Whether gradients may lie where those of an earlier call lay: fresh memory takes as long as what fills it."""

    def __init__(self, model: nn.Module, loss: Loss, weights: list[Tensor]) -> None:
        self.weights = weights
        self._kept_room: list[Tensor] = []
        places = _places(model)

        def example_loss(values: list[Tensor], record: Tensor, label: Tensor) -> Tensor:
            state = {name: values[number] for name, number in places.items()}
            # tie_weights would swap a module that is used twice twice, and leave it swapped
            return loss(functional_call(model, state, (record[None],), tie_weights=False), label[None])[0]

        self._one_example = grad(example_loss)
        self._one_trial = vmap(self._one_example, in_dims=(None, 0, 0))
        self._convolves = any(isinstance(module, nn.modules.conv._ConvNd) for module in model.modules())

    def _load(self, records: Tensor, labels: Tensor) -> None:
        self._records, self._labels = records, labels

    def _sum(self, include: Tensor, clip: Clip, out: list[Tensor]) -> tuple[Tensor, Tensor]:
        norms, factors = torch.empty_like(include), torch.empty_like(include)
        for total in out:
            total.zero_()
        for part in self._chunks(include.shape[1]):
            gradients = self.gradients_of(part)
            norms[:, part] = sum(g.flatten(2).square().sum(2) for g in gradients).sqrt()  # type: ignore[union-attr]
            clip_factors(norms[:, part], clip, factors[:, part])
            used = (factors * include)[:, part]
            for total, g in zip(out, gradients, strict=True):
                total.view(len(total), 1, -1).baddbmm_(used.unsqueeze(1), g.flatten(2))
        self._kept = [g.flatten(2) for g in gradients]
        return norms, factors

    def _chunks(self, examples: int) -> Iterator[slice]:
        """Slices of the examples; the differing ones are the last slice, for their gradients are kept."""
        size = max(1, self.memory // (4 * sum(w.numel() for w in self.weights)))
        common = examples - self._differing
        for start in range(0, common, size):
            yield slice(start, min(start + size, common))
        yield slice(common, examples)

    def gradients_of(self, part: slice) -> list[Tensor]:
        """The gradients of some examples, each (trials, examples, ...)."""
        if part.stop == part.start:
            return [w.new_empty(len(w), 0, *w.shape[1:]) for w in self.weights]
        records, labels = self._records[:, part], self._labels[:, part]
        if self._convolves and len(self.weights[0]) == 1:
            return self._one_by_one(records[0], labels[0])
        if len(records) == 1:
            return vmap(self._one_trial, in_dims=(0, None, None))(self.weights, records[0], labels[0])  # type: ignore[no-any-return]
        return vmap(self._one_trial)(self.weights, records, labels)  # type: ignore[no-any-return]

    def _one_by_one(self, records: Tensor, labels: Tensor) -> list[Tensor]:
        """Of one trial: of convolutions, ``vmap`` makes grouped ones, which take twice as long as plain ones."""
        weights = [w[0] for w in self.weights]
        found = [values[:, : len(records)] for values in self._room(len(records))]
        for place, (record, label) in enumerate(zip(records, labels, strict=True)):
            for values, own in zip(found, self._one_example(weights, record, label), strict=True):
                values[0, place] = own
        return found

    def _room(self, examples: int) -> list[Tensor]:
        """Memory for the gradients of so many examples of one trial; `own_room`: always the same."""
        if self.own_room and self._kept_room and self._kept_room[0].shape[1] >= examples:
            return self._kept_room
        found = [w.new_empty(1, examples, *w.shape[1:]) for w in self.weights]
        self._kept_room = found if self.own_room else []
        return found

    def _gram(self, rows: slice, columns: slice) -> Tensor:
        kept = [g.double() for g in self._kept]
        return torch.stack([g[:, rows] @ g[:, columns].mT for g in kept]).sum(0)

    def _project(self, noise: list[Tensor]) -> Tensor:
        products = [(g.double() @ z.flatten(1).double().unsqueeze(2)) for g, z in zip(self._kept, noise, strict=True)]
        return torch.stack(products).sum(0).squeeze(2)
