"""The game of an examination: what a trial depends on, and one training of it, watched and recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray

from deniable.examination.alternatives import LookedTrial
from deniable.examination.claim import RecipeTraining
from deniable.examination.diagnostics import Evidence
from deniable.examination.noise_draws import NoiseDraws
from deniable.examination.patience import Patience
from deniable.examination.recomputation import Recomputer
from deniable.examination.residuals import TrialStatistics, examine_trial, sketch_sizes
from deniable.examination.step_listeners import HandedGradients, LaterRecords, Listener, train_and_listen
from deniable.examination.trainer import Records, Trainer, WatchedTraining, accumulate, check_batches, watch_steps
from deniable.examination.twins.twin_run import FAILS, Run, StandIn
from deniable.examination.twins.twins import SEEDS, Twins
from deniable.examination.updates.post_processing import PostProcessing, undo
from deniable.mechanisms import Adjacency
from deniable.training import Neighbours
from deniable.training.gradients import trainable
from deniable.training.networks.losses import Loss
from deniable.training.noise_source import SeededSource
from deniable.training.settings import Columns, ModelFactory
from deniable.training.threads import one_thread

LOOKED_AT = 10
"""Other explanations are tried on so many trials, where something has to be explained."""


SKETCHED, MOST_SKETCHED = 2**24, 4096
"""Numbers of noise that are kept, of all trials together and of one step."""


ALONE = 12
"""Trainings on a single record, in which noise outweighs the gradient."""


POST_SEED = 0x5EED
"""Parts the auditor's noise from that of a training with the same seed."""


MOST_LABELS = 10
"""A record is given at most so many labels."""


RAW = 50_000
"""Numbers of the residuals that are kept as they are, of all trials together."""


LOOKED = 2**26
"""Numbers of gradients up to which other explanations are tried."""


