"""Bernau 2020, Figures 5.1 to 5.3 and Table 5.1: the observer of MNIST trainings at belief target 0.9."""

# ruff: noqa: PLC0415 (torch is imported when there is something to train)

from __future__ import annotations

from functools import partial
from math import sqrt

from matplotlib.figure import Figure

from deniable.experiments.drawing import add_letters, boxes, legend, panels, table
from deniable.experiments.four_ways import (
    BELOW_CLIP,
    CASE_LABELS,
    CASE_NAMES,
    CLIP,
    COLOURS,
    LEAST_ABOVE_CLIP,
    TRAINED_BOTH,
    WORK,
    AgainstPaper,
    draw_final_beliefs,
    draw_sensitivities,
    four_ways,
    sensitivity_steps,
)
from deniable.experiments.game_summary import StepSpread, exact_belief
from deniable.experiments.games import CASES, MNIST, Sensitivity
from deniable.experiments.item import Item, ItemRun, Scale
from deniable.experiments.statements import Claim, Ordered, Within
from deniable.results.base import Part

DELTA = 0.01
REACHED = (0, 1, 3)
"""The ways whose noise is scaled to the sensitivity that is really there."""
ADVANTAGES, VIOLATIONS = ("0.239", "0.228", "0.194", "0.273"), ("0.002", "0.002", "0", "0.004")
"""Printed, in the order of `CASES`: local bounded, local unbounded, global bounded, global unbounded."""


class MnistTable(Part, frozen=True, kw_only=True):
    """Table 5.1: a value for each of the four ways, and what is held against what."""

    advantage: list[float]
    advantage_error: list[float]
    expected_advantage: list[float]
    violations: list[float]
    trials: int
    exact_advantage: float
    full: dict[str, list[float]]
    paper: AgainstPaper
    bounded: dict[str, float]
    rare: float


def _table(run: ItemRun) -> MnistTable:
    rows = four_ways(run, MNIST)
    first, advantage = rows[0], [one.advantage for one in rows]
    printed = [float(text) for text in ADVANTAGES]
    errors = [sqrt(one.advantage_error**2 + (1 - value**2) / 1000) for one, value in zip(rows, printed, strict=True)]
    return MnistTable(
        advantage=advantage,
        advantage_error=[one.advantage_error for one in rows],
        expected_advantage=[one.expected_advantage for one in rows],
        violations=[one.violations for one in rows],
        trials=first.trials,
        exact_advantage=first.exact_advantage,
        full={"advantage": [advantage[i] for i in REACHED], "error": [first.binomial_error] * len(REACHED)},
        paper=AgainstPaper(ours=advantage, printed=printed, error=errors),
        bounded={"local": first.expected_advantage, "global": rows[2].expected_advantage},
        rare=DELTA + 3 * sqrt(DELTA / first.trials),
    )


def _draw_table(found: MnistTable) -> Figure:
    def cell(i: int) -> str:
        ours = f"({found.advantage[i]:.3f} ± {found.advantage_error[i]:.3f}, {found.violations[i]:.3f})"
        return f"{ours}  [({ADVANTAGES[i]}, {VIOLATIONS[i]})]"

    return table(
        ("", "Local sensitivity  [paper]", "Global sensitivity  [paper]"),
        (("Bounded DP", cell(0), cell(2)), ("Unbounded DP", cell(1), cell(3))),
        f"Advantage and share of beliefs above 0.9, {found.trials} trainings each",
        f"Exact advantage where the sensitivity is reached: {found.exact_advantage:.4f} [0.2562]",
    )


