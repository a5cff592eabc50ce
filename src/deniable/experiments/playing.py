"""Plays a campaign of `deniable.experiments.games`, block by block, and sums up what it shows.

The trials are those of `deniable.audit`; beside them stand, for some of the trainings, what A_MI gains on the trained
model, what it gains on the same model before training, and the test accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from deniable.adversaries import LossThreshold
from deniable.bounds.divergences import rho_to_epsilon_classic
from deniable.bounds.risk_bounds import belief_to_epsilon
from deniable.bounds.textbook import advantage_to_epsilon
from deniable.campaigns.campaign import Plan, exchange_records, least_noise, usual_model
from deniable.comparison.repeat_measures import advantages
from deniable.comparison.trained import Weights, members_of, non_members_of, trained_model
from deniable.data import Dataset, load, split
from deniable.data.neighbours import Neighbour, cores, least_dissimilar, most_dissimilar, usual_measure
from deniable.engines import Campaign, Engine, Local, play_missing, resume_store
from deniable.evidence.attack_scores import Errors
from deniable.evidence.measured import Trials, belief_in_truth, epsilon_of_shift, largest_shift
from deniable.experiments.game_summary import (
    BeliefSpread,
    EpsilonEstimates,
    GameSummary,
    MeanError,
    QuantileSpread,
    SensitivitySpread,
    StepSpread,
)
from deniable.experiments.games import Game
from deniable.experiments.item import present
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Belief
from deniable.scores import privacy_loss
from deniable.store.records import Arrays
from deniable.training import Neighbours, TrainingSettings, run_block
from deniable.training.attacked.targets import quality
from deniable.training.engine import usual_block
from deniable.training.networks.usual_models import model_factory

EXTREMES = 3
"""Neighbours from either end that Bernau 2021 (Figure 4) looks at."""
TESTED = 500
"""Records that the accuracy is measured on."""
WORTH_A_WORKER = 20
"""Blocks; fewer take less time than starting a process."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 50


@dataclass(frozen=True)
class Block:
    """What is kept of one block: the observer's trials, and A_MI and the accuracy for its attacked trainings."""

    trained_on_d: NDArray[np.bool_]
    log_likelihood_ratio: NDArray[np.float64]
    local_sensitivity: NDArray[np.float64]
    sigma: NDArray[np.float64]
    membership: NDArray[np.float64]
    untrained: NDArray[np.float64]
    accuracy: NDArray[np.float64]


@dataclass(frozen=True)
class Played:
    """What a campaign gave; the last three have one value for each attacked training."""

    game: Game
    plan: Plan
    trials: Trials
    membership: NDArray[np.float64]
    """A_MI's advantage over the trained model."""
    untrained: NDArray[np.float64]
    """A_MI's advantage over the same model before training: luck in the draw of the records, the same in both."""
    accuracy: NDArray[np.float64]


def plan_game(game: Game) -> Plan:
    """The campaign as `deniable.audit` plans it; noise by Renyi DP (Bernau 2021, Section 5), as `noise_for_belief` has
    it."""
    kind = Adjacency(game.adjacency)
    promise = Belief(game.belief, game.delta)
    drawn = Drawn(game.data, game.universe, game.records, game.seed)
    neighbours, origin = _neighbours(drawn, kind, game.rank)
    unsettled = TrainingSettings(usual_model(None, drawn.universe), noise=1.0, adjacency=kind)
    training = replace(
        unsettled,
        noise=least_noise(promise, game.delta, Training.of(unsettled), "rdp"),
        sensitivity=game.sensitivity,
        trials_per_block=min(game.trials, usual_block(model_factory(unsettled.model)(), neighbours, unsettled.rate)),
    )
    draws = crc32(game.name.encode())  # each campaign its own, so that all do not share one piece of luck
    return Plan(promise, game.delta, "rdp", training, neighbours, game.trials, draws, origin)


