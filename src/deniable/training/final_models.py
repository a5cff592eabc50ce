"""Trainings of which only the final model is seen: what an observer makes of it.

*Crafted gradients* (Cebere 2024): in the place of the person's record stands a gradient of the clipping norm that
always points the same way, in weights that the other records hardly move; the observer looks how far the final weights
went that way. Against replaced records D has it with one sign, D' with the other: exactly what the sensitivity allows.

*Loss of the final model*: the observer asks the final model for its loss on the person's record (less the other
record's), from initial weights of its own choice (`worst_weights`, Annamalai 2024) or unknown ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from deniable.mechanisms import Adjacency
from deniable.training.ensemble import Ensemble, initial_weights
from deniable.training.networks.losses import loss_function
from deniable.training.noise_source import SeededSource
from deniable.training.settings import Neighbours, TrainingSettings
from deniable.training.threads import one_thread

PILOT_TRIALS = 4
CRAFTED_SHARE = 0.02
"""Of the weights: those that the others move least carry the crafted gradient. With several, Adam is nearly linear."""
FITTING_STEPS, FITTING_RATE = 300, 0.01
"""Of Adam, on the records that everybody knows."""
LARGE_LOSS = 6.0
"""That the person's record is given by the worst initial weights: its gradient is then long."""
_DRAWN, _WEIGHTS, _PILOT = 21, 22, 23
"""Streams of random numbers, other ones than a campaign's."""


@dataclass(frozen=True)
class FinalScores:
    """One score a training, of the final model alone; larger ones speak for D."""

    trained_on_d: NDArray[np.bool_]
    score: NDArray[np.float64]


@dataclass(frozen=True)
class Craft:
    """The initial weights that all trials share, and the direction (of norm 1) of the crafted gradient."""

    weights: list[Tensor]
    direction: list[Tensor]


def craft_gradient(settings: TrainingSettings, neighbours: Neighbours, seed: int) -> Craft:
    """A direction that the other records hardly move, found in a few trainings without the person's record."""
    with one_thread(), torch.no_grad():
        model, drawn = initial_weights(settings, 1, SeededSource(seed, 0, stream=_WEIGHTS).generator)
        weights = [w[0] for w in drawn]
        game = _Game(
            settings, neighbours, model, weights, source=SeededSource(seed, 0, stream=_PILOT), trials=PILOT_TRIALS
        )
        moved = [torch.zeros_like(w) for w in weights]

        def watch(sums: list[Tensor]) -> None:
            for total, part in zip(moved, sums, strict=True):
                total.add_(part.square().sum(0))

        game.play(torch.zeros(PILOT_TRIALS, game.differing), watch)
    flat = torch.cat([part.flatten() for part in moved])
    chosen = flat.argsort(stable=True)[: max(1, int(CRAFTED_SHARE * len(flat)))]
    direction = torch.zeros_like(flat)
    direction[chosen] = len(chosen) ** -0.5
    parts = torch.split(direction, [part.numel() for part in moved])
    return Craft(weights, [part.view_as(like) for part, like in zip(parts, moved, strict=True)])


def crafted_block(
    settings: TrainingSettings, neighbours: Neighbours, craft: Craft, seed: int, block: int
) -> FinalScores:
    """Trainings with the crafted gradient in the person's place; the score is how far the weights went that way."""
    with one_thread(), torch.no_grad():
        source, trials = SeededSource(seed, block, stream=_DRAWN), settings.trials_per_block
        model, _ = initial_weights(settings, 1, SeededSource(seed, block, stream=_WEIGHTS).generator)
        game = _Game(settings, neighbours, model, craft.weights, source=source, trials=trials)
        on_d = source.uniform(trials) < 0.5
        sign = torch.where(on_d, 1.0, -1.0 if settings.adjacency is Adjacency.REPLACE else 0.0)

        def insert(sums: list[Tensor]) -> None:
            drawn = sign if settings.rate == 1 else sign * (source.uniform(trials) < settings.rate)
            for total, way in zip(sums, craft.direction, strict=True):
                total.add_(settings.clip * drawn.view(-1, *[1] * way.ndim) * way)

        final = game.play(torch.zeros(trials, game.differing), insert)
        ways = zip(final, craft.weights, craft.direction, strict=True)
        score = sum(((start - w) * way).double().flatten(1).sum(1) for w, start, way in ways)
        assert isinstance(score, Tensor)
    return _finite_scores(on_d, score)


