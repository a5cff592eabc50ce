"""Somebody else's training: trials on D or D', each recomputed, judged by the game and by diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from msgspec import convert
from numpy.random import SeedSequence
from numpy.typing import NDArray

from deniable.campaigns.campaign import Progress, choose_neighbours, named_by
from deniable.campaigns.progress import watched
from deniable.campaigns.provenance import data_source, now, python_call, versions
from deniable.campaigns.setup import check_records, model_source, usual_model
from deniable.checks import probability, whole
from deniable.data import load, split
from deniable.engines import Campaign, Engine, choose_engine, play_missing
from deniable.evidence.trials import Trials
from deniable.examination.batch_mixing import mixing, refused
from deniable.examination.claim import RecipeTraining
from deniable.examination.diagnostics import NUMBER, Evidence, Report, diagnose
from deniable.examination.examine_result import judge_training
from deniable.examination.post_processing import PostProcessing, find_post_processing, undo
from deniable.examination.recipe import Recipe
from deniable.examination.recomputed import Recomputer
from deniable.examination.residuals import Examined, examine_trial, sketch_sizes
from deniable.examination.trainer import Records, Seen, Trainer, accumulate, seen
from deniable.examination.twins import FAILS, SEEDS, Run, StandIn, Twins
from deniable.mechanisms import Adjacency, Mechanism
from deniable.results.audit_result import AuditInput, AuditResult
from deniable.results.shared import Provenance
from deniable.store import Store, opened
from deniable.training import Neighbours
from deniable.training.engine import one_thread
from deniable.training.gradients import trainable
from deniable.training.losses import Loss, loss_function
from deniable.training.models import model_factory, named_function
from deniable.training.noise import SeededSource
from deniable.training.settings import Columns, ModelFactory

__all__ = ["Examination", "examine"]

GAME_SHARE = 0.8
"""Of the risk 1 - confidence, so much is the game's and the rest the diagnostics'."""
EARLY_SHARE = 0.1
"""Of the game's risk, so much is for trials that end early."""
STATISTICS = 3
"""The version of what is kept of a trial; a store of another version is not resumed."""
FIRST_LOOK = 10
"""Trials before the first look at the diagnostics."""
LOOKED_AT = 12
"""Other explanations are tried on so many trials."""
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

    @property
    def columns(self) -> Columns:
        """The records of D and D'."""
        return self.neighbours.columns(self.claim.adjacency)

    def network(self) -> torch.nn.Module:
        """A fresh model for recomputing; in evaluation mode, since dropout cannot be recomputed."""
        return self.model().eval()

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
        self, recomputer: Recomputer, given: Records, seed: int, members: NDArray[np.int64], at_most: int | None = None
    ) -> Seen:
        """Train, and undo what is known to be done to the noisy sums."""
        parts = self.claim.recipe.accumulated
        most = None if at_most is None else at_most * parts
        done = accumulate(seen(self.trainer(given, seed), recomputer.parameters, most), parts)
        if self.post is None:
            return done
        with torch.no_grad():
            own = torch.Generator().manual_seed(seed ^ POST_SEED)
            return undo(self.post, done, recomputer.recompute(done, members), own)

    def sketch(self, parameters: Mapping[str, torch.Tensor]) -> list[int]:
        """How many weights of each layer have their noise kept."""
        budget = min(MOST_SKETCHED, max(64, SKETCHED // (self.trials * self.claim.steps)))
        return sketch_sizes([p.numel() for p in parameters.values()], budget)


def train_twin(
    game: Examination, seed: int, on_d: bool, exchanged: Mapping[int, StandIn], at_most: int | None = None
) -> Run:
    """Train on D or D', with the records at some places exchanged."""
    records, labels, differing = game.columns
    records, labels, members = records.clone(), labels.clone(), game.members(on_d)
    for place, (record, label) in exchanged.items():
        records[members[place]], labels[members[place]] = record, label
    given = Records(records[members].clone(), labels[members].clone())
    recomputer = Recomputer(game.claim, game.network(), game.loss, Columns(records, labels, differing))
    with one_thread(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        return Run(game.watch(recomputer, given, seed, members, at_most), recomputer, members)


def twins_of(game: Examination) -> Twins:
    """Twin trainings of a game, with seeds that no trial has."""
    seeds = tuple(game.training_seed(game.trials + 2 * number + 2) for number in range(SEEDS))
    claim = game.claim
    place, small, post = game.neighbours.index, _small(game), game.post
    return Twins(partial(train_twin, game), seeds, claim.adjacency, claim.clip, place, small, post)


def _small(game: Examination) -> bool:
    """Whether every record's gradient may be held at once."""
    return len(game.columns.records) * sum(p.numel() for p in trainable(game.model()).values()) <= LOOKED


def play_trial(game: Examination, number: int) -> Examined:
    """Train once, on D or D', and recompute what was done."""
    on_d, columns, model = game.on_d(number), game.columns, game.network()
    members, recomputer = game.members(on_d), Recomputer(game.claim, model, game.loss, columns)
    records = Records(columns.records[members].clone(), columns.labels[members].clone())
    with one_thread(), torch.random.fork_rng(devices=[]):
        done = game.watch(recomputer, records, game.training_seed(number), members)
        own, sketch = SeededSource(game.seed, number, stream=2).generator, game.sketch(recomputer.parameters)
        look = number < LOOKED_AT and _small(game)
        with torch.no_grad():
            return examine_trial(
                recomputer, done, members, on_d, own, look=look, sketch=sketch, raw=max(1, RAW // game.trials)
            )


def _every_label(game: Examination) -> int:
    return min(MOST_LABELS, len(torch.unique(game.columns.labels)))


def play_alone(game: Examination, number: int, torn: bool = False) -> Examined:
    """A training on a single record, another one for every number; `torn`: on that record with every label."""
    records, labels, _ = game.columns
    chosen = [number % len(records)] * (_every_label(game) if torn else 1)
    own = torch.unique(labels)[: len(chosen)] if torn else labels[chosen]
    columns, members = Columns(records[chosen].clone(), own.clone(), 1), np.arange(len(chosen))
    recomputer = Recomputer(game.claim, game.network(), game.loss, columns)
    with one_thread(), torch.random.fork_rng(devices=[]):
        with torch.enable_grad():
            given = Records(columns.records.clone(), columns.labels.clone())
            done = game.watch(recomputer, given, game.training_seed(game.trials + 40 + number), members)
        drawn, sketch = SeededSource(game.seed, number, stream=4).generator, game.sketch(recomputer.parameters)
        return examine_trial(recomputer, done, members, True, drawn, look=False, sketch=sketch, raw=RAW // ALONE)


def alone_evidence(game: Examination, level: float, torn: bool = False) -> Evidence | None:
    """Trainings on one record each, or on one with every label; None if the training cannot do with so few."""
    parameters = trainable(game.model())
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    members = np.ones((ALONE, _every_label(game) if torn else 1))
    try:
        examined = [play_alone(game, number, torn) for number in range(ALONE)]
        return Evidence.of(game.claim, shapes, game.sketch(parameters), members, examined, level=level)
    except FAILS:
        return None


def examine(
    data: str | Path | Callable[[], Any] | Neighbours,
    *,
    trainer: Trainer | str,
    claimed: Mechanism,
    clip: float,
    adjacency: Adjacency | str,
    model: str | ModelFactory | None = None,
    loss: str | Loss = "cross-entropy",
    recipe: Recipe | None = None,
    records: int = 100,
    trials: int = 200,
    seed: int = 0,
    delta: float | None = None,
    measure: str | None = None,
    label: str | None = None,
    confidence: float = 0.95,
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    engine: Engine | str = "local",
    progress: Progress | None = None,
) -> AuditResult:
    """Audit a training that is not ours: does it do what it claims, and if not, why?

    `trainer(records, seed)` trains on `Records` and yields an `AppliedStep` for each step (see
    `deniable.examination.trainer`; `deniable.examination.adapters` has one for Opacus). `claimed` is
    ``Gaussian(noise).subsampled(rate).composed(steps)``, its noise relative to the sensitivity: `clip`, or
    2 x `clip` for `replace` neighbours. `data` is a name, file or function of which D is `records`, D' the most
    dissimilar neighbour; or a `Neighbours` with a pair of your own. With `add-remove` and `zero-out` neighbours D'
    lacks one record of D.

    `recipe` claims another kind of clipping, or augmentations (see `deniable.examination.recipe`); a noise schedule is
    claimed as a composition of several such mechanisms.

    Each trial trains on D or D', at random. The audit recomputes the clean clipped sums itself, plays the observer of
    Bernau 2021 (Algorithm 1) under the claimed noise, and tests what is left over for being that noise.

    `progress` is called with (trials done, trials in all); without it, a bar is shown where standard error is a
    terminal. `engine` says where the trials run (`deniable.engines`). With `out`, every finished trial is kept in that
    directory, and `resume` goes on with the trials there; the result depends on the settings alone but for `seconds`
    and `trials_per_second`.

    Twin trainings (the same seed, one record exchanged, see `twins`) are compared for public values that
    are computed from the records. *Violated*: less private than claimed. *Other recipe*: as private; says what differs
    and how to claim it. *Cannot judge*: says what is missing. The trials end early where a leak is certain.

    Guarantee: a training that is as claimed gets another verdict than *consistent* or *cannot judge* with probability
    at most 1 - `confidence`, of which the diagnostics have a fifth.
    """
    probability("confidence", confidence, open_ends=True)
    chosen_engine = choose_engine(engine, processes)
    with opened(out, resume) as store:
        claim = RecipeTraining.from_mechanism(claimed, clip, adjacency, recipe)
        neighbours, origin, source, factory = _settled(
            data, model, claim, records=records, seed=whole("seed", seed, low=0), measure=measure, label=label
        )
        function = named_function("trainer", trainer) if isinstance(trainer, str) else trainer
        scored = loss_function(loss)
        game = Examination(function, claim, factory, scored, neighbours, whole("trials", trials, low=10), seed)
        chance = 1 / len(neighbours.records) if delta is None else probability("delta", delta, open_ends=True)
        given = {**origin, **_claim_settings(game, claim), "delta": chance}
        if store is not None:
            store.begin(given)
        found = _examined(game, claimed, given, confidence, store, engine=chosen_engine, progress=progress)
        call = _call(given, source["data"], claim, confidence)
        return found.replace(provenance=Provenance(**source, versions=versions(), call=call), finished=now())


def _call(given: Mapping[str, Any], data: str | None, claim: RecipeTraining, confidence: float) -> str:
    """The call that examines again, with the functions by their names."""
    names = ("clip", "adjacency", "model", "loss", "records", "trials", "seed", "delta")
    settings = {"trainer": given["trainer"], **{name: given[name] for name in names}, "confidence": confidence}
    recipe = "" if claim.recipe == Recipe() else f", recipe={claim.recipe!r}"
    return python_call(f"{data!r}, claimed={claim.text}{recipe}", settings)


def _examined(
    game: Examination,
    claimed: Mechanism,
    given: Mapping[str, Any],
    confidence: float,
    store: Store | None,
    *,
    engine: Engine,
    progress: Progress | None,
) -> AuditResult:
    """Play the trials that `store` lacks, and judge all."""
    started, before = perf_counter(), 0 if store is None else len(store.finished())
    mixed = mixing(game.model(), game.columns)
    false_alarms = (1 - GAME_SHARE) * (1 - confidence)
    with watched(progress, "Playing the first trial", "Trials", "trials/s") as told:
        examined, findings = ([], refused(mixed)) if mixed else _looked(game, store, false_alarms, engine, told)
    played = _trials(game.claim, examined) if examined else None
    sure = 1 - GAME_SHARE * _spent(len(examined), game.trials) * (1 - confidence)
    asked = convert(given, AuditInput)
    found = judge_training(game.claim, claimed, played, findings, asked, delta=given["delta"], confidence=sure)
    early = (_ended_early(len(examined), game.trials),) if 0 < len(examined) < game.trials else ()
    seconds = perf_counter() - started
    speed = max(0, len(examined) - before) / seconds
    return found.replace(notes=(*found.notes, *early), seconds=seconds, trials_per_second=speed)


def _spent(played: int, planned: int) -> float:
    """The share of the game's risk that its limits may take, if the trials ended after so many of those planned.

    Guarantee: the shares of all looks together are at most 1, so that the limits hold whenever the trials end.
    """
    early = len(looks(planned)) - 1
    if not early:
        return 1.0
    return 1 - EARLY_SHARE if played >= planned else EARLY_SHARE / early


def _ended_early(played: int, planned: int) -> str:
    return f"The trials ended after {played} of {planned}: the leak was certain, and more would not change the verdict."


def looks(trials: int) -> list[int]:
    """After how many trials the diagnostics are looked at: early, to end where a leak is certain, and at the end."""
    early = [FIRST_LOOK * 4**k for k in range(12)]
    return [*(number for number in early if number <= 0.7 * trials), trials]


def _looked(
    game: Examination, store: Store | None, false_alarms: float, engine: Engine, progress: Progress | None
) -> tuple[list[Examined], Report]:
    """Play the trials, and end early where a leak is certain.

    Guarantee: all looks together give a false alarm with probability at most `false_alarms`; the last has half of it,
    and those before share the other half.
    """
    game, twins = _without_post_processing(game)
    kept, planned = _Kept(store), looks(game.trials)
    alone = cache(partial(alone_evidence, game, false_alarms / NUMBER))
    torn = cache(partial(alone_evidence, game, false_alarms / NUMBER, torn=True))
    for number in planned:
        share = 1.0 if len(planned) == 1 else 0.5 if number == game.trials else 0.5 / (len(planned) - 1)
        examined = _played(game, number, kept, engine, progress)
        played = partial(_diagnosed, game, examined, share * false_alarms, false_alarms=false_alarms)
        report = played(twins=twins, alone=alone, torn=torn)
        if report.certain:
            break
    return examined, report


def _without_post_processing(game: Examination) -> tuple[Examination, Twins]:
    """The game that undoes what is done to the noisy sums, if that is known; and its twins."""
    twins = twins_of(game)
    if not twins.repeatable or twins.fits is not False or game.claim.recipe.augmentations > 1:
        return game, twins
    with torch.no_grad():
        pairs = [
            (
                one.seen,
                one.recomputer.recompute(one.seen, one.members),
                two.seen,
                two.recomputer.recompute(two.seen, two.members),
            )
            for one, two in twins.exchanged
        ]
        post = find_post_processing(pairs)
    undone = replace(game, post=post)
    return (game, twins) if post is None else (undone, twins_of(undone))


class _Kept:
    """Finished trials, in memory and in a store if there is one."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._trials: dict[int, dict[str, Any]] = {}
        if store is not None:
            self._trials = {number: store.load(number) for number in store.finished()}

    def finished(self) -> list[int]:
        """Their numbers."""
        return sorted(self._trials)

    def load(self, number: int) -> dict[str, Any]:
        """The arrays of one."""
        return self._trials[number]

    def save(self, number: int, arrays: Mapping[str, Any], at_once: bool) -> None:
        """Add one."""
        self._trials[number] = dict(arrays)
        if self._store is not None:
            self._store.save(number, arrays, at_once)


def _settled(
    data: Any, model: Any, claim: RecipeTraining, *, records: int, seed: int, measure: str | None, label: str | None
) -> tuple[Neighbours, dict[str, Any], dict[str, Any], ModelFactory]:
    """The neighbours, where they come from (for the record), how they were named (for people), and the model."""
    if isinstance(data, Neighbours):
        if model is None:
            raise ValueError("model is missing: give the function that makes the nn.Module that is trained")
        digest = _digest(data.columns(claim.adjacency), data.index)
        origin = {"data": "own neighbours", "data_sha256": digest, "records": len(data.records)}
        origin["record"] = data.index
        factory = model_factory(model)
        source = {"data": None, "shape": list(data.records.shape), "classes": None, "kind": "tensor"}
        return data, origin, source | model_source(factory()), factory
    dataset = load(data, label=label)
    check_records(dataset, records, claim.adjacency)
    neighbours, chosen = choose_neighbours(split(dataset, records, seed), seed, claim.adjacency, measure)
    origin = {"data": dataset.name, "data_sha256": dataset.sha256, **chosen}
    factory = model_factory(usual_model(model, dataset))
    return neighbours, origin, data_source(data, dataset, label) | model_source(factory()), factory


def _digest(columns: Columns, index: int) -> str:
    digest = sha256(repr((tuple(columns.records.shape), index)).encode())
    for values in (columns.records, columns.labels):
        digest.update(values.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _claim_settings(game: Examination, claim: RecipeTraining) -> dict[str, Any]:
    return {
        "trainer": _named_with_settings(game.trainer),
        "model": named_by(game.model),
        "loss": named_by(game.loss),
        "noise": claim.noise,
        "rate": claim.rate,
        "steps": claim.steps,
        "clip": claim.clip,
        **({"schedule": list(claim.schedule)} if claim.schedule else {}),
        **({} if claim.recipe == Recipe() else {"recipe": repr(claim.recipe)}),
        "adjacency": str(claim.adjacency),
        "sensitivity": "global",
        "trials": game.trials,
        "seed": game.seed,
        "torch": str(torch.__version__),
        "statistics": STATISTICS,
    }


def _named_with_settings(trainer: Trainer) -> str:
    """A function by its name; an object, such as a dataclass with `__call__`, by what it says of itself."""
    text = repr(trainer)
    return str(named_by(trainer)) if " at 0x" in text else text


def _played(game: Examination, number: int, kept: _Kept, engine: Engine, progress: Progress | None) -> list[Examined]:
    """The first trials, so many."""
    tell = None if progress is None else lambda done: progress(done, game.trials)
    return play_missing(Campaign({}, number, Examined, partial(play_trial, game)), engine, kept, tell=tell)


def _trials(claim: RecipeTraining, examined: list[Examined]) -> Trials:
    """What the observer saw: the first steps, which all trainings took."""
    steps = min(len(one.ratio) for one in examined)
    ratio = np.stack([one.ratio[:steps] for one in examined]).cumsum(1)
    sensitivity = np.stack([one.sensitivity[:steps] for one in examined])
    sigma = np.stack([claim.sigmas(one.clip[:steps]) for one in examined])
    on_d = np.array([bool(one.trained_on_d) for one in examined])
    return Trials(on_d, ratio, sensitivity, sigma)


def _diagnosed(
    game: Examination,
    examined: list[Examined],
    spent: float,
    *,
    false_alarms: float | None = None,
    twins: Twins | None = None,
    alone: Callable[[], Evidence | None] | None = None,
    torn: Callable[[], Evidence | None] | None = None,
) -> Report:
    """The diagnostics of some trials; `spent` of all `false_alarms` is theirs."""
    parameters = trainable(game.model())
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    members = np.zeros((len(examined), len(game.columns.records)))
    for row, one in zip(members, examined, strict=True):
        row[game.members(bool(one.trained_on_d))] = 1
    sketch = game.sketch(parameters)
    twins = twins_of(game) if twins is None else twins
    with torch.no_grad():
        level = spent / NUMBER
        others: dict[str, Any] = {"twins": twins, "alone": alone, "torn": torn}
        evidence = Evidence.of(game.claim, shapes, sketch, members, examined, level=level, **others)
        return diagnose(evidence, spent if false_alarms is None else false_alarms)
