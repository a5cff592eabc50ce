"""Somebody else's training, as the audit sees it: a callable that trains on given records and yields what it applied.

def train(records, seed):
    model, generator = net(), torch.Generator().manual_seed(seed)
    for _ in range(30):
        total = ...  # the noisy sum of the clipped gradients of records.features, records.labels
        yield AppliedStep(model, total)
        ...  # apply it
    return Released(model)  # or yield it: the weights that are given away

dn.examine("digits", trainer=train, model=net, claimed=dn.Gaussian(4).composed(30), clip=3.0, adjacency="add-remove")

What is not shown cannot be examined, and the verdict names it. Where a model (or its parameters) is yielded and stepped
in place, the audit reads the final weights from it when the training has ended, and `Released` may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from deniable.checks import positive

COUNT_NOISE = "count noise"
"""The public number that tells the standard deviation of the noise on the count that a clipping norm follows."""
Tensors = nn.Module | Mapping[str, ArrayLike | Tensor] | Sequence[ArrayLike | Tensor] | Tensor


class Records(NamedTuple):
    """What a trainer trains on: float32 features, one record a row, and int64 labels."""

    features: Tensor
    labels: Tensor

    @property
    def dataset(self) -> TensorDataset:
        """The same for a `DataLoader`; its item i is record i, the number that `AppliedStep.batch` names it by."""
        return TensorDataset(self.features, self.labels)


@dataclass(frozen=True)
class AppliedStep:
    """One step of a training: all that an observer sees of it.

    `weights` are those before the step, `gradient` the noisy gradient that is applied to them: the sum over the batch
    plus noise, or that divided by `divisor` (a mean). Each is an `nn.Module` (its parameters, or their ``.grad``), a
    dictionary by parameter name, a sequence in the order of the model's trainable parameters, or one flat vector.
    `batch` holds the indices of the records in the batch; None means all of them. `clip` is this step's clipping norm,
    if it is not the claimed one in every step. `public` holds other numbers that the training makes known or takes as
    known (a learning rate, a loss that is printed): they are compared between neighbours. Everything is copied, so
    the training may go on in place.
    """

    weights: Tensors
    gradient: Tensors
    divisor: float = 1.0
    batch: ArrayLike | Tensor | None = None
    clip: float | None = None
    public: Mapping[str, float] = field(default_factory=dict)
    _live: list[Tensor] | None = field(default=None, init=False, repr=False, compare=False)
    """The parameters themselves, where a model or its parameters were given."""
    _given: list[Tensor] = field(default_factory=list, init=False, repr=False, compare=False)
    """The gradient in the training's own memory."""

    def __post_init__(self) -> None:
        positive("divisor", self.divisor)
        if self.clip is not None:
            positive("clip", self.clip)
        weights = _tensors_of(self.weights)
        parameters = weights if self.gradient is self.weights else _tensors_of(self.gradient)
        gradient = _gradients_of(parameters) if isinstance(self.gradient, nn.Module) else parameters
        object.__setattr__(self, "_live", _parameters(weights))
        object.__setattr__(self, "public", {str(name): float(value) for name, value in self.public.items()})
        object.__setattr__(self, "_given", _own_tensors(gradient))
        object.__setattr__(self, "weights", _copy_tensors(weights))
        object.__setattr__(self, "gradient", _copy_tensors(gradient))
        if self.batch is not None:
            object.__setattr__(self, "batch", _indices(self.batch))

    def take_gradient(self, other: AppliedStep) -> None:
        """Overwrite the gradient in the training's own memory by that of another step; nothing where it has none."""
        values = other.gradient.values() if isinstance(other.gradient, dict) else other.gradient
        with torch.no_grad():
            for own, value in zip(self._given, [values] if isinstance(values, Tensor) else values, strict=False):  # type: ignore[arg-type]
                own.copy_(value)


@dataclass(frozen=True)
class Released:
    """What the training gives away at its end: the final weights, and any other numbers; yielded last, or returned."""

    weights: Tensors
    public: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _copy_tensors(_tensors_of(self.weights)))
        object.__setattr__(self, "public", {str(name): float(value) for name, value in self.public.items()})


Trainer = Callable[[Records, int], Iterable[AppliedStep | Released]]
"""Trains on the records, all its randomness from the seed, and yields (or returns a list of) its steps."""


