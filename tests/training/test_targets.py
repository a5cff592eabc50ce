"""Target models: the engine without noise is ordinary training, with noise it costs what it says."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

import deniable as dn
from deniable.data import LEAKING_RECORDS, Dataset, load, purchases, split
from deniable.local import BinaryResponse, perturb_dataset
from deniable.training.attacked.reference import faces, head_on, reference_network, reference_settings
from deniable.training.attacked.targets import TargetSettings, calibrate_settings, fit, quality
from deniable.training.networks.usual_models import dense

GENERATOR = np.random.default_rng(0)


def records(count: int = 60, features: int = 12, classes: int = 3) -> Dataset:
    labels = np.arange(count) % classes
    values = GENERATOR.normal(size=(count, features)) + np.eye(features)[labels] * 2
    return Dataset("blobs", values.astype(np.float32), labels, classes, "table")


TRAIN, HELD_OUT = records(), records()
SMALL = TargetSettings(partial(dense, 12, 8, 3), batch=60, epochs=4, learning_rate=0.05, patience=None)


def weights(model: nn.Module) -> NDArray[np.float32]:
    return torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()


def naive(settings: TargetSettings, initial: nn.Module, data: Dataset) -> nn.Module:
    """The twin: torch's own optimizer on full batches."""
    optimizer: torch.optim.Optimizer
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[settings.optimizer]
    optimizer = kind(initial.parameters(), lr=settings.learning_rate)
    for _ in range(settings.epochs):
        optimizer.zero_grad()
        outputs = initial(torch.from_numpy(data.inputs))
        nn.functional.cross_entropy(outputs, torch.from_numpy(data.labels)).backward()
        optimizer.step()
    return initial


def untrained(settings: TargetSettings) -> nn.Module:
    return fit(replace(settings, learning_rate=1e-30, epochs=1), TRAIN, HELD_OUT, 3).model


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_without_noise_it_is_ordinary_training(optimizer: str) -> None:
    settings = replace(SMALL, optimizer=optimizer)
    fitted = fit(settings, TRAIN, HELD_OUT, 3)
    np.testing.assert_allclose(
        weights(fitted.model), weights(naive(settings, untrained(settings), TRAIN)), rtol=1e-3, atol=1e-5
    )
    assert fitted.epsilon() == inf
    assert fitted.spent is fitted.planned_loss is None


def test_noise_is_clip_times_the_multiplier_on_the_sum() -> None:
    wide = TargetSettings(partial(dense, 12, 500, 3), 3.0, 60.0, 60, 1, clip=2.0, optimizer="sgd")
    first, second = (weights(fit(wide, TRAIN, HELD_OUT, seed).model) for seed in (1, 2))
    # learning rate / 60 records = 1, so the noise itself; the initial weights differ by less than 0.3
    assert (first - second).std() == pytest.approx(6.0 * 2**0.5, rel=0.05)


def test_gradients_are_clipped_only_with_noise() -> None:
    far = replace(TRAIN, features=1000 * TRAIN.features)
    step = replace(SMALL, optimizer="sgd", epochs=1, learning_rate=1.0)
    start = weights(fit(replace(step, learning_rate=1e-30), far, HELD_OUT, 1).model)
    clipped = weights(fit(replace(step, noise=1e-6, clip=0.5), far, HELD_OUT, 1).model)
    assert np.linalg.norm(clipped - start) <= 0.5 + 1e-3
    assert np.linalg.norm(weights(fit(step, far, HELD_OUT, 1).model) - start) > 10


