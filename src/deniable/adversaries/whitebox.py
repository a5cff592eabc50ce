"""The white-box attack of Nasr, Shokri and Houmansadr 2019, as Bernau 2021b (Section 3) uses it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from deniable.adversaries.membership import Scored, best_threshold, halves
from deniable.adversaries.model_observation import LayerGradient, last_layer_gradients, margins, outputs
from deniable.checks import positive, whole
from deniable.data import Dataset
from deniable.training.noise_source import SeededSource
from deniable.training.threads import one_thread

COMPONENT_VALUES = 64
"""How many values each component hands to the encoder."""
KERNEL_COUNT = 16
ENCODER_UNITS = (256, 128, 64, 1)
DROPOUT_RATE = 0.2


@dataclass(frozen=True)
class WhiteBox:
    """A network that sees loss, output, label and the gradient of the last `layers` layers of each record.

    Each goes through a component of its own; an encoder 256-128-64-1 with dropout 0.2 joins them. `folds` such
    networks are trained on the known half, each without one part of it, on which its best epoch is chosen (it stops
    `patience` epochs after it); their mean log-odds are the score. The threshold is the best one for the parts that
    each network was not trained on.
    """

    layers: int = 1
    folds: int = 3
    epochs: int = 100
    patience: int = 6
    batch: int = 128
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        for name, low in (("layers", 1), ("folds", 2), ("epochs", 1), ("patience", 1), ("batch", 1)):
            whole(name, getattr(self, name), low=low)
        positive("learning_rate", self.learning_rate)

    def __call__(self, model: nn.Module, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """Trained on the known half, the scores (log-odds of membership) of the tested half."""
        known, tested = halves(members, non_members, seed)
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.set_rng_state(SeededSource(seed, 0, stream=2).generator.get_state())
            seen, asked = (_Observed.of(model, half.records, self.layers) for half in (known, tested))
            asked, seen = asked.on_the_scale_of(seen), seen.on_the_scale_of(seen)
            held, scores = self._score_folds(seen, torch.from_numpy(known.member), asked)
        return tested.with_scores(scores, best_threshold(held, known.member))

    def _score_folds(
        self, seen: _Observed, member: Tensor, asked: _Observed
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each known record's score by the network that was not trained on it; the mean scores of the `asked`."""
        part = _parts(member, self.folds)
        held, total = torch.empty(len(member)), torch.zeros(len(asked))
        for fold in range(self.folds):
            inside, outside = torch.nonzero(part != fold).squeeze(1), torch.nonzero(part == fold).squeeze(1)
            network = self._train_network(
                seen.take(inside), member[inside].float(), seen.take(outside), member[outside].float()
            )
            with torch.no_grad():
                held[outside] = network(seen.take(outside))
                total += network(asked)
        return held.double().numpy(), (total / self.folds).double().numpy()

    def _train_network(self, seen: _Observed, member: Tensor, held: _Observed, held_member: Tensor) -> _Network:
        """The network of the epoch with the least loss on the records held back."""
        network = _Network(seen)
        optimizer = torch.optim.AdamW(network.parameters(), self.learning_rate)
        least, best, since = inf, network.state_dict(), 0
        for _ in range(self.epochs):
            self._epoch(network, optimizer, seen, member)
            with torch.no_grad():
                loss = float(functional.binary_cross_entropy_with_logits(network(held), held_member))
            since += 1
            if loss < least:
                least, best, since = loss, {name: value.clone() for name, value in network.state_dict().items()}, 0
            if since == self.patience:
                break
        network.load_state_dict(best)
        return network

    def _epoch(self, network: _Network, optimizer: torch.optim.Optimizer, seen: _Observed, member: Tensor) -> None:
        network.train()
        for batch in torch.split(torch.randperm(len(member)), self.batch):
            optimizer.zero_grad()
            loss = functional.binary_cross_entropy_with_logits(network(seen.take(batch)), member[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        network.eval()


def _parts(member: Tensor, folds: int) -> Tensor:
    """A part for every record, at random, members and non-members alike."""
    part = torch.empty(len(member), dtype=torch.long)
    for group in (member, ~member):
        count = int(group.sum())
        part[group] = (torch.arange(count) % folds)[torch.randperm(count)]
    return part


@dataclass(frozen=True)
class _Observed:
    """What the attacker sees of some records, one a row."""

    loss: Tensor
    output: Tensor
    label: Tensor
    gradients: list[LayerGradient]

    @classmethod
    def of(cls, model: nn.Module, dataset: Dataset, layers: int) -> _Observed:
        found = outputs(model, dataset)
        label = functional.one_hot(torch.from_numpy(dataset.labels), found.shape[1]).float()
        loss = margins(found, dataset.labels).float()[:, None]
        return cls(loss, found.float().log_softmax(1), label, last_layer_gradients(model, dataset, layers))

    def __len__(self) -> int:
        return len(self.loss)

    def take(self, records: Tensor) -> _Observed:
        gradients = [gradient.take(records) for gradient in self.gradients]
        return _Observed(self.loss[records], self.output[records], self.label[records], gradients)

    def on_the_scale_of(self, other: _Observed) -> _Observed:
        """Loss and output with mean 0 and deviation 1 there, gradients with mean length 1 there."""
        gradients = [
            LayerGradient(own.backward / theirs.norms().mean().clamp(min=1e-30), own.incoming)
            for own, theirs in zip(self.gradients, other.gradients, strict=True)
        ]
        return _Observed(_standard(self.loss, other.loss), _standard(self.output, other.output), self.label, gradients)


def _standard(values: Tensor, like: Tensor) -> Tensor:
    return (values - like.mean(0)) / like.std(0).clamp(min=1e-6)


class _Network(nn.Module):
    def __init__(self, seen: _Observed) -> None:
        super().__init__()
        self._loss, self._output, self._label = (
            nn.Sequential(nn.Linear(part.shape[1], COMPONENT_VALUES), nn.ReLU())
            for part in (seen.loss, seen.output, seen.label)
        )
        self._gradients = nn.ModuleList(_GradientComponent(*gradient.shape) for gradient in seen.gradients)
        layers: list[nn.Module] = []
        for width, following in pairwise((COMPONENT_VALUES * (3 + len(seen.gradients)), *ENCODER_UNITS)):
            layers += [nn.Linear(width, following), nn.ReLU(), nn.Dropout(DROPOUT_RATE)]
        self._encoder = nn.Sequential(*layers[:-2])

    def forward(self, seen: _Observed) -> Tensor:
        parts = [self._loss(seen.loss), self._output(seen.output), self._label(seen.label)]
        parts += [component(gradient) for component, gradient in zip(self._gradients, seen.gradients, strict=True)]
        found: Tensor = self._encoder(torch.cat(parts, 1)).squeeze(1)
        return found


class _GradientComponent(nn.Module):
    """Kernels along the layer's inputs, the same for each of its outputs, then a dense layer over all of them."""

    def __init__(self, outgoing: int, incoming: int) -> None:
        super().__init__()
        self._kernels = nn.Linear(incoming, KERNEL_COUNT, bias=False)
        self._dense = nn.Linear(outgoing * KERNEL_COUNT, COMPONENT_VALUES)

    def forward(self, gradient: LayerGradient) -> Tensor:
        if gradient.incoming is None:
            found = self._kernels(gradient.backward)
        else:  # (backward x incoming) kernels = backward x (incoming kernels): the gradient is never made whole
            found = gradient.backward[:, :, None] * self._kernels(gradient.incoming)[:, None, :]
        return functional.relu(self._dense(functional.relu(found).flatten(1)))
