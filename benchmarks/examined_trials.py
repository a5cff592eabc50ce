"""What an examined trial costs: CPU time of training and examining it, as a multiple of the training alone.

    python benchmarks/examined_trials.py [model ...]

Both in one process, by Opacus (per-record gradients by hooks) on random data: each training alone, then the same one
(records, seed, batches) as a trial of `dn.examine(trainer=)`, in turn. Models are those of `watched_run.py`: `resnet18`
(11.2 M weights) and `transformer` (3.3 M weights). Batches are drawn (Poisson) or whole.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from functools import partial
from time import process_time

import msgspec
import torch
from torch import nn
from torch.utils.data import DataLoader

from deniable.examination.adapters import watch_opacus
from deniable.examination.claim import RecipeTraining
from deniable.examination.examination_game import Examination, play_trial
from deniable.examination.trainer import AppliedStep, Records
from deniable.mechanisms import Gaussian
from deniable.training import Neighbours
from deniable.training.networks.losses import loss_function
from watched_run import MODELS

STEPS, TRIALS = 4, 3
BAR = 3.0
RECORDS = {"drawn": 100, "whole": 24}
RATE = 0.12


class Costs(msgspec.Struct, frozen=True):
    """CPU seconds of all trainings, and of the trials of them."""

    training: float
    trial: float


@dataclass(frozen=True)
class Loop:
    """A usual Opacus loop."""

    name: str
    rate: float

    def __call__(self, records: Records, seed: int) -> list[AppliedStep]:
        from opacus import PrivacyEngine  # noqa: PLC0415

        torch.manual_seed(seed)
        model, _ = MODELS[self.name]()
        features = records.features if self.name == "resnet18" else records.features.long()
        data = torch.utils.data.TensorDataset(features, records.labels)
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
            data_loader=DataLoader(data, batch_size=max(1, round(self.rate * len(data)))),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=self.rate < 1,
        )
        steps = watch_opacus(optimizer, loader)
        while len(steps) < STEPS:
            for batch, labels in loader:
                if len(steps) < STEPS:
                    optimizer.zero_grad()
                    nn.functional.cross_entropy(model(batch), labels).backward()
                    optimizer.step()
        return steps


class Words(nn.Module):
    """A model of words whose numbers are given as floats, as all records are."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x.long())


def _model(name: str) -> nn.Module:
    model, _ = MODELS[name]()
    return model if name == "resnet18" else Words(model)


def game(name: str, kind: str) -> Examination:
    """The examination of a loop."""
    _, data = MODELS[name]()
    number, rate = RECORDS[kind], RATE if kind == "drawn" else 1.0
    records, labels = (values[:number] for values in data.tensors)
    neighbours = Neighbours.of(records.numpy(), labels.numpy(), 0)
    step = Gaussian(1.0) if rate == 1 else Gaussian(1.0).subsampled(rate)
    claim = RecipeTraining.from_mechanism(step.composed(STEPS), 1.0, "add-remove", None)
    loss = loss_function("cross-entropy")
    return Examination(Loop(name, rate), claim, partial(_model, name), loss, neighbours, 200, 1)


def measure(name: str, kind: str) -> Costs:
    """A few of them, after one that makes both ready."""
    warnings.simplefilter("ignore")  # Opacus speaks of its random numbers and hooks
    torch.manual_seed(1)
    examined = game(name, kind)
    play_trial(examined, TRIALS)
    both = [(_seconds(_alone(examined, n)), _seconds(partial(play_trial, examined, n))) for n in range(TRIALS)]
    return Costs(training=sum(alone for alone, _ in both), trial=sum(trial for _, trial in both))


def _alone(examined: Examination, number: int) -> partial[object]:
    """The training of a trial."""
    members, (records, labels, _) = examined.members(examined.on_d(number)), examined.columns
    return partial(examined.trainer, Records(records[members], labels[members]), examined.training_seed(number))


def _seconds(play: partial[object]) -> float:
    started = process_time()
    play()
    return process_time() - started


def main(names: list[str]) -> None:
    for name in names or MODELS:
        for kind in RECORDS:
            found = measure(name, kind)
            print(
                f"{name}, {kind} batches: a trial costs {found.trial / found.training:.2f} times its training "
                f"({found.training:.2f} s CPU)",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
