"""Choices by the records are recognised, and choices by anything else are not mistaken for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deniable.examination.diagnostics.around_the_steps import best_step_by, stops_by_loss
from deniable.examination.final_weights import Ending

STEPS, TRIALS = 8, 20


def course(generator: np.random.Generator, steps: int = STEPS) -> Any:
    """One training whose loss goes up and down; `right` has ties, as labels do."""
    losses = np.abs(2 + 0.3 * generator.normal(size=steps + 1).cumsum()) + 0.1
    right = np.round(1 / (1 + losses), 1)
    return SimpleNamespace(
        losses=losses[:-1], last_loss=losses[-1], right=right[:-1], last_right=right[-1], taken=steps,
        batch_losses=losses[:-1] + 0.2 * np.abs(generator.normal(size=steps)), ending=(Ending.LAST, -1),
    )  # fmt: skip


def evidence(examined: list[Any]) -> Any:
    taken = np.array([one.taken for one in examined])
    trials = SimpleNamespace(ending=np.array([one.ending for one in examined]))
    return SimpleNamespace(examined=examined, trials=trials, taken=taken, steps=int(taken.min()))


def released(generator: np.random.Generator, place: int, every: np.ndarray, right: np.ndarray) -> Any:
    """A training that releases the weights of a place, counted from the initial ones."""
    one = course(generator)
    one.losses, one.right = every[:-1], right[:-1]
    one.last_loss, one.last_right = every[place], right[place]
    one.ending = (Ending.LAST, -1) if place == STEPS else (Ending.EARLIER, place)
    return one


def releasing(generator: np.random.Generator, kind: str) -> Any:
    one = course(generator)
    every, right = np.append(one.losses, one.last_loss), np.append(one.right, one.last_right)
    place = {
        "best": int(np.argmin(every)),
        "best after a step": 1 + int(np.argmin(every[1:])),
        "loss before the step": 1 + int(np.argmin(every[:-1])),
        "most right": 1 + int(np.argmax(right[1:])),
        "random": int(generator.integers(0, STEPS + 1)),
    }[kind]
    return released(generator, place, every, right)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("best", "lowest loss"),
        ("best after a step", "lowest loss"),
        ("loss before the step", "lowest loss"),
        ("most right", "most right labels"),
    ],
)
def test_the_best_step_is_recognised(kind: str, words: str) -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        assert words in best_step_by([evidence([releasing(generator, kind) for _ in range(TRIALS)])])


def test_steps_that_are_released_at_random_are_not_called_the_best() -> None:
    generator = np.random.default_rng(0)
    found = [best_step_by([evidence([releasing(generator, "random") for _ in range(10)])]) for _ in range(200)]
    assert not any(found)


def stopping(generator: np.random.Generator, kind: str) -> Any:
    one = course(generator, 20)
    every = np.append(one.losses, one.last_loss)
    stops = {
        "low": lambda t: every[t] < 1.6,
        "no better": lambda t: t >= 2 and every[t] > every[:t].min(),
        "impatient": lambda t: t >= 3 and every[t - 1 : t + 1].min() > every[: t - 1].min(),
        "random": lambda t: generator.random() < 0.1,
    }[kind]
    taken = next((t for t in range(1, 20) if stops(t)), 20)
    one.taken, one.last_loss, one.last_right = taken, every[taken], np.round(1 / (1 + every[taken]), 1)
    one.losses, one.right, one.batch_losses = one.losses[:taken], one.right[:taken], one.batch_losses[:taken]
    return one


@pytest.mark.parametrize("kind", ["low", "no better", "impatient"])
def test_stops_by_the_loss_are_recognised(kind: str) -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        assert stops_by_loss(evidence([stopping(generator, kind) for _ in range(TRIALS)]))


def test_stops_at_random_are_not_called_the_losses() -> None:
    generator = np.random.default_rng(0)
    found = [stops_by_loss(evidence([stopping(generator, "random") for _ in range(TRIALS)])) for _ in range(60)]
    assert not any(found)
