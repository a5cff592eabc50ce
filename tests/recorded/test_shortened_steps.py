"""Noisy gradients that are shortened after their noise, in runs of which only some steps are recomputed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from torch import nn

from deniable.examination.recorded import RunWatcher, judge_run
from deniable.mechanisms import Adjacency, Training
from deniable.results.run_result import RunResult
from tests.recorded.test_run_mutations import CLIP, RATE, RECORDS, STEPS, LargerSignal, Sums, check_told

LONG = CLIP * 291**0.5 / (RATE * RECORDS)
"""Of noise alone, divided as the sum is."""


class InPart(LargerSignal):
    """Two of three steps are not recomputed."""

    def judge(self, run: RunWatcher) -> RunResult:
        record = run.record()
        record = msgspec.structs.replace(record, steps=record.steps[::3])
        return judge_run(record, Training(1.0, RATE, STEPS, Adjacency.ADD_REMOVE))

    def move(self) -> None:
        self.shorten()
        super().move()

    def shorten(self) -> None:
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.4 * LONG)


class EachLayer(InPart):
    """Shortened to a length of its own."""

    def shorten(self) -> None:
        for p in self.model.parameters():
            nn.utils.clip_grad_norm_([p], 0.4 * LONG * (p.numel() / 291) ** 0.5)


class LargestTenth(InPart):
    """Of the noisy numbers; the others are left out."""

    def shorten(self) -> None:
        for p in self.model.parameters():
            if p.grad is not None:
                p.grad *= p.grad.abs() >= p.grad.abs().quantile(0.9)


class OneScale(InPart):
    def shorten(self) -> None:
        for p in self.model.parameters():
            p.grad *= 0.4


class BareBetween(InPart):
    """Without noise in steps that are not recomputed."""

    def noise(self) -> Sums:
        return {name: n * (self.step % 3 == 0) for name, n in super().noise().items()}

    def total(self) -> Sums:
        return {name: g * (1.0 if self.step % 3 == 0 else 0.1) for name, g in super().total().items()}


class BareAtAnyLength(BareBetween):
    def shorten(self) -> None:
        pass


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (InPart, "cannot judge", "may be shortened by as much .clipped"),
        (EachLayer, "cannot judge", "may be shortened by as much .clipped"),
        (LargestTenth, "cannot judge", "numbers of the noisy gradient are left out"),
        (OneScale, "other recipe", "both are scaled after"),
        (BareBetween, "violated", "too short for the claimed noise in 16 of 16 steps"),
        (BareAtAnyLength, "violated", "too short for the claimed noise in 16 of 16 steps"),
    ],
)
def test_what_is_shortened_with_its_noise_is_no_leak(run: Callable[[], InPart], verdict: str, words: str) -> None:
    check_told(run(), verdict, words)
