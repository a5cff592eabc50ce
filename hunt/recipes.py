"""DP-SGD as data: one frozen description, each of whose parts can be exchanged for another one, right or wrong.

`VARIANTS` says of each exchange whether the training becomes less private than is claimed, and which words its cause
must hold. The model is a network of one hidden layer, small enough that an audit of few trials takes a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from deniable.examination import AppliedStep, Records, Released

__all__ = [
    "CLASSES",
    "CLIP",
    "FEATURES",
    "RATE",
    "RECORDS",
    "SIGMA",
    "STEPS",
    "VARIANTS",
    "Training",
    "Variant",
    "network",
]

FEATURES, HIDDEN, CLASSES = 8, 6, 3
SHAPES = ((HIDDEN, FEATURES), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
SIZES = [int(torch.tensor(shape).prod()) for shape in SHAPES]
CLIP, SIGMA, STEPS, RATE, RECORDS = 1.0, 1.0, 6, 0.4, 20
LOW_LOSS = 1.2
"""At which a training that looks at its loss stops."""


def network() -> nn.Module:
    """The model that is trained."""
    return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES))


@dataclass(frozen=True)
class Variant:
    """An exchanged part: whether it is less private, and words of which one must be in the cause."""

    less_private: bool
    words: tuple[str, ...] = ()
    sampled: bool | None = None
    """Only for sampled (True) or full (False) batches; None: both."""


def leak(*words: str, sampled: bool | None = None) -> Variant:
    """Less private than claimed."""
    return Variant(True, words, sampled)


def safe(sampled: bool | None = None) -> Variant:
    """As private as claimed, or more."""
    return Variant(False, (), sampled)


VARIANTS: dict[str, dict[str, Variant]] = {
    "clipping": {
        "half": safe(),
        "half with its noise": safe(),
        "auto-s": safe(),
        "normalised": safe(),
        "layers share": safe(),
        "absolute": safe(),
        "noisy sum clipped": safe(),
        "layers whole": leak("every layer is clipped on its own"),
        "by value": leak("by value"),
        "none": leak("not clipped"),
        "twice": leak("twice the claimed norm"),
        "a fifth more": leak("1.2 x the claimed norm"),
        "batch mean": leak("mean gradient is clipped"),
        "batch sum": leak("summed gradient is clipped"),
        "groups": leak("groups of 4"),
        "largest number": leak("maximum norm"),
        "some": leak("not clipped", "counts"),
        "biases whole": leak("biases"),
        "biases ignored": leak("biases"),
        "last layer whole": leak("not clipped"),
        "median": leak("median"),
        "noise first": leak("before"),
        "noise each, then clipped": leak("before"),
    },
    "noise": {
        "more": safe(),
        "twice": safe(),
        "none": leak("no noise"),
        "half": leak("half the claimed"),
        "tenth less": leak("x the claimed standard deviation"),
        "divided": leak("divided by the batch size"),
        "by rate": leak("x the claimed standard deviation"),
        "fixed seed": leak("different seeds use the same noise"),
        "drawn once": leak("same noise is used in several steps"),
        "one for all layers": leak("correlated"),
        "no bias": leak("no noise on"),
        "no last layer": leak("no noise on"),
        "uniform": leak("uniform"),
        "laplace": leak("Laplacian"),
        "cut": leak("cut off"),
        "rounded": leak("rounded"),
        "first step": leak("missing in steps"),
        "last step missing": leak("missing in steps"),
        "now and then": leak("missing in"),
        "sign turned": leak("sign turned"),
        "falls": leak("changes from step to step"),
    },
    "sampler": {
        "rarer": safe(sampled=True),
        "one never": safe(),
        "shuffled": leak("Poisson", sampled=True),
        "fixed size": leak("same size", sampled=True),
        "with replacement": leak("more than once", sampled=True),
        "same batch": leak("same batch", sampled=True),
        "more often": leak("larger than claimed", sampled=True),
        "by loss": leak("looking at the records", "content", sampled=True),
        "all in secret": leak("all records are used", sampled=True),
        "all": leak("every record is used", sampled=True),
        "one always": leak("equally often", sampled=True),
        "one twice": leak("counts", "record"),
        "one secretly always": leak("outside the batch", sampled=True),
    },
    "divisor": {
        "another": safe(),
        "own size": leak("own size", sampled=True),
        "number of records": leak("divisor"),
        "norm of data": leak("divisor"),
    },
    "loss": {
        "smoothed": safe(),
        "dropout": safe(),
        "augmented": safe(),
        "half": safe(),
        "averaged": leak("divided by the batch size before clipping"),
        "centred": leak("depends on other records", "mixes"),
        "weighted by batch": leak("depends on other records", "mixes"),
    },
    "start": {
        "zeros": safe(),
        "public": safe(),
        "pretrained": leak("initial weights"),
        "data's mean": leak("initial weights"),
    },
    "schedule": {
        "falling rate": safe(),
        "fewer": safe(),
        "one more": leak("steps"),
        "stops on loss": leak("number of steps"),
        "rate from data": leak("learning rate"),
    },
    "release": {
        "hidden": safe(),
        "average": safe(),
        "rounded": safe(),
        "clean last step": leak("final weights"),
        "clean extra step": leak("final weights"),
        "best by loss": leak("final weights"),
        "losses": leak("loss"),
    },
    "optimizer": {
        "momentum": safe(),
        "adam": safe(),
        "decay": safe(),
        "decay in gradient": safe(),
        "signs": safe(),
        "largest half": safe(),
        "momentum in gradient": safe(),
        "momentum of clean": leak("before the noise"),
        "clean": leak("without its noise"),
        "half the noise": leak("without its noise"),
        "second noise": leak("do not move by the yielded gradient"),
    },
}


@dataclass(frozen=True)
class Training:
    """DP-SGD; every part "" is as claimed. `parts` has entries (part, variant) of `VARIANTS`."""

    rate: float = 1.0
    parts: tuple[tuple[str, str], ...] = ()
    lr: float = 0.2
    part: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", dict.fromkeys(VARIANTS, "") | dict(self.parts))

    @property
    def less_private(self) -> bool:
        """Whether one of its parts is."""
        return any(VARIANTS[part][name].less_private for part, name in self.parts)

    def __call__(self, records: Records, seed: int) -> Iterator[AppliedStep | Released]:
        generator = torch.Generator().manual_seed(7 if self.part["noise"] == "fixed seed" else seed)
        batches = torch.Generator().manual_seed(seed + 1)
        x, y = records.features, records.labels
        weights = self.first_weights(x, y, seed)
        memory = _Memory(torch.randn(sum(SIZES), generator=generator), torch.randperm(len(x), generator=batches))
        seen: list[Tensor] = []
        for number in range(self.steps):
            now = _Step(number, weights, x, y)
            now.told, now.used = self.draw(now, memory, batches)
            now.divisor = self.divisor(x, now.told)
            now.clean = self.clean_sum(now, memory, generator)
            now.noise = self.noise(number, len(now.told), memory, generator)
            now.shown = self.shown(self.noisy(now.clean, now.noise), weights, memory)
            public = {"loss": self.mean_loss(weights, x, y)} if self.part["release"] == "losses" else {}
            told = None if self.rate == 1 else now.told
            yield AppliedStep(_layers(weights), _layers(now.shown / now.divisor), now.divisor, told, public=public)
            seen.append(weights)
            weights = weights + self.move(now, memory, torch.randn(sum(SIZES), generator=generator))
            if self.part["schedule"] == "stops on loss" and self.mean_loss(weights, x, y) < LOW_LOSS:
                break
        if self.part["release"] != "hidden":
            yield Released(_layers(self.released(weights, seen, now)))

    def clean_sum(self, now: _Step, memory: _Memory, generator: torch.Generator) -> Tensor:
        """The sum without noise."""
        x, y = now.x[now.used], now.y[now.used]
        clean = self.total(now.weights, x, y, generator)
        if self.part["sampler"] == "one twice" and bool((now.used == 2).any()):
            at = (now.used == 2).nonzero()[0]
            clean = clean + self.total(now.weights, x[at], y[at], generator)
        if self.part["optimizer"] == "momentum of clean":
            clean = memory.clean = clean + 0.9 * memory.clean
        return clean

    @property
    def steps(self) -> int:
        """How many are taken at most."""
        return STEPS + {"fewer": -2, "one more": 1}.get(self.part["schedule"], 0)

    def first_weights(self, x: Tensor, y: Tensor, seed: int) -> Tensor:
        """A usual start, or one of `VARIANTS`."""
        weights = 0.5 * torch.randn(sum(SIZES), generator=torch.Generator().manual_seed(seed + 2))
        match self.part["start"]:
            case "zeros":
                weights = torch.cat([weights[: SIZES[0]], torch.zeros(sum(SIZES[1:]))])
            case "public":
                weights = 0.5 * torch.randn(sum(SIZES), generator=torch.Generator().manual_seed(5))
            case "pretrained":
                for _ in range(5):
                    weights = weights - 0.3 * self.gradients(weights, x, y).mean(0)
            case "data's mean":
                weights = weights.clone()
                weights[:FEATURES] += x.mean(0)
        return weights

    def draw(self, now: _Step, memory: _Memory, generator: torch.Generator) -> tuple[Tensor, Tensor]:  # noqa: PLR0911
        """The batch that is told, and the records that are used."""
        step, weights, x, y = now.number, now.weights, now.x, now.y
        everybody, kind, size = torch.arange(len(x)), self.part["sampler"], round(self.rate * RECORDS)
        uniform = torch.rand(len(x), generator=generator)
        rate = self.rate * {"rarer": 0.6, "more often": 1.5}.get(kind, 1.0)
        chosen = uniform < rate
        match kind:
            case "one never":
                chosen[2] = False
            case "one always":
                chosen[2] = True
            case "shuffled":
                chunk = torch.split(memory.order, size)[step % -(-len(x) // size)]
                return chunk, chunk
            case "fixed size":
                chosen = uniform <= uniform.sort().values[size - 1]
            case "with replacement":
                drawn = torch.randint(0, len(x), (size,), generator=generator)
                return drawn, drawn
            case "same batch":
                memory.batch = chosen if memory.batch is None else memory.batch
                chosen = memory.batch
            case "by loss":
                losses = self.losses(weights, x, y)
                chosen = uniform < (rate * losses / losses.mean()).clamp(max=1)
        told = chosen.nonzero().flatten() if self.rate < 1 else everybody
        if kind == "one never":
            return told, told[told != 2]
        if kind == "all":
            return everybody, everybody
        if kind == "all in secret":
            return told, everybody
        if kind == "one secretly always" and not (told == 2).any():
            return told, torch.cat([told, torch.tensor([2])])
        return told, told

    def divisor(self, x: Tensor, batch: Tensor) -> float:
        """What the noisy sum is divided by."""
        return {
            "another": 3.0,
            "own size": float(max(1, len(batch))),
            "number of records": self.rate * len(x),
            "norm of data": float(x.norm()),
        }.get(self.part["divisor"], self.rate * RECORDS)

    def losses(self, weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Of every record."""
        a, b, c, d = _layers(weights)
        return nn.functional.cross_entropy(torch.tanh(x @ a.T + b) @ c.T + d, y, reduction="none")

    def mean_loss(self, weights: Tensor, x: Tensor, y: Tensor) -> float:
        """On the training's own records."""
        return float(self.losses(weights, x, y).mean())

    def gradients(self, weights: Tensor, x: Tensor, y: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Every record's gradient of its loss, one a row."""
        kind, (a, b, c, d) = self.part["loss"], _layers(weights)
        x = x - x.mean(0) if kind == "centred" and len(x) else x
        hidden = torch.tanh(x @ a.T + b)
        mask = torch.ones_like(hidden)
        if kind == "dropout" and generator is not None:
            mask = 2.0 * (torch.rand(hidden.shape, generator=generator) < 0.5)
        target = nn.functional.one_hot(y, CLASSES).float()
        target = 0.7 * target + 0.1 if kind == "smoothed" else target
        outer = torch.softmax((hidden * mask) @ c.T + d, 1) - target
        if kind in ("averaged", "half", "weighted by batch") and len(x):
            weight = self.losses(weights, x, y)
            outer = outer * {"averaged": 1 / len(x), "half": 0.5}.get(kind, (weight / weight.mean()).unsqueeze(1))
        inner = (outer @ c) * mask * (1 - hidden.square())
        parts = inner.unsqueeze(2) * x.unsqueeze(1), inner, outer.unsqueeze(2) * (hidden * mask).unsqueeze(1), outer
        return torch.cat([part.flatten(1) for part in parts], 1)

    def total(self, weights: Tensor, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """The clipped sum."""
        if not len(x):
            return torch.zeros(sum(SIZES))
        if self.part["loss"] == "augmented":
            copies = (x + 0.3 * torch.randn(x.shape, generator=generator) for _ in range(4))
            each = torch.stack([self.gradients(weights, copy, y) for copy in copies]).mean(0)
        else:
            each = self.gradients(weights, x, y, generator)
        return self.clipped(each, y, generator)

    def clipped(self, each: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:  # noqa: PLR0911, PLR0912
        """The sum of the gradients, clipped in some way."""
        kind, norms = self.part["clipping"], each.norm(dim=1)
        layers = torch.split(each, SIZES, 1)
        factor = _factors(norms, CLIP)
        match kind:
            case "half" | "half with its noise":
                factor = _factors(norms, CLIP / 2)
            case "twice":
                factor = _factors(norms, 2 * CLIP)
            case "a fifth more":
                factor = _factors(norms, 1.2 * CLIP)
            case "auto-s":
                factor = CLIP / (norms + 0.01)
            case "normalised":
                factor = CLIP / norms
            case "absolute":
                factor = _factors(each.abs().sum(1), CLIP)
            case "largest number":
                factor = _factors(each.abs().amax(1), CLIP)
            case "biases ignored":
                factor = _factors(torch.cat(layers[::2], 1).norm(dim=1), CLIP)
            case "none" | "noise first":
                factor = torch.ones_like(norms)
            case "some":
                factor = torch.where(y == 0, 1.0, factor)
            case "median":
                factor = _factors(norms, float(norms.median()))
            case "layers whole" | "layers share":
                limit = CLIP if kind == "layers whole" else CLIP / 2
                return torch.cat([_factors(g.norm(dim=1), limit) @ g for g in layers])
            case "biases whole":
                return torch.cat([(factor if i % 2 == 0 else torch.ones_like(norms)) @ g for i, g in enumerate(layers)])
            case "last layer whole":
                return torch.cat([(factor if i < 2 else torch.ones_like(norms)) @ g for i, g in enumerate(layers)])
            case "by value":
                return each.clamp(-CLIP / 4, CLIP / 4).sum(0)
            case "batch mean":
                return len(each) * _shorter(each.mean(0))
            case "batch sum":
                return _shorter(each.sum(0))
            case "groups":
                return torch.stack([len(group) * _shorter(group.mean(0)) for group in torch.split(each, 4)]).sum(0)
            case "noise each, then clipped":
                each = each + SIGMA * torch.randn(each.shape, generator=generator) / len(each) ** 0.5
                factor = _factors(each.norm(dim=1), CLIP)
        return factor @ each

    def noise(self, step: int, size: int, memory: _Memory, generator: torch.Generator) -> Tensor:
        """One step's noise on the sum."""
        drawn, kind = torch.randn(sum(SIZES), generator=generator), self.part["noise"]
        chance = float(torch.rand(1, generator=generator))
        scale = {
            "more": 1.3, "twice": 2.0, "none": 0.0, "half": 0.5, "tenth less": 0.9, "by rate": self.lr,
            "divided": 1 / max(1, size), "first step": float(step == 0), "now and then": float(chance > 0.2),
            "last step missing": float(step < STEPS - 1), "falls": 1 - step / STEPS,
        }.get(kind, 1.0)  # fmt: skip
        layers = list(torch.split(drawn, SIZES))
        match kind:
            case "drawn once":
                drawn = memory.first
            case "sign turned":
                drawn = memory.noise = drawn if step % 2 == 0 else -memory.noise
            case "one for all layers":
                drawn = torch.cat([layers[0][:size] for size in SIZES])
            case "no bias":
                drawn = torch.cat([layers[0], 0 * layers[1], layers[2], 0 * layers[3]])
            case "no last layer":
                drawn = torch.cat([*layers[:2], 0 * layers[2], 0 * layers[3]])
            case "uniform":
                drawn = 12**0.5 * (torch.rand(sum(SIZES), generator=generator) - 0.5)
            case "laplace":
                u = torch.rand(sum(SIZES), generator=generator).clamp(1e-6, 1 - 1e-6) - 0.5
                drawn = -u.sign() * torch.log1p(-2 * u.abs()) / 2**0.5
            case "cut":
                drawn = drawn.clamp(-2.5, 2.5)
            case "rounded":
                drawn = (8 * drawn).round() / 8
        if self.part["clipping"] == "half with its noise":
            scale *= 0.5
        if self.part["clipping"] == "noise each, then clipped":
            scale = 0.0
        return SIGMA * scale * drawn

    def noisy(self, clean: Tensor, noise: Tensor) -> Tensor:
        """The sum with its noise."""
        last = self.part["clipping"] in ("noise first", "noisy sum clipped")
        return _shorter(clean + noise, 4.0) if last else clean + noise

    def shown(self, noisy: Tensor, weights: Tensor, memory: _Memory) -> Tensor:
        """What is yielded."""
        match self.part["optimizer"]:
            case "decay in gradient":
                return noisy + 0.5 * weights
            case "momentum in gradient":
                memory.gradient = noisy + 0.9 * memory.gradient
                return memory.gradient
        return noisy

    def move(self, now: _Step, memory: _Memory, extra: Tensor) -> Tensor:
        """How the weights move."""
        step, divisor, clean, noise = now.number, now.divisor, now.clean, now.noise
        other = {"falling rate": 0.8**step, "rate from data": float(1 / now.x.std())}
        lr = self.lr * other.get(self.part["schedule"], 1.0)
        lr *= 30 if self.part["release"] == "best by loss" else 1  # so large that the last is not always the best
        applied = now.shown / divisor
        match self.part["optimizer"]:
            case "momentum":
                applied = memory.velocity = applied + 0.9 * memory.velocity
            case "adam":
                memory.velocity = 0.9 * memory.velocity + 0.1 * applied
                memory.squares = 0.999 * memory.squares + 0.001 * applied.square()
                applied = (
                    memory.velocity
                    / (1 - 0.9 ** (step + 1))
                    / ((memory.squares / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
                )
            case "decay":
                applied = applied + 0.1 * now.weights
            case "signs":
                applied = 0.1 * applied.sign()
            case "largest half":
                applied = applied * (applied.abs() >= applied.abs().median())
            case "clean":
                applied = clean / divisor
            case "half the noise":
                applied = (clean + noise / 2) / divisor
            case "second noise":
                applied = (clean + SIGMA * extra) / divisor
        return -lr * applied

    def released(self, last: Tensor, seen: list[Tensor], now: _Step) -> Tensor:
        """The model that is given away."""
        x, y = now.x, now.y
        match self.part["release"]:
            case "average":
                return torch.stack([*seen[1:], last]).mean(0)
            case "rounded":
                return (64 * last).round() / 64
            case "clean last step":
                return seen[-1] - self.lr * now.clean / now.divisor
            case "clean extra step":
                return last - 0.3 * self.gradients(last, x, y).mean(0)
            case "best by loss":
                return min([*seen, last], key=lambda w: self.mean_loss(w, x, y))
        return last


@dataclass
class _Step:
    """One step of a training, as it comes about."""

    number: int
    weights: Tensor
    x: Tensor
    y: Tensor
    divisor: float = 1.0
    told: Tensor = field(default_factory=lambda: torch.zeros(0))
    used: Tensor = field(default_factory=lambda: torch.zeros(0))
    clean: Tensor = field(default_factory=lambda: torch.zeros(0))
    noise: Tensor = field(default_factory=lambda: torch.zeros(0))
    shown: Tensor = field(default_factory=lambda: torch.zeros(0))


@dataclass
class _Memory:
    """What a training carries from step to step."""

    first: Tensor
    order: Tensor
    batch: Tensor | None = None
    clean: Tensor = field(default_factory=lambda: torch.zeros(sum(SIZES)))
    noise: Tensor = field(default_factory=lambda: torch.zeros(sum(SIZES)))
    gradient: Tensor = field(default_factory=lambda: torch.zeros(sum(SIZES)))
    velocity: Tensor = field(default_factory=lambda: torch.zeros(sum(SIZES)))
    squares: Tensor = field(default_factory=lambda: torch.zeros(sum(SIZES)))


def _layers(flat: Tensor) -> list[Tensor]:
    return [part.view(shape) for part, shape in zip(torch.split(flat, SIZES), SHAPES, strict=True)]


def _factors(norms: Tensor, clip: float) -> Tensor:
    return (clip / norms.clamp(min=1e-12)).clamp(max=1.0)


def _shorter(vector: Tensor, clip: float = CLIP) -> Tensor:
    return vector * min(1.0, clip / max(float(vector.norm()), 1e-12))
