"""The watcher of one ordinary run: around any torch optimizer, Opacus' included, in two lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from math import isfinite
from pathlib import Path
from time import perf_counter, process_time
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from deniable.checks import probability, whole
from deniable.examination.recorded.batches.draws import Draws
from deniable.examination.recorded.batches.given_inputs import GivenInputs
from deniable.examination.recorded.batches.left_out_batches import LeftOutBatches
from deniable.examination.recorded.batches.used_batches import UsedBatches
from deniable.examination.recorded.gradients.batch_gradients import (
    BatchLoss,
    BatchSums,
    LossOfBatch,
    RecordLoss,
    changes,
    mixes_records,
    recompute_sums,
    uses_chance,
)
from deniable.examination.recorded.gradients.chosen_records import RecordChoices
from deniable.examination.recorded.gradients.class_counts import class_counts, weighs_by_counts
from deniable.examination.recorded.gradients.kept_sums import NotCleared
from deniable.examination.recorded.gradients.mixed_losses import MixedLosses
from deniable.examination.recorded.gradients.other_records import OtherRecords, mean_figures
from deniable.examination.recorded.gradients.record_groups import ChunkMeans, RecordGroups
from deniable.examination.recorded.gradients.record_shares import shorten
from deniable.examination.recorded.gradients.step_products import StepBefore, inner_products, looked_at, sample_places
from deniable.examination.recorded.gradients.summed_families import MultipliedSums
from deniable.examination.recorded.gradients.variance_reduction import VarianceReduction
from deniable.examination.recorded.gradients.ways_to_sum import RecordProducts, products_of_records
from deniable.examination.recorded.noise.earlier_noise import EARLIER_STEPS, EarlierNoise
from deniable.examination.recorded.noise.noise_by_size import noise_by_size
from deniable.examination.recorded.noise.noise_series import NoiseSeries
from deniable.examination.recorded.noise.number_counts import are_centred, count_numbers
from deniable.examination.recorded.recording import Recording, RunEnd, RunStart, StepTaken
from deniable.examination.recorded.run_record import (
    ExaminedStep,
    RunRecord,
    known_factors,
    noise_variance,
)
from deniable.examination.recorded.stepped_optimizer import SteppedOptimizer
from deniable.examination.recorded.weights.forward_weights import ForwardWeights
from deniable.examination.recorded.weights.initial_weights import InitialFinding, what_weights_have
from deniable.examination.recorded.weights.last_moves import LastMove
from deniable.examination.recorded.weights.other_weights import OtherWeights
from deniable.examination.recorded.weights.pulled_weights import PulledWeights
from deniable.examination.recorded.weights.second_moments import SecondMoments
from deniable.examination.recorded.weights.watched_buffers import WatchedBuffers
from deniable.examination.recorded.weights.weight_moves import UNEXPLAINED_MOVE, WatchedWeights, cosine
from deniable.examination.recorded.weights.written_records import RecordsInWeights
from deniable.training.threads import one_thread

NEW_WATCHERS: ContextVar[list[RunWatcher] | None] = ContextVar("NEW_WATCHERS", default=None)
"""Where a test of somebody's training learns of the watchers that the training makes."""
_FEW_WEIGHTS = 2**16
"""Of smaller models a second thread gains nothing, and waits where the machine is busy."""
_ALWAYS_SECONDS = 2.0
"""Of CPU time that the watcher may take of any run: short ones are recomputed as a whole."""


