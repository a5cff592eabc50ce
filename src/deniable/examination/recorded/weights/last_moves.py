"""A move after the last step: is it made of the records' classes, of what the model says of them, or of their features?

Compared are small tensors, which are watched as a whole: usually the bias of the outputs, set to the classes' shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import RecordLoss, recompute_sums, run_forward
from deniable.examination.recorded.gradients.class_counts import class_counts
from deniable.examination.recorded.weights.weight_moves import WatchedWeights, cosine

Candidate = tuple[str, Tensor]
_COMPARED_RECORDS = 256
"""Whose mean gradient the move is compared with."""
_MOST_RECORDS, _AT_ONCE = 20_000, 512
_SAME, _PARALLEL, _MANY = 1e-3, 0.9999, 4
"""Relative; and the cosine of vectors of so many numbers that is no chance."""
_CANCELLED, _BY_CHANCE = 0.1, 1e-5
"""Of the length that the sum of as many gradients has where they have no direction in common; and the chance that a
sum of few numbers is as short."""


@dataclass(frozen=True)
class LastMove:
    """Of weights that have left where the last step leads, by `off` on the watched ones."""

    weights: WatchedWeights
    off: Tensor
    model: nn.Module
    data: Any
    loss: RecordLoss

    def made_of(self, records: Tensor | None) -> str:
        """What of the records the move of a tensor equals, or what it is then, in words; "" for nothing that is known.

        `records`: (records, numbers) of all features, where these are known.
        """
        now = self.weights.parts(self.weights.take([p.detach() for p in self.weights.parameters]))
        parts = self.weights.parts(self.off)
        for at in self.weights.moved_parameters(self.off):
            if 2 <= len(parts[at]) == self.weights.parameters[at].numel():
                for what, one in self._candidates(parts[at], records):
                    if _agree(parts[at], one) or _agree(now[at], one):
                        return what
        return "all records, to which they are fitted" if self._is_fitted() else ""

    def _is_fitted(self) -> bool:
        """Whether what moved is now where the gradients of all records cancel, but for a multiple of the weights.

        That is where a fit without noise ends, by the named loss or by least squares on the classes, with a penalty on
        the weights or without. Elsewhere gradients of n records have a sum of at least sqrt(n) of their length.
        """
        moved = [self.weights.parameters[at] for at in self.weights.moved_parameters(self.off)]
        if len(self.data) > _MOST_RECORDS or sum(p.numel() for p in moved) < 2:
            return False
        return any(_cancel(self.model, self.data, loss, moved) for loss in self._losses(moved))

    def _losses(self, moved: Sequence[Tensor]) -> Iterator[RecordLoss]:
        """The named one, and least squares on classes of zero and one, or of minus one and one."""
        squares = (lambda out, y: _off_classes(out, y, 0.0), lambda out, y: _off_classes(out, y, -1.0))
        some = [] if self.loss.batch_loss is not None or class_counts(self.data) is None else squares
        for one in (self.loss.loss, *some):
            loss = RecordLoss(one, self.loss.batch_loss, self.loss.collate)
            loss.trained = frozenset(id(p) for p in moved)
            yield loss

    def _candidates(self, off: Tensor, records: Tensor | None) -> Iterator[Candidate]:
        counts = class_counts(self.data)
        shares = None if counts is None or not 2 <= len(counts) <= len(off) else _shares(counts, len(off))
        yield from _of_classes(shares)
        yield from _of_outputs(off, shares, _outputs(self.model, self.data, self.loss))
        yield from _of_features(records, off)

    def along_gradient(self) -> float:
        """The cosine with minus the gradient of the records."""
        some = np.random.default_rng().choice(len(self.data), min(_COMPARED_RECORDS, len(self.data)), replace=False)
        items = [self.data[int(i)] for i in some]
        sums = recompute_sums(self.model, items, self.loss, 1.0, self.weights.places)
        gradient = torch.cat([part.double().cpu() for part in sums.whole])
        return -cosine(self.off, gradient)


def _off_classes(outputs: Tensor, classes: Tensor, other: float) -> Tensor:
    aims = torch.where(nn.functional.one_hot(classes, outputs.shape[-1]) > 0, 1.0, other)
    return (outputs - aims).square().sum(-1)


def _cancel(model: nn.Module, data: Any, loss: RecordLoss, moved: Sequence[Tensor]) -> bool:
    """Whether the sum of all gradients is next to nothing, across the weights themselves (a penalty)."""
    try:
        sums = recompute_sums(model, [data[i] for i in range(len(data))], loss, 1.0)
    except (RuntimeError, ValueError, IndexError):  # outputs that are no classes
        return False
    rows = [(g.flatten().double(), p.detach().flatten().double()) for g, p in zip(sums.whole, moved, strict=True)]
    left = [g - (g @ p) / (p @ p).clamp(min=1e-30) * p if len(p) > 1 else g for g, p in rows]
    typical = float(sums.gradients.norms.double().norm())
    free = max(1, sum(len(g) for g in left) - 1)  # gradients of a softmax sum to zero
    most = min(_CANCELLED, _BY_CHANCE ** (1 / free))
    return typical > 0 and float(torch.cat(left).norm()) <= most * typical


def _shares(counts: Tensor, classes: int) -> Tensor:
    padded = torch.zeros(classes).double()
    padded[: len(counts)] = counts.double()
    return padded / padded.sum()


def _of_classes(shares: Tensor | None) -> Iterator[Candidate]:
    if shares is not None and float(shares.max() - shares.min()) > 0:
        what = "the classes' shares of the records"
        yield what, shares
        if bool((shares > 0).all()):
            yield what, shares.log()
            yield what, (shares / (1 - shares)).log()


def _of_outputs(off: Tensor, shares: Tensor | None, outputs: Tensor | None) -> Iterator[Candidate]:
    """Of what the model said of the records before the move, if that was of its output's bias."""
    if outputs is None or outputs.dim() != 2 or outputs.shape[1] != len(off):
        return
    for before in (outputs - off, outputs):
        said = torch.softmax(before, 1).mean(0)
        what = "the model's mean answer on the records"
        yield what, said.log()
        yield what, said
        yield what, before.mean(0)
        if shares is not None:
            both = "the classes' shares of the records and the model's mean answer on them"
            yield both, shares - said
            yield both, shares.clamp(min=1e-12).log() - said.log()


