"""Somebody else's training: trials on D or D', each recomputed, judged by the game and by diagnostics."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from torch import nn

from deniable.audit.campaign import Progress, choose_neighbours, model_source, named_by, neighbourly, usual_model
from deniable.audit.claim import Claim
from deniable.audit.diagnostics import NUMBER, Diagnosis, Evidence, Report, diagnose
from deniable.audit.provenance import data_source, now, python_call, versions
from deniable.audit.recomputed import Recomputer
from deniable.audit.residuals import Examined, examine, sketch_sizes
from deniable.audit.trainer import Records, Trainer, seen
from deniable.audit.training_record import judge_training
from deniable.audit.trials import Trials
from deniable.checks import probability, whole
from deniable.data import load
from deniable.document import Document
from deniable.mechanisms import Adjacency, Mechanism
from deniable.training import Neighbours
from deniable.training.engine import one_thread
from deniable.training.gradients import trainable
from deniable.training.losses import Loss, loss_function
from deniable.training.models import model_factory, named_function, refuse
from deniable.training.noise import SeededSource
from deniable.training.pool import spread
from deniable.training.settings import Columns, ModelFactory

__all__ = ["Examination", "examine_trainer"]

GAME_SHARE = 0.8
"""Of the risk 1 - confidence, so much is the game's and the rest the diagnostics'."""
LOOKED_AT = 16
"""Other explanations are tried on so many trials."""
SKETCHED, MOST_SKETCHED = 2**24, 4096
"""Numbers of noise that are kept, of all trials together and of one step."""
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
        """32 bits, different for every trial."""
        (start,) = SeedSequence(self.seed).generate_state(1)
        return int((int(start) + 2654435761 * number) % 2**32)

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
            return examine(recomputer, done, members, on_d, own, look=look, sketch=sketch)


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
    processes: int | None = None,
    progress: Progress | None = None,
) -> Document:
    """Audit a training that is not ours: does it do what it claims, and if not, why?

    `trainer(records, seed)` trains on `Records` and yields an `AppliedStep` for each step (see
    `deniable.audit.trainer`; `deniable.audit.adapters` has one for Opacus). `claimed` is
    ``Gaussian(noise).subsampled(rate).composed(steps)``, its noise relative to the sensitivity: `clip`, or
    2 x `clip` for `replace` neighbours. `data` is a name, file or function of which D is `records`, D' the most
    dissimilar neighbour; or a `Neighbours` with a pair of your own.

    Each trial trains on D or D', at random. The audit recomputes the clean clipped sums itself, plays the observer of
    001 Algorithm 1 under the claimed noise, and tests what is left over for being that noise.

    Guarantee: a training that is as claimed gets another verdict than *consistent* or *uninformative* with probability
    at most 1 - `confidence`, of which the diagnostics have a fifth.
    """
    started = perf_counter()
    probability("confidence", confidence, open_ends=True)
    claim = Claim.of(claimed, clip, neighbourly(adjacency))
    neighbours, origin, source, factory = _settled(
        data, model, claim, records=records, seed=whole("seed", seed, low=0), measure=measure, label=label
    )
    function = named_function("trainer", trainer) if isinstance(trainer, str) else trainer
    game = Examination(function, claim, factory, loss_function(loss), neighbours, whole("trials", trials, low=10), seed)
    chance = 1 / len(neighbours.records) if delta is None else probability("delta", delta, open_ends=True)
    given = {**origin, **_claim_settings(game, claim), "delta": chance}
    mixed = _mixing(factory(), game.columns)
    examined = [] if mixed else _played(game, processes, progress)
    findings = _refused(mixed) if mixed else _diagnosed(game, examined, (1 - GAME_SHARE) * (1 - confidence))
    played = _trials(claim, examined) if examined else None
    document = judge_training(
        claim, claimed, played, findings, delta=chance, confidence=1 - GAME_SHARE * (1 - confidence)
    )
    document["input"] = given
    call = _call(given, source["data"], claim, confidence)
    document["provenance"] = {**source, "versions": versions(), "command": None, "call": call}
    seconds = perf_counter() - started
    return {**document, "seconds": seconds, "trials_per_second": len(examined) / seconds, "finished": now()}


def _call(given: Mapping[str, Any], data: str | None, claim: Claim, confidence: float) -> str:
    """The call that examines again, with the functions by their names."""
    claimed = f"dn.Gaussian({claim.noise!r}).subsampled({claim.rate!r}).composed({claim.steps})"
    names = ("clip", "adjacency", "model", "loss", "records", "trials", "seed", "delta")
    settings = {"trainer": given["trainer"], **{name: given[name] for name in names}, "confidence": confidence}
    return python_call(f"{data!r}, claimed={claimed}", settings)


def _settled(
    data: Any, model: Any, claim: Claim, *, records: int, seed: int, measure: str | None, label: str | None
) -> tuple[Neighbours, dict[str, Any], dict[str, Any], ModelFactory]:
    """The neighbours, where they come from (for the record), how they were named (for people), and the model."""
    if isinstance(data, Neighbours):
        if model is None:
            raise ValueError("model is missing: give the function that makes the nn.Module that is trained")
        data.columns(claim.adjacency)
        origin = {"data": "own neighbours", "records": len(data.records), "record": data.index}
        factory = model_factory(model)
        source = {"data": None, "shape": list(data.records.shape), "classes": None, "kind": "tensor"}
        return data, origin, source | model_source(factory()), factory
    dataset = load(data, label=label)
    neighbours, origin = choose_neighbours(dataset, records, seed, claim.adjacency, measure)
    factory = model_factory(usual_model(model, dataset))
    return neighbours, origin, data_source(data, dataset, label) | model_source(factory()), factory


def _claim_settings(game: Examination, claim: Claim) -> dict[str, Any]:
    return {
        "trainer": named_by(game.trainer),
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


def _mixing(model: nn.Module, columns: Columns) -> Diagnosis | None:
    """What makes per-example gradients meaningless: layers known to mix examples, and outputs that show it."""
    apart = "each example's output depends on that example alone", "examples kept apart"
    if not trainable(model):
        raise ValueError("model must have at least one trainable parameter, got none")
    try:
        refuse(model)
    except ValueError as error:
        why = f"{error}; one record changes the gradients of the others, so clipping bounds nobody's influence"
        return Diagnosis(apart[1], 0.0, str(error), apart[0], why)
    records = columns.records[:8]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        together, again, alone = model(records), model(records), model(records[:4])
    if not torch.allclose(together, again, rtol=1e-3, atol=1e-5):
        why = "the model draws at random, so its gradients cannot be recomputed: remove the random layer"
        return Diagnosis(apart[1], 0.0, "two passes differ", apart[0], why)
    if not torch.allclose(together[:4], alone, rtol=1e-3, atol=1e-5):
        why = (
            "the model mixes the examples of a batch, so clipping bounds nobody's influence: normalise each example by "
            "itself, as nn.GroupNorm does"
        )
        return Diagnosis(apart[1], 0.0, "outputs change with the rest of the batch", apart[0], why)
    return None


def _played(game: Examination, processes: int | None, progress: Progress | None) -> list[Examined]:
    workers = min(processes or torch.multiprocessing.cpu_count(), game.trials)
    work = partial(play_trial, game)
    if workers > 1:
        _check_importable(work)
    done: dict[int, Examined] = {}
    for number, examined in spread(work, range(game.trials), workers):
        done[number] = examined
        if progress is not None:
            progress(len(done), game.trials)
    steps = {len(one.ratio) for one in done.values()}
    if len(steps) > 1:
        raise ValueError(f"trainer must take the same number of steps every time, got {min(steps)} to {max(steps)}")
    return [done[number] for number in range(game.trials)]


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


def _refused(mixed: Diagnosis) -> Report:
    """Nothing was trained: a model that mixes examples has no per-example gradient."""
    return Report((mixed,), (mixed,), 0.0, float("nan"))
