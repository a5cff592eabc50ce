"""Single runs with one mutation each: the verdict and the words of its cause; correct variants are never violated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.examination.recorded import RunWatcher
from deniable.mechanisms import Adjacency, Training
from deniable.results.run_result import RunResult

RECORDS, RATE, CLIP, STEPS = 300, 0.1, 0.5, 24
Sums = dict[str, Tensor]


class Run:
    """DP-SGD in plain torch, once; the runs below write one of its methods otherwise."""

    steps = STEPS

    def __iter__(self) -> Iterator[list[int]]:
        return (self.batch() for _ in range(self.steps))

    def __len__(self) -> int:
        return self.steps

    def train(self) -> RunResult:
        torch.manual_seed(0)
        self.random = torch.Generator().manual_seed(1)
        features = 1.5 * torch.randn(RECORDS, 8, generator=self.random)
        self.data = TensorDataset(features, torch.randint(0, 3, (RECORDS,), generator=self.random))
        self.model = self.network()
        self.optimizer = torch.optim.SGD(self.trained().values(), lr=0.3)
        loader = DataLoader(self.data, batch_sampler=self)  # type: ignore[arg-type]
        run = dn.watch_run(
            self.model, self.optimizer, loader, clip=CLIP, divisor=RATE * RECORDS, budget=1.0, **self.settings()
        )
        for self.step, (self.x, self.y) in enumerate(loader):
            self.clean = self.total()
            noise = self.noise()
            for name, p in self.trained().items():
                p.grad = (self.clean[name] + noise[name]) / (RATE * RECORDS)
            self.move()
        self.end()
        return self.judge(run)

    def judge(self, run: RunWatcher) -> RunResult:
        found = dn.examine(run, claimed=Training(1.0, RATE, STEPS, Adjacency.ADD_REMOVE))
        assert isinstance(found, RunResult)
        return found

    def settings(self) -> dict[str, Any]:
        return {}

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 3))

    def trained(self) -> dict[str, nn.Parameter]:
        """Those that are trained privately."""
        return dict(self.model.named_parameters())

    def batch(self) -> list[int]:
        return list(torch.nonzero(torch.rand(RECORDS, generator=self.random) < RATE).flatten().tolist())

    def gradients(self) -> Sums:
        def loss(weights: Sums, x: Tensor, y: Tensor) -> Tensor:
            return cross_entropy(functional_call(self.model, weights, (x[None],)), y[None])

        weights = {name: p.detach() for name, p in self.trained().items()}
        found: Sums = vmap(grad(loss), in_dims=(None, 0, 0))(weights, self.x, self.y)
        return found

    def total(self) -> Sums:
        each = self.gradients()
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
        return {name: torch.einsum("r,r...->...", self.factors(norms, name), g) for name, g in each.items()}

    def factors(self, norms: Tensor, _: str) -> Tensor:
        return (CLIP / norms).clamp(max=1)

    def noise(self) -> Sums:
        return {name: CLIP * torch.randn(p.shape, generator=self.random) for name, p in self.trained().items()}

    def move(self) -> None:
        self.optimizer.step()

    def end(self) -> None:
        pass


def check_told(run: Run, verdict: str, words: str) -> None:
    """Its verdict, and a pattern of the sentence that tells why."""
    found = run.train()
    assert found.verdict == verdict, found.verdict_text
    assert re.search(words, found.verdict_text), found.verdict_text


class WithMore(Run):
    """Records that were not drawn are in the sum, with a weight."""

    def more(self) -> tuple[slice, float]:
        raise NotImplementedError

    def total(self) -> Sums:
        now = super().total()
        (some, weight), drawn = self.more(), (self.x, self.y)
        self.x, self.y = self.data.tensors[0][some], self.data.tensors[1][some]
        added = super().total()
        self.x, self.y = drawn
        return {name: g + weight * added[name] for name, g in now.items()}


class HiddenRecord(WithMore):
    """Twice in every step: once in 24 steps would be five standard deviations of the noise."""

    def more(self) -> tuple[slice, float]:
        return slice(17, 18), 2.0


class AllRecords(WithMore):
    def more(self) -> tuple[slice, float]:
        return slice(None), 0.2


class UnequalClasses(Run):
    """Three classes of different sizes, and gradients that are mostly shorter than the clipping norm."""

    def network(self) -> nn.Module:
        labels = self.data.tensors[1]
        labels[labels == 1] = torch.where(torch.arange(int((labels == 1).sum())) % 3 == 0, 1, 0)
        self.data.tensors[0].mul_(0.2)
        return super().network()


class ClassCounts(UnequalClasses):
    def weights(self) -> Tensor:
        return RECORDS / 3 / torch.bincount(self.data.tensors[1])

    def gradients(self) -> Sums:
        return {
            name: torch.einsum("r,r...->r...", self.weights()[self.y], g) for name, g in super().gradients().items()
        }


class NamedCounts(ClassCounts):
    def settings(self) -> dict[str, Any]:
        return {
            "loss": lambda outputs, targets: self.weights()[targets] * cross_entropy(outputs, targets, reduction="none")
        }


class NamedWeights(NamedCounts):
    """Weights that nobody counted."""

    def weights(self) -> Tensor:
        return torch.tensor([1.0, 2.0, 1.5])


class PriorBias(UnequalClasses):
    def network(self) -> nn.Module:
        model = super().network()
        model[2].bias.data = (torch.bincount(self.data.tensors[1]) / RECORDS).log()  # type: ignore[index, union-attr]
        return model


class MeansAsRows(Run):
    def network(self) -> nn.Module:
        model = super().network()
        model[0].weight.data[:2] = self.data.tensors[0][self.data.tensors[1] == 2].mean(0)  # type: ignore[index, operator, union-attr]
        return model


class TrainedBefore(Run):
    def network(self) -> nn.Module:
        model = super().network()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(150):
            optimizer.zero_grad()
            cross_entropy(model(self.data.tensors[0]), self.data.tensors[1]).backward()
            optimizer.step()
        return model


class TrainedInPublic(TrainedBefore):
    """The same, but the user answers for it."""

    def settings(self) -> dict[str, Any]:
        return {"initial": "public"}


class NoNoise(Run):
    def noise(self) -> Sums:
        return {name: 0 * n for name, n in super().noise().items()}


class BareLayer(Run):
    def noise(self) -> Sums:
        return {**super().noise(), "0.weight": torch.zeros(24, 8)}


class SomeSteps(Run):
    def noise(self) -> Sums:
        return {name: n * (self.step % 2) for name, n in super().noise().items()}


class OneSeed(Run):
    """The generator starts anew for every layer, so that layers begin with the same numbers."""

    def noise(self) -> Sums:
        shapes = {name: p.shape for name, p in self.model.named_parameters()}
        return {
            name: CLIP * torch.randn(shape, generator=torch.Generator().manual_seed(100 + self.step))
            for name, shape in shapes.items()
        }


class AcrossTheSum(Run):
    """The noise along the clipped sum is taken away, so that its direction stays."""

    def noise(self) -> Sums:
        noise = super().noise()
        along = sum(float((noise[name] * g).sum()) for name, g in self.clean.items())
        share = along / sum(float(g.square().sum()) for g in self.clean.values())
        return {name: n - share * self.clean[name] for name, n in noise.items()}


class AcrossTheRecords(Run):
    """Likewise along every record's own gradient."""

    def noise(self) -> Sums:
        noise, each = super().noise(), self.gradients()
        basis = torch.linalg.qr(torch.cat([g.flatten(1) for g in each.values()], 1).T)[0]
        flat = torch.cat([noise[name].flatten() for name in each])
        left = flat - basis @ (basis.T @ flat) + 0.1 * basis @ torch.randn(basis.shape[1], generator=self.random)
        parts = left.split([noise[name].numel() for name in each])
        return {name: part.view_as(noise[name]) for name, part in zip(each, parts, strict=True)}


