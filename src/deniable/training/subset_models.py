"""Many models of one recipe at once, each trained on its own part of the same records: shadow models."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deniable.data import Dataset
from deniable.training.attacked.targets import TargetCourse, TargetSettings
from deniable.training.buffers import split_like
from deniable.training.dense_epochs import DenseEpochs, dense_network
from deniable.training.engine import one_thread
from deniable.training.ensemble import Ensemble, initial_weights
from deniable.training.networks.usual_models import check_fit
from deniable.training.noise_source import RandomSource, SeededSource
from deniable.training.release import fill_model
from deniable.training.settings import Columns, as_records


def train_subsets(
    settings: TargetSettings, records: Dataset, inside: NDArray[np.bool_], *, seed: int, block: int, steps: int
) -> Iterator[nn.Module]:
    """One model for each row of `inside` (models, records), trained on the records that the row names.

    They are yielded one after the other as one module, which holds a model's weights until the next is asked for.

    The recipe is the target's: with noise, Poisson batches, clipping and noise as `fit` has them; without noise,
    batches of `settings.batch` records by shuffling, epoch after epoch. The result depends on the arguments alone. For
    audits only: everything is drawn from the seed.
    """
    with one_thread(), torch.no_grad():
        columns = Columns(*as_records(records.inputs, records.labels), 0)
        course = _course(settings, inside, "squared-error" if records.regression else "cross-entropy")
        source = SeededSource(seed, block, stream=1)
        model, weights = initial_weights(course, len(inside), SeededSource(seed, block, stream=0).generator)
        check_fit(model, columns.records[:2], max(1, records.classes))
        kind = _PoissonSubsets if settings.noise else _ShuffledSubsets
        models = kind(course, model, weights, columns, source=source, inside=torch.from_numpy(inside))
        models.train(steps, settings.noise * settings.clip if settings.noise else 0.0)
    for number in range(len(inside)):
        yield fill_model(model, models, number)


def _course(settings: TargetSettings, inside: NDArray[np.bool_], loss: str = "cross-entropy") -> TargetCourse:
    sizes = inside.sum(1)
    if len(set(sizes.tolist())) != 1 or sizes[0] == 0:
        raise ValueError(f"inside must name equally many records for every model, got {sizes.min()} to {sizes.max()}")
    clip, rate = settings.clip if settings.noise else inf, settings.rate(int(sizes[0]))
    return TargetCourse(settings.model, clip, rate, settings.learning_rate, settings.optimizer, loss)


class _Subsets(Ensemble):
    """Batches are drawn from each model's own records."""

    def __init__(
        self,
        course: TargetCourse,
        model: nn.Module,
        weights: list[Tensor],
        columns: Columns,
        *,
        source: RandomSource,
        inside: Tensor,
    ) -> None:
        self._flat_weights = torch.cat([values.flatten() for values in weights])
        super().__init__(course, model, split_like(self._flat_weights, weights), columns, source)
        self._flat_sums = torch.zeros_like(self._flat_weights)
        self.sums = split_like(self._flat_sums, weights)
        self._inside = inside
        self._places = inside.nonzero()[:, 1].view(len(inside), -1)
        self._members = self._places.shape[1]
        self._count = course.rate * self._members

    def train(self, steps: int, sigma: float) -> None:
        """So many steps, with noise of standard deviation `sigma` on each sum."""
        models = len(self._inside)
        for _ in range(steps):
            self.draw_batch(torch.empty(models, 0))
            self.sum_gradients()
            if sigma:
                self.add_noise(torch.full((models,), sigma))
            self.apply()

    def apply(self) -> None:
        """All weights are one row of memory: the optimizer's few passes over it cost little for small networks."""
        self._updater.apply([self._flat_weights], [self._flat_sums], self._count)


class _PoissonSubsets(_Subsets):
    def _draw_members(self) -> Tensor:
        drawn = self._source.uniform(*self._inside.shape) < self._settings.rate
        return drawn.logical_and_(self._inside).float()


class _ShuffledSubsets(_Subsets):
    """Every epoch in a new order; its last batch has what is left, as that of a torch `DataLoader`."""

    _left: tuple[Tensor, ...] = ()
    """The epoch's batches that are still to come."""

    def train(self, steps: int, sigma: float) -> None:
        """An epoch of a dense network is one kernel call; its draws are those of `draw_batch`."""
        layers = dense_network(self._settings, self.model, self.weights, self._records)
        if layers is None:
            super().train(steps, sigma)
            return
        epochs = DenseEpochs(self._settings, layers, Columns(self._records, self._labels, 0), self._size)
        batches = ceil(self._members / self._size)
        for done in range(0, steps, batches):
            epochs.run(self._draw_order(), min(batches, steps - done))
        epochs.store()

    @property
    def _size(self) -> int:
        return max(1, round(self._settings.rate * self._members))

    def _draw_order(self) -> Tensor:
        """Each model's records in the order of an epoch, (models, records)."""
        keys = self._source.uniform(*self._places.shape).numpy()
        return self._places.gather(1, torch.from_numpy(keys.argsort(1)))  # twice as fast as torch's

    def draw_batch(self, members: Tensor) -> Tensor:
        """The next batch; where batches are small, copied together by the places of its records."""
        places = self._draw_places()
        self._count = places.shape[1]
        if self._shared:
            self._include = torch.zeros(self._inside.shape).scatter_(1, places, 1.0)
        else:
            self._include = self._everybody[:, : places.shape[1]]
            drawn = self._records.index_select(0, places.flatten())
            self.gradients.load(drawn.view(*places.shape, *drawn.shape[1:]), self._labels[places])
        return members

    def _draw_places(self) -> Tensor:
        """The records of each model's batch, (models, batch)."""
        now, *left = self._left or torch.split(self._draw_order(), self._size, 1)
        self._left = tuple(left)
        return now