def test_seeds_repeat_and_the_system_does_not() -> None:
    noisy = replace(SMALL, noise=1.0, batch=20)
    first, again, other = (weights(fit(noisy, TRAIN, HELD_OUT, seed).model) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    assert (weights(fit(noisy, TRAIN, HELD_OUT, None).model) != weights(fit(noisy, TRAIN, HELD_OUT, None).model)).all()


def test_epsilon_is_that_of_the_steps_taken() -> None:
    noisy = replace(SMALL, noise=1.5, batch=20, epochs=40, patience=2, learning_rate=3.0)
    fitted = fit(noisy, TRAIN, HELD_OUT, 2)
    assert len(fitted.history) < 40  # such a learning rate gets nowhere
    assert fitted.steps == 3 * len(fitted.history)
    taken = dn.Gaussian(1.5).subsampled(20 / 60).composed(fitted.steps)
    assert fitted.epsilon() == pytest.approx(float(dn.privacy_loss(taken, adjacency="add-remove").epsilon(1 / 60)))
    assert fitted.planned_loss is not None
    assert fitted.epsilon() < fitted.planned_loss.epsilon(1 / 60)


def test_training_stops_when_the_held_out_loss_stagnates() -> None:
    settings = replace(SMALL, epochs=400, patience=3, learning_rate=0.1)
    told: list[int] = []
    fitted = fit(settings, TRAIN, HELD_OUT, 1, told.append)
    losses = [epoch.loss for epoch in fitted.history]
    assert 4 < len(losses) < 400
    assert int(np.argmin(losses)) == len(losses) - 4
    assert told == list(range(1, len(losses) + 1))
    assert len(fit(replace(settings, patience=None, epochs=30), TRAIN, HELD_OUT, 1).history) == 30


def test_the_qualities_are_those_of_the_returned_model() -> None:
    fitted = fit(SMALL, TRAIN, HELD_OUT, 1)
    outputs = fitted.model(torch.from_numpy(HELD_OUT.inputs)).detach()
    assert fitted.history[-1].accuracy == pytest.approx(float((outputs.argmax(1).numpy() == HELD_OUT.labels).mean()))
    loss = nn.functional.cross_entropy(outputs, torch.from_numpy(HELD_OUT.labels))
    assert fitted.history[-1].loss == pytest.approx(float(loss), rel=1e-5)
    assert fitted.train == quality(fitted.model, TRAIN)


@pytest.mark.parametrize(("noise", "printed"), [(0.5, 88.1), (2, 4.1), (4, 1.8), (6, 1.2), (16, 0.4)])
def test_epochs_and_steps_are_003s(noise: float, printed: float) -> None:
    """Bernau 2021b, Table 2, Purchases: 8000 records, batch 128, 200 epochs; its epsilons by RDP are above the exact
    ones."""
    settings = TargetSettings("purchase100", noise)
    assert settings.steps(8000) == 12_500
    mechanism = settings.mechanism(8000)
    assert mechanism == dn.Gaussian(noise).subsampled(0.016).composed(12_500)
    exact = float(dn.privacy_loss(mechanism, adjacency="add-remove").epsilon(1 / 8000))
    assert 0.5 * printed < exact < printed + 0.05


@pytest.mark.parametrize("target", [dn.Epsilon(2.0, 1e-3), dn.Belief(0.8, 1e-3), dn.Advantage(0.3)])
def test_noise_from_a_promise(target: dn.Promise) -> None:
    settings = calibrate_settings(replace(SMALL, batch=20), target, records=60)
    planned = settings.mechanism(60)
    assert planned is not None
    assert target.score(dn.privacy_loss(planned, adjacency="add-remove")) == pytest.approx(target.bound, rel=1e-4)
    assert target.score(dn.privacy_loss(planned, adjacency="add-remove")) <= target.bound


def test_a_fitted_model_travels_between_processes() -> None:
    fitted = fit(replace(SMALL, noise=1.0), TRAIN, HELD_OUT, 1)
    arrived = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(weights(arrived.model), weights(fitted.model))
    assert arrived.epsilon() == fitted.epsilon()


def test_reference_networks() -> None:
    def widths(name: str, classes: int, features: int) -> list[int]:
        data = Dataset(name, np.zeros((2, features), np.float32), np.zeros(2, np.int64), classes, "binary")
        layers = [layer for layer in reference_network(data)() if isinstance(layer, nn.Linear)]
        return [layers[0].in_features, *(layer.out_features for layer in layers)]

    assert widths("texas300", 300, 6382) == [6382, 512, 128, 300]
    assert widths("purchase100", 20, 600) == [600, 128, 20]
    assert widths("skewed-purchases", 50, 600) == [600, 128, 50]
    assert widths("location30", 30, 446) == [446, 128, 30]


@pytest.mark.parametrize("shape", [(62, 47), (3, 40, 19), (8, 8), (250, 250)])
def test_reference_networks_for_images(shape: tuple[int, ...]) -> None:
    pictures = np.random.default_rng(0).random((4, *shape)).astype(np.float32)
    data = Dataset("own", pictures, np.array([0, 1, 6, 2]), 7, "image")
    fitted = fit(TargetSettings(reference_network(data), noise=0.1, epochs=1, batch=2), data, data, 0)
    assert fitted.model(torch.from_numpy(data.inputs)).shape == (4, 7)


@pytest.mark.parametrize(
    ("name", "noise", "expected"),
    [
        ("texas100", 0, (0.01, 128, 200, 4)),
        ("texas300", 2, (0.01, 128, 1000, 4)),
        ("purchase100", 0, (0.001, 128, 200, 4)),
        ("purchase100", 2, (0.01, 128, 200, 4)),
        ("lfw", 0, (0.001, 32, 30, 3)),
        ("lfw", 16, (0.001, 16, 110, 3)),
        ("skewed-purchases", 0.5, (0.001, 100, 200, 4)),
        ("location30", 0.5, (0.01, 128, 200, 4)),
    ],
)
def test_reference_settings_are_table_2(name: str, noise: float, expected: tuple[float, ...]) -> None:
    data = Dataset(name, np.zeros((2, 30), np.float32), np.zeros(2, np.int64), 2, "binary")
    settings = reference_settings(data, noise)
    assert (settings.learning_rate, settings.batch, settings.epochs, settings.clip) == expected
    assert settings.noise == noise


def own_backbone() -> nn.Module:
    torch.manual_seed(0)
    return head_on(nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(3)), 36, 3)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_backbone_of_ones_own_is_kept_as_it_is(noise: float) -> None:
    pictures = np.random.default_rng(0).random((30, 8, 8)).astype(np.float32)
    data = Dataset("own", pictures, np.arange(30) % 3, 3, "image")
    fitted = fit(TargetSettings(own_backbone, noise, 0.1, batch=10, epochs=3, clip=1.0), data, data, 0)
    before, after = own_backbone(), fitted.model
    torch.testing.assert_close(after[0].state_dict(), before[0].state_dict())  # type: ignore[index]
    assert (after[2].weight != before[2].weight).any()  # type: ignore[index]