class ByValue(Run):
    def total(self) -> Sums:
        return {name: g.clamp(-CLIP, CLIP).sum(0) for name, g in self.gradients().items()}


class OneClassMore(Run):
    """Clipped gradients of one class count three times: they are like those of its records that were not drawn."""

    def factors(self, norms: Tensor, _: str) -> Tensor:
        return super().factors(norms, _) * torch.where(self.y == 2, 3.0, 1.0)


class ScaledLoss(Run):
    """The loss is divided by a public number before its gradients are clipped."""

    def network(self) -> nn.Module:
        self.data.tensors[0].mul_(2)
        self.data.tensors[1].clamp_(max=1)
        return super().network()

    def gradients(self) -> Sums:
        return {name: g / 8 for name, g in super().gradients().items()}


class DampedMomentum(Run):
    """A running mean of the clipped sums: a record that is drawn once moves all steps together by .58 C."""

    mean: Sums

    def total(self) -> Sums:
        now = super().total()
        self.mean = {name: 0.5 * g + 0.5 * self.mean[name] for name, g in now.items()} if self.step else now
        return self.mean


class ClassBatches(Run):
    """Every batch has records of one class, drawn independently."""

    def batch(self) -> list[int]:
        self.number = getattr(self, "number", -1) + 1
        of_class = self.data.tensors[1] == self.number % 3
        drawn = of_class & (torch.rand(RECORDS, generator=self.random) < RATE * RECORDS / of_class.sum())
        return list(torch.nonzero(drawn).flatten().tolist())


