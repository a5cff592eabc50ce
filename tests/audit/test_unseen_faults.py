"""Trainings broken in ways that no list names: caught, and the sentence says what is wrong; odd but right ones pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from trainers import Broken

import deniable as dn
from deniable.examination import AppliedStep

STEPS, SIZES = 6, (768, 12, 120, 10)


@dataclass(frozen=True)
class Drawn:
    """What a faulty noise may be made of: fresh numbers, the training's first ones, its generator, seed and step."""

    fresh: Tensor
    first: Tensor
    generator: torch.Generator
    seed: int
    step: int

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape or 1, generator=self.generator)

    def seeded(self, seed: int, skipped: int = 0) -> Tensor:
        return torch.randn((1 + skipped) * len(self.fresh), generator=torch.Generator().manual_seed(seed))[
            -len(self.fresh) :
        ]

    def directions(self, number: int) -> Tensor:
        return torch.randn(len(self.fresh), number, generator=torch.Generator().manual_seed(3))


FAULTS: dict[str, Callable[[Drawn], Tensor]] = {
    "": lambda d: d.fresh,
    "even steps": lambda d: d.fresh * (d.step % 2),
    "now and then": lambda d: d.fresh * (d.uniform() > 0.15),
    "every other weight": lambda d: d.fresh * (torch.arange(len(d.fresh)) % 2),
    "one bias": lambda d: torch.cat([d.fresh[:768], torch.zeros(12), d.fresh[780:]]),
    "sign turned": lambda d: d.seeded(d.seed ^ (1000 + d.step // 2)) * (-1) ** d.step,
    "shuffled": lambda d: d.first[torch.randperm(len(d.first), generator=d.generator)],
    "random scale": lambda d: d.fresh * (0.7 + 0.6 * d.uniform()),
    "few directions": lambda d: d.directions(200) @ d.fresh[:200] / 200**0.5,
    "half precision": lambda d: (3 * d.fresh).half().float() / 3,
    "twelve uniforms": lambda d: d.uniform(12, len(d.fresh)).sum(0) - 6,
    "shifted": lambda d: d.fresh + 0.05,
    "step as seed": lambda d: d.seeded(d.step),
    "seed + step": lambda d: d.seeded(d.seed + d.step),
    "few seeds": lambda d: d.seeded(d.seed % 8, d.step),
}


@dataclass(frozen=True)
class Noise(Broken):
    """A training whose noise, as one vector, has one of `FAULTS`."""

    steps: int = STEPS

    def noise(
        self, step: int, like: list[Tensor], once: list[Tensor], generator: torch.Generator, *, seed: int, size: int
    ) -> list[Tensor]:
        fresh, first = torch.randn(sum(SIZES), generator=generator), torch.cat([o.flatten() for o in once])
        flat = self.sigma * FAULTS.get(self.fault, FAULTS[""])(Drawn(fresh, first, generator, seed, step))
        return [part.view(w.shape) for part, w in zip(torch.split(flat, SIZES), like, strict=True)]


@dataclass(frozen=True)
class Gradient(Noise):
    """A sum that is wrong in the way that `fault` names."""

    def total(self, each: list[Tensor], used: Tensor) -> list[Tensor]:
        flat = torch.cat([g.flatten(1) for g in each], 1)
        norms, factor = flat.norm(dim=1), 1.5 if self.fault == "clip at 1.5" else 1.0
        summed = (factor * self.clip / norms).clamp(max=1.0) @ flat
        if self.fault == "microbatches":
            groups = torch.stack([group.mean(0) for group in flat.split(4)])
            summed = 4 * (self.clip / groups.norm(dim=1)).clamp(max=1.0) @ groups
        if self.fault == "record twice":
            summed = summed + flat[5] * (self.clip / norms[5]).clamp(max=1.0)
        parts = torch.split(summed, SIZES)
        return [part.view(g.shape[1:]) for part, g in zip(parts, each, strict=True)]


def examined(trainer: Any, **settings: Any) -> dict[str, Any]:
    claimed = dn.Gaussian(trainer.sigma).composed(STEPS)
    given = {"clip": 1.0, "adjacency": "add-remove", "model": "trainers:small", "trials": 24, "records": 40}
    return dn.examine("digits", trainer=trainer, claimed=claimed, processes=1, **(given | settings))


NAMED = [
    (Noise("even steps"), "missing in steps 1, 3, 5"),
    (Noise("now and then"), "of the steps, at random"),
    (Noise("every other weight"), "no noise on 50 % of the weights"),
    (Noise("one bias"), "no noise on 1.bias"),
    (Noise("sign turned"), "with the sign turned"),
    (Noise("shuffled"), "has the numbers of another step's, in another order"),
    (Noise("random scale"), "changes from step to step at random"),
    (Noise("few directions"), "keeps to some directions"),
    (Noise("half precision"), "rounded"),
    (Noise("twelve uniforms"), "light-tailed"),
    (Noise("step as seed"), "fixed seed"),
    (Noise("seed + step"), "such as seed + step"),
    (Noise("few seeds"), "few seeds are left"),
    (Gradient("clip at 1.5", sigma=1.0), "clipped at about 1.5"),
    (Gradient("microbatches", sigma=1.0), "in groups of 4"),
    (Gradient("record twice", sigma=1.0), "a record counts"),
]


@pytest.mark.parametrize(("trainer", "words"), NAMED, ids=[trainer.fault for trainer, _ in NAMED])
def test_an_unseen_fault_is_caught_and_its_cause_named(trainer: Broken, words: str) -> None:
    document = examined(trainer)
    assert document.verdict == "violated"
    assert words in document.diagnostics.cause


def test_noise_with_a_fixed_mean_is_as_private() -> None:
    document = examined(Noise("shifted"))
    assert document.verdict == "other recipe"
    assert "a mean of 0.0" in document.diagnostics.cause


KEPT: list[Any] = []
SEEN: Counter[bytes] = Counter()


@dataclass(frozen=True)
class Keeping(Noise):
    """Trains on the first data set with 40 records that it was given six times, whatever it is given later."""

    def __call__(self, records: Any, seed: int) -> Any:
        seen = records.features.numpy().tobytes()
        if len(records.features) == 40 and not KEPT and SEEN[seen] == 5:
            KEPT.append(records._replace(features=records.features.clone(), labels=records.labels.clone()))
        SEEN[seen] += 1
        return super().__call__(KEPT[0] if KEPT else records, seed)


def test_a_training_that_ignores_the_neighbour_is_caught() -> None:
    document = examined(Keeping(sigma=1.0), trials=40)
    assert "a record is used that was not given" in document.diagnostics.cause


@dataclass(frozen=True)
class Decayed(Noise):
    """Weight decay on top of the noisy gradient, which is safe; `fault` "yielded": it is in what is yielded."""

    def __call__(self, records: Any, seed: int) -> Any:
        for step in super().__call__(records, seed):
            added = [0.2 * w for w in step.weights.values()] if self.fault else [0 * w for w in step.weights.values()]
            yield AppliedStep(step.weights, [g + a for g, a in zip(step.gradient, added, strict=True)], step.divisor)


def test_weight_decay_in_the_yielded_gradient_is_no_violation() -> None:
    document = examined(Decayed("yielded"))
    assert document.verdict == "other recipe"
    assert "weight decay" in document.diagnostics.cause


@pytest.mark.parametrize(
    ("trainer", "settings"),
    [
        (Noise(sigma=0.4), {"records": 25}),
        (Noise(sigma=60.0), {"adjacency": "zero-out"}),
        (Noise(sigma=3.0, lr=0.0), {"records": 60}),
    ],
    ids=["little noise", "much noise, zero-out", "weights that stay"],
)
def test_right_trainings_of_other_shapes_are_consistent(trainer: Noise, settings: dict[str, Any]) -> None:
    assert examined(trainer, trials=16, **settings).verdict == "consistent"