def watch_run(
    model: nn.Module,
    optimizer: Any,
    loader: Any,
    *,
    loss: LossOfBatch = "cross-entropy",
    batch_loss: BatchLoss | None = None,
    clip: float | None = None,
    divisor: float | None = None,
    batches_per_step: int | None = None,
    initial: Literal["public"] | None = None,
    budget: float | str = 0.1,
    path: Path | str | None = None,
) -> RunWatcher:
    """Watch a training from now on; `dn.examine(run, claimed=...)` judges it when it has ended.

    Args:
        model: What is trained; with Opacus what `make_private` returned.
        optimizer: Likewise; a plain torch optimizer in a loop of one's own.
        loader: The `DataLoader` that the loop draws from: its batches are watched, its data set holds the records. Or
            the data set alone; then `run.use(indices)` tells the records of each step before it.
        loss: Of each example, by name or as a function (outputs, targets) -> losses, for records (features, target).
        batch_loss: For records of any other form: a function (model, batch) -> loss, as the loop computes it. It is
            asked for batches of one record, made by the loader's own `collate_fn`.
        clip: The clipping norm. With Opacus it is known.
        divisor: By what the loop divides the noisy sum. With Opacus it is known.
        batches_per_step: How many batches make one step, for a loader that draws ahead (workers, prefetching). With
            Opacus it is known. Without it: all that were drawn since the step before.
        initial: ``"public"`` says that the weights are now made without the records (drawn at random, or trained on
            public data). One run cannot show that, and the verdict says so.
        budget: The share of the run's time that the watcher may take (.1 or ``"10%"``), or two seconds of CPU time if
            that is more: it recomputes as many steps as that allows, with 1 all of them, with 0 the first alone.
        path: A new file to which every step is added at once, as a line of JSON; `dn.examine(path, ...)` reads it, also
            that of a run that was killed.

    What is kept are statistics; gradients and records are not. ``with dn.watch_run(...) as run:`` ends the watch where
    the training ends; without it `dn.examine` does.

    Returns:
        The watcher, to be examined afterwards.

    Examples:
        >>> import deniable as dn
        >>> import torch
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> data = TensorDataset(torch.randn(20, 30), torch.randint(0, 3, (20,)))
        >>> model = torch.nn.Linear(30, 3)
        >>> optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=20)
        >>> run = dn.watch_run(model, optimizer, loader, clip=1.0, divisor=20)
        >>> type(run).__name__
        'RunWatcher'
    """
    stepped = SteppedOptimizer(optimizer, clip, divisor)
    batches = loader if isinstance(loader, UsedBatches) else UsedBatches(loader)
    batches.per_step = None if batches_per_step is None else whole("batches_per_step", batches_per_step)
    record_loss = RecordLoss(loss, batch_loss, batches.collate)
    if initial not in (None, "public"):
        raise ValueError(f'initial must be "public" or left out, got {initial!r}')
    public = initial is not None
    return RunWatcher(model, stepped, batches, record_loss, budget=_share(budget), path=path, initial_is_public=public)


