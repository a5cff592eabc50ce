"""The normal numbers that a training draws while it runs, kept, and shifted on request.

The noise of a step is a draw of as many numbers as the model has weights: one for each parameter, in their order, or
one for all of them. Between two steps it is the last such draw. What is drawn otherwise (by NumPy, number by number) is
not seen, and then nothing is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from deniable.examination.trainer import AppliedStep

_SPREAD_PLACES: dict[Callable[..., Any], int | None] = {
    torch.randn: None,
    torch.randn_like: None,
    torch.normal: 1,
    Tensor.normal_: 2,
}
"""Who draws normal numbers, and the place of the standard deviation among its arguments; None: it is 1."""


class NoiseDraws(TorchFunctionMode):
    """Hears the draws inside of its ``with`` block, and as a listener the steps between them.

    With `shifts` (steps, weights), in standard deviations, each step's noise is shifted by its row where it is drawn.
    """

    def __init__(self, shapes: Sequence[torch.Size], like: NoiseDraws | None = None, shifts: Tensor | None = None):
        super().__init__()
        self._shapes, self._size = list(shapes), sum(shape.numel() for shape in shapes)
        self._draws: list[list[Tensor]] = [[]]
        self._shifts = {} if like is None or shifts is None else like._split(shifts)

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `function`; keep what it draws."""
        given = kwargs or {}
        found = function(*args, **given)
        if function not in _SPREAD_PLACES or torch._C._functorch.is_functorch_wrapped_tensor(found):
            return found
        spread, number = _spread(function, args, given), len(self._draws[-1])
        with torch.no_grad():
            self._draws[-1].append(
                (found.detach() / spread).float() if self._may_be_noise(found) else found.new_empty(0)
            )
            shift = self._shifts.get((len(self._draws) - 1, number))
            if shift is not None and shift.numel() == found.numel():
                found.add_(shift.view_as(found).to(found.dtype) * spread)
        return found

    def hear(self, _: AppliedStep) -> None:
        """A step ends."""
        self._draws.append([])

    def noise(self, steps: int) -> Tensor | None:
        """(steps, weights) the noise of each step, in its standard deviations; None where it is not found."""
        places = [self._places(step) for step in range(steps)] if steps <= len(self._draws) else [None]
        if any(place is None for place in places):
            return None
        rows = [torch.cat([d.flatten() for d in self._draws[step][at]]) for step, at in enumerate(places) if at]
        return torch.stack(rows)

    def number(self, step: int) -> int:
        """How often normal numbers were drawn in a step."""
        return len(self._draws[step])

    def steps_without_own(self, steps: int) -> list[int]:
        """Steps that draw nothing like noise after one that drew it once: it may be used again."""
        drawn = [sum(d.numel() for d in draws) for draws in self._draws[:steps]]
        return [step for step in range(1, len(drawn)) if drawn[step] == 0 and drawn[step - 1] == self._size]

    def drown(self, step: int, times: float) -> NoiseDraws:
        """For a training with the same seed, in which one step's noise is so many times as large."""
        found = NoiseDraws(self._shapes)
        numbers = range(len(self._draws[step]))
        found._shifts = {(step, number): times * self._draws[step][number].flatten() for number in numbers}
        return found

    def _may_be_noise(self, drawn: Tensor) -> bool:
        return drawn.shape in self._shapes or drawn.numel() == self._size

    def _places(self, step: int) -> slice | None:
        """Of a step's noise among its draws."""
        drawn, number = self._draws[step], len(self._shapes)
        for end in range(len(drawn), 0, -1):
            if drawn[end - 1].numel() == self._size:
                return slice(end - 1, end)
            if [d.shape for d in drawn[max(0, end - number) : end]] == self._shapes:
                return slice(end - number, end)
        return None

    def _split(self, shifts: Tensor) -> dict[tuple[int, int], Tensor]:
        """Every step's row by the draws that it shifts."""
        found: dict[tuple[int, int], Tensor] = {}
        for step, row in enumerate(shifts):
            at = self._places(step)
            numbers = range(at.start, at.stop) if at else range(0)
            parts = torch.split(row, [self._draws[step][number].numel() for number in numbers]) if at else ()
            found |= {(step, number): part for number, part in zip(numbers, parts, strict=True)}
        return found


def _spread(function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]) -> Any:
    place = _SPREAD_PLACES[function]
    if place is None:
        return 1.0
    return given.get("std", args[place] if len(args) > place else 1.0)
