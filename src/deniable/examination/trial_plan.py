"""How many trials are played, when the diagnostics look at them, and how the risk of a false alarm is shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from deniable.campaigns.campaign import Progress
from deniable.engines import Campaign, Engine, play_missing
from deniable.evidence.anytime.watch import Stop, Watch, WatchEvidence, limits_confidence
from deniable.evidence.anytime.watch import looks as watch_looks
from deniable.examination.alternatives import LookedTrial
from deniable.examination.diagnostics import NUMBER, Evidence, Report, diagnose
from deniable.examination.examination_game import Examination, alone_evidence, look_at_trials, play_trial, twins_of
from deniable.examination.residuals import TrialStatistics
from deniable.examination.twins.idle_records import other_contents
from deniable.examination.twins.shifted_noise import look_through_noise
from deniable.examination.twins.twin_run import FAILS, Run
from deniable.examination.twins.twins import Twins
from deniable.examination.updates.post_processing import Pair, PostProcessing, find_post_processing
from deniable.store import CampaignStore
from deniable.store.records import Arrays
from deniable.training.gradients import trainable

GAME_SHARE = 0.8
"""Of the risk 1 - confidence, so much is the game's and the rest the diagnostics'."""


MOST_SIGMAS = 6.0
"""A sum whose noise is as claimed is hardly ever farther off."""


FIRST_LOOK = 10
"""Trials before the first look at the diagnostics."""


def game_confidence(confidence: float, played: int, planned: int, stop: Stop) -> float:
    """Of the game's limits: they hold whenever the trials end, within the game's share of 1 - `confidence`."""
    sure = 1 - GAME_SHARE * (1 - confidence)
    if stop == "never":
        return sure
    return limits_confidence(sure, played, sorted({*looks(planned), *watch_looks(planned, 1)}))


def early_end_note(played: int, planned: int) -> str:
    return f"The trials ended after {played} of {planned}: the leak was certain, and more would not change the verdict."


def looks(trials: int) -> list[int]:
    """After how many trials the diagnostics are looked at: early, to end where a leak is certain, and at the end."""
    early = [FIRST_LOOK * 4**k for k in range(12)]
    return [*(number for number in early if number <= 0.7 * trials), trials]


def play_trials(
    game: Examination,
    store: CampaignStore | None,
    false_alarms: float,
    engine: Engine,
    progress: Progress | None,
    *,
    new_watch: Callable[[], Watch] | None = None,
) -> tuple[list[TrialStatistics], Report, WatchEvidence | None]:
    """Play the trials, and end early where a diagnostic or the watch is certain of a leak; without a watch, never.

    Guarantee: all looks together give a false alarm with probability at most `false_alarms`; the last has half of it,
    and those before share the other half. A look when the watch is certain costs nothing: of a training as claimed,
    the watch's own false alarm came first.
    """
    game, twins = _without_post_processing(game)
    kept, planned = store or _InMemory(), looks(game.trials) if new_watch is not None else [game.trials]
    alone = cache(partial(alone_evidence, game, false_alarms / NUMBER))
    torn = cache(partial(alone_evidence, game, false_alarms / NUMBER, torn=True))
    looking = cache(partial(look_at_trials, game))
    for number in planned:
        share = 1.0 if len(planned) == 1 else 0.5 if number == game.trials else 0.5 / (len(planned) - 1)
        watch = None if new_watch is None else new_watch()
        tell = None if progress is None else lambda done: progress(done, game.trials)
        campaign = Campaign({}, number, TrialStatistics, partial(play_trial, game))
        certain = None if watch is None else _Hearing(watch)
        examined = play_missing(campaign, engine, kept, tell=tell, certain=certain)
        played = partial(diagnose_trials, game, examined, share * false_alarms, false_alarms=false_alarms)
        report = played(twins=twins, alone=alone, torn=torn, looking=looking)
        if new_watch is not None and (report.certain or len(examined) < number or _refutes(watch)):
            break
    return examined, report, None if watch is None else watch.evidence()


def _refutes(watch: Watch | None) -> bool:
    return watch is not None and watch.evidence().refuted_after is not None


class _Hearing:
    """Shows a watch every trial, and ends the trials when it is certain, but not before the first diagnostics."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._heard = watch, 0

    def __call__(self, trial: TrialStatistics) -> bool:
        self._heard += 1
        refuted = self._watch.count([float(np.sum(trial.ratio))], [bool(trial.trained_on_d)])
        return refuted and self._heard >= FIRST_LOOK


