"""One unit of work is one level in one repeat: train the target model, attack it; each is kept as it finishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import nn

from deniable.adversaries import Attack, Blind, LossThreshold, Scored, Shadow, ShadowAttack, WhiteBox
from deniable.adversaries.shadow_models import count_blocks, join_blocks, pool_of, train_block
from deniable.adversaries.shadow_recipes import EngineRecipe, ShadowRecipe
from deniable.adversaries.shadow_scores import RULES
from deniable.comparison.comparison_plan import ComparisonPlan, Division, Level
from deniable.data import Dataset
from deniable.engines import Campaign, Engine, Local, play_missing
from deniable.local import Randomizer, perturb_dataset, suitable_randomizer
from deniable.store import CampaignStore
from deniable.training.attacked.targets import Fitted, TargetSettings, fit, quality
from deniable.training.threads import one_thread

SHADOWS = 16
"""Shadow models of each level and repeat."""
SHADOWS_OF_A_PERTURBATION = 2
STRONG_RULES = ("lira", "rmia", "bayes", "threshold")
Progress = Callable[[int, int], None]
"""Called with (units done, units in all), first with those that a resumed campaign had already."""


@dataclass(frozen=True)
class PlayedRepeat:
    """What one unit gave; for the blind attack, which trains nothing, accuracies are NaN and steps 0."""

    members: NDArray[np.float64]
    non_members: NDArray[np.float64]
    threshold: NDArray[np.float64]
    train_accuracy: NDArray[np.float64]
    test_accuracy: NDArray[np.float64]
    steps: NDArray[np.int64]
    rule: NDArray[np.int64]
    """Which of `shadow_scores.RULES` was chosen; -1 of an attack that has none to choose."""

    @property
    def attack_scores(self) -> Scored:
        """The attack's scores."""
        return Scored(self.members, self.non_members, float(self.threshold), self.rule_name)

    @property
    def rule_name(self) -> str:
        """The rule's name; empty where there is none."""
        return "" if self.rule < 0 else tuple(RULES)[int(self.rule)]


def play(
    plan: ComparisonPlan,
    store: CampaignStore | None = None,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> tuple[list[PlayedRepeat], dict[Level, list[PlayedRepeat]]]:
    """(the blind attack, each level's attack), one a repeat; units that `store` has are not played again."""
    campaign = campaign_of(plan)
    total = campaign.blocks
    tell = None if progress is None else partial(_tell, progress, total)
    kept = play_missing(campaign, engine or Local(), store, tell=tell)
    rows = [
        [kept[row * plan.repeats + repeat] for repeat in range(plan.repeats)] for row in range(total // plan.repeats)
    ]
    return rows[0], dict(zip(plan.levels, rows[1:], strict=True))


def campaign_of(plan: ComparisonPlan) -> Campaign[PlayedRepeat]:
    """The plan's units, as every engine plays them."""
    return Campaign(plan.settings, (1 + len(plan.levels)) * plan.repeats, PlayedRepeat, partial(unit, plan))


def _tell(progress: Progress, total: int, done: int) -> None:
    progress(done, total)


def unit(plan: ComparisonPlan, number: int) -> PlayedRepeat:
    """The blind attack for the first numbers, one a repeat; then level after level. Depends on its arguments alone."""
    with one_thread():
        return _unit(plan, *divmod(number, plan.repeats), number)


def _unit(plan: ComparisonPlan, row: int, repeat: int, number: int) -> PlayedRepeat:
    records = plan.divide(repeat)
    if row == 0:
        return _summarize_repeat(Blind()(None, records.members, records.non_members, repeat), np.nan, np.nan, 0)
    trainer = Trainer.of(plan, plan.levels[row - 1], records.validation)
    fitted = trainer.fit(records.members, int(np.random.SeedSequence([plan.seed, number]).generate_state(1)[0]))
    scored = _attack(plan, trainer, records, fitted.steps)(fitted.model, records.members, records.non_members, repeat)
    test = quality(fitted.model, records.non_members).accuracy
    return _summarize_repeat(scored, fitted.train.accuracy, test, fitted.steps)


def _summarize_repeat(scored: Scored, train: float, test: float, steps: int) -> PlayedRepeat:
    threshold, *accuracies = (np.array(value, dtype=np.float64) for value in (scored.threshold, train, test))
    rule = tuple(RULES).index(scored.rule) if scored.rule else -1
    counts = np.array(steps), np.array(rule)
    return PlayedRepeat(scored.members, scored.non_members, threshold, accuracies[0], accuracies[1], *counts)


def _attack(plan: ComparisonPlan, trainer: Trainer, records: Division, steps: int) -> Attack:
    """The plan's attack; shadow models take as many `steps` as the target did."""
    match plan.attack:
        case "whitebox":
            return WhiteBox()
        case "threshold":
            return LossThreshold("free")
        case "shadow":
            return Shadow(trainer, records.others)
    rules = STRONG_RULES if plan.attack == "strongest" else (plan.attack,)
    recipe = trainer.recipe(steps)
    pool = pool_of(records.members, records.non_members)
    blocks = [
        train_block(recipe, pool, shadows=SHADOWS, queries=1, seed=plan.seed, block=block)
        for block in range(count_blocks(recipe, SHADOWS))
    ]
    return ShadowAttack(join_blocks(blocks), rules)


@dataclass(frozen=True)
class Trainer:
    """Trains as one level does; a shadow attacker trains in the same way on records of its own."""

    settings: TargetSettings
    randomizer: Randomizer | None
    validation: Dataset

    @classmethod
    def of(cls, plan: ComparisonPlan, level: Level, validation: Dataset) -> Trainer:
        """The level's noise on gradients or on records."""
        local = level.kind == "local" and level.value is not None
        return cls(plan.training(level), suitable_randomizer(plan.data, level.value) if local else None, validation)  # type: ignore[arg-type]

    def fit(self, records: Dataset, seed: int) -> Fitted:
        """At a local level the model sees perturbed records, as attacks never do (Bernau 2021b, Section 3.1)."""
        given = records if self.randomizer is None else perturb_dataset(records, self.randomizer, seed)
        return fit(self.settings, given, self.validation, seed)

    def recipe(self, steps: int) -> ShadowRecipe:
        """Of shadow models, with as many steps; at a local level each few of them see records perturbed anew."""
        recipe = EngineRecipe(self.settings, steps)
        if self.randomizer is None:
            return recipe
        return PerturbedRecipe(replace(recipe, shadows_at_once=SHADOWS_OF_A_PERTURBATION), self.randomizer)

    def __call__(self, records: Dataset, seed: int) -> nn.Module:
        """Only the model."""
        return self.fit(records, seed).model


@dataclass(frozen=True)
class PerturbedRecipe:
    """Shadows of a local level: each block is trained on the pool perturbed anew; confidences are in the originals."""

    recipe: EngineRecipe
    randomizer: Randomizer

    @property
    def shadows_at_once(self) -> int:
        """The recipe's."""
        return self.recipe.shadows_at_once

    def train(self, pool: Dataset, inside: NDArray[np.bool_], seed: int, block: int) -> Iterator[nn.Module]:
        """One model a row."""
        drawn = int(np.random.SeedSequence([seed, 7, block]).generate_state(1)[0])
        return self.recipe.train(perturb_dataset(pool, self.randomizer, drawn), inside, seed, block)
