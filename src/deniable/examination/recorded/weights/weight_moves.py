"""The optimizer played again on a few weights: did they move by the applied gradient, and by nothing else?"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor

UNEXPLAINED_MOVE = 1e-3
"""How far weights are from where the optimizer leads, relative to the step's move: what rounding never brings."""
_FEW_ROUNDINGS, _ROUNDINGS = 2, 64
"""Of a weight and its parameter's move: so many are no move, so many more than another order of operations brings."""
_LEAST_MOVE = 1e-12
_SAME, _IN_MOVE = 1e-4, 1e-3
"""Relative to a move: rounding; and of a move, the share in a parameter that is not rounding."""
_KEPT_STEPS = 256
"""Of runs with more steps it is not told whether the final weights are an average."""
_WHOLE, _ALL_WHOLE = 64, 1024
"""Tensors of so many numbers are watched as a whole, such as biases of outputs: the last ones, of so many together."""
_AVERAGE = 1e-3
"""The share of a last move that an average of watched weights may leave: rounding."""


def _is_shortened(now: Tensor, expected: Tensor) -> bool:
    """Whether these are the expected numbers in fewer digits, as of a model that is released in half precision."""
    return any(torch.equal(now, expected.to(fewer).to(now)) for fewer in (torch.bfloat16, torch.float16))


def _usual(moves: Tensor) -> float:
    return float(moves.square().mean().sqrt())


def cosine(one: Tensor, other: Tensor) -> float:
    """Of two vectors; 0 where one of them is zero."""
    return float(one @ other.to(one) / (one.norm() * other.norm()).clamp(min=1e-30))


