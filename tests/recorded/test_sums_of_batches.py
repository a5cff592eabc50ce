"""Sums in which one record's share depends on others of its batch: told as that; fixed factors stay as safe."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from deniable.examination.recorded.gradients.chosen_records import _gains
from deniable.examination.recorded.gradients.record_shares import RecordGradients
from deniable.examination.recorded.gradients.ways_to_sum import WAYS_TO_SUM, products_of_ways
from tests.recorded.test_run_mutations import CLIP, LargerSignal, Run, ScaledLoss, Sums, check_told


class LongGradients(LargerSignal):
    """Of three classes, some features longer than others: gradients of unlike lengths."""

    def network(self) -> torch.nn.Module:
        self.data.tensors[0].abs_().mul_(torch.rand(len(self.data), 1, generator=self.random) * 3)
        return Run.network(self)


class OverTheLongest(LargerSignal):
    """One factor for the whole batch, by which a rare long gradient shortens all others."""

    def network(self) -> torch.nn.Module:
        found = super().network()
        self.data.tensors[0].mul_(torch.where(torch.rand(len(self.data), 1, generator=self.random) < 0.03, 2.0, 0.3))
        return found

    def factors(self, norms: Tensor, _: str) -> Tensor:
        return torch.full_like(norms, CLIP / float(norms.max()))


class AtTheMedian(LongGradients):
    """Clipped at a norm that the batch makes."""

    def factors(self, norms: Tensor, _: str) -> Tensor:
        return (norms.median() / norms).clamp(max=1)


class ByLargestEntry(LongGradients):
    """Clipped by another norm than the Euclidean one."""

    def norms(self, each: Sums) -> Tensor:
        return torch.cat([g.flatten(1).abs() for g in each.values()], dim=1).amax(1)

    def total(self) -> Sums:
        each = self.gradients()
        factors = (CLIP / self.norms(each)).clamp(max=1)
        return {name: torch.einsum("r,r...->...", factors, g) for name, g in each.items()}


class BySumOfSizes(ByLargestEntry):
    """Every gradient is shorter than it need be."""

    def norms(self, each: Sums) -> Tensor:
        return torch.cat([g.flatten(1).abs() for g in each.values()], dim=1).sum(1)


class OtherFactors(LongGradients):
    """A factor of every step that follows nothing of the records."""

    def factors(self, norms: Tensor, name: str) -> Tensor:
        limits = CLIP / norms
        return limits.clamp(max=(0.05, 0.4)[self.step % 2])


class NotCleared(Run):
    """Gradients add up from record to record, and each sum is clipped."""

    def total(self) -> Sums:
        each = self.gradients()
        kept = {name: torch.zeros_like(g[0]) for name, g in each.items()}
        found = {name: torch.zeros_like(g[0]) for name, g in each.items()}
        for record in range(len(self.x)):
            kept = {name: one + each[name][record] for name, one in kept.items()}
            norm = torch.stack([g.norm() for g in kept.values()]).norm()
            kept = {name: one * (CLIP / norm).clamp(max=1) for name, one in kept.items()}
            found = {name: one + kept[name] for name, one in found.items()}
        return found


class HardestHalf(LargerSignal):
    """Only the records of the batch with the highest losses."""

    def chosen(self, losses: Tensor) -> Tensor:
        return losses.argsort(descending=True).argsort() < len(losses) // 2

    def factors(self, norms: Tensor, name: str) -> Tensor:
        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(self.model(self.x), self.y, reduction="none")
        return super().factors(norms, name) * self.chosen(losses)


class TenEasiest(HardestHalf):
    def chosen(self, losses: Tensor) -> Tensor:
        return losses.argsort().argsort() < 10


class HardByItself(HardestHalf):
    """A record counts by its own loss, whatever the others' are."""

    def chosen(self, losses: Tensor) -> Tensor:
        return losses > 0.6