class LargerNorm(Run):
    """Clipped at six times the claimed norm; the noise is that of the claimed one."""

    def factors(self, norms: Tensor, _: str) -> Tensor:
        return (6 * CLIP / norms).clamp(max=1)


class LargerNormAndNoise(LargerNorm):
    def noise(self) -> Sums:
        return {name: 6 * n for name, n in super().noise().items()}


class NoiseAlone(Run):
    """No gradient at all: nothing is more private."""

    def total(self) -> Sums:
        return {name: 0 * g for name, g in super().total().items()}


class Ascent(Run):
    """The gradient with its sign turned."""

    def total(self) -> Sums:
        return {name: -g for name, g in super().total().items()}


class Cosine(Run):
    """A schedule of a user's own, one step late, as the loss falls."""

    def move(self) -> None:
        super().move()
        self.optimizer.param_groups[0]["lr"] = 0.15 * (1 + math.cos(math.pi * self.step / self.steps))


class RootOfSize(Run):
    def noise(self) -> Sums:
        return {name: n * (len(self.x) / (RATE * RECORDS)) ** 0.5 for name, n in super().noise().items()}


class Uniform(Run):
    def noise(self) -> Sums:
        return {name: CLIP * 3**0.5 * (2 * torch.rand(n.shape) - 1) for name, n in super().noise().items()}


class BareGradientOfLayer(Run):
    def factors(self, norms: Tensor, name: str) -> Tensor:
        return torch.ones_like(norms) if name == "2.weight" else super().factors(norms, name)


class EachLayer(Run):
    def total(self) -> Sums:
        each = {name: (g, g.flatten(1).norm(dim=1)) for name, g in self.gradients().items()}
        return {name: torch.einsum("r,r...->...", (CLIP / n).clamp(max=1), g) for name, (g, n) in each.items()}


class SparseNoise(Run):
    """The same third of the weights never gets any."""

    def noise(self) -> Sums:
        kept = torch.Generator().manual_seed(5)
        return {name: n * (torch.rand(n.shape, generator=kept) > 1 / 3) for name, n in super().noise().items()}


class OneNumberARow(Run):
    def noise(self) -> Sums:
        return {name: n[..., :1].expand(n.shape) if n.dim() > 1 else n for name, n in super().noise().items()}


class CutNoise(Run):
    def noise(self) -> Sums:
        return {name: n.clamp(-1.5 * CLIP, 1.5 * CLIP) for name, n in super().noise().items()}


class AfterNoise(Run):
    """Something is done to the noisy gradient, which is as safe."""

    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        raise NotImplementedError

    def move(self) -> None:
        found = self.after([p.grad for p in self.model.parameters() if p.grad is not None])
        for p, g in zip(self.model.parameters(), found, strict=True):
            p.grad = g
        super().move()


