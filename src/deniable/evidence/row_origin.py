"""How the rows of a score file arose, where its column `run` tells: canaries of one training, or many trainings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from deniable.checks import RefusedError
from deniable.evidence.attack_scores import Floats, Scores
from deniable.evidence.examined_claim import Asked


@dataclass(frozen=True)
class SettledRows:
    """The scores to judge, how, and what the column `run` said about it; empty where there is none."""

    scores: Scores
    asked: Asked
    inferred: str = ""


def settle_origin(score: Floats, member: NDArray[np.bool_], run: NDArray[np.int64] | None, asked: Asked) -> SettledRows:
    """The scores with their origin; `run` numbers the training of each row, from 0 on.

    All rows of one training are its canaries. Rows of trainings of their own are independent. Otherwise rows of one
    training are not, so one of each, drawn at random whatever its score, is kept. ValueError where the origin that was
    stated contradicts the file.
    """
    if run is None:
        return SettledRows(Scores.of(score, member), asked)
    rows, trainings = run.size, int(run.max()) + 1
    if trainings == 1:
        if asked.rows_from == "trainings":
            raise RefusedError(f"{{rows_from}} is trainings, but by column run all {rows:,} rows are of one training")
        said = f"By column run all {rows:,} rows are of one training: they are judged as its canaries."
        return SettledRows(Scores.of(score, member), replace(asked, rows_from="one-run"), said)
    if asked.of_one_run:
        raise ValueError(f"the canaries of one training are asked for, but by column run there are {trainings:,}")
    of_trainings = replace(asked, rows_from="trainings")
    if trainings == rows:
        said = f"By column run each of the {rows:,} rows is of a training of its own."
        return SettledRows(Scores.of(score, member), of_trainings, said)
    if asked.primary == "watch":
        raise ValueError(f"a watch takes one row a training, but by column run {rows:,} rows are of {trainings:,}")
    kept = _one_of_each(run, score)
    if member[kept].all() or not member[kept].any():
        raise ValueError(f"one row of each of {trainings:,} trainings (column run) leaves one kind: show more")
    said = (
        f"By column run the {rows:,} rows are of {trainings:,} trainings. Rows of one training are not independent, so "
        f"one of each, drawn at random, is judged."
    )
    return SettledRows(Scores.of(score[kept], member[kept]), of_trainings, said)


def _one_of_each(run: NDArray[np.int64], score: Floats) -> NDArray[np.int64]:
    """A random row of each training, the same for the same file, and no function of the scores' order."""
    seed = int.from_bytes(blake2b(score.tobytes(), digest_size=16).digest(), "little")
    shuffled = np.random.default_rng(seed).permutation(run.size)
    return np.sort(shuffled[np.unique(run[shuffled], return_index=True)[1]])