def play(
    game: Game, place: Path, tell: Callable[[float], None] = lambda share: None, engine: Engine | None = None
) -> Played:
    """All trials of the campaign: those kept in `place` are read, the missing ones are played and kept there."""
    plan = plan_game(game)
    settings = {**plan.settings, "attacked": game.attacked, "rank": game.rank}
    campaign = Campaign(settings, plan.blocks, Block, partial(_block, game, plan))
    chosen_engine = engine or Local(max(1, min(cores(), plan.blocks // WORTH_A_WORKER)))
    with resume_store(chosen_engine, place / game.name) as store:
        store.begin(settings)
        blocks = play_missing(campaign, chosen_engine, store, tell=lambda done: tell(done / plan.blocks))
    return _join_blocks(game, plan, blocks)


def _join_blocks(game: Game, plan: Plan, blocks: list[Block]) -> Played:
    values = {one.name: np.concatenate([getattr(block, one.name) for block in blocks]) for one in fields(Block)}
    observed = {field.name: values.pop(field.name)[: game.trials] for field in fields(Trials)}
    return Played(game, plan, Trials(**observed), **values)


def _block(game: Game, plan: Plan, number: int) -> Block:
    """One block's trials, and A_MI and the accuracy for those of its trainings that are to be attacked."""
    steps, size = plan.training.steps, plan.training.trials_per_block
    attacked = range(number * size, min((number + 1) * size, game.attacked))
    kept = Weights(0, steps)
    # one step more, since a step's observer sees the weights before it; the trials' first steps stay the same
    longer = replace(plan.training, steps=steps + 1) if attacked else plan.training
    played = run_block(longer, plan.neighbours, plan.seed, number, kept if attacked else None)
    columns = ("log_likelihood_ratio", "local_sensitivity", "sigma")
    observed = {name: getattr(played, name)[:, :steps] for name in columns}
    return Block(trained_on_d=played.trained_on_d, **observed, **_attack_kept(game, plan, kept, attacked))


def _attack_kept(game: Game, plan: Plan, kept: Weights, trials: range) -> Arrays:
    if not trials:
        return {name: np.empty(0) for name in ("membership", "untrained", "accuracy")}
    outside, tests = _others(Drawn(game.data, game.universe, game.records, game.seed))
    members = members_of(plan, outside)

    def models(step: int) -> Any:
        return (trained_model(plan, weights) for weights in kept.at(step)[: len(trials)])

    def gains(step: int) -> NDArray[np.float64]:
        scored = (LossThreshold()(model, members, outside, n) for n, model in zip(trials, models(step), strict=True))
        return np.array([advantages([one]).mean for one in scored])

    last = plan.training.steps
    accuracy = np.array([quality(model, tests).accuracy for model in models(last)])
    return {"membership": gains(last), "untrained": gains(0), "accuracy": accuracy}


class Drawn(NamedTuple):
    """D and what is left of the data: equal ones are drawn once."""

    data: str
    most: int | None
    records: int
    seed: int

    @property
    def universe(self) -> Dataset:
        """All records there are to choose from."""
        return _universe(self.data, self.most)

    @property
    def parts(self) -> tuple[Dataset, Dataset]:
        """D and the others."""
        return split(self.universe, self.records, self.seed)


@cache
def _universe(data: str, most: int | None) -> Dataset:
    every = load(data)
    return every if most is None or most >= len(every) else split(every, most, 0)[0]


@cache
def _others(drawn: Drawn) -> tuple[Dataset, Dataset]:
    """Non-members, as many as D has, and test records; neither is in D."""
    rest = drawn.parts[1]
    tests = split(rest, min(TESTED, len(rest)), drawn.seed + 1)[0]
    return non_members_of(drawn.universe, drawn.records, drawn.seed), tests


@cache
def _extremes(drawn: Drawn, adjacency: Adjacency, most: bool) -> list[Neighbour]:
    return (most_dissimilar if most else least_dissimilar)(*drawn.parts, adjacency, count=EXTREMES)


@cache
def _neighbours(drawn: Drawn, adjacency: Adjacency, rank: int) -> tuple[Neighbours, dict[str, Any]]:
    found = _extremes(drawn, adjacency, rank >= 0)[rank if rank >= 0 else -1 - rank]
    universe = drawn.universe
    origin = {"data": drawn.data, "data_sha256": universe.sha256, "records": drawn.records}
    return exchange_records(*drawn.parts, found), {**origin, "measure": usual_measure(universe), **asdict(found)}


def summary(played: Played) -> GameSummary:
    """Everything that tables and figures read."""
    game, plan, trials = played.game, played.plan, played.trials
    sure, sensitivity = belief_in_truth(trials), trials.local_sensitivity
    errors = Errors.of(trials)
    wrong = (errors.false_positives + errors.false_negatives) / len(trials)
    expected = _mean(np.abs(2 * sure - 1))
    assert expected is not None  # one training says nothing
    steps = StepSpread(
        mean=sensitivity.mean(axis=0).tolist(), quantiles=np.quantile(sensitivity, QUANTILES, axis=0).tolist()
    )
    return GameSummary(
        trials=len(trials),
        records=game.records,
        delta=game.delta,
        epsilon=belief_to_epsilon(game.belief),
        noise=plan.training.noise,
        dissimilarity=plan.origin["dissimilarity"],
        exact_advantage=float(privacy_loss(plan.mechanism, plan.training.adjacency).advantage()),
        advantage=1 - 2 * wrong,
        advantage_error=float(2 * np.sqrt(wrong * (1 - wrong) / len(trials))),
        expected_advantage=expected.mean,
        expected_advantage_error=expected.error,
        belief=BeliefSpread(mean=float(sure.mean()), quantiles=_quantiles(sure), max=float(sure.max())),
        beliefs=np.histogram(sure, BINS, (0, 1))[0].tolist(),
        violations=float(np.mean(sure > game.belief)),
        epsilon_from=_epsilons(largest_shift(trials), float(sure.max()), 1 - 2 * wrong, game.delta),
        sensitivity=SensitivitySpread(mean=float(sensitivity.mean()), quantiles=_quantiles(sensitivity), steps=steps),
        membership=_mean(played.membership),
        membership_gain=_mean(played.membership - played.untrained),
        accuracy=_spread(played.accuracy),
    )


def _epsilons(shift: float, belief: float, advantage: float, delta: float) -> EpsilonEstimates:
    return EpsilonEstimates(
        sensitivity=rho_to_epsilon_classic(shift**2 / 2, delta),
        sensitivity_exact=present(epsilon_of_shift(shift, delta)),
        belief=max(0.0, float(logit(belief))),
        advantage=advantage_to_epsilon(max(0.0, advantage), delta),
    )


def _mean(values: NDArray[np.float64]) -> MeanError | None:
    if len(values) < 2:
        return None
    return MeanError(mean=float(values.mean()), error=float(values.std(ddof=1) / np.sqrt(len(values))))


def _quantiles(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.quantile(values, QUANTILES).tolist())


def _spread(values: NDArray[np.float64]) -> QuantileSpread | None:
    return QuantileSpread(mean=float(values.mean()), quantiles=_quantiles(values)) if len(values) else None
