"""Records that may change nothing: what a training does with them after their step shows in twins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import deniable as dn
from deniable.examination import AppliedStep, Records, Released
from deniable.examination.claim import RecipeTraining
from deniable.examination.examination_game import Examination, twins_of
from deniable.examination.step_listeners import HandedGradients, LaterRecords, train_and_listen
from deniable.examination.twins.handed_twins import follows_gradients_alone
from deniable.examination.twins.idle_records import later_difference
from deniable.examination.twins.probes import probe_later_steps
from deniable.examination.twins.twin_differences import different_values
from deniable.examination.twins.twins import Twins
from deniable.training import Neighbours
from deniable.training.networks.losses import loss_function

RECORDS, FEATURES, CLASSES, STEPS, NOISE = 12, 6, 3, 5, 1.5
Weights = list[nn.Parameter]


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 7), nn.ReLU(), nn.Linear(7, CLASSES))


class Loop:
    """DP-SGD on all records, in plain torch."""

    lr = 0.5

    def __call__(self, records: Records, seed: int) -> Iterator[AppliedStep | Released]:
        torch.manual_seed(seed)
        self.records, self.model, self.least = records, net(), 1e9
        self.norms = self.lengths(self.gradients())
        for self.step in range(STEPS):
            each = self.gradients()
            factors = (1 / self.clipped_by(self.lengths(each))).clamp(max=1)
            self.clean = [torch.einsum("n,n...->...", factors, g) for g in each]
            noisy = [c + NOISE * torch.randn(c.shape) for c in self.clean]
            yield AppliedStep(self.model, noisy)
            with torch.no_grad():
                self.move([z / RECORDS for z in noisy], list(self.model.parameters()))
            if self.stops():
                break
        yield self.release()

    def gradients(self) -> list[Tensor]:
        weights = list(self.model.parameters())
        losses = cross_entropy(self.model(self.records.features), self.records.labels, reduction="none")
        every = [torch.autograd.grad(one, weights, retain_graph=True) for one in losses]
        return [torch.stack(layer) for layer in zip(*every, strict=True)]

    def lengths(self, each: list[Tensor]) -> Tensor:
        norms: Tensor = torch.cat([g.flatten(1) for g in each], 1).norm(dim=1)
        return norms

    def clipped_by(self, norms: Tensor) -> Tensor:
        return norms

    def loss(self) -> float:
        with torch.no_grad():
            return float(cross_entropy(self.model(self.records.features), self.records.labels))

    def move(self, noisy: list[Tensor], weights: Weights) -> None:
        for weight, gradient in zip(weights, noisy, strict=True):
            weight.sub_(self.lr * gradient)

    def stops(self) -> bool:
        return False

    def release(self) -> Released:
        return Released(self.model)


class Calibrated(Loop):
    def release(self) -> Released:
        *others, bias = [p.detach() for p in self.model.parameters()]
        return Released([*others, bias + torch.bincount(self.records.labels, minlength=CLASSES)])


class Accuracy(Loop):
    def release(self) -> Released:
        right = self.model(self.records.features).argmax(1) == self.records.labels
        return Released(self.model, {"accuracy": float(right.float().mean())})


class NeverReached(Loop):
    """The loss that ends it is so low that none of these trainings reaches it."""

    def stops(self) -> bool:
        return self.loss() < 0.05


class WithinLimits(Loop):
    """Weights are kept within limits that the records set."""

    def move(self, noisy: list[Tensor], weights: Weights) -> None:
        super().move(noisy, weights)
        for weight in weights:
            weight.clamp_(max=float(self.records.features.abs().mean()) / 10)


class Plateau(Loop):
    def move(self, noisy: list[Tensor], weights: Weights) -> None:
        self.lr = 0.1 if self.loss() > self.least else self.lr
        self.least = min(self.least, self.loss())
        super().move(noisy, weights)


class StaleNorms(Loop):
    """Norms are taken before the first step, and never again."""

    def clipped_by(self, norms: Tensor) -> Tensor:
        return self.norms


class CleanLayerNorms(Loop):
    """Layer-wise rates by the length of the clean gradient."""

    def scales(self, noisy: list[Tensor]) -> list[Tensor]:
        return [RECORDS / (1 + c.norm()) for c in self.clean]

    def move(self, noisy: list[Tensor], weights: Weights) -> None:
        scaled = [scale * z for scale, z in zip(self.scales(noisy), noisy, strict=True)]
        super().move(scaled, weights)


class NoisyLayerNorms(CleanLayerNorms):
    def scales(self, noisy: list[Tensor]) -> list[Tensor]:
        return [1 / (0.1 + z.norm()) for z in noisy]


def twins(trainer: Callable[[Records, int], Iterator[AppliedStep | Released]]) -> Twins:
    generator = np.random.default_rng(3)
    records = 1.5 * generator.normal(size=(RECORDS, FEATURES)).astype(np.float32)
    neighbours = Neighbours.of(records, generator.integers(0, CLASSES, RECORDS), 4)
    claim = RecipeTraining.from_mechanism(dn.Gaussian(NOISE).composed(STEPS), 1.0, "add-remove")
    return twins_of(Examination(trainer, claim, net, loss_function("cross-entropy"), neighbours, 10, 5))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Loop, ""),
        (StaleNorms, ""),
        (Calibrated, "final weights"),
        (Accuracy, "made known"),
        (NeverReached, "number of steps"),
        (Plateau, "decide on its rate"),
    ],
)
def test_records_that_change_after_their_step_change_nothing(kind: type[Loop], words: str) -> None:
    found = later_difference(twins(kind()))
    assert (words in found) if words else not found


def test_records_are_overwritten_after_so_many_steps() -> None:
    given, later = (Records(torch.full((1, 1), value), torch.zeros(1, dtype=torch.int64)) for value in (1.0, 2.0))

    def train(records: Records, seed: int) -> Iterator[AppliedStep | Released]:
        for _ in range(3):
            yield AppliedStep([records.features], [torch.zeros(1, 1)])
        yield Released([records.features])

    steps = list(train_and_listen(train, given, 0, [LaterRecords(given, later, 2)]))
    assert [float(step.weights[0]) for step in steps] == [1.0, 1.0, 2.0, 2.0]


def test_gradients_are_handed_to_a_training_in_its_own_memory() -> None:
    def train(records: Records, seed: int) -> Iterator[AppliedStep | Released]:
        weights = torch.zeros(2)
        for _ in range(2):
            gradient = records.features.sum() * torch.ones(2)
            yield AppliedStep([weights], [gradient])
            weights = weights - gradient
        yield Released([weights])

    handed, labels = HandedGradients(), torch.zeros(1, dtype=torch.int64)
    one, two = (Records(torch.full((1, 1), value), labels) for value in (1.0, 5.0))
    *_, first = train_and_listen(train, one, 0, [handed])
    *_, second = train_and_listen(train, two, 0, [handed.hand_over()])
    assert torch.equal(first.weights[0], second.weights[0])
    assert float(first.weights[0][0]) == -2.0


@pytest.mark.parametrize(
    ("kind", "alone"),
    [(Loop, True), (NoisyLayerNorms, True), (Calibrated, False), (CleanLayerNorms, False), (WithinLimits, False)],
)
def test_twins_with_the_same_gradients_take_the_same_way(kind: type[Loop], alone: bool) -> None:
    assert follows_gradients_alone(twins(kind())) == alone


def test_a_share_is_measured_in_later_steps_of_full_batches() -> None:
    (step, usual), (same, stale) = (next(probe_later_steps(twins(kind()))) for kind in (Loop, StaleNorms))
    assert step == same == 1
    assert usual.reach < 1.01
    assert stale.reach > 2


@pytest.mark.parametrize(("kind", "leaks"), [(CleanLayerNorms, True), (NoisyLayerNorms, False)])
def test_layers_rates_may_follow_the_noisy_gradient_alone(kind: type[Loop], leaks: bool) -> None:
    found = [different_values(*pair, "the records") for pair in twins(kind()).exchanged_pairs]
    assert any("learning rate" in one for one in found) == leaks