class MonitoringLeft(Run):
    """In every fourth step the gradient of a few other records, computed to look at it, is left in what is applied."""

    def total(self) -> Sums:
        now = super().total()
        if self.step % 4 == 3:
            x, y = (part[:40] for part in self.data.tensors)
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
            left = torch.autograd.grad(loss, list(self.model.parameters()))
            now = {name: g + 60 * more for (name, g), more in zip(now.items(), left, strict=True)}
        return now


@pytest.mark.parametrize(
    ("mutation", "verdict", "words"),
    [
        (HardestHalf, "violated", "highest losses count .about 50% of them.* depends on the others"),
        (TenEasiest, "violated", "lowest losses count .10 of them.* depends on the others"),
        (MonitoringLeft, "cannot judge", "in 6 of 24 steps, the first is step 4, .* in the others it is that"),
        (HardByItself, "cannot judge", "name the loss that is trained on"),
        (OverTheLongest, "violated", "over their longest norm, so that one record's share depends on other records"),
        (AtTheMedian, "violated", "gradients of a batch are clipped at their median norm"),
        (ByLargestEntry, "violated", "clipped by their largest entry in place of their Euclidean norm"),
        (BySumOfSizes, "cannot judge", "the sum is 0.0.* x the clipped one"),
        (NotCleared, "violated", "gradients are not cleared between records"),
        (OtherFactors, "cannot judge", "by another factor in every step|name the loss that is trained on"),
        (ScaledLoss, "other recipe", "which is as safe"),
    ],
)
def test_sums_that_depend_on_the_batch_are_named(mutation: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(mutation(), verdict, words)


def test_chosen_records_gain_what_their_sums_do() -> None:
    """Beside a plain loop: how much nearer the residual is to each sum than to that of all records."""
    values, figure, residual = torch.randn(7, 20).double(), torch.rand(7), torch.randn(20).double()
    gains = _gains(figure, values @ residual, values @ values.T)
    order = sorted(range(7), key=lambda record: -float(figure[record]))
    for count, gained in enumerate(gains):
        more = -sum((values[record] for record in order[count:]), torch.zeros(20).double())
        assert gained == pytest.approx(float(2 * more @ residual - more @ more), abs=1e-9)


def test_ways_have_the_products_of_their_sums() -> None:
    """Beside plain loops over the records."""
    values, residual = 2 * torch.randn(9, 40), torch.randn(40).double()
    values *= torch.rand(9, 1)
    norms, losses, clip = values.norm(dim=1), torch.rand(9), 1.5
    given = RecordGradients(values, None, norms, norms[None], (), losses)
    products = dict(zip(WAYS_TO_SUM, products_of_ways(given, residual, clip, [None] * 9), strict=True))
    clean = sum(v * min(1.0, clip / float(v.norm())) for v in values)
    kept, whole, by_kept, by_whole = torch.zeros(40), torch.zeros(40), torch.zeros(40), torch.zeros(40)
    for v in values:
        kept, whole = kept + v, whole + v
        kept = kept * min(1.0, clip / float(kept.norm()))
        by_kept, by_whole = by_kept + kept, by_whole + whole * min(1.0, clip / float(whole.norm()))
    lengths = [float(v.norm()) for v in values]
    weights = losses / losses.mean()
    naive = {
        "over the longest": sum(v * clip / max(lengths) for v in values),
        "shortened over the mean": sum(v * min(1.0, clip / (sum(lengths) / 9)) for v in values),
        "clipped at the median": sum(v * min(1.0, sorted(lengths)[4] / float(v.norm())) for v in values),
        "clipped, over the median": sum(v * min(clip / sorted(lengths)[4], clip / float(v.norm())) for v in values),
        "by loss": sum(v * min(1.0, clip / float(v.norm())) * w for v, w in zip(values, weights, strict=True)),
        "largest entry": sum(v * min(1.0, clip / float(v.abs().max())) for v in values),
        "added up and clipped": by_kept,
        "added up": by_whole,
    }
    for name, total in naive.items():
        more = total - clean
        assert products[name] == pytest.approx(
            (float(more.double() @ residual), float(more @ more)), rel=2e-3, abs=1e-3
        )
