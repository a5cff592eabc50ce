"""The trainings that Erlingsson 2019 attacks: logistic regression under noise, and the loss threshold of Yeom et al.

Erlingsson 2019 trains on Purchase-100, which is taken where its file is present; else Location-30 stands in, at the
same sampling rate and number of steps, so that every epsilon is the same.
"""

# ruff: noqa: PLC0415 (torch is imported where something is trained, so that listing the items is quick)

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from math import exp, log, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from deniable.experiments.erlingsson.noise_figure import ANALYSES, DELTA, NEIGHBOURS, NOISES, RATE, training
from deniable.experiments.item import ItemRun, Scale
from deniable.results.base import Part
from deniable.scores import privacy_loss

if TYPE_CHECKING:
    from deniable.data import Dataset

EPSILONS = (1.0, 10.0, 100.0)
FPR, CONFIDENCE = 0.05, 0.95
CLIP, LEARNING_RATE = 1.0, 0.01
STAND_IN = (
    "Purchase-100 cannot be had here: Location-30 (2500 members, 2500 others) stands in; where the file of "
    "Purchase-100 is present it is taken. Averages of five trainings."
)
TABLES, OTHERS = "attacks at Table 1's noises", "attacks at Section 4's other noises"
WORK = {name: {Scale.SMOKE: 8.0, Scale.FULL: 300.0} for name in (TABLES, OTHERS)}
"""What the items share, and how long it takes."""


def demanded_noises() -> dict[str, list[float]]:
    """The noise that each analysis asks for epsilon 1, 10 and 100; RDP's is Table 1's."""
    found = {name: [_least(name, epsilon) for epsilon in EPSILONS] for name in ("naive", "advanced")}
    return {**found, "rdp": list(NOISES[2:])}


def _least(name: str, epsilon: float) -> float:
    def excess(log_noise: float) -> float:
        return log(ANALYSES[name](training(exp(log_noise)))) - log(epsilon)

    return float(f"{exp(brentq(excess, log(0.4), log(5000), xtol=1e-6)):.4g}")


def all_noises() -> list[float]:
    """Every noise of Section 4's two tables, from little to much."""
    return sorted({*NOISES, *(noise for row in demanded_noises().values() for noise in row)})


@dataclass(frozen=True)
class RepeatSettings:
    """One training that is attacked."""

    data: str
    epochs: int
    noise: float
    repeat: int
    seed: int


class RepeatOutcome(Part, frozen=True, kw_only=True):
    """What is kept of it: its accuracy, and the attack's scores of tested members and non-members."""

    train_accuracy: float
    members: list[float]
    non_members: list[float]
    threshold: float


class AttackedNoise(Part, frozen=True, kw_only=True):
    """What training and attack give at one noise over all repeats, and the most that the noise admits."""

    relative_accuracy: float
    tpr: float
    tpr_error: float
    most_tpr: float
    advantage: float
    advantage_error: float
    most_advantage: float
    least_epsilon: float

    @property
    def tpr_less_3_errors(self) -> float:
        """What the attack surely finds."""
        return self.tpr - 3 * self.tpr_error


def attack_trainings(run: ItemRun, noises: list[float]) -> dict[float, AttackedNoise]:
    """What training and attack give at each noise, over all repeats; measured once for all items."""
    repeats, wanted = run.size(1, 1, 5), [0.0, *noises]
    found: dict[float, list[RepeatOutcome]] = {noise: [] for noise in wanted}
    for repeat in range(repeats):
        for place, noise in enumerate(wanted):
            found[noise].append(_kept_repeat(run, noise, repeat))
            run.tell((repeat + (place + 1) / len(wanted)) / repeats)
    baseline = float(np.mean([one.train_accuracy for one in found[0.0]]))
    return {noise: _summary(found[noise], noise, baseline) for noise in noises}


def _kept_repeat(run: ItemRun, noise: float, repeat: int) -> RepeatOutcome:
    data, epochs = run.size(("purchases", 2), (_present(), 10), (_present(), 100))
    settings = RepeatSettings(data, epochs, noise, repeat, run.seed)
    return run.once("erlingsson", asdict(settings), partial(_train_and_attack, settings), RepeatOutcome)


def _present() -> str:
    from deniable.data import load

    try:
        load("purchase100")
    except FileNotFoundError:
        return "location30"
    return "purchase100"


def _divide_records(settings: RepeatSettings) -> tuple[Dataset, Dataset]:
    """Members and as many others."""
    from deniable.data import load, purchases

    data = purchases(10, 400) if settings.data == "purchases" else load(settings.data)
    half = {"purchases": 200, "location30": 2500, "purchase100": 10_000}[settings.data]
    order = np.random.default_rng([settings.seed, settings.repeat]).permutation(len(data))
    return data.take(order[:half]), data.take(order[half : 2 * half])


def _train_and_attack(settings: RepeatSettings) -> RepeatOutcome:
    from deniable.adversaries import LossThreshold
    from deniable.training import TargetSettings, fit
    from deniable.training.networks.usual_models import dense

    members, others = _divide_records(settings)
    course = TargetSettings(
        partial(dense, members.inputs[0].size, members.classes),
        noise=settings.noise,
        learning_rate=LEARNING_RATE,
        batch=round(RATE * len(members)),
        epochs=settings.epochs,
        clip=CLIP,
        patience=None,
    )
    fitted = fit(course, members, others, settings.seed + settings.repeat)
    scored = LossThreshold("free")(fitted.model, members, others, settings.repeat)
    return RepeatOutcome(
        train_accuracy=fitted.train.accuracy,
        members=scored.members.tolist(),
        non_members=scored.non_members.tolist(),
        threshold=scored.threshold,
    )


def _summary(repeats: list[RepeatOutcome], noise: float, baseline: float) -> AttackedNoise:
    from deniable.adversaries import Scored
    from deniable.comparison.repeat_measures import advantages, lower_bound, rates_at

    scored = [Scored(np.array(one.members), np.array(one.non_members), one.threshold) for one in repeats]
    tpr, tested = rates_at(scored)[f"{FPR:g}"], sum(len(one.members) for one in scored)
    loss = privacy_loss(training(noise), NEIGHBOURS)
    return AttackedNoise(
        relative_accuracy=float(np.mean([one.train_accuracy for one in repeats])) / baseline,
        tpr=tpr,
        # the threshold at 5 % is itself estimated, from as many non-members
        tpr_error=sqrt(2 * max(tpr, FPR) * (1 - max(tpr, FPR)) / tested),
        most_tpr=float(loss.tpr(FPR)),
        advantage=advantages(scored).mean,
        advantage_error=sqrt(0.5 / tested),
        most_advantage=float(loss.advantage()),
        least_epsilon=float(lower_bound(scored, DELTA, CONFIDENCE).value),
    )
