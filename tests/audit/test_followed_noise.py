"""What a training does with its noisy sum: safe as long as it is a function of that alone, and a leak if it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_plain_trainings import CLIP, NOISE, Plain, audited
from torch import Tensor

from deniable.examination.noise_draws import NoiseDraws
from deniable.examination.trainer import AppliedStep

SHAPES = [torch.Size([3, 2]), torch.Size([3])]


class After(Plain):
    """Yields `after` of the noisy sum, which is handed the clean one as well."""

    share = 1.0

    def noise(self, total: list[Tensor]) -> list[Tensor]:
        noisy = [g + self.share * n for g, n in zip(total, super().noise(total), strict=True)]
        return [shown - g for shown, g in zip(self.after(noisy, total), total, strict=True)]

    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        raise NotImplementedError

    def move(self) -> None:
        torch.optim.SGD(self.model.parameters(), lr=0.05).step()


class Signs(After):
    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        return [n.sign() for n in noisy]


class Mixed(After):
    """A fixed matrix mixes the rows of every layer."""

    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        drawn = torch.Generator().manual_seed(4)
        return [torch.tensordot(torch.randn(len(n), len(n), generator=drawn), n, 1) for n in noisy]


class Filtered(After):
    """Earlier noisy sums are in it, too."""

    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        before = self.before if self.step else noisy
        self.before = [b + 0.4 * (n - b) for b, n in zip(before, noisy, strict=True)]
        return self.before


class SignsOfMore(Signs):
    share = 1.5


class SignsOfLittle(Signs):
    share = 0.4


class SignsWhole(Signs):
    def norm(self) -> float:
        return 1e9


class SignsAndClean(After):
    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        return [n.sign() + 0.2 * c for n, c in zip(noisy, clean, strict=True)]


class SignsCleanLater(After):
    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        return [n.sign() for n in (noisy if self.step < 3 else clean)]


class ScaledByClean(After):
    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        return [n / (c.abs() + 0.1) for n, c in zip(noisy, clean, strict=True)]


class SignsByLoss(After):
    """The loss of all records scales them, which is the same whatever their order."""

    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        return [n.sign() * (0.5 + self.loss()) for n in noisy]


class SignsButBiases(After):
    def after(self, noisy: list[Tensor], clean: list[Tensor]) -> list[Tensor]:
        return [*(n.sign() for n in noisy[:-1]), clean[-1]]


class SignsOfOtherLoss(Signs):
    smoothing = 0.2


class CopiedRule(Plain):
    """Applies a copy of what it yields, by a rule of its own."""

    def noise(self, total: list[Tensor]) -> list[Tensor]:
        fresh = super().noise(total)
        self.copy = [g + n for g, n in zip(total, fresh, strict=True)]
        return fresh

    def move(self) -> None:
        with torch.no_grad():
            for parameter, noisy in zip(self.model.parameters(), self.copy, strict=True):
                parameter.sub_(0.02 * noisy.sign() * noisy.abs().log1p())


def test_a_rule_that_applies_a_copy_of_the_noisy_gradient_is_safe() -> None:
    assert audited(CopiedRule(), trials=10).verdict == "consistent"


@pytest.mark.parametrize("training", [Signs, Mixed, SignsOfMore])
def test_any_function_of_the_noisy_sums_is_another_recipe(training: type[Plain]) -> None:
    document = audited(training(), trials=10)
    assert document.verdict == "other recipe", document.verdict_text
    assert "of the noisy sums and of nothing else" in document.verdict_text


def test_noisy_sums_that_are_filtered_are_said_to_be() -> None:
    document = audited(Filtered(), trials=10)
    assert document.verdict == "other recipe", document.verdict_text
    assert "previous step's gradient is still in it" in document.verdict_text


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (SignsOfLittle, "the noise has 0.39"),
        (SignsWhole, "not clipped"),
        (SignsAndClean, "in step 1 depends on the records beside the noisy sum"),
        (SignsCleanLater, "in step 4 depends on the records beside the noisy sum"),
        (SignsByLoss, "in step 1 depends on the records beside the noisy sum"),
        (SignsButBiases, "there is no noise on 2.bias"),
        (ScaledByClean, "in step 1 depends on the records beside the noisy sum"),
    ],
)
def test_a_leak_that_what_follows_the_noise_hides_is_found(training: type[Plain], words: str) -> None:
    document = audited(training(), trials=10)
    assert document.verdict == "violated", document.verdict_text
    assert words in document.diagnostics.cause


def test_a_function_of_a_sum_that_is_not_known_is_not_judged() -> None:
    document = audited(SignsOfOtherLoss(), trials=10)
    assert document.verdict == "cannot judge", document.verdict_text
    assert "yield the noisy sum before that" in document.verdict_text


def _each(spread: float) -> Tensor:
    return torch.cat([torch.randn(shape).flatten() * spread for shape in SHAPES])


def _in_place(spread: float) -> Tensor:
    return torch.cat([torch.empty(shape).normal_(0, spread).flatten() for shape in SHAPES])


def _at_once(spread: float) -> Tensor:
    return torch.normal(0.0, spread, (9,))


@pytest.mark.parametrize("draw", [_each, _in_place, _at_once])
def test_noise_is_seen_and_shifted_however_it_is_drawn(draw: Callable[[float], Tensor]) -> None:
    step = AppliedStep(torch.zeros(9), torch.zeros(9))

    def run(draws: NoiseDraws) -> Tensor:
        torch.manual_seed(3)
        rows = []
        with draws:
            for _ in range(2):
                torch.randn(5)  # for something else
                rows.append(draw(NOISE * CLIP))
                draws.hear(step)
        return torch.stack(rows)

    draws = NoiseDraws(SHAPES)
    plain = run(draws)
    noise = draws.noise(2)
    assert noise is not None
    torch.testing.assert_close(noise * NOISE * CLIP, plain)
    shifts = torch.arange(18.0).view(2, 9)
    torch.testing.assert_close(run(NoiseDraws(SHAPES, draws, shifts)), plain + NOISE * CLIP * shifts)


def test_noise_that_is_not_drawn_by_torch_is_not_seen() -> None:
    draws = NoiseDraws(SHAPES)
    with draws:
        torch.randn(4)
    assert draws.noise(1) is None
