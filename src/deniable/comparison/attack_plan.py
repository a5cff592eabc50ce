"""An attack on one trained model as a campaign: blocks of shadow models, then the repeats of the other attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, Literal, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from deniable.adversaries import Attack, LossThreshold, Quantile, Scored, ShadowTraining, WhiteBox, half_places
from deniable.adversaries.membership import check_groups
from deniable.adversaries.model_observation import losses, outputs
from deniable.adversaries.shadow_attacks import divide_scores, score_pool, strongest_rule
from deniable.adversaries.shadow_models import ShadowBlock, Shadows, count_blocks, join_blocks, pool_of, train_block
from deniable.adversaries.shadow_recipes import (
    EngineRecipe,
    LoopRecipe,
    OwnRecipe,
    ShadowRecipe,
    Train,
    match_epochs,
    refit,
    suitable_recipe,
)
from deniable.adversaries.shadow_scores import RULES
from deniable.checks import one_of, whole
from deniable.data import Dataset
from deniable.engines import Campaign
from deniable.results.attack_result import ShadowsUsed

OwnAttack = Literal[
    "strongest",
    "all",
    "lira",
    "lira-offline",
    "rmia",
    "rmia-offline",
    "bayes",
    "bayes-offline",
    "quantile",
    "whitebox",
    "threshold",
]
CHOICES = ("strongest", "all")
"""Of many attacks, the one that does best on the known half."""
WITHOUT_SHADOWS: dict[str, Attack] = {
    "quantile": Quantile(),
    "whitebox": WhiteBox(),
    "threshold": LossThreshold("free"),
}


@dataclass(frozen=True)
class PlayedBlock:
    """What one block gave: shadows' confidences, or an attack's scores; the other part is empty."""

    confidence: NDArray[np.float32]
    inside: NDArray[np.bool_]
    right: NDArray[np.float64]
    members: NDArray[np.float64]
    non_members: NDArray[np.float64]
    threshold: NDArray[np.float64]

    @classmethod
    def of_shadows(cls, block: ShadowBlock) -> PlayedBlock:
        """Shadows that were trained together."""
        nothing = np.empty(0)
        return cls(block.confidence, block.inside, block.right, nothing, nothing, nothing)

    @classmethod
    def of_scores(cls, scored: Scored) -> PlayedBlock:
        """One attack in one repeat."""
        nothing = np.empty(0)
        return cls(
            nothing.astype(np.float32), nothing.astype(bool), nothing, scored.members, scored.non_members,
            np.array(scored.threshold),
        )  # fmt: skip

    @property
    def shadows(self) -> ShadowBlock:
        """Where it is of shadows."""
        return ShadowBlock(self.confidence, self.inside, self.right)

    @property
    def own_scores(self) -> Scored:
        """Where it is of scores."""
        return Scored(self.members, self.non_members, float(self.threshold))


@dataclass(frozen=True)
class AttackPlan:
    """All that an attack's figures depend on; equal plans give equal figures on one machine."""

    model: nn.Module | Any
    members: Dataset
    non_members: Dataset
    attack: OwnAttack
    repeats: int
    seed: int
    shadows: int
    queries: int
    training: ShadowTraining | None
    train: Train | None

    def __post_init__(self) -> None:
        one_of("attack", self.attack, get_args(OwnAttack))
        whole("repeats", self.repeats)
        whole("seed", self.seed, low=0)
        whole("shadows", self.shadows, low=4)
        check_groups(self.members, self.non_members)
        if self.training is not None and self.train is not None:
            raise ValueError("training and train both say how shadows are trained: give one of them")
        if self.training is not None and not isinstance(self.model, nn.Module):
            raise ValueError(
                "training is about networks: an estimator is fitted anew with its own parameters, leave it out"
            )
        if self.members.regression != self.non_members.regression:
            raise ValueError("members and non_members must both have classes, or both numbers to be predicted")
        if self.attack == "whitebox" and self.members.regression:
            raise ValueError("attack whitebox reads classes: name another attack for a regression")
        if "whitebox" in self.slow and not isinstance(self.model, nn.Module):
            raise ValueError(f"attack {self.attack} sees gradients: model must be an nn.Module, or name another attack")

    @property
    def rules(self) -> tuple[str, ...]:
        """Scores that rest on shadow models."""
        if self.attack in CHOICES:
            return tuple(RULES)
        return (self.attack,) if self.attack in RULES and self.attack not in WITHOUT_SHADOWS else ()

    @property
    def slow(self) -> tuple[str, ...]:
        """Attacks that learn from the known half in every repeat."""
        if self.attack == "all":
            gradients = isinstance(self.model, nn.Module) and not self.members.regression
            return ("quantile", "whitebox") if gradients else ("quantile",)
        return (self.attack,) if self.attack in WITHOUT_SHADOWS else ()

    @cached_property
    def pool(self) -> Dataset:
        """The records that shadows are trained on."""
        return pool_of(self.members, self.non_members)

    @cached_property
    def _matched_recipe(self) -> tuple[ShadowRecipe, float | None]:
        """The shadows' recipe, and the loss that its pilots reached, where its epochs were found by them."""
        if self.train is not None:
            return OwnRecipe(self.train), None
        if not isinstance(self.model, nn.Module):
            return OwnRecipe(partial(refit, self.model)), None
        training = self.training or ShadowTraining()
        if training.epochs is not None:
            return suitable_recipe(self.model, training), None
        return match_epochs(self.model, training, self.pool, float(losses(self.model, self.members).mean()), self.seed)

    @property
    def recipe(self) -> ShadowRecipe:
        """How shadows are trained."""
        return self._matched_recipe[0]

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the figures, as JSON values."""
        return {"attack": self.attack, "repeats": self.repeats} | self._block_settings

    @cached_property
    def _block_settings(self) -> dict[str, Any]:
        """What decides the bytes of blocks; all attacks with shadow models share them."""
        asked: dict[str, Any] = {"seed": self.seed, "model_sha256": _digest(self.model, self.pool)}
        if self.rules:
            own = {} if self.training is None else asdict(self.training)
            asked |= {"shadows": self.shadows, "queries": self.queries, **own}
        return asked | {"data_sha256": [self.members.sha256, self.non_members.sha256]}

    @property
    def shadow_blocks(self) -> int:
        """How many blocks train shadows."""
        return count_blocks(self.recipe, self.shadows) if self.rules else 0

    @property
    def campaign(self) -> Campaign[PlayedBlock]:
        """As every engine plays it: shadows, then repeat after repeat, so that one attack finds another's blocks."""
        blocks = self.shadow_blocks + len(self.slow) * self.repeats
        kind = {"blocks": "shadows" if self.rules else self.attack}
        own = {} if self.train is None else {"train": _name(self.train)}
        return Campaign(kind | own | self._block_settings, blocks, PlayedBlock, partial(play_block, self))

    def read(self, played: Sequence[PlayedBlock]) -> tuple[dict[str, list[Scored]], tuple[str, ...], Shadows | None]:
        """(each attack's repeats, the name of the attack that is judged in each repeat, the shadows)."""
        found: dict[str, list[Scored]] = {}
        chosen: tuple[str, ...] = (self.attack,) * self.repeats
        shadows = join_blocks([block.shadows for block in played[: self.shadow_blocks]]) if self.rules else None
        if shadows is not None:
            scores = score_pool(self.model, self.pool, shadows, self.rules)
            found, chosen = divide_rules(scores, self, self.repeats, self.seed)
        for place, name in enumerate(self.slow):
            found[name] = [block.own_scores for block in played[self.shadow_blocks + place :: len(self.slow)]]
        return found, chosen, shadows

    def likelihoods(self, shadows: Shadows) -> NDArray[np.float64]:
        """The log-likelihood ratio of membership of every record, by Bayesian LiRA, which needs few shadows."""
        return score_pool(self.model, self.pool, shadows, ("bayes",))["bayes"]

    def describe_shadows(self, shadows: Shadows) -> ShadowsUsed:
        """What is told of them."""
        right, settings = shadows.right.mean(0), getattr(self.recipe, "settings", None)
        return ShadowsUsed(
            shadows=len(shadows.inside),
            records=int(shadows.inside[0].sum()),
            queries=self.queries,
            trained_by=_trainers()[type(self.recipe)],
            epochs=None if settings is None else settings.epochs,
            learning_rate=None if settings is None else settings.learning_rate,
            epochs_loss=self._matched_recipe[1],
            accuracy_inside=float(right[0]),
            accuracy_outside=float(right[1]),
        )


