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
from deniable.examination.diagnostics import NUMBER, Evidence, Report, diagnose
from deniable.examination.examination_game import Examination, alone_evidence, play_trial, twins_of
from deniable.examination.post_processing import find_post_processing
from deniable.examination.residuals import TrialStatistics
from deniable.examination.twins.twins import Twins
from deniable.store import Store
from deniable.training.gradients import trainable

__all__ = ["GAME_SHARE", "diagnose_trials", "early_end_note", "looks", "play_trials", "spent_risk"]

GAME_SHARE = 0.8
"""Of the risk 1 - confidence, so much is the game's and the rest the diagnostics'."""


EARLY_SHARE = 0.1
"""Of the game's risk, so much is for trials that end early."""


FIRST_LOOK = 10
"""Trials before the first look at the diagnostics."""


def spent_risk(played: int, planned: int) -> float:
    """The share of the game's risk that its limits may take, if the trials ended after so many of those planned.

    Guarantee: the shares of all looks together are at most 1, so that the limits hold whenever the trials end.
    """
    early = len(looks(planned)) - 1
    if not early:
        return 1.0
    return 1 - EARLY_SHARE if played >= planned else EARLY_SHARE / early


def early_end_note(played: int, planned: int) -> str:
    return f"The trials ended after {played} of {planned}: the leak was certain, and more would not change the verdict."


def looks(trials: int) -> list[int]:
    """After how many trials the diagnostics are looked at: early, to end where a leak is certain, and at the end."""
    early = [FIRST_LOOK * 4**k for k in range(12)]
    return [*(number for number in early if number <= 0.7 * trials), trials]


def play_trials(
    game: Examination, store: Store | None, false_alarms: float, engine: Engine, progress: Progress | None
) -> tuple[list[TrialStatistics], Report]:
    """Play the trials, and end early where a leak is certain.

    Guarantee: all looks together give a false alarm with probability at most `false_alarms`; the last has half of it,
    and those before share the other half.
    """
    game, twins = _without_post_processing(game)
    kept, planned = _Kept(store), looks(game.trials)
    alone = cache(partial(alone_evidence, game, false_alarms / NUMBER))
    torn = cache(partial(alone_evidence, game, false_alarms / NUMBER, torn=True))
    for number in planned:
        share = 1.0 if len(planned) == 1 else 0.5 if number == game.trials else 0.5 / (len(planned) - 1)
        examined = _play_first(game, number, kept, engine, progress)
        played = partial(diagnose_trials, game, examined, share * false_alarms, false_alarms=false_alarms)
        report = played(twins=twins, alone=alone, torn=torn)
        if report.certain:
            break
    return examined, report


def _without_post_processing(game: Examination) -> tuple[Examination, Twins]:
    """The game that undoes what is done to the noisy sums, if that is known; and its twins."""
    twins = twins_of(game)
    if not twins.repeatable or twins.fits is not False or game.claim.recipe.augmentations > 1:
        return game, twins
    with torch.no_grad():
        pairs = [
            (
                one.seen,
                one.recomputer.recompute(one.seen, one.members),
                two.seen,
                two.recomputer.recompute(two.seen, two.members),
            )
            for one, two in twins.exchanged_pairs
        ]
        post = find_post_processing(pairs)
    undone = replace(game, post=post)
    return (game, twins) if post is None else (undone, twins_of(undone))


class _Kept:
    """Finished trials, in memory and in a store if there is one."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._trials: dict[int, dict[str, Any]] = {}
        if store is not None:
            self._trials = {number: store.load(number) for number in store.finished()}

    def finished(self) -> list[int]:
        """Their numbers."""
        return sorted(self._trials)

    def load(self, number: int) -> dict[str, Any]:
        """The arrays of one."""
        return self._trials[number]

    def save(self, number: int, arrays: Mapping[str, Any], at_once: bool) -> None:
        """Add one."""
        self._trials[number] = dict(arrays)
        if self._store is not None:
            self._store.save(number, arrays, at_once)


def _play_first(
    game: Examination, number: int, kept: _Kept, engine: Engine, progress: Progress | None
) -> list[TrialStatistics]:
    """The first trials, so many."""
    tell = None if progress is None else lambda done: progress(done, game.trials)
    return play_missing(Campaign({}, number, TrialStatistics, partial(play_trial, game)), engine, kept, tell=tell)


def diagnose_trials(
    game: Examination,
    examined: list[TrialStatistics],
    spent: float,
    *,
    false_alarms: float | None = None,
    twins: Twins | None = None,
    alone: Callable[[], Evidence | None] | None = None,
    torn: Callable[[], Evidence | None] | None = None,
) -> Report:
    """The diagnostics of some trials; `spent` of all `false_alarms` is theirs."""
    parameters = trainable(game.model())
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    members = np.zeros((len(examined), len(game.columns.records)))
    for row, one in zip(members, examined, strict=True):
        row[game.members(bool(one.trained_on_d))] = 1
    sketch = game.sketch(parameters)
    twins = twins_of(game) if twins is None else twins
    with torch.no_grad():
        level = spent / NUMBER
        others: dict[str, Any] = {"twins": twins, "alone": alone, "torn": torn}
        evidence = Evidence.of(game.claim, shapes, sketch, members, examined, level=level, **others)
        return diagnose(evidence, spent if false_alarms is None else false_alarms)
