"""The optimizer of a watched run: its divisor, its clipping norms, and the torch optimizer that moves weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from deniable.checks import positive


class SteppedOptimizer:
    """A plain torch optimizer, whose loop clips and divides, or that of Opacus, which knows both.

    Adaptive clipping changes its norm before the weights move, so that the norm in use is noted when noise is added.
    """

    def __init__(self, optimizer: Any, clip: float | None, divisor: float | None) -> None:
        optimizer = getattr(optimizer, "optimizer", optimizer)  # out of Accelerate's wrapper
        self.private = optimizer if hasattr(optimizer, "original_optimizer") else None
        if self.private is None and (clip is None or divisor is None):
            raise ValueError(
                "clip and divisor are missing: name the clipping norm and what the noisy sum is divided by"
            )
        self.inner: torch.optim.Optimizer = optimizer if self.private is None else optimizer.original_optimizer
        self._clip = None if clip is None else positive("clip", clip)
        self._divisor = None if divisor is None else positive("divisor", divisor)
        self._norm: float | None = None
        if self.private is not None:
            self._note_norms(self.private)

    def weights_of(self, model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
        """The model's weights that it trains, by name; an optimizer that trains none of them is refused."""
        held = {id(p) for group in self.inner.param_groups for p in group["params"]}
        named = model.named_parameters()
        found = {name.removeprefix("_module."): p for name, p in named if p.requires_grad and id(p) in held}
        if not found:
            raise ValueError(
                "optimizer moves none of the model's trainable weights: name the one that trains this model"
            )
        return found

    def before_moves(self, watch: Callable[[], None]) -> Any:
        """Call `watch` in every step between its gradients and its move; the hook that does, to be removed."""

        def hook(_: torch.optim.Optimizer, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
            stepping, *given = args
            closure = given[0] if given else named.get("closure")
            if closure is None:
                watch()
                return None
            return (stepping,), {**named, "closure": _watched_closure(closure, watch)}

        return self.inner.register_step_pre_hook(hook)

    @property
    def divisor(self) -> float:
        """Of this step."""
        if self._divisor is not None:
            return self._divisor
        scaled = self.private.loss_reduction == "mean"  # type: ignore[union-attr]
        return float(self.private.expected_batch_size * self.private.accumulated_iterations) if scaled else 1.0  # type: ignore[union-attr]

    def move_of_noise(self, divisor: float) -> float | None:
        """How far a weight moves by noise of one on the sum; None of optimizers that keep gradients for later steps."""
        groups = self.inner.param_groups
        keeps = type(self.inner) is not torch.optim.SGD or any(group["momentum"] for group in groups)
        return None if keeps or not groups[0]["lr"] else float(groups[0]["lr"]) / divisor

    @property
    def clip(self) -> float:
        """The clipping norm of this step, of all parameters together."""
        if self._clip is not None:
            return self._clip
        return self._norm if self._norm is not None else float(self.private.max_grad_norm)  # type: ignore[union-attr]

    def clips(self, parameters: Sequence[torch.Tensor]) -> float | list[float]:
        """The clipping norm of this step; where each parameter is clipped by itself theirs, in this order."""
        norms = getattr(self.private, "max_grad_norms", None)
        if norms is None or self._clip is not None:
            return self.clip
        own = {id(p): float(norm) for p, norm in zip(self.private.params, norms, strict=True)}  # type: ignore[union-attr]
        return [own[id(p)] for p in parameters]

    @property
    def count_noise(self) -> float | None:
        """Of adaptive clipping: the standard deviation of the noise on the count of unclipped records."""
        found = getattr(self.private, "unclipped_num_std", None)
        return None if found is None else float(found)

    def _note_norms(self, private: Any) -> None:
        earlier = private.step_hook

        def note(stepping: Any) -> None:
            self._norm = float(stepping.max_grad_norm)  # a copy: the next one is written over it
            if earlier is not None:
                earlier(stepping)

        private.attach_step_hook(note)


def _watched_closure(closure: Callable[[], Any], watch: Callable[[], None]) -> Callable[[], Any]:
    """The closure that makes a step's gradients (as Lightning hands them in), watched after its first call."""
    calls = list[int]()

    def watched() -> Any:
        found = closure()
        if not calls:
            calls.append(1)
            watch()
        return found

    return watched