class RunWatcher:
    """Records statistics of a run; see `watch_run`."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: SteppedOptimizer,
        batches: UsedBatches,
        loss: RecordLoss,
        *,
        budget: float,
        path: Path | str | None,
        initial_is_public: bool = False,
    ) -> None:
        self.model = model
        self._optimizer, self._used, self._loss, self._budget = optimizer, batches, loss, budget
        weights = optimizer.weights_of(model)
        self._parameters = list(weights.values())
        self._loss.trained = frozenset(id(p) for p in self._parameters)
        self._other_weights = OtherWeights(model, self._parameters, loss)
        self._weights = WatchedWeights(self._parameters, optimizer.inner)
        self._places = sample_places(self._parameters)
        self._earlier, self._mixed = EarlierNoise(len(self._weights)), MixedLosses(loss)
        self._series = NoiseSeries(self._parameters, self._places)
        self._seconds, self._buffers = SecondMoments(self._weights), WatchedBuffers(model)
        self._draws = Draws(len(batches.data))
        self._started, self._own, self._last = perf_counter(), 0.0, 0.0
        # the same in CPU time, which a busy machine does not stretch
        self._computed, self._own_computed, self._last_computed = process_time(), 0.0, 0.0
        self._examined, self._next, self._refusal, self._steady = 0, 0, "", False
        self._moved, self._batch_before = set[int](), list[int]()
        self._left_out = LeftOutBatches()
        self._given = GivenInputs(model, batches.data, _features)
        self._forward = ForwardWeights(model, self._weights)
        self._others = OtherRecords(batches.data, sum(p.numel() for p in self._parameters))
        self._counts, self._multiplied = class_counts(batches.data), MultipliedSums()
        self._chosen, self._groups, self._chunks = RecordChoices(), RecordGroups(), ChunkMeans()
        self._kept = NotCleared()
        self._reduction = VarianceReduction(self._parameters)
        self._written, self._pulled = RecordsInWeights(self._weights), PulledWeights()
        start = RunStart(
            initial="" if initial_is_public else self._look_at_weights(),
            initial_is_public=initial_is_public,
            records=len(batches.data),
            weights=sum(p.numel() for p in self._parameters),
            watched_weights=len(self._weights),
            count_noise=optimizer.count_noise,
            names=tuple(weights),
            mixes_records=mixes_records(model),
        )
        self._before = StepBefore()
        self._recording = Recording(start, path)
        self._closed = False
        self._threads = one_thread if sum(p.numel() for p in self._parameters) <= _FEW_WEIGHTS else nullcontext
        self._hook = optimizer.before_moves(self._watch_in_threads)
        if (begun := NEW_WATCHERS.get()) is not None:
            begun.append(self)

    def _look_at_weights(self) -> InitialFinding:
        started, computed = perf_counter(), process_time()
        asks = self._loss.batch_loss is None and not mixes_records(self.model)
        with self._buffers.kept():
            found = what_weights_have(self.model, self._used.data, self._given.rows_of, asks)
        self._own, self._own_computed = perf_counter() - started, process_time() - computed
        return found

    def use(self, indices: Sequence[int] | Tensor) -> None:
        """Tell which records the next step uses, for a loop that draws them without a `DataLoader`."""
        if self._closed:
            raise ValueError("use(indices): this watch has ended, by dn.examine or its with block: watch each run anew")
        self._used.tell(indices)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error: type[BaseException] | None, value: BaseException | None, at: TracebackType | None
    ) -> None:
        if error is None:
            self.record()
        else:
            self._close(None)

    def _watch_in_threads(self) -> None:
        with self._threads():
            self._watch_step()

    def _watch_step(self) -> None:
        started, computed = perf_counter(), process_time()
        batches = self._used.of_step(self._optimizer)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.detach() for p in self._parameters]
        moved = len(self._weights.departures)
        self._other_weights.before_step()
        self._forward.start_step()
        self._weights.before_step(gradients)
        unexplained = self._unexplained(moved)
        odd = self._odd_move(unexplained)
        self._written.look(unexplained)
        self._pulled.look(len(self._recording.steps), self._weights.start, unexplained)
        divisor = self._optimizer.divisor
        length = _length(gradients) * divisor**2
        self._series.note(gradients, divisor, self._optimizer.clip)
        changed = self._buffers.start_step()
        found, cosine, batch = None, None, self._left_out.split(batches, torch.empty(0), None)[0]
        if self._may_examine(started) and isfinite(length):
            with torch.random.fork_rng(devices=[]), self._buffers.kept():
                batch, found, cosine = self._examine(batches, gradients, divisor, changed)
            self._last, self._last_computed = perf_counter() - started, process_time() - computed
        self._draws.note(batch)
        self._batch_before = batch
        self._given.start_step()
        self._own += perf_counter() - started
        self._own_computed += process_time() - computed
        self._recording.take(
            StepTaken(
                batch=len(batch),
                divisor=divisor,
                clip=self._optimizer.clip,
                length=shorten(length, 10) if isfinite(length) else None,
                repeated=len(set(batch)) < len(batch),
                rate=float(self._optimizer.inner.param_groups[0]["lr"]),
                odd_before=odd,
                odd_size=self._odd_size(unexplained),
                set_back=len(self._weights.departures) > moved and self._weights.set_back,
                move_before=self._weights.departures[-1] if len(self._weights.departures) > moved else None,
                examined=found,
                cosine=cosine,
                seconds=round(perf_counter() - self._started, 6),
                watcher_seconds=round(self._own, 6),
            )
        )

    def _may_examine(self, now: float) -> bool:
        """The first step, then whenever another look fits into budget or seconds; late in a long run more rarely."""
        number = len(self._recording.steps)
        if self._refusal or number < self._next:
            return False
        own = self._own_computed + self._last_computed
        fits = self._own + self._last <= self._budget * (now - self._started)
        computed = own <= self._budget * (process_time() - self._computed)
        short = self._budget > 0 and own <= _ALWAYS_SECONDS
        return not self._examined or self._budget == 1 or short or (fits and computed)

    def _examine(
        self, batches: Sequence[list[int]], gradients: list[Tensor], divisor: float, changed: dict[str, Tensor]
    ) -> tuple[list[int], ExaminedStep | None, float | None]:
        """The records that the step used; what is found, and the cosine of its noise with earlier noise."""
        batch = [record for one in batches for record in one]
        self._refusal = self._why_not(batch)
        if self._refusal:
            return batch, None, None
        number, clips = len(self._recording.steps), self._optimizer.clips(self._parameters)
        batch, left_out = self._left_out.split(batches, self._noisy_sum(gradients, divisor), self._sums)
        items, sums = [self._used.data[int(i)] for i in batch], self._sums(batch)
        others = self._others.sums(self.model, self._loss, clips, self._places, len(batch))
        every = self._others.mean(others)
        loss, accuracy = mean_figures(sums, len(batch))
        applied = [looked_at(g, at) * divisor for g, at in zip(gradients, self._places, strict=True)]
        clean = [part.flatten() for part in sums.clean]
        residual = self._residual(gradients, divisor, sums)
        data_loss, data_accuracy = self._others.figures(others)
        self._other_weights.look(self.model, items)
        self._written.keep(self._given.rows_of(items) if items else None)
        found = ExaminedStep(
            number=number,
            batch=len(batch),
            clip=self._optimizer.clip,
            longest=float(f"{sums.longest:.5g}"),
            usual_norms=sums.gradients.usual_norms,
            loss=loss,
            data_loss=data_loss,
            accuracy=accuracy,
            data_accuracy=data_accuracy,
            left_out=left_out,
            inputs=self._given.compare(items),
            mixed=self._mixed.compare(self.model, items, self._places, sums, sums.gradients.held(residual)),
            earlier_noise=self._earlier.along_sum(residual),
            shifted=self._earlier.shifts.compare(residual),
            counts=count_numbers(applied, clean, are_centred(gradients)),
            by_size=noise_by_size(applied, clean),
            **inner_products(
                self._parameters,
                gradients,
                self._places,
                divisor,
                sums=sums,
                before=self._before.of(number),
                every=every,
            ),
            **self._of_records(items, sums, residual),
        )
        series = self._series.compare(number, clean, self._optimizer.clip, noise_variance(found))
        found = msgspec.structs.replace(found, earlier_sums=series)
        if all(at is None for at in self._places):
            self._weights.keep_clean_sum(sums.clean)
            self._forward.compare((sums.clean, sums.whole))
            self._seconds.note(number, gradients, sums, self._optimizer.clip)
        if not isinstance(clips, list):
            variance = noise_variance(found)
            self._multiplied.note(sums.gradients, residual, clips, variance)
            self._chosen.note(sums.gradients, residual, clips, variance)
            self._groups.note(sums.gradients, residual, clips, variance)
            self._chunks.note(sums.gradients, residual, clips, variance, divisor)
            self._kept.note(number, torch.cat(clean).double(), residual, variance)
            if others is not None:
                self._others.note(others, clips, residual, variance, set(batch))
                if all(at is None for at in self._places):
                    self._reduction.note(batch, sums, others, residual, variance)
        if changed:
            used = items, [self._used.data[int(i)] for i in self._batch_before]
            drawn = np.random.default_rng().choice(len(self._used.data), max(map(len, used))).tolist()
            self._buffers.explain(changed, used, [self._used.data[i] for i in drawn], self._loss, sums)
        self._before = self._before.then(number, gradients, self._places, divisor, sums=sums, every=every)
        self._examined, self._next = self._examined + 1, number + 1 + number // EARLIER_STEPS  # then rarer
        return batch, found, self._earlier.cosine(known_factors(found), applied, sums.clean, sums.whole)

    def _sums(self, batch: Sequence[int]) -> BatchSums:
        items, clips = [self._used.data[int(i)] for i in batch], self._optimizer.clips(self._parameters)
        return recompute_sums(self.model, items, self._loss, clips, self._places, fewer_digits=True)

    def _noisy_sum(self, gradients: list[Tensor], divisor: float) -> Tensor:
        """As it was applied, at the weights that are looked at."""
        return torch.cat([looked_at(g, at) for g, at in zip(gradients, self._places, strict=True)]).double() * divisor

    def _of_records(self, items: list[Any], sums: BatchSums, residual: Tensor) -> RecordProducts:
        """Fields of `ExaminedStep` for a clipping norm of all parameters together."""
        if not items or isinstance(self._optimizer.clips(self._parameters), list):
            return {}
        held = sums.gradients.held(residual)
        return products_of_records(sums.gradients, held, self._optimizer.clip, items, self._counts)

    def _residual(self, gradients: list[Tensor], divisor: float, sums: BatchSums) -> Tensor:
        """At the weights that are looked at."""
        return self._noisy_sum(gradients, divisor) - torch.cat([c.flatten() for c in sums.clean]).double()

    def _why_not(self, batch: Sequence[int]) -> str:
        """Why gradients cannot be recomputed; empty where they can."""
        if list(map(id, self._optimizer.weights_of(self.model).values())) != list(map(id, self._parameters)):
            return "other weights are trained than at first (layers are frozen or unfrozen): watch each part as a run"
        if mixes_records(self.model):
            return "records of a batch are mixed"
        if chance := uses_chance(self.model):
            return f"{chance} makes gradients that cannot be recomputed"
        if not self._steady and len(batch):
            first = int(batch[0])
            if changes(self.model, lambda: self._used.data[first], self._loss):
                return (
                    "a record's gradient differs between two looks, so that none can be recomputed: its data are drawn "
                    "at random when they are read, or its loss is"
                )
            self._steady = True
        return ""

    def _unexplained(self, compared: int) -> Tensor | None:
        """What the move before has beside the optimizer's; None for nothing but rounding."""
        moves = self._weights.departures
        return self._weights.off if len(moves) > compared and moves[-1] > UNEXPLAINED_MOVE else None

    def _odd_move(self, off: Tensor | None) -> tuple[float, ...] | None:
        """Of what is not explained of the move before, if its step was examined: what it is made of."""
        if off is None or self._weights.set_back:
            return None
        moved = self._weights.moved_places(off)
        self._moved.update(self._weights.moved_parameters(off))
        sums = self._before.watched_sums(len(self._recording.steps), self._weights)
        cosines = [cosine(off[moved], one[moved]) for one in sums]
        if sums and abs(cosine(off[moved], (sums[0] + sums[1])[moved])) >= abs(cosines[0]):
            cosines[0] = 0.0  # the whole move is taken back, or done again: noise and all
        return tuple(cosines) or None

    def _odd_size(self, off: Tensor | None) -> float | None:
        """Of what is not explained of a move: the noise on the sum that would have made it."""
        if off is None or not (before := self._recording.steps):
            return None
        scale = self._optimizer.move_of_noise(before[-1].divisor)
        return None if scale is None else shorten(float(off.square().mean().sqrt()) / scale)

    def record(self) -> RunRecord:
        """End the watch: all that is known of the run, with the weights as they are now for the final ones."""
        if not self._recording.steps:
            raise ValueError(
                "no step was watched: call watch_run before the training, with the optimizer that it steps"
            )
        if not self._closed:
            off = self._weights.compare()
            departure = self._weights.departures[-1] if off is not None else None
            odd = (departure or 0.0) > UNEXPLAINED_MOVE
            average = odd and self._weights.final_is_average()
            made_of, along = self._look_at_last_move(off) if odd and off is not None else ("", None)
            self._written.look(off if odd else None)
            self._written.look_for(self._given.every_record() if odd else None, off)
            any_odd = odd or any(move > UNEXPLAINED_MOVE for move in self._weights.departures)
            end = RunEnd(
                buffers=self._buffers.found(
                    self._given.every_record() if self._buffers else None, self._used.data, self._loss
                ),
                buffers_left_out=self._buffers.left_out,
                draws=tuple(self._draws.counts.tolist()),
                overlaps=self._draws.overlaps,
                batches_again=self._draws.again,
                final_move=departure,
                final_odd_size=self._odd_size(off if odd else None),
                final_along_gradient=along,
                not_recomputed=self._refusal,
                final_is_average=average,
                final_step=self._weights.final_step() if odd else None,
                moved=tuple(sorted(self._moved)),
                final_moved=tuple(self._weights.moved_parameters(off)) if odd and off is not None else (),
                final_made_of=made_of,
                second_moment=self._seconds.found() if any_odd else None,
                along_records=self._seconds.along_records(),
                absent=self._others.found(),
                multiplied=self._multiplied.found(),
                multiplied_apart=self._multiplied.gained_apart(),
                chosen=self._chosen.found(),
                grouped=self._groups.found(),
                averaged=self._chunks.found(),
                kept=self._kept.found(),
                variance_reduction=self._steps_with_reduced_variance(),
                mixing_layer=self._mixed.layer,
                compared_records=self._others.compared_records,
                weights_from_counts=self._loss.batch_loss is None and weighs_by_counts(self._loss.loss, self._counts),
                other_moves=self._other_weights.found(),
                other_noise=self._other_weights.noise(),
                elsewhere=self._forward.found(),
                common_noise=self._series.found(),
                written=self._written.found(),
                pulled=self._pulled.found(),
                scheduled="initial_lr" in self._optimizer.inner.param_groups[0],
                final_holds_clean=odd and not average and self._weights.final_holds_clean_sums(),
                seconds=perf_counter() - self._started,
                watcher_seconds=self._own,
            )
            self._close(end)
        return self._recording.record()

    def _steps_with_reduced_variance(self) -> int | None:
        with torch.random.fork_rng(devices=[]), self._buffers.kept():
            return self._reduction.found(self.model, self._used.data, self._loss, self._optimizer.clip)

    def _look_at_last_move(self, off: Tensor) -> tuple[str, float | None]:
        """What of the records it is made of, in words; and its cosine with their gradient, where that is known."""
        move = LastMove(self._weights, off, self.model, self._used.data, self._loss)
        with torch.random.fork_rng(devices=[]), self._buffers.kept():
            return move.made_of(self._given.every_record()), None if self._refusal else move.along_gradient()

    def _close(self, end: RunEnd | None) -> None:
        if not self._closed:
            self._closed = True
            self._hook.remove()
            self._given.close()
            self._forward.close()
            self._recording.finish(end)


def _features(item: Any) -> Any:
    """Of a pair (features, target); None of others."""
    return item[0] if isinstance(item, tuple | list) and len(item) == 2 else None


def _share(budget: float | str) -> float:
    """.1, or "10%"."""
    if not isinstance(budget, str):
        return probability("budget", budget)
    number, percent, rest = budget.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        rest = budget
    if rest:
        raise ValueError(f'budget must be a share of the run\'s time such as .1 or "10%", got {budget!r}')
    return probability("budget", share)


def _length(gradients: Sequence[Tensor]) -> float:
    """Squared, of all numbers."""
    return float(torch.stack([norm.double() for norm in torch._foreach_norm(list(gradients))]).square().sum())