@dataclass(frozen=True)
class WatchedTraining:
    """All steps of one training: lists of tensors (steps, ...) in the order of the model's parameters."""

    weights: list[Tensor]
    sums: list[Tensor]
    """The noisy sums: gradient times divisor; what was done to them afterwards is undone where it is known."""
    batches: list[NDArray[np.int64] | None]
    divisors: list[float]
    clips: list[float | None]
    public: list[Mapping[str, float]]
    """Of every step; a last one of what was released at the end, if anything was."""
    final: list[Tensor] | None
    """The final weights; None if they were not shown."""
    random_states: list[int]
    """A digest of torch's random state after each step was yielded (0: as before the first): twins with the same state
    draw the same numbers."""
    shown: list[Tensor] | None = None
    """The sums as they were yielded, where that is something else than `sums`."""

    @property
    def applied(self) -> list[Tensor]:
        """What moves the weights: the sums as they were yielded."""
        return self.sums if self.shown is None else self.shown

    def first(self, steps: int) -> WatchedTraining:
        """Its first steps."""
        return replace(
            self,
            weights=[w[:steps] for w in self.weights],
            sums=[s[:steps] for s in self.sums],
            shown=None if self.shown is None else [s[:steps] for s in self.shown],
            batches=self.batches[:steps],
            divisors=self.divisors[:steps],
            clips=self.clips[:steps],
            public=self.public[:steps],
            random_states=self.random_states[:steps],
        )

    def __len__(self) -> int:
        return len(self.batches)


def watch_steps(steps: Iterable[Any], parameters: Mapping[str, Tensor], at_most: int | None = None) -> WatchedTraining:
    """The steps that a trainer yields, checked against the model's parameters; `at_most` so many of them."""
    weights: list[list[Tensor]] = []
    sums: list[list[Tensor]] = []
    found: list[AppliedStep] = []
    states: list[int] = []
    at_first = _random_state()
    released: Released | None = None
    for step in _until_returned(steps):
        applied, number = as_step(step), len(found) + 1
        if isinstance(applied, Released):
            released = applied
            continue
        weights.append(_fit_shapes(f"weights of step {number}", applied.weights, parameters))
        sums.append(_fit_shapes(f"gradient of step {number}", applied.gradient, parameters))
        found.append(applied)
        states.append(_random_state())
        if at_most is not None and len(found) >= at_most:
            break
    if not found:
        raise ValueError("trainer must yield at least one AppliedStep, got none")
    final = released.weights if released is not None else None if at_most else _parameters_now(found[-1])
    divisors = torch.tensor([float(one.divisor) for one in found])
    return WatchedTraining(
        _stack_steps(weights),
        [values.mul_(divisors.view(-1, *[1] * (values.dim() - 1))) for values in _stack_steps(sums)],
        [one.batch for one in found],  # type: ignore[misc]
        [float(one.divisor) for one in found],
        [one.clip for one in found],
        [one.public for one in found] + ([released.public] if released is not None else []),
        None if final is None else _fit_shapes("final weights", final, parameters),
        [0 if state == at_first else state for state in states],
    )


def _random_state() -> int:
    return hash(torch.random.get_rng_state().numpy().tobytes())


def accumulate(seen: WatchedTraining, parts: int) -> WatchedTraining:
    """One step of every so many: parts of a batch, at the same weights, whose sums are added before the noise."""
    if parts == 1:
        return seen
    if len(seen) % parts:
        raise ValueError(f"trainer must yield {parts} parts for each accumulated step, got {len(seen)} in all")
    for weights in seen.weights:
        grouped = weights.view(-1, parts, *weights.shape[1:])
        if not torch.equal(grouped, grouped[:, :1].expand_as(grouped)):
            raise ValueError("weights must stay the same in all parts of an accumulated step, and move after its last")
    groups = [seen.batches[start : start + parts] for start in range(0, len(seen), parts)]
    return replace(
        seen,
        weights=[values[::parts].contiguous() for values in seen.weights],
        sums=[values.view(-1, parts, *values.shape[1:]).sum(1) for values in seen.sums],
        batches=[None if group[0] is None else np.concatenate(group) for group in groups],  # type: ignore[arg-type]
        divisors=seen.divisors[::parts],
        clips=seen.clips[::parts],
        random_states=seen.random_states[parts - 1 :: parts],
        public=[*seen.public[: len(seen)][parts - 1 :: parts], *seen.public[len(seen) :]],
    )


def check_batches(seen: WatchedTraining, records: int) -> WatchedTraining:
    """The same training, refused if a batch holds other numbers than those of its records."""
    for step, batch in enumerate(seen.batches, start=1):
        if batch is not None and len(batch) and not 0 <= batch.min() <= batch.max() < records:
            wrong = batch.min() if batch.min() < 0 else batch.max()
            raise ValueError(f"batch of step {step} must hold indices 0 to {records - 1}, got {wrong}")
    return seen


