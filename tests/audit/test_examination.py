"""Somebody else's training: broken ones are caught and their cause is named, their correct twins are consistent."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from trainers import Broken, OpacusLoop, small, with_batch_norm

import deniable as dn
from deniable.evidence.anytime.watch import Watch
from deniable.examination import AppliedStep
from deniable.examination.claim import RecipeTraining
from deniable.mechanisms import Gaussian
from deniable.scores import privacy_loss
from deniable.store import StoreError
from deniable.training import Neighbours

STEPS = 5


def examined(trainer: Any, rate: float = 1.0, adjacency: str = "add-remove", **settings: Any) -> dict[str, Any]:
    noise = dn.Gaussian(3.0 if adjacency == "add-remove" else 1.5)
    claimed = (noise if rate == 1 else noise.subsampled(rate)).composed(STEPS)
    given = {"model": small, "trials": 24, "records": 40, "processes": 1, "data": "digits"}
    return dn.examine(trainer=trainer, claimed=claimed, clip=1.0, adjacency=adjacency, **(given | settings))


once = cache(examined)
"""Of a training and settings that several tests ask for."""


def failed(document: dict[str, Any]) -> set[str]:
    return {test.name for test in document.diagnostics.tests if not test.passed}


@pytest.mark.parametrize(("rate", "adjacency"), [(1.0, "add-remove"), (1.0, "replace"), (0.3, "add-remove")])
def test_a_correct_training_is_consistent(rate: float, adjacency: str) -> None:
    made = []

    def model() -> torch.nn.Module:
        made.append(1)
        return small()

    document = examined(Broken(rate=rate, steps=STEPS), rate, adjacency, model=model)
    assert document.verdict == "consistent"
    assert not failed(document)
    assert len(made) <= 10  # of a hundred trainings: to make a model may take long
    assert document.diagnostics.noise_ratio == pytest.approx(1, abs=0.02)
    document.to_json()


NAMED = [
    ("half", 1.0, "half the claimed standard deviation"),
    ("all layers but one", 1.0, "no noise on 3.weight"),
    ("mean clipped", 1.0, "mean gradient is clipped"),
    ("same noise", 1.0, "same noise is used in several steps"),
    ("every record", 0.3, "every record is used in every step"),
    ("divided twice", 1.0, "divided by the batch size"),
    ("reseeded", 1.0, "reseeded"),
    ("ten percent less", 1.0, "x the claimed standard deviation: use noise"),
    ("none", 1.0, "no noise"),
    ("first step only", 1.0, "missing in steps 2 to 5"),
    ("uniform", 1.0, "uniform"),
    ("laplace", 1.0, "Laplacian"),
    ("truncated", 1.0, "cut off"),
    ("correlated layers", 1.0, "correlated"),
    ("shared factor", 1.0, "correlated"),
    ("one seed", 1.0, "different seeds use the same noise"),
    ("clipped per layer", 1.0, "every layer is clipped on its own"),
    ("clip at 2C", 1.0, "twice the claimed norm"),
    ("not clipped", 1.0, "not clipped"),
    ("noise not applied", 1.0, "without its noise"),
    ("other noise applied", 1.0, "do not move by the yielded gradient"),
    ("twice the steps", 1.0, "10 steps, 5 are claimed"),
    ("fixed size", 0.3, "the same size"),
    ("shuffled", 0.3, "come again in every pass"),
    ("same batch", 0.3, "the same batch is drawn again"),
    ("with replacement", 0.3, "more than once"),
    ("secretly all", 0.3, "all records are used"),
]


@pytest.mark.parametrize(("fault", "rate", "words"), NAMED)
def test_a_broken_training_is_caught_and_its_cause_named(fault: str, rate: float, words: str) -> None:
    document = once(Broken(fault, rate=rate, steps=STEPS), rate)
    assert document.verdict == "violated"
    assert words in document.diagnostics.cause
    assert document.diagnostics.cause[1:] in document.verdict_text


OTHER = [
    ("ten percent more", 1.0, "has 1.1"),
    ("after averaging", 1.0, "after averaging"),
    ("momentum", 1.0, "previous step's gradient"),
    ("left out", 1.0, "a record is left out"),
    ("mean without divisor", 1.0, "yield its divisor"),
    ("never drawn", 0.3, "not drawn equally often"),
]


@pytest.mark.parametrize(("fault", "rate", "words"), OTHER)
def test_what_is_as_private_is_another_recipe_and_no_violation(fault: str, rate: float, words: str) -> None:
    document = examined(Broken(fault, rate=rate, steps=STEPS), rate)
    assert document.verdict == "other recipe"
    assert words in document.diagnostics.cause


def crafted() -> Neighbours:
    """x and x' whose gradients point in opposite directions, so that they differ by 2C."""
    generator = torch.Generator().manual_seed(0)
    records = torch.rand(30, 8, 8, generator=generator)
    labels = torch.randint(0, 10, (30,), generator=generator)
    x = torch.full((8, 8), 3.0)
    records[0], labels[0] = x, 0
    return Neighbours.of(records.numpy(), labels.numpy(), 0, (-x.numpy(), np.int64(0)))


def test_sensitivity_c_where_a_replacement_needs_2c() -> None:
    document = examined(Broken("sensitivity C", steps=STEPS), adjacency="replace", data=crafted())
    assert document.verdict == "violated"
    assert "sensitivity 2 x clip" in document.diagnostics.cause
    assert examined(Broken(steps=STEPS), adjacency="replace", data=crafted()).verdict == "consistent"


