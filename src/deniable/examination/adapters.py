"""Ready adapters: training loops of other libraries, watched from the outside, as the steps that an audit takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from deniable.examination.step_listeners import LISTENERS
from deniable.examination.trainer import COUNT_NOISE, AppliedStep, Released


class WatchedSteps(list[AppliedStep]):
    """The steps of a loop, and the parameters that it moves."""

    def __init__(self, parameters: list[Any]) -> None:
        super().__init__()
        self._parameters = parameters

    @property
    def released_weights(self) -> Released | None:
        """The weights as they are now: the final ones, once the loop has ended."""
        return Released(self._parameters) if self else None


def watch_opacus(optimizer: Any, loader: Any = None) -> WatchedSteps:
    """A list that fills itself while an Opacus loop runs; return it from the trainer.

    `optimizer` and `loader` are those that ``PrivacyEngine.make_private`` returned; without `loader` every step is
    taken to use all records. The loop itself stays as it is, SGD or Adam, Poisson batches or not, also within
    Opacus's memory manager (watch before it wraps the loader)::

        def train(records, seed):
            torch.manual_seed(seed)
            ...
            loader = DataLoader(records.dataset, ...)
            model, optimizer, loader = PrivacyEngine().make_private(module=..., data_loader=loader, ...)
            steps = watch_opacus(optimizer, loader)
            for features, labels in loader:
                ...
            return steps

    What is recorded is what Opacus hands to the wrapped optimizer: ``p.grad`` after clipping, noise and scaling; its
    clipping norm, which ``clipping="adaptive"`` changes; and the weights when the loop has ended.
    """
    drawn = drawn_batches(loader) if loader is not None else None
    steps = WatchedSteps(list(optimizer.params))
    earlier = optimizer.step_hook

    def record(stepping: Any) -> None:
        weights, gradients = list(stepping.params), [p.grad for p in stepping.params]
        divisor = stepping.expected_batch_size * stepping.accumulated_iterations
        batch = None if drawn is None else next_batch(drawn, stepping)
        scale = divisor if stepping.loss_reduction == "mean" else 1.0
        counted = getattr(stepping, "unclipped_num_std", None)
        public = {} if counted is None else {COUNT_NOISE: float(counted)}
        steps.append(AppliedStep(weights, gradients, scale, batch, _clip(stepping), public))
        for listener in LISTENERS.get():
            listener.hear(steps[-1])
        if earlier is not None:
            earlier(stepping)

    optimizer.attach_step_hook(record)
    return steps


class DrawnBatches(deque[list[int]]):
    """Batches that a loader has drawn and no step has used."""

    ahead = False
    """Whether it may draw them before they are used."""


class _Watched:
    """A batch sampler that remembers what it drew."""

    def __init__(self, sampler: Any, drawn: deque[list[int]]) -> None:
        self._sampler, self._drawn = sampler, drawn

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self._sampler:
            self._drawn.append(list(batch))
            yield batch

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)


def drawn_batches(loader: Any) -> DrawnBatches:
    """A queue that fills with the batches that a loader draws, from now on."""
    if getattr(loader, "batch_sampler", None) is None:
        raise ValueError("loader must be a DataLoader with a batch sampler, so that its batches can be recorded")
    drawn = DrawnBatches()
    drawn.ahead = getattr(loader, "num_workers", 0) > 0
    # a DataLoader refuses another sampler once it is made; this one draws from the very same
    object.__setattr__(loader, "batch_sampler", _Watched(loader.batch_sampler, drawn))
    return drawn


def next_batch(drawn: DrawnBatches, stepping: Any) -> list[int]:
    """The batch of this step: all that were drawn since the last, as a loop may accumulate several.

    A loader with workers draws ahead. Then the optimizer tells how many there are; a loop may have skipped empty ones.
    """
    if drawn and not drawn.ahead:
        found = [record for batch in drawn for record in batch]
        drawn.clear()
        return found
    while drawn and not drawn[0] and _drew_something(stepping):
        drawn.popleft()
    if len(drawn) < stepping.accumulated_iterations:
        raise ValueError("loader must be the one that the loop draws from: a step was taken without a batch from it")
    return [record for _ in range(stepping.accumulated_iterations) for record in drawn.popleft()]


def _drew_something(stepping: Any) -> bool:
    """Whether the step's batch had records: by their gradients, or by their sum (ghost clipping keeps no more)."""
    samples = getattr(stepping.params[0], "grad_sample", None)
    if samples is None:
        return any(p.summed_grad is not None and bool(p.summed_grad.any()) for p in stepping.params)
    return len(samples[0] if isinstance(samples, list) else samples) > 0


def _clip(stepping: Any) -> float | None:
    """The norm of this step, where it is one number (adaptive clipping changes it, clipping per layer has several)."""
    norm = stepping.max_grad_norm
    return float(norm) if isinstance(norm, int | float) or getattr(norm, "ndim", None) == 0 else None