TABLE_5_1 = Item(
    name="table-5.1",
    needs=(MNIST,),
    title="advantage and delta measured on MNIST",
    caption=(
        "Table 5.1: measured advantage of A_DI (± standard error) and share of trainings whose belief exceeds"
        " 0.9, on MNIST with 100 records."
    ),
    compute=_table,
    read_as=MnistTable,
    draw=_draw_table,
    comparisons=(
        Within(
            "local sensitivity, and global unbounded: the advantage of the noise really added, 0.2562",
            "full.advantage",
            "exact_advantage",
            "full.error",
        ),
        Within(
            "all four meet the paper, both with their binomial errors",
            "paper.ours",
            "paper.printed",
            "paper.error",
            smallest="hours",
        ),
        Ordered(
            "global bounded stays below local bounded (by A_DI's beliefs)",
            "bounded.global",
            "bounded.local",
            strict=True,
            smallest="smoke",
        ),
        Ordered("beliefs exceed 0.9 at most as often as delta, plus 3 standard errors", "violations", "rare"),
    ),
    shared=WORK[MNIST],
    printed={"advantage": ADVANTAGES, "violations": VIOLATIONS},
    order=", ".join(CASE_NAMES) + " (LS: local, GS: global sensitivity)",
    notes=(TRAINED_BOTH, "The trainings are those of Bernau 2021, Table 2 for MNIST: the same settings."),
)


class ReachedBeliefs(Part, frozen=True, kw_only=True):
    """95 % quantiles of the ways whose sensitivity is reached, with their standard errors."""

    high: list[float]
    error: list[float]


class SensitivityFigure(Part, frozen=True, kw_only=True):
    """Figure 5.1."""

    beliefs: list[list[int]]
    medians: list[float]
    high: list[float]
    reached: ReachedBeliefs
    exact_high: float
    steps: dict[str, StepSpread]
    bounded: float
    unbounded: list[float]
    clip: float
    twice_the_clip: float


def _sensitivity_and_belief(run: ItemRun) -> SensitivityFigure:
    rows = four_ways(run, MNIST)
    steps, high = sensitivity_steps(rows), [one.belief.quantiles[-1] for one in rows]
    exact = exact_belief(rows[0].exact_advantage, rows[0].trials)
    return SensitivityFigure(
        beliefs=[one.beliefs for one in rows],
        medians=[one.belief.quantiles[2] for one in rows],
        high=high,
        reached=ReachedBeliefs(high=[high[i] for i in REACHED], error=[exact.high_error] * len(REACHED)),
        exact_high=exact.high,
        steps=steps,
        bounded=max(steps["bounded"].quantiles[-1]),
        unbounded=steps["unbounded"].mean,
        clip=LEAST_ABOVE_CLIP,
        twice_the_clip=2 * CLIP,
    )


def _draw_sensitivity_and_belief(found: SensitivityFigure) -> Figure:
    titles = ("posterior belief after 30 steps", "sensitivity over the steps")
    figure, (left, right) = panels(add_letters(titles), 2, x="", y="")
    draw_final_beliefs(left, found.beliefs, found.medians)
    draw_sensitivities(right, found.steps)
    legend(right, loc="lower left")
    return figure


FIGURE_5_1 = Item(
    name="figure-5.1",
    needs=(MNIST,),
    title="sensitivity and belief over 30 steps",
    caption=(
        "Figure 5.1: final beliefs for the four ways to scale noise (a) and sensitivities over 30 steps (b), "
        "MNIST, belief target 0.9, delta 0.01."
    ),
    compute=_sensitivity_and_belief,
    read_as=SensitivityFigure,
    draw=_draw_sensitivity_and_belief,
    comparisons=(
        *BELOW_CLIP,
        Claim(
            "and C at every step (mean at least 0.95 C)",
            lambda found: min(found.unbounded) >= 0.95 * CLIP,
            SensitivityFigure,
            hindsight=True,
        ),
        Within(
            "local bounded and unbounded, and global unbounded, have the same beliefs: 95 % quantiles as of the noise",
            "reached.high",
            "exact_high",
            "reached.error",
            smallest="hours",
        ),
        Claim(
            "global bounded has smaller beliefs (95 % quantile)",
            lambda found: found.high[2] < min(found.reached.high),
            SensitivityFigure,
            smallest="hours",
        ),
    ),
    shared=WORK[MNIST],
    notes=(TRAINED_BOTH,),
)


