"""A small DP-SGD of our own with switches to break it, and Opacus loops: trainings for the audit to examine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from deniable.examination import AppliedStep, Records, watch_opacus


def small() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 10))


def with_batch_norm() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 10))


@dataclass(frozen=True)
class Broken:
    """DP-SGD on digits; `fault` names what is wrong with it, "" nothing."""

    fault: str = ""
    sigma: float = 3.0
    clip: float = 1.0
    steps: int = 10
    rate: float = 1.0
    lr: float = 0.5
    expected: int = 40
    """Records, for the divisor: a number that does not depend on the data set."""

    def __call__(self, records: Records, seed: int) -> Iterator[AppliedStep]:
        generator = torch.Generator().manual_seed(0 if self.fault == "one seed" else seed)
        torch.manual_seed(seed)
        model = small()
        weights = {name: p.detach().clone() for name, p in model.named_parameters()}
        x, y = records
        before: list[Tensor] = []
        once = [torch.randn(w.shape, generator=generator) for w in weights.values()]
        order = torch.randperm(len(x), generator=generator)
        fixed = torch.rand(len(x), generator=generator) < self.rate
        for step in range(self.steps * (2 if self.fault == "twice the steps" else 1)):
            batch = self.draw(len(x), step, order, fixed, generator)
            used = torch.arange(len(x)) if self.fault == "secretly all" else batch
            each = self.gradients(list(weights.values()), x[used], y[used], len(batch))
            total = self.total(each, used)
            noise = self.noise(step, list(weights.values()), once, generator, seed=seed, size=max(1, len(batch)))
            summed = [t + n for t, n in zip(total, noise, strict=True)]
            if self.fault in ("momentum", "accumulated") and before:
                factor = 0.9 if self.fault == "momentum" else 1.0
                summed = [s + factor * b for s, b in zip(summed, before, strict=True)]
            before = summed
            count = max(1.0, self.rate * self.expected)
            told = None if self.rate == 1 and self.fault != "sampled" else batch
            if self.fault == "mean without divisor":
                yield AppliedStep(weights, [s / count for s in summed])
            else:
                yield AppliedStep(weights, [s / count for s in summed], count, told)
            applied = total if self.fault == "noise not applied" else summed
            if self.fault == "other noise applied":
                applied = [t + self.sigma * torch.randn(t.shape, generator=generator) for t in total]
            weights = {n: w - self.lr * s / count for (n, w), s in zip(weights.items(), applied, strict=True)}

    def draw(self, records: int, step: int, order: Tensor, fixed: Tensor, generator: torch.Generator) -> Tensor:
        size = max(1, int(self.rate * records))
        everybody = torch.arange(records)
        if self.fault == "every record" or (self.rate == 1 and self.fault != "sampled"):
            return everybody
        if self.fault == "fixed size":
            return torch.randperm(records, generator=generator)[:size]
        if self.fault == "shuffled":
            chunks = order.split(size)
            return chunks[step % len(chunks)]
        if self.fault == "same batch":
            return fixed.nonzero().flatten()
        if self.fault == "with replacement":
            return torch.randint(0, records, (size,), generator=generator)
        rate = {"sampled": 0.5, "larger batches": 1.3 * self.rate}.get(self.fault, self.rate)
        drawn = torch.rand(records, generator=generator) < rate
        if self.fault == "never drawn":
            drawn[3] = False
        return drawn.nonzero().flatten()

    def gradients(self, weights: list[Tensor], x: Tensor, y: Tensor, size: int) -> list[Tensor]:
        """Every example's gradient of the cross-entropy, by hand."""
        hidden = torch.tanh(x.flatten(1) @ weights[0].T + weights[1])
        outer = torch.softmax(hidden @ weights[2].T + weights[3], 1) - nn.functional.one_hot(y, 10)
        outer = outer / size if self.fault == "mean loss" else outer
        inner = (outer @ weights[2]) * (1 - hidden.square())
        return [inner.unsqueeze(2) * x.flatten(1).unsqueeze(1), inner, outer.unsqueeze(2) * hidden.unsqueeze(1), outer]

    def total(self, each: list[Tensor], used: Tensor) -> list[Tensor]:
        flat = [g.flatten(1) for g in each]
        norms = torch.cat(flat, 1).norm(dim=1)
        clip = {"clip at 2C": 2 * self.clip, "not clipped": 1e9, "mean clipped": 1e9}.get(self.fault, self.clip)
        factors = [(clip / norms).clamp(max=1.0)] * len(flat)
        if self.fault == "clipped per layer":
            factors = [(self.clip / g.norm(dim=1)).clamp(max=1.0) for g in flat]
        weight = torch.ones(len(used))
        if self.fault == "left out":
            weight[used == 3] = 0
        if self.fault == "counts twice":
            weight[used == 3] = 2
        total = [torch.einsum("i,i...->...", f * weight, g) for f, g in zip(factors, each, strict=True)]
        if self.fault == "mean clipped":
            mean = [t / len(used) for t in total]
            norm = torch.cat([m.flatten() for m in mean]).norm()
            return [m * min(1.0, self.clip / float(norm)) * len(used) for m in mean]
        return total

    def noise(
        self, step: int, like: list[Tensor], once: list[Tensor], generator: torch.Generator, *, seed: int, size: int
    ) -> list[Tensor]:
        if self.fault == "reseeded":
            generator.manual_seed(seed)
        drawn = [torch.randn(w.shape, generator=generator) for w in like]
        scale = {
            "half": 0.5,
            "sensitivity C": 0.5,
            "ten percent less": 0.9,
            "ten percent more": 1.1,
            "divided twice": 1 / size,
            "after averaging": size,
            "none": 0.0,
        }.get(self.fault, 1.0)
        match self.fault:
            case "all layers but one":
                drawn[2] = torch.zeros_like(drawn[2])
            case "same noise":
                drawn = once
            case "first step only" if step:
                scale = 0.0
            case "uniform":
                drawn = [12**0.5 * (torch.rand(w.shape, generator=generator) - 0.5) for w in like]
            case "laplace":
                drawn = [_laplace(w.shape, generator) for w in like]
            case "truncated":
                drawn = [d.clamp(-3, 3) for d in drawn]
            case "correlated layers":
                flat = drawn[0].flatten()
                drawn = [flat[: w.numel()].view(w.shape) for w in like]
            case "shared factor":
                common = torch.randn(1, generator=generator)
                drawn = [0.8 * d + 0.6 * common for d in drawn]
            case "half old":
                drawn = [0.5**0.5 * (d + o) for d, o in zip(drawn, once, strict=True)]
        return [self.sigma * scale * d for d in drawn]