def _without_post_processing(game: Examination) -> tuple[Examination, Twins]:
    """The game that undoes what is done to the noisy sums, if that is known; and its twins."""
    twins = twins_of(game)
    if not twins.repeatable or game.claim.recipe.augmentations > 1 or _is_sum_with_noise(twins):
        return game, twins
    with torch.no_grad():
        others = _pairs_on_other_records(twins) if _has_zeros(twins) else []
        post = find_post_processing([_recompute_pair(*pair) for pair in twins.exchanged_pairs], others)
    shown = look_through_noise(twins)
    if shown is not None:  # then what was found is known, or was a chance
        layers_number = len(twins.original(twins.seeds[0]).seen.sums)
        post = replace(post or PostProcessing.of_layers(layers_number), noisy_sum=shown.noisy_sum)
        post = None if shown.noisy_sum is None or post.does_nothing else post
    undone = replace(game, post=post)
    return (game, replace(twins, shown=shown)) if post is None else (undone, twins_of(undone))


def _is_sum_with_noise(twins: Twins) -> bool:
    """Whether the sums are as claimed, by twins; where these do not tell, by the first sum of one training."""
    if twins.fits is not None:
        return twins.fits
    one = twins.original(twins.seeds[0])
    with torch.no_grad():
        found = one.recomputer.recompute(one.seen.first(1), one.members)
    rest, clean = found.residual[0].double(), found.clean[0].double()
    along = float(rest @ clean / clean.norm().clamp(min=1e-300))
    return abs(along) < MOST_SIGMAS and abs(float(rest.square().mean()) - 1) < MOST_SIGMAS * (2 / len(rest)) ** 0.5


def _has_zeros(twins: Twins) -> bool:
    return bool((twins.original(twins.seeds[0]).sums == 0).any())


def _pairs_on_other_records(twins: Twins) -> list[Pair]:
    """The training on D beside those on other contents of all records; none where one of them fails."""
    one = twins.original(twins.seeds[0])
    try:
        others = [twins.train(twins.seeds[0], True, contents, None) for contents in other_contents(twins, one)]
    except FAILS:
        return []
    return [_recompute_pair(one, two) for two in others]


def _recompute_pair(one: Run, two: Run) -> Pair:
    clean = [run.recomputer.recompute(run.seen, run.members) for run in (one, two)]
    return one.seen, clean[0], two.seen, clean[1]


class _InMemory:
    """Finished trials, for the next look, where no directory keeps them."""

    def __init__(self) -> None:
        self._trials: dict[int, Arrays] = {}

    def finished_blocks(self) -> list[int]:
        """Their numbers."""
        return sorted(self._trials)

    def __contains__(self, number: int) -> bool:
        return number in self._trials

    def load(self, number: int) -> Arrays:
        """The arrays of one."""
        return self._trials[number]

    def save(self, number: int, arrays: Mapping[str, Any], at_once: bool) -> None:
        """Add one."""
        self._trials[number] = dict(arrays)


def diagnose_trials(
    game: Examination,
    examined: list[TrialStatistics],
    spent: float,
    *,
    false_alarms: float | None = None,
    twins: Twins | None = None,
    alone: Callable[[], Evidence | None] | None = None,
    torn: Callable[[], Evidence | None] | None = None,
    looking: Callable[[], list[LookedTrial]] | None = None,
) -> Report:
    """The diagnostics of some trials; `spent` of all `false_alarms` is theirs."""
    parameters = trainable(game.make_model())
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    members = np.zeros((len(examined), len(game.columns.records)))
    for row, one in zip(members, examined, strict=True):
        row[game.members(bool(one.trained_on_d))] = 1
    sketch = game.sketch(parameters)
    twins = twins_of(game) if twins is None else twins
    with torch.no_grad():
        level = spent / NUMBER
        again = cache(partial(look_at_trials, game)) if looking is None else looking
        evidence = Evidence.of(
            game.claim, shapes, sketch, members, examined,
            level=level, twins=twins, alone=alone, torn=torn, looking=again,
        )  # fmt: skip
        return diagnose(evidence, spent if false_alarms is None else false_alarms)