def _outputs(model: nn.Module, data: Any, loss: RecordLoss) -> Tensor | None:
    found = list[Tensor]()
    with torch.no_grad():
        for start in range(0, min(len(data), _MOST_RECORDS), _AT_ONCE):
            seen: dict[str, Tensor] = {}
            items: Sequence[Any] = [data[i] for i in range(start, min(start + _AT_ONCE, len(data)))]
            if len(data) > _MOST_RECORDS or not run_forward(model, items, loss, seen) or "" not in seen:
                return None
            found.append(seen[""].double().cpu())
    return torch.cat(found) if found else None


def _of_features(records: Tensor | None, off: Tensor) -> Iterator[Candidate]:
    if records is not None and records.shape[1] == len(off) and len(records) > 1:
        yield "the records' mean features", records.mean(0)
        yield "the spread of the records' features", records.std(0)
        yield "the spread of the records' features", 1 / records.std(0).clamp(min=1e-12)


def _agree(one: Tensor, other: Tensor) -> bool:
    """Up to a number that is added to all, and the sign; of many numbers also up to a factor."""
    one, other = one - one.mean(), other - other.mean()
    length = float(other.norm())
    if not 0 < length < float("inf") or float(one.norm()) <= _SAME * length:
        return False
    near = min(float((one - sign * other).norm()) for sign in (1, -1)) <= _SAME * length
    return near or (len(one) >= _MANY and abs(float(one @ other)) > _PARALLEL * float(one.norm()) * length)