class Accumulated(AfterNoise):
    """Momentum of the noisy gradient, by hand."""

    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        before = getattr(self, "kept", [torch.zeros_like(g) for g in gradients])
        self.kept = [0.9 * b + g for b, g in zip(before, gradients, strict=True)]
        return [k.clone() for k in self.kept]


class LittleAccumulated(Accumulated):
    """Sums of half the noise have about as much as claimed."""

    def noise(self) -> Sums:
        return {name: n / 2 for name, n in super().noise().items()}


class ScaledLayers(AfterNoise):
    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        return [g * (0.5 + 0.4 * at) for at, g in enumerate(gradients)]


class LargerSignal(Run):
    """Features of one sign and few classes: the clipped sums are long beside the noise."""

    def network(self) -> nn.Module:
        self.data.tensors[0].abs_()
        self.data.tensors[1].clamp_(max=1)
        return super().network()


class ClippedAgain(AfterNoise):
    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        length = torch.cat([g.flatten() for g in gradients]).norm()
        return [g * (0.25 / length).clamp(max=1) for g in gradients]


class Halved(AfterNoise):
    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        return [g / 2 for g in gradients]


class ScaledSignal(ScaledLayers, LargerSignal):
    pass


class CutOffAfter(AfterNoise):
    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        most = 2 * CLIP / (RATE * RECORDS)
        return [g.clamp(-most, most) for g in gradients]


class LeftOutAfter(AfterNoise):
    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        least = torch.cat([g.flatten() for g in gradients]).abs().quantile(0.4)
        return [g * (g.abs() >= least) for g in gradients]


class CentredAfter(AfterNoise):
    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        return [g - g.mean(1, keepdim=True) if g.dim() > 1 else g for g in gradients]


class LeftOutByClean(AfterNoise):
    """The same, but the clean gradient chooses."""

    def after(self, gradients: list[Tensor]) -> list[Tensor]:
        least = torch.cat([g.flatten() for g in self.clean.values()]).abs().quantile(0.4)
        return [g * (c.abs() >= least) for g, c in zip(gradients, self.clean.values(), strict=True)]


class LittleAndClipped(ClippedAgain):
    """Clipping after the noise does not hide that there is half of it."""

    def noise(self) -> Sums:
        return {name: n / 2 for name, n in super().noise().items()}


class EarlierWeights(Run):
    """Of step 10, as the best of all steps would be."""

    def move(self) -> None:
        if self.step == 9:
            self.kept = [p.detach().clone() for p in self.model.parameters()]
        super().move()

    def end(self) -> None:
        with torch.no_grad():
            for p, kept in zip(self.model.parameters(), self.kept, strict=True):
                p.copy_(kept)


class TurnedRecords(Run):
    """Every record's sign is drawn at random: an augmentation that cannot be recomputed."""

    def gradients(self) -> Sums:
        self.x = self.x * torch.where(torch.rand(len(self.x), 1, generator=self.random) < 0.5, -1.0, 1.0)
        return super().gradients()


class HalfTheSum(Run):
    """As of weights of records that depend on the batch: what else is in it is not seen."""

    def total(self) -> Sums:
        return {name: 0.5 * g for name, g in super().total().items()}


class FewWeights(Run):
    """Known gradients nearly fill the space of so few."""

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 3, bias=False), nn.Flatten())


class LeftUpToFive(Run):
    """Gradients of up to five norms are left as they are."""

    def factors(self, norms: Tensor, _: str) -> Tensor:
        return torch.where(norms > 5 * CLIP, CLIP / norms, torch.ones_like(norms))


class OneClassBare(Run):
    def factors(self, norms: Tensor, name: str) -> Tensor:
        return torch.where(self.y == 2, torch.ones_like(norms), super().factors(norms, name))


class RareClasses(Run):
    def factors(self, norms: Tensor, name: str) -> Tensor:
        weights = 1 / torch.bincount(self.y, minlength=3)[self.y]
        return super().factors(norms, name) * weights / weights.mean()