def test_batch_norm_is_named() -> None:
    document = examined(Broken(steps=STEPS), model=with_batch_norm)
    assert document.verdict == "violated"
    assert "BatchNorm1d" in document.diagnostics.cause
    assert "GroupNorm" in document.diagnostics.cause
    assert document.measured.trials == 0


class MeanSubtracted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = small()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x - x.mean(0))


def test_a_layer_of_ones_own_that_mixes_examples_is_found() -> None:
    assert "mixes the examples" in examined(Broken(steps=STEPS), model=MeanSubtracted).diagnostics.cause


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("optimizer", "batch"), [("adam", None), ("sgd", 8)])
def test_opacus_loops_are_consistent(optimizer: str, batch: int | None) -> None:
    pytest.importorskip("opacus", reason="the adapter's test needs the extra 'oracles'")
    rate = 1.0 if batch is None else 0.2
    loop = OpacusLoop(optimizer=optimizer, batch=batch, passes=STEPS if batch is None else 2)
    claimed = dn.Gaussian(3.0).composed(STEPS) if batch is None else dn.Gaussian(3.0).subsampled(rate).composed(10)
    document = dn.examine(
        "digits", trainer=loop, model=small, claimed=claimed, clip=1.0, adjacency="zero-out",
        trials=16, records=40, processes=1,
    )  # fmt: skip
    assert document.verdict == "consistent"


TIMES = dict.fromkeys(("seconds", "trials_per_second", "forecast", "finished"))


def test_worker_processes_change_nothing() -> None:
    one, two = (examined(Broken(steps=STEPS), trials=20, processes=number) for number in (1, 2))
    assert one.replace(**TIMES) == two.replace(**TIMES)


def test_a_resumed_examination_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        if done == 7:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        examined(Broken("half", steps=STEPS), trials=12, out=tmp_path, progress=stop)
    with pytest.raises(StoreError, match="already holds a campaign"):
        examined(Broken("half", steps=STEPS), trials=12, out=tmp_path)
    with pytest.raises(StoreError, match="trainer was"):
        examined(Broken(steps=STEPS), trials=12, out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="resume needs out"):
        examined(Broken(steps=STEPS), resume=True)
    again = examined(
        Broken("half", steps=STEPS), trials=12, out=tmp_path, resume=True, progress=lambda *n: heard.append(n)
    )
    whole = examined(Broken("half", steps=STEPS), trials=12)
    assert heard == [(n, 12) for n in range(7, 13)]
    assert again.replace(**TIMES) == whole.replace(**TIMES)


def test_trials_end_when_the_watch_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch over a claim of far more noise, beside diagnostics that find nothing wrong."""
    strict = privacy_loss(Gaussian(100.0))
    watches = lambda game, claimed, confidence: lambda: Watch(strict, game.trials, 0.02)  # noqa: E731
    monkeypatch.setattr("deniable.examination.examine._watches", watches)
    asked: dict[str, Any] = {"adjacency": "replace", "data": crafted(), "trials": 100}
    document = examined(Broken(steps=STEPS), **asked)
    watched = document.watched
    assert watched is not None
    assert document.verdict == "violated"
    assert 10 <= document.measured.trials == watched.trials == watched.refuted_after < 100
    assert "was refuted" in document.verdict_text
    assert f"ended after {watched.trials} of 100" in " ".join(document.notes)


def test_nothing_ends_the_trials_where_all_are_asked_for() -> None:
    every = examined(Broken("half", steps=STEPS), stop="never")
    early = once(Broken("half", steps=STEPS), 1.0)
    assert every.verdict == early.verdict == "violated"
    assert (every.measured.trials, every.watched) == (24, None)
    assert early.measured.trials == 10
    assert early.watched is not None
    assert "stop='never'" in every.provenance.call
    with pytest.raises(ValueError, match="stop must be"):
        examined(Broken(steps=STEPS), stop="soon")


def test_what_cannot_be_examined_is_refused() -> None:
    step = AppliedStep(small(), [torch.zeros_like(p) for p in small().parameters()])
    with pytest.raises(ValueError, match="at least one AppliedStep"):
        examined(lambda records, seed: [])
    with pytest.raises(ValueError, match="shapes of the model"):
        examined(lambda records, seed: [AppliedStep([torch.zeros(3)], step.gradient)])
    with pytest.raises(ValueError, match="indices 0 to"):
        examined(lambda records, seed: [AppliedStep(step.weights, step.gradient, 1.0, [999])])
    with pytest.raises(FloatingPointError, match="not finite"):
        examined(lambda records, seed: [AppliedStep(step.weights, [g / 0 for g in step.gradient])])
    with pytest.raises(ValueError, match="importable"):
        examined(lambda records, seed: [step], processes=2)
    with pytest.raises(ValueError, match="divisor"):
        AppliedStep(small(), small(), 0.0)
    with pytest.raises(ValueError, match="claimed must be"):
        RecipeTraining.from_mechanism(dn.Laplace(1.0), 1.0, dn.Adjacency.REPLACE)


def test_a_flat_vector_a_dictionary_and_a_list_are_the_same_step() -> None:
    model = small()
    named = {f"_module.{name}": p for name, p in model.named_parameters()}
    flat = torch.cat([p.flatten() for p in model.parameters()])
    from deniable.examination.trainer import watch_steps  # noqa: PLC0415

    parameters = {name: p.detach() for name, p in model.named_parameters()}
    for form in (model, named, flat, list(model.parameters())):
        found = watch_steps([AppliedStep(form, flat, divisor=2.0)], parameters)
        assert all(torch.equal(w[0], p) for w, p in zip(found.weights, parameters.values(), strict=True))
        assert torch.equal(found.sums[1][0], 2 * parameters["1.bias"])
