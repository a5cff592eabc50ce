"""Sizes of batches: what makes them less private than Poisson samples is told from sizes that are only smaller."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.examination.diagnostics.sampling import _size_fault

RATE, RECORDS, TRIALS, STEPS, LEVEL = 0.2, 24, 40, 6, 1e-4
Drawn = NDArray[np.bool_]


def coins(rate: float, generator: np.random.Generator) -> Drawn:
    return generator.random((TRIALS, STEPS, RECORDS)) < rate


def pairs(generator: np.random.Generator) -> Drawn:
    return np.repeat(coins(0.9 * RATE, generator)[..., : RECORDS // 2], 2, axis=2)


def alike(generator: np.random.Generator) -> Drawn:
    """One of every six records, and now and then one more: as large as claimed, or less."""
    return coins(0.05, generator) | (np.arange(RECORDS) % 6 == 0)


def never_empty(generator: np.random.Generator) -> Drawn:
    drawn = coins(0.05, generator)
    drawn[..., 0] |= ~drawn.any(2)
    return drawn


def at_least_five(generator: np.random.Generator, most: int = RECORDS) -> Drawn:
    """Small batches, or also those that are larger than `most`, are drawn again."""
    drawn = coins(RATE, generator)
    while (odd := (drawn.sum(2) < 5) | (drawn.sum(2) > most)).any():
        drawn[odd] = coins(RATE, generator)[odd]
    return drawn


def five_to_seven(generator: np.random.Generator) -> Drawn:
    return at_least_five(generator, 7)


def one_step_larger(generator: np.random.Generator) -> Drawn:
    drawn = coins(0.6 * RATE, generator)
    drawn[:, 2] = coins(2 * RATE, generator)[:, 2]
    return drawn


def growing(generator: np.random.Generator) -> Drawn:
    """A schedule of rates up to the claimed one."""
    return generator.random((TRIALS, STEPS, RECORDS)) < RATE * (np.arange(STEPS)[:, None] + 1) / STEPS


def fault(drawn: Drawn, rate: float) -> str:
    return _size_fault(drawn.sum(2).astype(float), np.full((TRIALS, 1), float(RECORDS)), rate, LEVEL)


@pytest.mark.parametrize(
    ("drawn", "rate", "words"),
    [
        (pairs, RATE, "records are drawn together"),
        (alike, RATE, "no batch has fewer than 4 records"),
        (five_to_seven, 1.1 * RATE, "kept alike"),
        (never_empty, 0.05, "never empty"),
        (at_least_five, RATE, "no batch has fewer than 5 records"),
        (one_step_larger, RATE, "not 4.8) in 1 of 6 steps"),
        (lambda generator: coins(1.6 * RATE, generator), RATE, "records, not 4.8)"),
    ],
    ids=["pairs", "alike", "five to seven", "never empty", "at least five", "one step", "all steps"],
)
def test_what_harms_is_found_at_any_mean_size(
    drawn: Callable[[np.random.Generator], Drawn], rate: float, words: str
) -> None:
    assert words in fault(drawn(np.random.default_rng(2)), rate)


@pytest.mark.parametrize("drawn", [lambda g: coins(0.5 * RATE, g), lambda g: coins(RATE, g), growing])
def test_poisson_samples_that_are_not_larger_have_no_fault(drawn: Callable[[np.random.Generator], Drawn]) -> None:
    generator = np.random.default_rng(4)
    assert not any(fault(drawn(generator), RATE) for _ in range(100))
