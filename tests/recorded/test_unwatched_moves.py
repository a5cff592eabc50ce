"""Moves of the weights that their optimizer does not make of the applied gradients: what they are made of is told."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from tests.recorded.test_run_mutations import RATE, RECORDS, Run, Sums


class OwnAdam(Run):
    """Adam by hand, with a second moment of what it likes."""

    def squares(self) -> Sums:
        return {name: p.grad**2 for name, p in self.model.named_parameters() if p.grad is not None}

    def move(self) -> None:
        before = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        super().move()
        if self.step == 0:
            self.first, self.second = ({name: torch.zeros_like(p) for name, p in before.items()} for _ in range(2))
        squares, (one, other) = self.squares(), (0.9, 0.99)
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                self.first[name] = one * self.first[name] + (1 - one) * (0.0 if p.grad is None else p.grad)
                self.second[name] = other * self.second[name] + (1 - other) * squares[name]
                first = self.first[name] / (1 - one ** (self.step + 1))
                second = self.second[name] / (1 - other ** (self.step + 1))
                p.copy_(before[name] - 0.01 * first / (second.sqrt() + 1e-5))


class CleanSquares(OwnAdam):
    def squares(self) -> Sums:
        return {name: (g / RATE / RECORDS) ** 2 for name, g in self.clean.items()}


class SingleSquares(OwnAdam):
    def squares(self) -> Sums:
        return {name: (g / RATE / RECORDS).square().sum(0) for name, g in self.gradients().items()}


class NoisySquares(OwnAdam):
    """As safe, but not what the watched optimizer does."""


@pytest.mark.parametrize(
    ("mutation", "verdict", "words"),
    [
        (CleanSquares, "violated", "second moment, .* is made of clipped sums before their noise"),
        (SingleSquares, "violated", "second moment, .* is made of (the squares of single|gradients without|clipped)"),
        (NoisySquares, "cannot judge", "weights move by something that was not watched"),
    ],
)
def test_moves_that_were_not_watched_are_named(mutation: Callable[[], Run], verdict: str, words: str) -> None:
    found = mutation().train()
    assert found.verdict == verdict, found.verdict_text
    assert re.search(words, found.verdict_text), found.verdict_text