@dataclass(frozen=True)
class Examination:
    """All that the trials depend on."""

    trainer: Trainer
    claim: RecipeTraining
    model: ModelFactory
    loss: Loss
    neighbours: Neighbours
    trials: int
    seed: int
    post: PostProcessing | None = None
    """What is done to the noisy sums before they are yielded, and undone here."""
    patience: Patience = field(default_factory=Patience, repr=False, compare=False)

    @property
    def columns(self) -> Columns:
        """The records of D and D'."""
        return self.neighbours.columns(self.claim.adjacency)

    def make_model(self) -> torch.nn.Module:
        """A fresh model; its function may train it on public data, also where an examination needs no gradients."""
        with torch.enable_grad():
            return self.model()

    @cached_property
    def network(self) -> torch.nn.Module:
        """For recomputing, made once in every process; in evaluation mode, since dropout cannot be recomputed."""
        with torch.random.fork_rng(devices=[]):
            return self.make_model().eval()

    def __getstate__(self) -> dict[str, Any]:
        """Without the network: it may have no name by which a worker could find its class."""
        return {name: value for name, value in self.__dict__.items() if name != "network"}

    def on_d(self, number: int) -> bool:
        """The trial's bit, drawn at random (erratum 10)."""
        return bool(SeededSource(self.seed, number, stream=3).uniform(1) < 0.5)

    def training_seed(self, number: int) -> int:
        """32 bits, different for every trial; next to each other in pairs, to show seeds that are made by counting."""
        (start,) = SeedSequence(self.seed).generate_state(1)
        return int((2 * int(start) + 2654435762 * (number // 2) + number % 2) % 2**32)

    def members(self, on_d: bool) -> NDArray[np.int64]:
        """The columns of the data set, in the order of its records."""
        others, index = len(self.neighbours.records) - 1, self.neighbours.index
        order = np.arange(others)
        if not on_d and self.claim.adjacency is not Adjacency.REPLACE:
            return order
        return np.insert(order, index, others if on_d else others + 1)

    def watch(
        self,
        recomputer: Recomputer,
        given: Records,
        seed: int,
        members: NDArray[np.int64],
        *,
        at_most: int | None = None,
        listeners: Sequence[Listener] = (),
        draws: NoiseDraws | None = None,
    ) -> WatchedTraining:
        """Train, and undo what is known to be done to the noisy sums; `listeners` hear the steps, `draws` the noise."""
        parts = self.claim.recipe.accumulated
        most = None if at_most is None else at_most * parts
        if draws is None and self.post is not None and self.post.noisy_sum is not None:
            draws = NoiseDraws([p.shape for p in recomputer.parameters.values()])
        # trainings also run where an examination needs no gradients
        with self.patience.wait(), torch.enable_grad(), draws or nullcontext():
            heard = listeners if draws is None else (*listeners, draws)
            steps = train_and_listen(self.trainer, given, seed, heard)
            done = accumulate(watch_steps(steps, recomputer.parameters, most), parts)
        check_batches(done, len(members))
        if self.post is None:
            return done
        with torch.no_grad():
            own = torch.Generator().manual_seed(seed ^ POST_SEED)
            drawn = None if draws is None else draws.noise(len(done))
            return undo(self.post, done, recomputer.recompute(done, members), own, drawn)

    def sketch(self, parameters: Mapping[str, torch.Tensor]) -> list[int]:
        """How many weights of each layer have their noise kept."""
        budget = min(MOST_SKETCHED, max(64, SKETCHED // (self.trials * self.claim.steps)))
        return sketch_sizes([p.numel() for p in parameters.values()], budget)


def train_twin(
    game: Examination,
    seed: int,
    on_d: bool,
    exchanged: Mapping[int, StandIn],
    at_most: int | None = None,
    *,
    after: int = 0,
    handed: HandedGradients | None = None,
    draws: NoiseDraws | None = None,
) -> Run:
    """Train on D or D', with the records at some places exchanged: at once, or `after` so many steps."""
    records, labels, differing = game.columns
    records, labels, members = records.clone(), labels.clone(), game.members(on_d)
    before = Records(records[members].clone(), labels[members].clone())
    for place, (record, label) in exchanged.items():
        records[members[place]], labels[members[place]] = record, label
    given = Records(records[members].clone(), labels[members].clone())
    columns = Columns(records, labels, differing)
    listeners: list[Listener] = [] if handed is None else [handed]
    if after:
        listeners.append(LaterRecords(before, given, after * game.claim.recipe.accumulated))
        columns, given = game.columns, before
    recomputer = Recomputer(game.claim, game.network, game.loss, columns)
    with one_thread(), torch.random.fork_rng(devices=[]):
        return Run(
            game.watch(recomputer, given, seed, members, at_most=at_most, listeners=listeners, draws=draws),
            recomputer,
            members,
        )


def twins_of(game: Examination) -> Twins:
    """Twin trainings of a game, with seeds that no trial has."""
    seeds = tuple(game.training_seed(game.trials + 2 * number + 2) for number in range(SEEDS))
    claim = game.claim
    place, small, post = game.neighbours.index, _small(game), game.post
    return Twins(
        partial(train_twin, game), seeds, claim.adjacency, claim.clip, place, small, post, trial_seed=game.training_seed
    )


def _small(game: Examination) -> bool:
    """Whether every record's gradient may be held at once."""
    return len(game.columns.records) * sum(p.numel() for p in trainable(game.make_model()).values()) <= LOOKED


def play_trial(game: Examination, number: int) -> TrialStatistics:
    """Train once, on D or D', and recompute what was done."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        recomputer, done, members = _watch_trial(game, number)
        own, sketch = SeededSource(game.seed, number, stream=2).generator, game.sketch(recomputer.parameters)
        raw = max(1, RAW // game.trials)
        with torch.no_grad():
            return examine_trial(recomputer, done, members, game.on_d(number), own, sketch=sketch, raw=raw)


def _watch_trial(game: Examination, number: int) -> tuple[Recomputer, WatchedTraining, NDArray[np.int64]]:
    members, columns = game.members(game.on_d(number)), game.columns
    recomputer = Recomputer(game.claim, game.network, game.loss, columns)
    records = Records(columns.records[members].clone(), columns.labels[members].clone())
    return recomputer, game.watch(recomputer, records, game.training_seed(number), members), members


def look_at_trials(game: Examination) -> list[LookedTrial]:
    """The first trials once more, for other explanations; none where gradients are too many to be held."""
    return [_look_at_trial(game, number) for number in range(min(LOOKED_AT, game.trials))] if _small(game) else []


def _look_at_trial(game: Examination, number: int) -> LookedTrial:
    with one_thread(), torch.random.fork_rng(devices=[]):
        recomputer, done, members = _watch_trial(game, number)
        with torch.no_grad():
            return LookedTrial.of(recomputer, done, members)


def _every_label(game: Examination) -> int:
    return min(MOST_LABELS, len(torch.unique(game.columns.labels)))


def play_alone(game: Examination, number: int, torn: bool = False) -> TrialStatistics:
    """A training on a single record, another one for every number; `torn`: on that record with every label."""
    records, labels, _ = game.columns
    chosen = [number % len(records)] * (_every_label(game) if torn else 1)
    own = torch.unique(labels)[: len(chosen)] if torn else labels[chosen]
    columns, members = Columns(records[chosen].clone(), own.clone(), 1), np.arange(len(chosen))
    recomputer = Recomputer(game.claim, game.network, game.loss, columns)
    with one_thread(), torch.random.fork_rng(devices=[]):
        given = Records(columns.records.clone(), columns.labels.clone())
        done = game.watch(recomputer, given, game.training_seed(game.trials + 40 + number), members)
        drawn, sketch = SeededSource(game.seed, number, stream=4).generator, game.sketch(recomputer.parameters)
        return examine_trial(recomputer, done, members, True, drawn, sketch=sketch, raw=RAW // ALONE)


def alone_evidence(game: Examination, level: float, torn: bool = False) -> Evidence | None:
    """Trainings on one record each, or on one with every label; None if the training cannot do with so few."""
    parameters = trainable(game.make_model())
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    members = np.ones((ALONE, _every_label(game) if torn else 1))
    try:
        examined = [play_alone(game, number, torn) for number in range(ALONE)]
        return Evidence.of(game.claim, shapes, game.sketch(parameters), members, examined, level=level)
    except FAILS:
        return None
