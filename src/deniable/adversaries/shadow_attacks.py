"""Attacks that learn from shadow models, by the one protocol.

`Shadow` is the black-box attack of Shokri, Stronati, Song and Shmatikov 2017. The others compare the target's
confidence with that of shadow models (`shadow_scores`); they need no known record to score one: the known half chooses
the rule and the threshold, nothing else.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from deniable.adversaries.membership import Half, HalfPlaces, Scored, best_threshold, half_places, halves
from deniable.adversaries.model_observation import closeness, outputs
from deniable.adversaries.shadow_models import Shadows, pool_of, query
from deniable.adversaries.shadow_scores import RULES, turn_errors
from deniable.checks import one_of, whole
from deniable.data import Dataset
from deniable.tradeoff import average_precision
from deniable.training.noise_source import SeededSource
from deniable.training.threads import one_thread

HIDDEN_UNITS = 64
WEIGHT_DECAY = 1e-2


@dataclass(frozen=True)
class Shadow:
    """Shadow models, trained by `train(records, seed)` on `pool`, show how outputs of members look, class by class.

    `pool` must hold none of the target's members and non-members. Each shadow is trained on one random half of it (at
    most as many records as the target had) and its outputs on both halves become examples for the attack classifiers,
    one a class: the outputs' log-probabilities, 64 hidden units, one log-odds. The last shadow is not learnt from: on
    it the best epoch and the threshold are chosen. Of the target's records none is known; the tested half is that of
    the other attacks.
    """

    train: Callable[[Dataset, int], nn.Module]
    pool: Dataset
    shadows: int = 4
    epochs: int = 100
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        whole("shadows", self.shadows, low=2)
        whole("epochs", self.epochs)
        if len(self.pool) < 4:
            raise ValueError(f"pool must have at least 4 records to train shadow models on, got {len(self.pool)}")

    def __call__(self, model: nn.Module, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """The log-odds of membership of each tested record, by its class's classifier."""
        _, tested = halves(members, non_members, seed)
        examples = [self._shadow(number, len(members), seed) for number in range(self.shadows)]
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.set_rng_state(SeededSource(seed, 0, stream=3).generator.get_state())
            learnt, held = _Examples.join(examples[:-1]), examples[-1]
            classifiers = _Classifiers(learnt, self.pool.classes)
            self._fit(classifiers, learnt, held)
            with torch.no_grad():
                records = tested.records
                asked = outputs(model, records).float().log_softmax(1)
                scores = classifiers(asked, torch.from_numpy(records.labels)).double().numpy()
                held_scores = classifiers(held.output, held.label).double().numpy()
        return tested.with_scores(scores, best_threshold(held_scores, held.member.bool().numpy()))

    def _shadow(self, number: int, most: int, seed: int) -> _Examples:
        order = np.random.default_rng([seed, 2, number]).permutation(len(self.pool))
        count = min(len(self.pool) // 2, most)
        half = Half(self.pool.take(order[:count]), self.pool.take(order[count : 2 * count]))
        model = self.train(half.members, int(np.random.SeedSequence([seed, 3, number]).generate_state(1)[0]))
        found = outputs(model, half.records).float().log_softmax(1)
        return _Examples(found, torch.from_numpy(half.records.labels), torch.from_numpy(half.member).float())

    def _fit(self, classifiers: _Classifiers, learnt: _Examples, held: _Examples) -> None:
        optimizer = torch.optim.AdamW(classifiers.parameters(), self.learning_rate, weight_decay=WEIGHT_DECAY)
        least, best = inf, classifiers.state_dict()
        for _ in range(self.epochs):
            optimizer.zero_grad()
            _loss(classifiers, learnt).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            with torch.no_grad():
                loss = float(_loss(classifiers, held))
            if loss < least:
                least, best = loss, {name: value.clone() for name, value in classifiers.state_dict().items()}
        classifiers.load_state_dict(best)


class _Examples(NamedTuple):
    output: Tensor
    label: Tensor
    member: Tensor

    @classmethod
    def join(cls, examples: list[_Examples]) -> _Examples:
        return cls(*(torch.cat(parts) for parts in zip(*examples, strict=True)))


def _loss(classifiers: _Classifiers, examples: _Examples) -> Tensor:
    return functional.binary_cross_entropy_with_logits(classifiers(examples.output, examples.label), examples.member)


class _Classifiers(nn.Module):
    """One two-layer network a class, all of them at once: records are ordered by class, each class a matrix product."""

    def __init__(self, learnt: _Examples, classes: int) -> None:
        super().__init__()
        width = learnt.output.shape[1]
        self._mean, self._deviation = learnt.output.mean(0), learnt.output.std(0).clamp(min=1e-6)
        self._first = nn.Parameter(torch.randn(classes, width, HIDDEN_UNITS) / width**0.5)
        self._bias = nn.Parameter(torch.zeros(classes, 1, HIDDEN_UNITS))
        self._second = nn.Parameter(torch.randn(classes, HIDDEN_UNITS, 1) / HIDDEN_UNITS**0.5)
        self._odds = nn.Parameter(torch.zeros(classes, 1, 1))

    def forward(self, output: Tensor, label: Tensor) -> Tensor:
        counts = torch.bincount(label, minlength=len(self._first))
        place = torch.empty_like(label)
        order = label.argsort(stable=True)
        place[order] = torch.arange(len(label)) - (counts.cumsum(0) - counts)[label[order]]
        padded = torch.zeros(len(self._first), int(counts.max()), output.shape[1])
        padded[label, place] = (output - self._mean) / self._deviation
        hidden = functional.relu(padded @ self._first + self._bias)
        return (hidden @ self._second + self._odds)[label, place, 0]


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ShadowAttack:
    """The strongest of some rules of `shadow_scores.RULES`: the one that does best on the known half.

    The shadows' pool is the members, then the non-members.
    """

    shadows: Shadows
    rules: tuple[str, ...] = tuple(RULES)

    def __post_init__(self) -> None:
        for rule in self.rules:
            one_of("rules", rule, tuple(RULES))

    def __call__(self, model: Any, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """The chosen rule's score of each tested record."""
        scores = score_pool(model, pool_of(members, non_members), self.shadows, self.rules)
        known, tested = half_places(members, non_members, seed)
        rule = strongest_rule(scores, known, len(members))
        return replace(divide_scores(scores[rule], known, tested, len(members)), rule=rule)


def score_pool(model: Any, pool: Dataset, shadows: Shadows, rules: Sequence[str]) -> dict[str, Floats]:
    """Each rule's score of every record of the shadows' pool."""
    if shadows.inside.shape[1] != len(pool):
        found = f"{shadows.inside.shape[1]} records, not {len(pool)}"
        raise ValueError(f"shadows must be of the members and the non-members together, they are of {found}")
    target, others = query(model, pool, shadows.confidence.shape[1]), shadows.confidence.astype(np.float64)
    given = dict.fromkeys(rules, (target, others))
    if pool.regression:
        given = {rule: _from_errors(rule, target, others, shadows.inside) for rule in rules}
    return {rule: RULES[rule](*confidences, shadows.inside) for rule, confidences in given.items()}


def _from_errors(rule: str, target: Floats, others: Floats, inside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Confidences of a regression: Gaussians read which way errors move, other rules how small they are."""
    if rule.startswith(("lira", "bayes")):
        return turn_errors(target, others, inside, offline=rule.endswith("-offline"))
    scale = float(np.square(target).mean())
    return closeness(target, scale), closeness(others, scale)


class _Half(NamedTuple):
    scores: Floats
    member: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: Floats, half: HalfPlaces, members: int) -> _Half:
        both = np.concatenate([scores[half.members], scores[members + half.non_members]])
        return cls(both, np.repeat([True, False], [len(half.members), len(half.non_members)]))


def strongest_rule(scores: Mapping[str, Floats], known: HalfPlaces, members: int) -> str:
    """The rule with the largest average precision on the known half."""
    halves = {rule: _Half.of(values, known, members) for rule, values in scores.items()}
    return max(halves, key=lambda rule: average_precision(*halves[rule]))


def divide_scores(scores: Floats, known: HalfPlaces, tested: HalfPlaces, members: int) -> Scored:
    """The tested half's scores, and the threshold that is best on the known half."""
    threshold = best_threshold(*_Half.of(scores, known, members))
    return Scored(scores[tested.members], scores[members + tested.non_members], threshold)