def _until_returned(steps: Iterable[Any]) -> Iterator[Any]:
    """What is yielded; then, as `Released`, what a generator returns or a watched loop ends with."""
    if isinstance(steps, Generator):
        returned = yield from steps
    else:
        yield from steps
        returned = getattr(steps, "released_weights", None)
    if returned is not None:
        yield returned if isinstance(returned, Released) else Released(returned)


def _tensors_of(values: Any) -> Any:
    """What was given; of a model its trainable parameters."""
    return [p for p in values.parameters() if p.requires_grad] if isinstance(values, nn.Module) else values


def _gradients_of(parameters: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]


def _parameters(weights: Any) -> list[Tensor] | None:
    """Parameters that an optimizer may step in place."""
    values = list(weights.values()) if isinstance(weights, Mapping) else weights
    if isinstance(values, list | tuple) and all(isinstance(value, nn.Parameter) for value in values):
        return list(values)
    return None


def _parameters_now(last: AppliedStep) -> list[Tensor] | None:
    """The parameters of the last step as they are now, if they have been stepped in place since."""
    if last._live is None:
        return None
    copies = list(last.weights.values()) if isinstance(last.weights, dict) else list(last.weights)  # type: ignore[arg-type]
    now = [_copy(p) for p in last._live]
    same = all(a.shape == b.shape and bool(torch.equal(a, b)) for a, b in zip(now, copies, strict=True))
    return None if same else now


def _stack_steps(steps: list[list[Tensor]]) -> list[Tensor]:
    return [torch.stack(values) for values in zip(*steps, strict=True)]


def as_step(step: Any) -> AppliedStep | Released:
    """What a training yields, checked."""
    if isinstance(step, AppliedStep | Released):
        return step
    if isinstance(step, tuple) and 2 <= len(step) <= 6:
        return AppliedStep(*step)
    raise ValueError(
        f"trainer must yield AppliedStep(weights, gradient, divisor, batch) or such a tuple, got {type(step)}"
    )


def _copy_tensors(values: Any) -> dict[str, Tensor] | list[Tensor] | Tensor:
    if isinstance(values, Mapping):
        return {name: _copy(value) for name, value in values.items()}
    if isinstance(values, Tensor | np.ndarray):
        return _copy(values)
    return [_copy(value) for value in values]


def _own_tensors(gradient: Any) -> list[Tensor]:
    """The memory of a gradient; what is no tensor or array is left out."""
    values = list(gradient.values()) if isinstance(gradient, Mapping) else gradient
    each = [values] if isinstance(values, Tensor | np.ndarray) else list(values)
    return [torch.as_tensor(v).detach() for v in each if isinstance(v, Tensor | np.ndarray)]


def _copy(value: ArrayLike | Tensor) -> Tensor:
    tensor = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    return tensor.detach().to("cpu", torch.float32, copy=True)


def _indices(batch: ArrayLike | Tensor) -> NDArray[np.int64]:
    values = batch.detach().cpu().numpy() if isinstance(batch, Tensor) else np.asarray(batch)
    if values.ndim != 1 or (len(values) and not np.issubdtype(values.dtype, np.integer)):
        raise ValueError(f"batch must be the indices of its records, whole numbers, got {values.dtype} {values.shape}")
    return values.astype(np.int64)


def _fit_shapes(name: str, values: Any, parameters: Mapping[str, Tensor]) -> list[Tensor]:
    """As a list in the order of the parameters, refused unless the shapes and numbers are right."""
    fitted = list(_in_order(name, values, parameters))
    expected, found = [tuple(p.shape) for p in parameters.values()], [tuple(v.shape) for v in fitted]
    if expected != found:
        raise ValueError(f"{name} must have the shapes of the model's trainable parameters, {expected}, got {found}")
    if not bool(torch.cat([value.flatten() for value in fitted]).isfinite().all()):
        raise FloatingPointError(f"{name} is not finite: the training diverged; lower its learning rate")
    return fitted


def _in_order(name: str, values: Any, parameters: Mapping[str, Tensor]) -> Iterator[Tensor]:
    if isinstance(values, dict):
        plain = {key.removeprefix("_module.").removeprefix("module."): value for key, value in values.items()}
        if missing := sorted(parameters.keys() - plain.keys()):
            raise ValueError(f"{name} must name every trainable parameter, got none for {', '.join(missing)}")
        yield from (plain[key] for key in parameters)
    elif isinstance(values, Tensor):
        sizes = [p.numel() for p in parameters.values()]
        if values.numel() != sum(sizes):
            raise ValueError(f"{name} must have {sum(sizes)} numbers, one for each weight, got {values.numel()}")
        parts = torch.split(values.flatten(), sizes)
        yield from (part.view(p.shape) for part, p in zip(parts, parameters.values(), strict=True))
    else:
        yield from values