class LessTheMean(Run):
    def gradients(self) -> Sums:
        return {name: g - g.mean(0) for name, g in super().gradients().items()}


class OtherInputs(Run):
    """The loop changes the features before the model sees them."""

    def change(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def gradients(self) -> Sums:
        self.x = self.change(self.x)
        return super().gradients()


class OwnScale(OtherInputs):
    def change(self, x: Tensor) -> Tensor:
        every = self.data.tensors[0]
        return (x - every.mean(0)) / every.std(0)


class OwnComponents(OtherInputs):
    def change(self, x: Tensor) -> Tensor:
        every = self.data.tensors[0]
        axes = torch.linalg.svd(every - every.mean(0), full_matrices=False)[2][:4]
        return x @ axes.T @ axes


class ScaleOfBatch(OtherInputs):
    def change(self, x: Tensor) -> Tensor:
        return (x - x.mean(0)) / x.std(0)


class Mixed(OtherInputs):
    def change(self, x: Tensor) -> Tensor:
        return 0.7 * x + 0.3 * x.roll(1, 0)


class PublicScale(OtherInputs):
    def change(self, x: Tensor) -> Tensor:
        return (x - 0.1) / 2


class HalfPrecision(OtherInputs):
    def change(self, x: Tensor) -> Tensor:
        return x.bfloat16().float()


class CleanShadow(Run):
    """Released: weights that have moved by the clipped sums alone."""

    def move(self) -> None:
        super().move()
        self.shadow = getattr(self, "shadow", None) or [p.detach().clone() for p in self.model.parameters()]
        for weight, clean in zip(self.shadow, self.clean.values(), strict=True):
            weight.sub_(0.3 * clean / (RATE * RECORDS))

    def end(self) -> None:
        with torch.no_grad():
            for p, weight in zip(self.model.parameters(), self.shadow, strict=True):
                p.copy_(weight)


class SumClipped(Run):
    def total(self) -> Sums:
        sums = {name: g.sum(0) for name, g in self.gradients().items()}
        length = torch.stack([s.norm() for s in sums.values()]).norm()
        return {name: s * (5 * CLIP / length).clamp(max=1) for name, s in sums.items()}


class MeanClipped(LargerSignal):
    """The batch's mean gradient is, where it is longer than a norm: never."""

    most = 10 * CLIP

    def total(self) -> Sums:
        means = {name: g.mean(0) for name, g in self.gradients().items()}
        length = torch.stack([s.norm() for s in means.values()]).norm()
        return {name: RATE * RECORDS * s * (self.most / length).clamp(max=1) for name, s in means.items()}


class MeanClippedOften(MeanClipped):
    most = CLIP


class CleanMomentum(Run):
    def total(self) -> Sums:
        now = super().total()
        self.kept = {name: 0.9 * self.kept[name] + g for name, g in now.items()} if self.step else now
        return self.kept


class OneRecordAlways(Run):
    def batch(self) -> list[int]:
        return sorted({7, *super().batch()})


class SameBatch(Run):
    def batch(self) -> list[int]:
        self.first = getattr(self, "first", None) or super().batch()
        return self.first


class BatchNormed(Run):
    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.Tanh(), nn.Linear(24, 3))

    def total(self) -> Sums:
        parameters = dict(self.model.named_parameters())
        found = torch.autograd.grad(cross_entropy(self.model(self.x), self.y), list(parameters.values()))
        return dict(zip(parameters, found, strict=True))


class RateByLoss(Run):
    def move(self) -> None:
        with torch.no_grad():
            self.optimizer.param_groups[0]["lr"] = 0.2 * float(cross_entropy(self.model(self.x), self.y))
        super().move()


class RateByAllRecords(Run):
    def move(self) -> None:
        with torch.no_grad():
            self.optimizer.param_groups[0]["lr"] = 0.2 * float(
                cross_entropy(self.model(self.data.tensors[0]), self.data.tensors[1])
            )
        super().move()


