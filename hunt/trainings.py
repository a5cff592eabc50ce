"""Trainings, right and broken: the verdict must fit what was exchanged, and the cause must name it."""

from __future__ import annotations

from typing import Any

import numpy as np

import deniable as dn
from deniable.audit import examine_trainer
from deniable.training import Neighbours
from hunt.find import Find
from hunt.recipes import CLASSES, CLIP, FEATURES, RATE, RECORDS, SIGMA, STEPS, VARIANTS, Training, network

__all__ = ["examine", "look", "random_training"]

TRIALS = 16


def look(seed: int) -> Find | None:
    """One random training; what is wrong must be wrong again with another seed, since an alarm may be false (1 %)."""
    training = random_training(seed)
    if not _fault(training, seed):
        return None
    parts = training.parts if len(training.parts) > 1 else ()
    alone = next((one for part in parts if _fault(one := Training(training.rate, (part,)), seed + 1)), training)
    says = _fault(alone, seed + 2)
    if not says:
        return None
    call = f"hunt.trainings.examine({alone!r}, {seed + 2})"
    return Find(call, says, "violated, with its cause" if alone.less_private else "not violated")


def random_training(seed: int) -> Training:
    """DP-SGD with no, one or two of its parts exchanged."""
    generator = np.random.default_rng(seed)
    rate = float(generator.choice([1.0, RATE]))
    number = int(generator.choice(3, p=(0.1, 0.6, 0.3)))
    parts = []
    for part in generator.permutation(list(VARIANTS))[:number]:
        fitting = [name for name, one in VARIANTS[part].items() if one.sampled in (None, rate < 1)]
        if fitting:
            parts.append((str(part), str(generator.choice(fitting))))
    return Training(rate, tuple(parts))


def examine(training: Training, seed: int, trials: int = TRIALS) -> dict[str, Any]:
    """The audit's document of one training on random records."""
    generator = np.random.default_rng(seed)
    records = 1.2 * generator.normal(size=(RECORDS, FEATURES)).astype(np.float32)
    neighbours = Neighbours.of(records, generator.integers(0, CLASSES, RECORDS), int(generator.integers(RECORDS)))
    step = dn.Gaussian(SIGMA) if training.rate == 1 else dn.Gaussian(SIGMA).subsampled(training.rate)
    document: dict[str, Any] = examine_trainer(
        neighbours, trainer=training, claimed=step.composed(STEPS), clip=CLIP, adjacency="add-remove", model=network,
        trials=trials, seed=seed % 2**31, processes=1, delta=1e-3,
    )  # fmt: skip
    return document


def _fault(training: Training, seed: int) -> str:
    """What the audit says wrongly; "" if it is right. With two exchanged parts only the verdict is checked."""
    document = examine(training, seed)
    word, cause = document.verdict, document.diagnostics.cause or ""
    said = f"{word}: {cause}"
    if (word == "violated") != training.less_private or (not training.parts and word != "consistent"):
        return said
    if len(training.parts) == 1 and training.less_private:
        part, name = training.parts[0]
        return "" if any(words in cause for words in VARIANTS[part][name].words) else said
    return ""
