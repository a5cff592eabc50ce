"""Somebody else's training: trials on D or D', each recomputed, judged by the game and by diagnostics."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray

from deniable.audit.campaign import Progress, choose_neighbours, named_by
from deniable.audit.claim import Claim
from deniable.audit.diagnostics import NUMBER, Evidence, Report, diagnose
from deniable.audit.ground import check_records, model_source, usual_model
from deniable.audit.mixing import mixing, refused
from deniable.audit.provenance import data_source, now, python_call, versions
from deniable.audit.recomputed import Recomputer
from deniable.audit.residuals import Examined, examine, sketch_sizes
from deniable.audit.trainer import Records, Trainer, seen
from deniable.audit.training_record import judge_training
from deniable.audit.trials import Trials
from deniable.audit.watching import watched
from deniable.checks import probability, whole
from deniable.data import load, split
from deniable.document import Document
from deniable.mechanisms import Adjacency, Mechanism
from deniable.store import Store, opened
from deniable.training import Neighbours
from deniable.training.engine import one_thread
from deniable.training.gradients import trainable
from deniable.training.kept import play_missing
from deniable.training.losses import Loss, loss_function
from deniable.training.models import model_factory, named_function
from deniable.training.noise import SeededSource
from deniable.training.pool import spread
from deniable.training.settings import Columns, ModelFactory

__all__ = ["Examination", "examine_trainer"]

GAME_SHARE = 0.8
"""Of the risk 1 - confidence, so much is the game's and the rest the diagnostics'."""
LOOKED_AT = 64
"""Other explanations are tried on so many trials."""
SKETCHED, MOST_SKETCHED = 2**24, 4096
"""Numbers of noise that are kept, of all trials together and of one step."""
RAW = 50_000
"""Numbers of the residuals that are kept as they are, of all trials together."""
LOOKED = 2**26
"""Numbers of gradients up to which other explanations are tried."""


@dataclass(frozen=True)
class Examination:
    """All that the trials depend on."""

    trainer: Trainer
    claim: Claim
    model: ModelFactory
    loss: Loss
    neighbours: Neighbours
    trials: int
    seed: int

    @property
    def columns(self) -> Columns:
        """The records of D and D'."""
        return self.neighbours.columns(self.claim.adjacency)

    def on_d(self, number: int) -> bool:
        """The trial's bit, drawn at random (ERRATA 10)."""
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

    def sketch(self, parameters: Mapping[str, torch.Tensor]) -> list[int]:
        """How many weights of each layer have their noise kept."""
        budget = min(MOST_SKETCHED, max(64, SKETCHED // (self.trials * self.claim.steps)))
        return sketch_sizes([p.numel() for p in parameters.values()], budget)


def play_trial(game: Examination, number: int) -> Examined:
    """Train once, on D or D', and recompute what was done."""
    on_d, columns, model = game.on_d(number), game.columns, game.model()
    members, recomputer = game.members(on_d), Recomputer(game.claim, model, game.loss, columns)
    records = Records(columns.records[members].clone(), columns.labels[members].clone())
    with one_thread(), torch.random.fork_rng(devices=[]):
        done = seen(game.trainer(records, game.training_seed(number)), recomputer.parameters)
        own, sketch = SeededSource(game.seed, number, stream=2).generator, game.sketch(recomputer.parameters)
        size = len(columns.records) * sum(p.numel() for p in recomputer.parameters.values())
        look = number < LOOKED_AT and size <= LOOKED
        with torch.no_grad():
            return examine(
                recomputer, done, members, on_d, own, look=look, sketch=sketch, raw=max(1, RAW // game.trials)
            )


def examine_trainer(
    data: str | Path | Callable[[], Any] | Neighbours,
    *,
    trainer: Trainer | str,
    claimed: Mechanism,
    clip: float,
    adjacency: Adjacency | str,
    model: str | ModelFactory | None = None,
    loss: str | Loss = "cross-entropy",
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
    progress: Progress | None = None,
) -> Document:
    """Audit a training that is not ours: does it do what it claims, and if not, why?

    `trainer(records, seed)` trains on `Records` and yields an `AppliedStep` for each step (see
    `deniable.audit.trainer`; `deniable.audit.adapters` has one for Opacus). `claimed` is
    ``Gaussian(noise).subsampled(rate).composed(steps)``, its noise relative to the sensitivity: `clip`, or
    2 x `clip` for `replace` neighbours. `data` is a name, file or function of which D is `records`, D' the most
    dissimilar neighbour; or a `Neighbours` with a pair of your own. With `add-remove` and `zero-out` neighbours D'
    lacks one record of D.

    Each trial trains on D or D', at random. The audit recomputes the clean clipped sums itself, plays the observer of
    001 Algorithm 1 under the claimed noise, and tests what is left over for being that noise.

    `progress` is called with (trials done, trials in all); without it, a bar is shown where standard error is a
    terminal. With `out`, every finished trial is kept in that directory, and `resume` goes on with the trials there;
    the result depends on the settings alone but for `seconds` and `trials_per_second`.

    Guarantee: a training that is as claimed gets another verdict than *consistent* or *cannot judge* with probability
    at most 1 - `confidence`, of which the diagnostics have a fifth.
    """
    probability("confidence", confidence, open_ends=True)
    with opened(out, resume) as store:
        claim = Claim.of(claimed, clip, _adjacency(adjacency))
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
        document = _examined(game, claimed, chance, confidence, store, processes=processes, progress=progress)
        call = _call(given, source["data"], claim, confidence)
        provenance = {**source, "versions": versions(), "command": None, "call": call}
        return {**document, "input": given, "provenance": provenance, "finished": now()}


def _call(given: Mapping[str, Any], data: str | None, claim: Claim, confidence: float) -> str:
    """The call that examines again, with the functions by their names."""
    claimed = f"dn.Gaussian({claim.noise!r}).subsampled({claim.rate!r}).composed({claim.steps})"
    names = ("clip", "adjacency", "model", "loss", "records", "trials", "seed", "delta")
    settings = {"trainer": given["trainer"], **{name: given[name] for name in names}, "confidence": confidence}
    return python_call(f"{data!r}, claimed={claimed}", settings)


def _examined(
    game: Examination,
    claimed: Mechanism,
    delta: float,
    confidence: float,
    store: Store | None,
    *,
    processes: int | None,
    progress: Progress | None,
) -> Document:
    """Play the trials that `store` lacks, and judge all."""
    started, before = perf_counter(), 0 if store is None else len(store.finished())
    mixed = mixing(game.model(), game.columns)
    with watched(progress, "Playing the first trial", "Trials", "trials/s") as told:
        examined = [] if mixed else _played(game, store, processes, told)
    findings = refused(mixed) if mixed else _diagnosed(game, examined, (1 - GAME_SHARE) * (1 - confidence))
    played = _trials(game.claim, examined) if examined else None
    sure = 1 - GAME_SHARE * (1 - confidence)
    document = judge_training(game.claim, claimed, played, findings, delta=delta, confidence=sure)
    seconds = perf_counter() - started
    return {**document, "seconds": seconds, "trials_per_second": max(0, len(examined) - before) / seconds}


def _adjacency(named: Adjacency | str) -> Adjacency:
    if named not in list(Adjacency):
        raise ValueError(f"adjacency must be one of {', '.join(Adjacency)}, got {str(named)!r}")
    return Adjacency(named)


def _settled(
    data: Any, model: Any, claim: Claim, *, records: int, seed: int, measure: str | None, label: str | None
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


def _claim_settings(game: Examination, claim: Claim) -> dict[str, Any]:
    return {
        "trainer": _named_with_settings(game.trainer),
        "model": named_by(game.model),
        "loss": named_by(game.loss),
        "noise": claim.noise,
        "rate": claim.rate,
        "steps": claim.steps,
        "clip": claim.clip,
        "adjacency": str(claim.adjacency),
        "sensitivity": "global",
        "trials": game.trials,
        "seed": game.seed,
        "torch": torch.__version__,
    }


def _named_with_settings(trainer: Trainer) -> str:
    """A function by its name; an object, such as a dataclass with `__call__`, by what it says of itself."""
    text = repr(trainer)
    return str(named_by(trainer)) if " at 0x" in text else text


def _played(game: Examination, store: Store | None, processes: int | None, progress: Progress | None) -> list[Examined]:
    def run(missing: list[int], workers: int) -> Iterator[tuple[int, Examined]]:
        if workers > 1:
            _check_importable(work)
        return spread(work, missing, workers)

    work = partial(play_trial, game)
    tell = None if progress is None else lambda done: progress(done, game.trials)
    examined = play_missing(game.trials, Examined, run, store, processes=processes, tell=tell)
    steps = {len(one.ratio) for one in examined}
    if len(steps) > 1:
        raise ValueError(f"trainer must take the same number of steps every time, got {min(steps)} to {max(steps)}")
    return examined


def _check_importable(work: Callable[[int], Examined]) -> None:
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        advice = "define them at the top level of a module, or use processes=1"
        raise ValueError(
            f"trainer, model and loss must be importable for worker processes: {advice} ({error})"
        ) from error


def _trials(claim: Claim, examined: list[Examined]) -> Trials:
    ratio = np.stack([one.ratio for one in examined]).cumsum(1)
    sensitivity = np.stack([one.sensitivity for one in examined])
    on_d = np.array([bool(one.trained_on_d) for one in examined])
    return Trials(on_d, ratio, sensitivity, np.full_like(sensitivity, claim.sigma))


def _diagnosed(game: Examination, examined: list[Examined], false_alarms: float) -> Report:
    parameters = trainable(game.model())
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    members = np.zeros((len(examined), len(game.columns.records)))
    for row, one in zip(members, examined, strict=True):
        row[game.members(bool(one.trained_on_d))] = 1
    evidence = Evidence.of(game.claim, shapes, game.sketch(parameters), members, examined, level=false_alarms / NUMBER)
    return diagnose(evidence, false_alarms)
