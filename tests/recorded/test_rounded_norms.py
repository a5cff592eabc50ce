"""Norms in half precision: told where small numbers vanish in them, no fault where nothing that matters does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from deniable.examination.recorded.gradients import record_shares
from deniable.examination.recorded.gradients.rounded_norms import FLOORS, rounded_norms
from tests.recorded.test_run_mutations import CLIP, LargerSignal, Sums, check_told

VANISHES = 2.0**-12.5
"""Numbers below have a square of zero in half precision."""


class HalfPrecision(LargerSignal):
    """Of gradients that are scaled before (a mean loss, a loss scale), and back after."""

    scale = VANISHES / (0.25 * CLIP)

    def total(self) -> Sums:
        each = self.gradients()
        squares = sum((self.scale * g).half().square().flatten(1).float().sum(1) for g in each.values())
        factors = self.factors(torch.as_tensor(squares).sqrt() / self.scale, "")
        return {name: torch.einsum("r,r...->...", factors, g) for name, g in each.items()}


class HalfPrecisionOfLargeNumbers(HalfPrecision):
    scale = 1.0


@pytest.mark.parametrize("held", [2**22, 30 * 150])
@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (
            HalfPrecision,
            "violated",
            r"too few digits .half precision.: numbers below 0.2\d* x the clipping norm vanish",
        ),
        (HalfPrecisionOfLargeNumbers, "consistent", "Nothing speaks against"),
    ],
)
def test_norms_in_half_precision(
    run: Callable[[], HalfPrecision], verdict: str, words: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the records' gradients are held on half of the weights."""
    monkeypatch.setattr(record_shares, "_NUMBERS_HELD", held)
    check_told(run(), verdict, words)


def test_rounded_norms_are_those_of_half_precision() -> None:
    random = torch.Generator().manual_seed(0)
    gradients = [torch.randn(20, 300, 10, generator=random), torch.randn(20, 7, generator=random)]
    gradients[0] *= 0.05 + torch.rand(20, 1, 1, generator=random) ** 3
    for floor, norms in zip(FLOORS, rounded_norms(gradients, 2.0), strict=True):
        scale = VANISHES / (2.0 * floor)
        plain: Tensor = torch.stack([(g * scale).half().square().float().flatten(1).sum(1) for g in gradients]).sum(0)
        expected = plain.sqrt() / scale
        assert float((norms - expected).norm()) < 0.05 * float(expected.norm())