class RateBySmoothLoss(Run):
    def move(self) -> None:
        with torch.no_grad():
            now = float(cross_entropy(self.model(self.x), self.y))
        self.mean = 0.8 * getattr(self, "mean", now) + 0.2 * now
        self.optimizer.param_groups[0]["lr"] = 0.2 * self.mean
        super().move()


class RateByNoisyLength(Run):
    """The applied gradient is released, so that a rate may follow it."""

    def move(self) -> None:
        length = torch.cat([p.grad.flatten() for p in self.model.parameters() if p.grad is not None]).norm()
        self.optimizer.param_groups[0]["lr"] = float(0.1 / length)
        super().move()


class Milestones(Run):
    def settings(self) -> dict[str, Any]:
        self.plan = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [3, 11, 12, 20], gamma=0.7)
        return {}

    def move(self) -> None:
        super().move()
        self.plan.step()


class Waits(Run):
    """The rate falls whenever the loss of all records was no better."""

    def move(self) -> None:
        if self.step == 0:
            self.plan = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, factor=0.9, patience=0)
        with torch.no_grad():
            self.plan.step(float(cross_entropy(self.model(self.data.tensors[0]), self.data.tensors[1])))
        super().move()


class NoiseByLoss(Run):
    def noise(self) -> Sums:
        with torch.no_grad():
            loss = float(cross_entropy(self.model(self.x), self.y))
        return {name: n * (0.9 * loss) ** 4 for name, n in super().noise().items()}


class CleanMoves(Run):
    def move(self) -> None:
        before = [p.detach().clone() for p in self.model.parameters()]
        super().move()
        with torch.no_grad():
            for p, old, clean in zip(self.model.parameters(), before, self.clean.values(), strict=True):
                p.copy_(old - 0.3 * clean / (RATE * RECORDS))


class MoreSteps(Run):
    steps = STEPS + 4


class Averaged(Run):
    """The final weights are the average of the last ones: post-processing."""

    def move(self) -> None:
        super().move()
        self.kept = [*getattr(self, "kept", []), [p.detach().clone() for p in self.model.parameters()]]

    def end(self) -> None:
        with torch.no_grad():
            for p, *last in zip(self.model.parameters(), *self.kept[-5:], strict=True):
                p.copy_(torch.stack(last).mean(0))


class Schedule(Run):
    def move(self) -> None:
        self.optimizer.param_groups[0]["lr"] = 0.3 * 0.9**self.step
        super().move()


class BiasesAsTheyAre(LargerSignal):
    def factors(self, norms: Tensor, name: str) -> Tensor:
        return torch.ones_like(norms) if name.endswith("bias") else super().factors(norms, name)


class Decay(Run):
    """Weight decay in the noisy gradient, by hand."""

    def noise(self) -> Sums:
        weights = dict(self.model.named_parameters())
        return {name: n + 2 * weights[name].detach() for name, n in super().noise().items()}


