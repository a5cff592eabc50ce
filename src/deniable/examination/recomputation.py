"""The clean clipped sums of somebody else's training, recomputed at the weights it passed through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad

from deniable.examination.claim import Flat, RecipeTraining
from deniable.examination.trainer import WatchedTraining
from deniable.training.gradients import ExampleGradients, GenericGradients, trainable
from deniable.training.networks.layer_gradients import LayerGradients
from deniable.training.networks.losses import Loss
from deniable.training.settings import Columns
from deniable.training.stack import example_gradients

SingleGradients = Callable[[list[Tensor], Tensor, Tensor], list[Tensor]]
"""Of weights, records and labels: every record's gradient, (records, ...) of each parameter."""

AT_ONCE = 2**27
"""Numbers of gradients that may be held at once: steps are taken in groups of so many."""
CHUNK = 2**26
"""The same, where they are summed up chunk by chunk: fresh memory costs time."""
COPIES = 4
"""Of all gradients of a step, where they are held: as they are, clipped, and on the way there."""
OUTSIDE_SHARE = 0.125
"""Of large models, so many times as many records outside a batch as in it have their gradients recomputed."""
LARGE, SCORED = 2**19, 4
"""Weights above which a model is large; and of its records about so many are scored."""
WATCHED = 2**26
"""Numbers of gradients of single records that may be held at once: with large models not every record is watched."""


@dataclass(frozen=True)
class RecomputedSteps:
    """Of every step (rows): sums as flat vectors, and what the observer needs."""

    include: Tensor
    """(steps, columns) how often each record was in the batch."""
    residual: Tensor
    """Applied minus clean, in claimed standard deviations."""
    clean: Tensor
    """The clipped sum of the batch."""
    whole: Tensor
    """The same without clipping."""
    everybody: Tensor
    """The clipped sum of all records of the data set, in the batch or not."""
    onto: Tensor
    """(steps, watched columns) inner products of the residual with each record's clipped gradient."""
    norms: Tensor
    """(steps, columns) of the gradients before clipping."""
    gram: Tensor
    """Inner products of the differing records' clipped gradients."""
    clip: Tensor
    """(steps,) the clipping norm: the claimed one, or the one that the training yields."""
    sigma: Tensor
    """(steps,) the standard deviation of the noise that is claimed for the sum."""


class _Part(NamedTuple):
    """Some steps of a training: weights and noisy sums, who is in the batch and in the data set, norm and noise."""

    weights: list[Tensor]
    applied: list[Tensor]
    include: Tensor
    everybody: Tensor
    clip: Tensor
    sigma: Tensor


class _StepMemory(NamedTuple):
    """Where one step's sums (clipped, whole, everybody's), residual and norms are written."""

    sums: Tensor
    residual: Tensor
    norms: Tensor