def _trainers() -> dict[type, Literal["engine", "loop", "own"]]:
    return {EngineRecipe: "engine", LoopRecipe: "loop", OwnRecipe: "own"}


class _Groups(Protocol):
    """Who is a member and who is not; only their numbers and shapes are looked at."""

    @property
    def members(self) -> Dataset: ...

    @property
    def non_members(self) -> Dataset: ...


def divide_rules(
    scores: Mapping[str, NDArray[np.float64]], groups: _Groups, repeats: int, seed: int
) -> tuple[dict[str, list[Scored]], tuple[str, ...]]:
    """(each rule's tested scores, the strongest rule on the known half), both in every repeat."""
    count, chosen = len(groups.members), []
    found: dict[str, list[Scored]] = {rule: [] for rule in scores}
    for repeat in range(repeats):
        known, tested = half_places(groups.members, groups.non_members, seed + repeat)
        chosen.append(strongest_rule(scores, known, count))
        for rule, values in scores.items():
            found[rule].append(divide_scores(values, known, tested, count))
    return found, tuple(chosen)


def play_block(plan: AttackPlan, number: int) -> PlayedBlock:
    """Shadows that are trained together, or one attack in one repeat; it depends on the arguments alone."""
    if number < plan.shadow_blocks:
        block = train_block(
            plan.recipe, plan.pool, shadows=plan.shadows, queries=plan.queries, seed=plan.seed, block=number
        )
        return PlayedBlock.of_shadows(block)
    repeat, place = divmod(number - plan.shadow_blocks, len(plan.slow))
    attack = WITHOUT_SHADOWS[plan.slow[place]]
    return PlayedBlock.of_scores(attack(plan.model, plan.members, plan.non_members, plan.seed + repeat))


def _name(train: Train) -> str:
    """Of a user's function, so that another one's shadows are not taken for its own."""
    found = getattr(train, "func", train)
    return f"{getattr(found, '__module__', '')}:{getattr(found, '__qualname__', type(found).__name__)}"


def _digest(model: nn.Module | Any, pool: Dataset) -> str:
    """Of all weights and buffers, by name; of an estimator, of what it says of the records."""
    digest = sha256()
    if isinstance(model, nn.Module):
        for name, value in sorted(model.state_dict().items()):
            digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    else:
        digest.update(outputs(model, pool).to(torch.float32).numpy().tobytes())
    return digest.hexdigest()