@pytest.mark.parametrize(
    ("mutation", "cause"),
    [
        (NoNoise, "there is no noise"),
        (BiasesAsTheyAre, "gradients of 0.bias, 2.bias are not clipped, those of other layers are"),
        (BareLayer, "no noise on 0.weight"),
        (SomeSteps, "no noise in 12 of 24 steps, first in step 1"),
        (OneSeed, "same number of noise is on several weights"),
        (AcrossTheSum, "along the clipped sum the noise has only"),
        (AcrossTheRecords, "along the records' gradients the noise has only 0.[12]"),
        (ByValue, "every number of a gradient is clipped on its own"),
        (ClassBatches, "records are drawn together"),
        (LargerNorm, "clipped at (5.9|6|6.1) x the clipping norm, with too little noise"),
        (OneClassMore, "some record's share is above"),
        (RootOfSize, "root of the batch's own size"),
        (Uniform, "not Gaussian: it looks cut off or uniform"),
        (SparseNoise, "no noise on about 3.% of the weights"),
        (OneNumberARow, "same number of noise is on several weights"),
        (CutNoise, "not Gaussian: it is cut off"),
        (LeftOutByClean, "gradient without noise is largest are kept"),
        (LittleAccumulated, "noise of a step itself has 0.5.* x the claimed standard deviation"),
        (LittleAndClipped, "too little noise|x the claimed standard deviation"),
        (BareGradientOfLayer, "gradients of 2.weight are not clipped"),
        (EachLayer, "every layer is clipped on its own to the whole norm"),
        (SumClipped, "summed or mean gradient is clipped"),
        (MeanClipped, "the batch's mean gradient is applied, not each record's clipped one"),
        (MeanClippedOften, "summed or mean gradient is clipped"),
        (LeftUpToFive, "gradients of up to 5 x the clipping norm are not clipped"),
        (OneClassBare, "not all of them: some record's share is above"),
        (RareClasses, "weighted by how rare their class is in the batch"),
        (LessTheMean, "mean gradient is taken from every record's before it is clipped"),
        (OwnScale, "scaled by statistics of all records"),
        (OwnComponents, "principal components of all records"),
        (ScaleOfBatch, "scaled by statistics of their batch"),
        (Mixed, "mixtures of two records"),
        (CleanShadow, "final weights are made of the steps' clipped sums without noise"),
        (CleanMomentum, "clipped sums of earlier steps are in it without their noise"),
        (OneRecordAlways, "at least 1 record is drawn more often than others, one in 24 of 24"),
        (SameBatch, "records are in every batch, the others in none"),
        (BatchNormed, "BatchNorm1d.* mixes the records"),
        (RateByLoss, "learning rate follows the loss of its batch"),
        (RateByAllRecords, "learning rate follows the loss of all records"),
        (RateBySmoothLoss, "learning rate follows the loss of its batch"),
        (Waits, "falls whenever the loss of all records was no better for 1 step,"),
        (NoiseByLoss, "noise changes from step to step.* it follows the loss of its batch"),
        (HiddenRecord, "a record is in steps that did not draw it .*record 17"),
        (AllRecords, "the gradient of all records, not only of those that were drawn"),
        (ClassCounts, "classes are weighted by how rare they are among all records"),
        (NamedCounts, "the named loss weights classes by how rare they are"),
        (PriorBias, "initial weights is the logarithm of the classes' shares"),
        (MeansAsRows, "rows of the initial weights are means"),
        (CleanMoves, "weights move by the gradient without its noise"),
        (MoreSteps, "28 steps were taken in place of 24"),
    ],
)
def test_a_mutation_is_violated_with_its_cause(mutation: Callable[[], Run], cause: str) -> None:
    check_told(mutation(), "violated", cause)


@pytest.mark.parametrize(
    ("variant", "verdict"),
    [
        (Run, "consistent"),
        (Averaged, "consistent"),
        (Schedule, "consistent"),
        (Cosine, "consistent"),
        (ScaledLoss, "other recipe"),
        (LargerNormAndNoise, "other recipe"),
        (Decay, "other recipe"),
        (NamedWeights, "consistent"),
        (Accumulated, "other recipe"),
        (ScaledSignal, "cannot judge"),
        (TrainedInPublic, "consistent"),
        (RateByNoisyLength, "consistent"),
        (Milestones, "consistent"),
        (TrainedBefore, "cannot judge"),
        (FewWeights, "consistent"),
        (HalfPrecision, "consistent"),
        (TurnedRecords, "cannot judge"),
        (PublicScale, "cannot judge"),
        (HalfTheSum, "cannot judge"),
        (ClippedAgain, "other recipe"),
        (Halved, "other recipe"),
        (CutOffAfter, "cannot judge"),
        (LeftOutAfter, "cannot judge"),
        (CentredAfter, "cannot judge"),
        (EarlierWeights, "cannot judge"),
        (DampedMomentum, "cannot judge"),
        (NoiseAlone, "cannot judge"),
        (Ascent, "cannot judge"),
    ],
)
def test_a_correct_variant_is_not_violated(variant: Callable[[], Run], verdict: str) -> None:
    found = variant().train()
    assert found.verdict == verdict, found.verdict_text
    assert found.verdict != "consistent" or all(what in found.verdict_text for what in found.not_shown)