COMMONEST, TESTED = 0.1135, 2000
"""The share of MNIST's commonest digit among its test records, and how many of them the accuracy is measured on."""


class LargeTraining(Part, frozen=True, kw_only=True):
    """What is kept of one training."""

    accuracy: float


class AccuracyFigure(Part, frozen=True, kw_only=True):
    """Figure 5.2: accuracies of all trainings and their mean, by the way noise is scaled."""

    records: int
    accuracy: dict[str, list[float]]
    mean: dict[str, float]
    least: float
    blind: float


def _accuracies(run: ItemRun) -> AccuracyFigure:
    records = run.size(60, 400, 10_000)
    trainings = run.size(1, 2, 20, hours=5)
    found: dict[str, list[float]] = {name: [] for name in CASE_NAMES}
    for place, (name, sensitivity, kind) in enumerate(CASES):
        for number in range(trainings):
            settings = {"records": records, "sensitivity": sensitivity, "adjacency": kind, "seed": run.seed}
            work = partial(_train_large, records, sensitivity, kind, run.seed, number)
            kept = run.once("large", {**settings, "number": number}, work, LargeTraining)
            found[name].append(kept.accuracy)
            run.tell((place + (number + 1) / trainings) / len(CASES))
    means = {name: sum(values) / len(values) for name, values in found.items()}
    return AccuracyFigure(
        records=records,
        accuracy=found,
        mean=means,
        least=min(means.values()),
        blind=COMMONEST + 3 * sqrt(COMMONEST * (1 - COMMONEST) / TESTED),
    )


def _train_large(records: int, sensitivity: Sensitivity, adjacency: str, seed: int, number: int) -> LargeTraining:
    from deniable.experiments.d53.large import accuracy

    found = accuracy(records=records, sensitivity=sensitivity, adjacency=adjacency, seed=seed, number=number)
    return LargeTraining(accuracy=found)


def _draw_accuracies(found: AccuracyFigure) -> Figure:
    import numpy as np

    figure, (axes,) = panels([f"MNIST, {found.records:,} records, 30 steps"], 1, x="", y="test accuracy", size=3.6)
    quantiles = [np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist() for values in found.accuracy.values()]
    boxes(axes, quantiles, COLOURS, CASE_LABELS)
    for place, values in enumerate(found.accuracy.values(), start=1):
        axes.plot([place] * len(values), values, "k.", markersize=4)
    return figure


FIGURE_5_2 = Item(
    name="figure-5.2",
    needs=(MNIST,),
    title="test accuracy with many records",
    caption=("Figure 5.2: test accuracy on MNIST after 30 steps on 10,000 records, for the four ways to scale noise."),
    compute=_accuracies,
    read_as=AccuracyFigure,
    draw=_draw_accuracies,
    comparisons=(
        Ordered(
            "the models yield some utility: more than naming the commonest digit, by 3 binomial standard errors",
            "blind",
            "least",
            strict=True,
            smallest="hours",
        ),
        Claim(
            "the noise of global bounded sensitivity, the largest, never gives the best mean accuracy",
            lambda found: found.mean["GS bounded"] < max(found.mean.values()),
            AccuracyFigure,
            smallest="hours",
        ),
    ),
    seconds={Scale.SMOKE: 10.0, Scale.HOURS: 600.0, Scale.FULL: 2400.0},
    notes=(
        TRAINED_BOTH,
        "At scale hours 5 trainings a case, 20 at full (the paper: 1000).",
        "DP-Adam, since the paper names no optimizer and calls its models converging: plain SGD with learning rate "
        "0.005 moves the weights by at most 0.45 in 30 steps and stays near 0.2 accuracy. The observer sees the same "
        "noisy gradients with either.",
        "D' differs by the most dissimilar pair of 50 records of D and 2000 others: the search over all pairs is left "
        "out, since only the scale of the noise depends on it. The four cases start from the same weights.",
    ),
)
