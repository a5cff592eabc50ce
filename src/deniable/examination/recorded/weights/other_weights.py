"""Weights of the model that the watched optimizer does not hold: do they move, and is it by the records' gradient?"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import RecordLoss, loss_of_batch
from deniable.examination.recorded.weights.weight_moves import cosine

OtherMoves = tuple[tuple[str, ...], int, bool]
"""Which of them move, in how many steps, and whether the first move is along a batch's gradient without noise."""
_MOST_TENSORS, _NUMBERS = 64, 512
_FEWEST = 8
"""Numbers in which a direction is no chance."""
_SAME, _EXACTLY = 1e-6, 0.999
"""Relative: rounding; the cosine of a move and what it is made of."""
_ALIKE = 1e-2
"""Relative: moves of one length, as an adaptive optimizer's first ones."""


class OtherWeights:
    """Some numbers of each of them, or of a sample of them, from step to step."""

    def __init__(self, model: nn.Module, watched: Sequence[Tensor], loss: RecordLoss) -> None:
        own = {id(p) for p in watched}
        others = [(name, p) for name, p in model.named_parameters() if id(p) not in own and p.numel()]
        chosen = torch.linspace(0, len(others) - 1, min(len(others), _MOST_TENSORS)).long().tolist()
        self._named = [(others[at][0].removeprefix("_module."), others[at][1]) for at in chosen]
        each = max(1, _NUMBERS // max(1, len(chosen)))
        self._places = [torch.linspace(0, p.numel() - 1, min(p.numel(), each)).long() for _, p in self._named]
        self._models = list(watched)
        self._loss = copy(loss)
        self._trained = [at for at, (_, p) in enumerate(self._named) if p.requires_grad]
        self._loss.trained = frozenset(id(self._named[at][1]) for at in self._trained)
        self._last, self._gradient = self._take(), list[Tensor]()
        self._moved, self._steps, self._along = set[int](), 0, False

    def before_step(self) -> None:
        """Compare them with what they were at the step before, or at the beginning."""
        now = self._take()
        moved = [at for at, before in enumerate(self._last) if not _agrees(now[at], before)]
        moved = [at for at in moved if not self._follows(at, now[at])]
        if moved and not self._moved:
            self._along = self._is_along([now[at] - self._last[at] for at in moved], moved)
        self._moved.update(moved)
        self._steps += bool(moved)
        self._last = now

    def look(self, model: nn.Module, items: Sequence[Any]) -> None:
        """Compute the batch's own gradient for them, until they move."""
        if not self._trained or self._moved:
            return
        places = [self._places[at] for at in self._trained]
        found = loss_of_batch(model, items, self._loss, places) if items else None
        self._gradient = [] if found is None else [part.double().cpu() for part in found[1]]

    def found(self) -> OtherMoves | None:
        """None where none of them moves, but as an average of watched weights."""
        self.before_step()
        return (
            (tuple(self._named[at][0] for at in sorted(self._moved)), self._steps, self._along) if self._steps else None
        )

    def _take(self) -> list[Tensor]:
        rows = zip(self._named, self._places, strict=True)
        return [p.detach().flatten()[place.to(p.device)].double().cpu() for (_, p), place in rows]

    def _follows(self, at: int, now: Tensor) -> bool:
        """Whether it moves towards a watched tensor of its shape, as an average of that does."""
        move, shape = now - self._last[at], self._named[at][1].shape
        towards = (
            p.detach().flatten()[self._places[at].to(p.device)].double().cpu() - self._last[at]
            for p in self._models
            if p.shape == shape
        )
        return len(move) >= _FEWEST and any(cosine(move, one) > _EXACTLY for one in towards)

    def _is_along(self, moves: list[Tensor], moved: list[int]) -> bool:
        """Against the gradient, number by number as long as it, or all of one length as Adam's first move."""
        rows = [
            (m, self._gradient[self._trained.index(at)]) for m, at in zip(moves, moved, strict=True) if self._knows(at)
        ]
        if not rows:
            return False
        move, gradient = (torch.cat(parts) for parts in zip(*rows, strict=True))
        there = gradient != 0
        if int(there.sum()) < _FEWEST:
            return False
        sizes = move[there].abs()
        even = bool(((sizes - sizes.median()).abs() <= _ALIKE * sizes.median()).double().mean() > _EXACTLY - _ALIKE)
        return cosine(-move, gradient) > _EXACTLY or (even and cosine(-move.sign(), gradient.sign()) > _EXACTLY)

    def _knows(self, at: int) -> bool:
        return bool(self._gradient) and at in self._trained


def _agrees(now: Tensor, before: Tensor) -> bool:
    return bool((now - before).norm() <= _SAME * (before.norm() + 1e-12))
