"""Weights of the model that the watched optimizer does not hold: do they move, and is it by the records' gradient?"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import inf, isfinite
from typing import Any

import torch
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import RecordLoss, loss_of_batch
from deniable.examination.recorded.gradients.record_shares import shorten
from deniable.examination.recorded.weights.weight_moves import cosine

OtherMoves = tuple[tuple[str, ...], int, bool]
"""Which of them move, in how many steps, and whether the first move is along a batch's gradient without noise."""
OtherNoise = tuple[float, int]
"""The standard deviation of noise, on a batch's summed gradient, that all of their moves that is not along it would be;
and in how many numbers."""
_MOST_TENSORS, _NUMBERS = 64, 512
_LOOKS = 64
"""Steps in which they move, and their gradients are computed."""
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
        self._looked = {at for at, (_, p) in enumerate(self._named) if p.requires_grad}
        self._last, self._gradient = self._take(), dict[int, Tensor]()
        self._moved, self._steps, self._along = set[int](), 0, False
        self._squares, self._numbers = 0.0, 0

    def before_step(self) -> None:
        """Compare them with what they were at the step before, or at the beginning."""
        now = self._take()
        moved = [at for at, before in enumerate(self._last) if not _agrees(now[at], before)]
        moved = [at for at in moved if not self._follows(at, now[at])]
        moves, gradients = self._known([now[at] - self._last[at] for at in moved], moved)
        if moved and not self._moved:
            self._along = _is_along(moves, gradients)
        self._note_noise(moves, gradients)
        self._moved.update(moved)
        self._looked.update(at for at in moved if self._named[at][1].is_floating_point())
        self._steps += bool(moved)
        self._last, self._gradient = now, {}

    def look(self, model: nn.Module, items: Sequence[Any]) -> None:
        """Compute the batch's own gradient for those that could be trained or have moved, in the first such steps."""
        if not self._looked or self._steps > _LOOKS or not items:
            return
        some = sorted(self._looked)
        self._loss.trained = frozenset(id(self._named[at][1]) for at in some)
        frozen = [self._named[at][1] for at in some if not self._named[at][1].requires_grad]
        for p in frozen:
            p.requires_grad_(True)
        found = loss_of_batch(model, items, self._loss, [self._places[at] for at in some])
        for p in frozen:
            p.requires_grad_(False)
        if found is not None:
            self._gradient = dict(zip(some, (part.double().cpu() for part in found[1]), strict=True))

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

    def _known(self, moves: list[Tensor], moved: list[int]) -> tuple[Tensor, Tensor]:
        """Moves and gradients of those whose gradients are known, number by number; nothing without them."""
        there = [(move, self._gradient[at]) for move, at in zip(moves, moved, strict=True) if at in self._gradient]
        if not there:
            return torch.empty(0), torch.empty(0)
        return torch.cat([move for move, _ in there]), torch.cat([gradient for _, gradient in there])

    def _note_noise(self, move: Tensor, gradient: Tensor) -> None:
        """Add what of a step's move is across the gradient, as noise on the latter."""
        if len(move) < _FEWEST or self._loss.batch_loss is not None:
            return
        along = -float(move @ gradient) / max(float(gradient.norm()), 1e-30)
        across = max(float(move.square().sum()) - along**2, 0.0)
        self._squares += across * float(gradient.square().sum()) / along**2 if along > 0 else inf
        self._numbers += len(move) - 1

    def noise(self) -> OtherNoise | None:
        """Where all of their moves go along the batches' gradients; None elsewhere."""
        if not self._numbers or not isfinite(self._squares):
            return None
        return shorten((self._squares / self._numbers) ** 0.5), self._numbers


def _is_along(move: Tensor, gradient: Tensor) -> bool:
    """Against the gradient, number by number as long as it, or all of one length as Adam's first move."""
    there = gradient != 0
    if int(there.sum()) < _FEWEST:
        return False
    sizes = move[there].abs()
    even = bool(((sizes - sizes.median()).abs() <= _ALIKE * sizes.median()).double().mean() > _EXACTLY - _ALIKE)
    return cosine(-move, gradient) > _EXACTLY or (even and cosine(-move.sign(), gradient.sign()) > _EXACTLY)


def _agrees(now: Tensor, before: Tensor) -> bool:
    return bool((now - before).norm() <= _SAME * (before.norm() + 1e-12))