class Recomputer:
    """Recomputes trainings on D or D'; the columns are the records of both, the differing ones last."""

    def __init__(self, claim: RecipeTraining, model: nn.Module, loss: Loss, columns: Columns) -> None:
        self.claim, self.model, self.loss, self.columns = claim, model, loss, columns
        self.parameters = trainable(model)
        size = sum(p.numel() for p in self.parameters.values())
        self.watched = min(len(columns.records), max(columns.differing, WATCHED // size))
        self._group = max(1, AT_ONCE // (COPIES * len(columns.records) * size))

    def recompute(self, seen: WatchedTraining, members: NDArray[np.int64]) -> RecomputedSteps:
        """`members` are the columns that were trained on, in the order of the trainer's records."""
        include = self._inclusion(seen, members)
        everybody = torch.zeros(len(self.columns.records))
        everybody[members] = 1
        generic = self._is_generic(seen.weights)
        group = len(seen) if self._takes_drawn(generic) else self._group
        starts = range(0, len(seen), group)
        parts = [self._part(seen, include, everybody, slice(start, start + group), generic) for start in starts]
        if len(parts) == 1:
            return parts[0]
        joined = {f.name: torch.cat([getattr(part, f.name) for part in parts]) for f in fields(RecomputedSteps)}
        return RecomputedSteps(**joined)

    def _inclusion(self, seen: WatchedTraining, members: NDArray[np.int64]) -> Tensor:
        include = torch.zeros(len(seen), len(self.columns.records))
        for step, batch in enumerate(seen.batches):
            if batch is None:
                include[step, members] = 1
            elif len(batch):
                include[step, members] = torch.from_numpy(np.bincount(batch, minlength=len(members))).float()
        return include

    def _part(
        self, seen: WatchedTraining, include: Tensor, everybody: Tensor, group: slice, generic: bool
    ) -> RecomputedSteps:
        include = include[group]
        clips = np.array([self.claim.clip if clip is None else clip for clip in seen.clips])
        clip = torch.from_numpy(clips)[group]
        sigma = torch.from_numpy(self.claim.sigmas(clips))[group]
        weights, applied = [values[group] for values in seen.weights], [values[group] for values in seen.sums]
        part = _Part(weights, applied, include, everybody.expand_as(include), clip, sigma)
        if self._takes_drawn(generic):
            return self._by_drawn(part)
        plain = isinstance(self.claim.recipe.clipping, Flat) and bool((clip == clip[0]).all())
        return self._by_library(part) if plain and not generic else self._by_record(part)

    def _takes_drawn(self, generic: bool) -> bool:
        """Whether single steps are recomputed record by record: gradients are too many to be held, but must be made."""
        numbers = len(self.columns.records) * sum(p.numel() for p in self.parameters.values())
        return generic and isinstance(self.claim.recipe.clipping, Flat) and COPIES * numbers > AT_ONCE

    def _is_generic(self, weights: list[Tensor]) -> bool:
        """Whether there is no faster way than to make every record's gradient: the layers are not all known."""
        return isinstance(self._gradients(weights, 1), GenericGradients)

    def _by_library(self, part: _Part) -> RecomputedSteps:
        """Gradients that are clipped as usual, all steps to one norm."""
        weights, applied, include, everybody, clip, sigma = part
        norm = float(clip[0])
        single = self._gradients(weights, self.watched)
        plain = single if self.watched == len(include[0]) else self._gradients(weights, 0)
        whole, _ = _sum(plain, weights, include, inf)
        total = _sum(plain, weights, everybody, norm)[0] if self.claim.rate < 1 else None
        clean, norms = _sum(single, weights, include, norm)
        pair = slice(self.watched - self.columns.differing, None)
        residual = [_over(a - c, sigma) for a, c in zip(applied, clean, strict=True)]
        return RecomputedSteps(
            include=include,
            residual=flat(residual),
            clean=flat(clean),
            whole=flat(whole),
            everybody=flat(total if total is not None else clean),
            onto=single.project(residual),
            norms=norms.clone(),
            gram=single.cross_products(pair, pair),
            clip=clip,
            sigma=sigma,
        )

    def _by_drawn(self, part: _Part) -> RecomputedSteps:
        """The same in one pass over the batch, the differing records, and a few others, other ones in every step.

        What is not computed of the others is zero, as if their gradients were; so the direction outside the batch is
        that of the few. Whole batches have no others, and everybody's sum is the batch's.
        """
        steps, differing, size = len(part.include), self.columns.differing, sum(w[0].numel() for w in part.weights)
        sums, residual = torch.zeros(steps, 3 if self.claim.rate < 1 else 2, size), torch.empty(steps, size)
        onto, norms = torch.zeros(steps, self.watched).double(), torch.zeros_like(part.include)
        gram = torch.zeros(steps, differing, differing).double()
        gradients_of = self._single_gradients([w[0] for w in part.weights])
        for step in range(steps):
            now, room = _Part(*(_row(v, step) for v in part)), _StepMemory(sums[step], residual[step], norms[step])
            onto[step], gram[step] = self._drawn_step(gradients_of, now, room, step)
        clean, whole, everybody = sums[:, 0], sums[:, 1], sums[:, 2 if self.claim.rate < 1 else 0]
        return RecomputedSteps(
            part.include, residual, clean, whole, everybody, onto, norms, gram, part.clip, part.sigma
        )

    def _single_gradients(self, weights: list[Tensor]) -> SingleGradients:
        """The faster way that suits the model: layer by layer, else record by record."""
        records, labels, _ = self.columns
        if (known := LayerGradients.of(self.model, self.loss, weights, records, labels)) is not None:
            return known
        generic = GenericGradients(self.model, self.loss, [w.unsqueeze(0) for w in weights])
        generic.own_room = True

        def gradients_of(weights: list[Tensor], records: Tensor, labels: Tensor) -> list[Tensor]:
            generic.weights = [w.unsqueeze(0) for w in weights]
            generic.load(records[None], labels[None])
            return [g[0] for g in generic.gradients_of(slice(0, len(records)))]

        return gradients_of

    def _drawn_step(
        self, gradients_of: SingleGradients, part: _Part, room: _StepMemory, step: int
    ) -> tuple[Tensor, Tensor]:
        """Fills the room; the inner products of the watched records with the residual, and of the differing ones."""
        include, first, last = part.include, *(len(part.include) - n for n in (self.watched, self.columns.differing))
        sizes, norms = [a.numel() for a in part.applied], room.norms
        kept: list[tuple[Tensor, list[Tensor]]] = []
        chosen = self._chosen_columns(include, part.everybody, step)
        for columns in torch.split(chosen, max(1, CHUNK // sum(sizes))):
            found = gradients_of(part.weights, self.columns.records[columns], self.columns.labels[columns])
            layers = [g.flatten(1) for g in found]
            norms[columns] = torch.stack([g.norm(dim=1) for g in layers], 1).norm(dim=1)
            factors = (part.clip.float() / norms[columns].clamp(min=1e-30)).clamp(max=1.0)
            drawn, held = include[columns], columns >= first
            weights = torch.stack([drawn * factors, drawn, part.everybody[columns] * factors])[: len(room.sums)]
            for total, g in zip(torch.split(room.sums, sizes, 1), layers, strict=True):
                total.addmm_(weights, g)
            kept.append((columns[held], [factors[held].unsqueeze(1) * g[held] for g in layers]))
        parts = torch.split(room.residual, sizes)
        for left, applied, clean in zip(parts, part.applied, torch.split(room.sums[0], sizes), strict=True):
            torch.sub(applied.flatten(), clean, out=left).div_(float(part.sigma))
        onto = torch.zeros(self.watched).double()
        for columns, layers in kept:
            onto[columns - first] = torch.stack([(g @ r).double() for g, r in zip(layers, parts, strict=True)]).sum(0)
        differing = torch.cat([torch.cat([g[columns >= last] for g in layers], 1) for columns, layers in kept]).double()
        return onto, differing @ differing.mT

    def _chosen_columns(self, include: Tensor, everybody: Tensor, step: int) -> Tensor:
        """The batch, the differing records, and a share as many of the others; in order."""
        chosen = include > 0
        chosen[len(include) - self.columns.differing :] = True
        others = ((everybody > 0) & ~chosen).nonzero().flatten()
        few = min(len(others), ceil(OUTSIDE_SHARE * max(1.0, float(include.sum()))))
        if few and self.claim.rate < 1:
            chosen[others.roll(-step * few)[:few]] = True
        return chosen.nonzero().flatten()

    def _by_record(self, part: _Part) -> RecomputedSteps:
        """Any kind of clipping: every record's gradient is materialised."""
        weights, applied, include, everybody, clip, sigma = part
        layers = [g.flatten(2) for g in self.every(weights)]
        norms = torch.stack([g.norm(dim=2) for g in layers], 2)
        factors = self.claim.recipe.clipping.factors(norms, clip.float().unsqueeze(1)).unbind(2)
        sums = [torch.stack([include * f, include, everybody * f], 1) @ g for f, g in zip(factors, layers, strict=True)]
        clean, whole, total = torch.cat(sums, 2).unbind(1)
        residual = ((flat(applied) - clean) / sigma.unsqueeze(1)).float()
        parts = torch.split(residual, [g.shape[2] for g in layers], 1)
        first, last = len(include[0]) - self.watched, len(include[0]) - self.columns.differing
        onto = sum(
            f[:, first:].double() * (g[:, first:] @ r.unsqueeze(2)).squeeze(2)
            for f, g, r in zip(factors, layers, parts, strict=True)
        )
        differing = torch.cat(
            [f[:, last:, None] * g[:, last:] for f, g in zip(factors, layers, strict=True)], 2
        ).double()
        return RecomputedSteps(
            include=include,
            residual=residual,
            clean=clean,
            whole=whole,
            everybody=total,
            onto=torch.as_tensor(onto),
            norms=norms.norm(dim=2),
            gram=differing @ differing.mT,
            clip=clip,
            sigma=sigma,
        )

    def every(self, weights: list[Tensor]) -> list[Tensor]:
        """Every record's gradients at the weights of some steps, (steps, records, ...)."""
        records, labels, _ = self.columns
        generic = GenericGradients(self.model, self.loss, weights)
        generic.load(records[None], labels[None])
        return generic.gradients_of(slice(0, len(records)))

    def lengths(self, weights: list[Tensor]) -> Tensor:
        """(steps, records) of every record's gradient at the weights of some steps."""
        everybody = torch.ones(len(weights[0]), len(self.columns.records))
        return _sum(self._gradients(weights, 0), weights, everybody, 1.0)[1].clone()

    def mean_gradient(self, weights: list[Tensor], members: NDArray[np.int64]) -> Tensor:
        """Of the loss of all records that were trained on, as one vector."""
        names, records, labels = list(self.parameters), self.columns.records[members], self.columns.labels[members]

        def mean_loss(values: list[Tensor]) -> Tensor:
            told = functional_call(self.model, dict(zip(names, values, strict=True)), (records,))
            return self.loss(told, labels).mean()

        return torch.cat([g.flatten() for g in grad(mean_loss)(weights)])

    def mean_scores(
        self, weights: list[Tensor], members: NDArray[np.int64], include: Tensor | None = None
    ) -> NDArray[np.float64]:
        """(steps, 3) mean loss of the records that were trained on, the share of them with the right label, and the
        mean loss of the batch if `include` (steps, columns) tells how often each record is in it.

        Of large models, some records alone are scored, and the batch's loss is that of these.
        """
        if sum(p.numel() for p in self.parameters.values()) > LARGE:
            members, include = members[:: max(1, len(members) // SCORED)], None
        records, labels = self.columns.records[members], self.columns.labels[members]
        names, found = list(self.parameters), []
        with torch.no_grad():
            for step in range(len(weights[0])):
                values = dict(zip(names, (w[step] for w in weights), strict=True))
                told = functional_call(self.model, values, (records,))
                right = (told.argmax(-1) == labels).float().mean() if told.dim() == labels.dim() + 1 else torch.nan
                losses = self.loss(told, labels)
                drawn = torch.ones(len(members)) if include is None else include[step, members]
                found.append([float(losses.mean()), float(right), float((drawn * losses).sum() / drawn.sum())])
        return np.array(found)

    def _gradients(self, weights: list[Tensor], kept: int) -> ExampleGradients:
        records, labels, _ = self.columns
        gradients = example_gradients(self.model, self.loss, weights, records[0], shared=True)
        gradients.load(records[None], labels[None], kept)
        return gradients


def _row(values: Tensor | list[Tensor], row: int) -> Any:
    return [v[row] for v in values] if isinstance(values, list) else values[row]


def _over(values: Tensor, sigma: Tensor) -> Tensor:
    return values / sigma.to(values.dtype).view(-1, *[1] * (values.dim() - 1))


def _sum(
    gradients: ExampleGradients, weights: list[Tensor], include: Tensor, clip: float
) -> tuple[list[Tensor], Tensor]:
    sums = [torch.empty_like(w) for w in weights]
    norms = gradients.clipped_sum(include, clip, sums)
    return sums, norms


def flat(values: list[Tensor]) -> Tensor:
    """All parameters of a step in one row."""
    return torch.cat([v.flatten(1) for v in values], 1)