def _laplace(shape: torch.Size, generator: torch.Generator) -> Tensor:
    u = torch.rand(shape, generator=generator).clamp(1e-7, 1 - 1e-7) - 0.5
    return -u.sign() * torch.log1p(-2 * u.abs()) / 2**0.5


@dataclass(frozen=True)
class OpacusLoop:
    """A usual Opacus loop; nothing in it knows of the audit but `watch_opacus`."""

    noise: float = 3.0
    clip: float = 1.0
    optimizer: str = "sgd"
    batch: int | None = None
    passes: int = 10

    def __call__(self, records: Records, seed: int) -> list[AppliedStep]:
        from opacus import PrivacyEngine  # noqa: PLC0415
        from torch.utils.data import DataLoader  # noqa: PLC0415

        torch.manual_seed(seed)
        model = small()
        kinds = {
            "sgd": lambda: torch.optim.SGD(model.parameters(), lr=0.5),
            "momentum": lambda: torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True),
            "adam": lambda: torch.optim.Adam(model.parameters(), lr=0.01),
        }
        loader = DataLoader(records.dataset, batch_size=self.batch or len(records.features))
        network, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=kinds[self.optimizer](),
            data_loader=loader,
            noise_multiplier=self.noise,
            max_grad_norm=self.clip,
            poisson_sampling=self.batch is not None,
        )
        steps = watch_opacus(optimizer, loader)
        for _ in range(self.passes):
            for features, labels in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(features), labels).backward()
                optimizer.step()
        return steps