def loss_block(
    settings: TrainingSettings, neighbours: Neighbours, weights: list[Tensor] | None, seed: int, block: int
) -> FinalScores:
    """Trainings from these initial weights (None: each from its own); the score is the final model's loss, negated."""
    with one_thread(), torch.no_grad():
        source, trials = SeededSource(seed, block, stream=_DRAWN), settings.trials_per_block
        generator = SeededSource(seed, block, stream=_WEIGHTS).generator
        model, drawn = initial_weights(settings, trials if weights is None else 1, generator)
        game = _Game(settings, neighbours, model, drawn if weights is None else weights, source=source, trials=trials)
        on_d = source.uniform(trials) < 0.5
        members = torch.stack([on_d, ~on_d], 1)[:, : game.differing].float()
        game.play(members, None)
        score = torch.stack([_loss_difference(settings, game, trial) for trial in range(trials)])
    return _finite_scores(on_d, score)


def worst_weights(settings: TrainingSettings, neighbours: Neighbours, seed: int) -> list[Tensor]:
    """Initial weights that fit all records but the person's, on which the loss is large.

    The others then hardly move the model, the person's record as far as clipping lets it.
    """
    columns = neighbours.columns(settings.adjacency)
    common = len(columns.records) - columns.differing
    with one_thread():
        model, _ = initial_weights(settings, 1, SeededSource(seed, 0, stream=_WEIGHTS).generator)
        trained = [p for p in model.parameters() if p.requires_grad]
        learner = torch.optim.Adam(trained, FITTING_RATE)
        loss = loss_function(settings.loss)
        for _ in range(FITTING_STEPS):
            learner.zero_grad()
            each = loss(model(columns.records), columns.labels)
            fit = each[:common].mean() if common else each.new_zeros(())
            (fit + (LARGE_LOSS - each[common:]).clamp(min=0).mean()).backward()  # type: ignore[no-untyped-call]
            learner.step()
    return [p.detach().clone() for p in trained]


class _Game:
    """Trainings of which the final weights alone are kept."""

    def __init__(
        self,
        settings: TrainingSettings,
        neighbours: Neighbours,
        model: nn.Module,
        weights: list[Tensor],
        *,
        source: SeededSource,
        trials: int,
    ) -> None:
        """`weights` are those of one model, for all trials, or of each trial."""
        shapes = [p.ndim for p in model.parameters() if p.requires_grad]
        first = [
            w.expand(trials, *w.shape).clone() if w.ndim == ndim else w for w, ndim in zip(weights, shapes, strict=True)
        ]
        self.columns = neighbours.columns(settings.adjacency)
        self.differing = self.columns.differing
        self.ensemble = Ensemble(settings, model, first, self.columns, source)
        self._settings = settings
        self._sigma = torch.full((trials,), settings.noise * settings.global_sensitivity)

    def play(self, members: Tensor, change: Callable[[list[Tensor]], None] | None) -> list[Tensor]:
        """All steps; `change` sees, and may change, every step's sums before the noise. The final weights."""
        for _ in range(self._settings.steps):
            self.ensemble.draw_batch(members)
            self.ensemble.sum_gradients()
            if change is not None:
                change(self.ensemble.sums)
            self.ensemble.add_noise(self._sigma)
            self.ensemble.apply()
        return self.ensemble.weights


def _loss_difference(settings: TrainingSettings, game: _Game, trial: int) -> Tensor:
    """Minus the loss on x, and (replace) plus the loss on x'."""
    person = slice(len(game.columns.records) - game.differing, None)
    found = functional_call(game.ensemble.model, game.ensemble.state(trial), (game.columns.records[person],))
    each = loss_function(settings.loss)(found.double(), game.columns.labels[person])
    return each[1] - each[0] if game.differing == 2 else -each[0]


def _finite_scores(on_d: Tensor, score: Tensor) -> FinalScores:
    if not bool(torch.isfinite(score).all()):
        raise FloatingPointError("training diverged: lower learning_rate or scale the records")
    return FinalScores(on_d.numpy(), score.double().numpy())