class WatchedWeights:
    """Some weights of a model, evenly from all parameters, followed through a training.

    Every optimizer of torch.optim but LBFGS and Muon treats each weight by itself, so a copy of it with the same
    settings, fed with the same gradients, moves a few weights as the training moved them.
    """

    def __init__(self, parameters: Sequence[Tensor], optimizer: torch.optim.Optimizer, number: int = 512) -> None:
        self.parameters = list(parameters)
        sizes = np.array([p.numel() for p in parameters])
        small = np.where(sizes <= _WHOLE, sizes, 0)
        small = np.where(np.cumsum(small[::-1])[::-1] <= _ALL_WHOLE, small, 1)  # from the last one, of the outputs
        share = np.maximum(np.maximum(small, 1), np.minimum(sizes, number * sizes // max(1, sizes.sum())))
        self.places = [torch.linspace(0, size - 1, int(k)).long() for size, k in zip(sizes, share, strict=True)]
        group_of = {id(p): i for i, group in enumerate(optimizer.param_groups) for p in group["params"]}
        self._groups = [group_of.get(id(p), 0) for p in self.parameters]
        self._optimizer = optimizer
        self._expected: Tensor | None = None
        self._twins = [torch.nn.Parameter(part.clone()) for part in self._take([p.detach() for p in self.parameters])]
        self._copy = self._copy_of(optimizer)
        self.departures: list[float] = []
        self.off: Tensor | None = None
        """What the last step that was compared leaves unexplained."""
        self.set_back = False
        """Whether after the last step that was compared the weights are those before it."""
        self._history: list[Tensor] = []
        self._clean: list[Tensor] = []

    def __len__(self) -> int:
        return sum(len(place) for place in self.places)

    def take(self, values: Sequence[Tensor]) -> Tensor:
        """The watched numbers of some tensors that are shaped like the parameters, as one vector."""
        return torch.cat([part.double() for part in self._take(values)])

    def now(self) -> list[Tensor]:
        """Of each parameter its watched numbers, as they are now and as exact."""
        return self._take([p.detach() for p in self.parameters])

    @property
    def start(self) -> Tensor:
        """Before the present step."""
        return self._start

    @property
    def settings(self) -> dict[str, Any]:
        """Of the optimizer, for its first weights."""
        return dict(self._optimizer.param_groups[0])

    def starts(self) -> list[Tensor]:
        """The watched weights before each of the first steps, and now where these are all."""
        now = self.take([p.detach() for p in self.parameters])
        return [*self._history, *([now] if len(self._history) <= _KEPT_STEPS else [])]

    def before_step(self, gradients: Sequence[Tensor]) -> None:
        """Compare the weights with where the last step should have led; then play this step on the copy."""
        self.compare()
        now = self._take([p.detach() for p in self.parameters])
        with torch.no_grad():
            for twin, weight, gradient in zip(self._twins, now, self._take(gradients), strict=True):
                twin.copy_(weight)
                twin.grad = gradient.clone()
        for mine, theirs in zip(self._copy.param_groups, self._optimizer.param_groups, strict=True):
            mine.update({name: value for name, value in theirs.items() if name != "params"})
        self._start = torch.cat([weight.double() for weight in now])
        if len(self._history) <= _KEPT_STEPS:
            self._history.append(self._start.float())
        self._copy.step()
        self._expected = torch.cat([twin.detach().double() for twin in self._twins])

    def compare(self) -> Tensor | None:
        """How far the weights are from where the last step should have led, if there was one; kept in `departures`."""
        if self._expected is None:
            return None
        now = self.take([p.detach() for p in self.parameters])
        off = now - self._expected
        move = self._expected - self._start
        size = float(move.norm())
        rounding = 1e-5 * float(self._start.norm()) / max(1, len(self._start)) ** 0.5
        departure, roundings = (
            float(off.norm()) / max(size, rounding, _LEAST_MOVE),
            self._roundings(off, self._start, move),
        )
        rounded = roundings <= _FEW_ROUNDINGS or _is_shortened(now, self._expected)
        self.departures.append(0.0 if rounded else max(departure, UNEXPLAINED_MOVE * roundings / _ROUNDINGS))
        self.set_back = size > _LEAST_MOVE and bool((now - self._start).norm() <= _SAME * size)
        self._last, self._expected, self.off = self._expected, None, off
        return off

    def _roundings(self, off: Tensor, start: Tensor, move: Tensor) -> float:
        """The largest number of these in roundings of its weight and of usual moves of its parameter."""
        rows = zip(self._twins, self.parts(off), self.parts(start), self.parts(move), strict=True)
        return max(
            float((part.abs() / (weight.abs() + _usual(moved)).clamp(min=1e-300)).max() / torch.finfo(twin.dtype).eps)
            for twin, part, weight, moved in rows
        )

    def moved_parameters(self, off: Tensor) -> list[int]:
        """Which parameters a move is in, and not rounding."""
        parts = torch.stack([part.norm() for part in self.parts(off)])
        return torch.nonzero(parts > _IN_MOVE * parts.max()).flatten().tolist()

    def parts(self, off: Tensor) -> list[Tensor]:
        """Of each parameter its watched numbers."""
        return list(torch.split(off, [len(place) for place in self.places]))

    def moved_places(self, off: Tensor) -> Tensor:
        """(watched numbers,) whether they are of parameters that a move is in, and not rounding."""
        moved = torch.zeros(len(self.places), dtype=torch.bool)
        moved[self.moved_parameters(off)] = True
        return moved.repeat_interleave(torch.tensor([len(place) for place in self.places]))

    def keep_clean_sum(self, clean: Sequence[Tensor]) -> None:
        """For `final_holds_clean_sums`: the clipped sum of a step, over all weights."""
        if len(self._clean) <= _KEPT_STEPS:
            self._clean.append(self.take(clean).float())

    def final_is_average(self) -> bool:
        """Whether the weights are now a linear combination of those before each step and after the last."""
        return self._is_final([one.double() - self._last for one in self._history])

    def final_step(self) -> int | None:
        """The step before which the weights were what they are now; None where they were never."""
        now = self.take([p.detach() for p in self.parameters])
        near = 1e-6 * float(now.norm())
        return next((at for at, one in enumerate(self._history) if float((one.double() - now).norm()) <= near), None)

    def final_holds_clean_sums(self) -> bool:
        """Whether they are one of those and of clipped sums without noise; asked for where they are no average."""
        return bool(self._clean) and self._is_final(
            [*(one.double() - self._last for one in self._history), *(one.double() for one in self._clean)]
        )

    def _is_final(self, span: list[Tensor]) -> bool:
        """Whether a combination of these leads from the last watched weights to the present ones."""
        if not 0 < len(span) <= min(2 * _KEPT_STEPS, len(self) // 2):
            return False
        rows = torch.stack(span)
        rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-30)
        target = self.take([p.detach() for p in self.parameters]) - self._last
        solved = torch.linalg.lstsq(rows.T, target.unsqueeze(1), driver="gelsd").solution
        return bool((rows.T @ solved - target.unsqueeze(1)).norm() <= _AVERAGE * target.norm())

    def _take(self, values: Sequence[Tensor]) -> list[Tensor]:
        return [v.detach().flatten()[place.to(v.device)].cpu() for v, place in zip(values, self.places, strict=True)]

    def _copy_of(self, optimizer: torch.optim.Optimizer) -> Any:
        groups = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [twin for twin, own in zip(self._twins, self._groups, strict=True) if own == i],
            }
            for i, group in enumerate(optimizer.param_groups)
        ]
        return type(optimizer)(groups, **{"lr": groups[0]["lr"], **_required(optimizer)})


def _required(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What its class asks for beside the parameters, as the optimizer keeps it: in its defaults, or by its name."""
    asked = list(signature(type(optimizer)).parameters.values())[1:]
    names = [
        one.name for one in asked if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    ]
    known = {**vars(optimizer), **optimizer.defaults}
    if missing := [name for name in names if name not in known]:
        raise ValueError(
            f"{type(optimizer).__name__} asks for {', '.join(missing)}, which it does not keep, so that its moves "
            "cannot be followed: keep it as an attribute of that name, or give it a default"
        )
    return {name: known[name] for name in names}