def average_precision(model: nn.Module, members: Dataset, others: Dataset) -> float:
    """Of the smallest losses, the plainest attack."""
    both = [members, others]
    with torch.no_grad():
        losses = [
            nn.functional.cross_entropy(
                model(torch.from_numpy(d.inputs)), torch.from_numpy(d.labels), reduction="none"
            ).numpy()
            for d in both
        ]
    is_member = np.concatenate([np.full(len(part), 1.0 - i) for i, part in enumerate(losses)])
    hit = is_member[np.argsort(np.concatenate(losses), kind="stable")]
    return float((hit * np.cumsum(hit) / np.arange(1, len(hit) + 1)).sum() / hit.sum())


def test_default_purchases_leak_and_noise_cures_it() -> None:
    data = purchases(records=2 * LEAKING_RECORDS)
    members, others = split(data, LEAKING_RECORDS, seed=0)
    bare = fit(reference_settings(members), members, others, 1)
    assert bare.train.accuracy > 0.99
    assert 0.6 < bare.history[-1].accuracy < 0.85
    assert average_precision(bare.model, members, others) > 0.95
    central = fit(replace(reference_settings(members, 16.0), epochs=10), members, others, 1)
    assert average_precision(central.model, members, others) < 0.56
    noisy = perturb_dataset(members, BinaryResponse(0.5), seed=2)
    local = fit(replace(reference_settings(members), epochs=30), noisy, others, 1)
    assert local.train.accuracy > 0.9  # by heart, but what it knows is noise
    assert average_precision(local.model, members, others) < 0.85


def test_location_is_learned_by_heart(real_data: Path) -> None:
    members, rest = split(load("location30"), 1200, 0)
    others = split(rest, 1200, 1)[0]
    fitted = fit(replace(reference_settings(members), epochs=50, patience=None), members, others, 0)
    assert fitted.train.accuracy > 0.99
    assert fitted.history[-1].accuracy < 0.75
    assert average_precision(fitted.model, members, others) > 0.65


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: replace(SMALL, noise=-1.0), "noise must be a finite number >= 0, got -1.0"),
        (lambda: replace(SMALL, learning_rate=0.0), "learning_rate must be"),
        (lambda: replace(SMALL, clip=inf), "clip must be"),
        (lambda: replace(SMALL, batch=0), "batch must be"),
        (lambda: replace(SMALL, epochs=1.5), "epochs must be"),
        (lambda: replace(SMALL, patience=0), "patience must be"),
        (lambda: replace(SMALL, optimizer="rmsprop"), "optimizer must be one of sgd, adam"),
        (lambda: fit(replace(SMALL, model=partial(dense, 12, 8, 2)), TRAIN, HELD_OUT, 1), "each of the 3 classes"),
        (lambda: fit(replace(SMALL, model=partial(dense, 9, 3)), TRAIN, HELD_OUT, 1), "cannot take records of shape"),
        (lambda: fit(SMALL, TRAIN, records(features=9), 1), "validation must hold records of shape"),
        (lambda: fit(SMALL, TRAIN, HELD_OUT.take(np.arange(0)), 1), "validation must hold records"),
        (lambda: fit(SMALL, TRAIN.take(np.arange(0)), HELD_OUT, 1), "at least one|>= 1"),
        (lambda: fit(replace(SMALL, model=lambda: nn.BatchNorm1d(12)), TRAIN, HELD_OUT, 1), "GroupNorm"),
    ],
)
def test_bad_input_is_named(bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bad()  # type: ignore[operator]


def test_divergence_is_an_error() -> None:
    with pytest.raises(FloatingPointError, match="learning_rate"):
        fit(replace(SMALL, optimizer="sgd", learning_rate=1e38), TRAIN, HELD_OUT, 1)


def test_faces_in_the_small_network() -> None:
    assert faces(62, 47, 20)(torch.zeros(2, 1, 62, 47)).shape == (2, 20)
