"""Bernau 2021, Figures 4 and 5: local sensitivity by the choice of D', and over the training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from matplotlib.figure import Figure

from deniable.experiments.compare import Claim, Ordered
from deniable.experiments.distributions import bands, boxes
from deniable.experiments.drawing import BLUE, GREEN, ORANGE, RED, legend, panels
from deniable.experiments.games import (
    ADULT,
    CASES,
    MNIST,
    STAND_IN,
    Game,
    game_of_size,
    measure_games,
    three_sets,
    title_of,
)
from deniable.experiments.item import Item, ItemRun, Scale, Values
from deniable.experiments.vldb.identifiability import ALL_WORK, STAND_IN_NOTE, TRAINED_BOTH, four_ways

__all__ = ["FIGURE_4", "FIGURE_5", "FIGURE_5_3", "extremes"]

CLIP = 3.0
ENDS = (0, -1)
RANKS = {0: "max", 1: "2nd max", 2: "3rd max", -3: "3rd min", -2: "2nd min", -1: "min"}
RANK_SECONDS = {MNIST: (5.0, 50.0, 50.0), STAND_IN: (2.0, 15.0, 35.0), ADULT: (1.0, 5.0, 5.0)}
"""For one rank on two cores: smoke, hours, full."""


def _work(data: str, ranks: Iterable[int]) -> dict[str, dict[Scale, float]]:
    taken = dict(zip((Scale.SMOKE, Scale.HOURS, Scale.FULL), RANK_SECONDS[data], strict=True))
    return {f"{data} {RANKS[rank]}": taken for rank in ranks}


def extremes(run: ItemRun, data: str, ranks: tuple[int, ...]) -> Values:
    """Local sensitivities of trainings against the neighbours of these ranks, the farthest first."""

    def game(rank: int) -> Game:
        settled = game_of_size(run, data, 0.9, CASES[0], rank)
        return replace(settled, trials=run.size(8, 40, 250), attacked=0)

    rows = measure_games(run, (game(rank) for rank in ranks))
    return {
        "ranks": [RANKS[rank] for rank in ranks],
        "dissimilarity": [one["dissimilarity"] for one in rows],
        "mean": [one["sensitivity"]["mean"] for one in rows],
        "quantiles": [one["sensitivity"]["quantiles"] for one in rows],
        "trials": rows[0]["trials"],
    }


def _ends(found: Values) -> tuple[float, float]:
    """Mean sensitivity of the farther and of the nearer half of the neighbours."""
    half = len(found["mean"]) // 2
    return sum(found["mean"][:half]) / half, sum(found["mean"][half:]) / half


def _by_neighbour(run: ItemRun) -> Values:
    sets = three_sets()
    rows = {name: extremes(run, data, tuple(RANKS) if data == MNIST else ENDS) for name, data in sets.items()}
    ends = {name: _ends(found) for name, found in rows.items()}
    return {
        "data": {name: title_of(name, data) for name, data in sets.items()},
        "panels": rows,
        "farther": {name: high for name, (high, _) in ends.items()},
        "nearer": {name: low for name, (_, low) in ends.items()},
    }


def _draw_by_neighbour(found: Values) -> Figure:
    titles = [f"({letter}) {name}" for letter, name in zip("abc", found["data"].values(), strict=True)]
    figure, axes = panels(titles, 3, x="dissimilarity of D and D′", y="local sensitivity")
    for part, row in zip(axes, found["panels"].values(), strict=True):
        count = len(row["ranks"])
        boxes(
            part,
            row["quantiles"],
            [RED] * (count // 2) + [BLUE] * (count // 2),
            [one.replace(" ", "\n") for one in row["ranks"]],
        )
        part.set_ylim(0, 2.1 * CLIP)
    return figure


_WIDER = Ordered(
    "neighbours of the largest dissimilarity have the larger sensitivity (mean)",
    "nearer",
    "farther",
    strict=True,
    smallest="smoke",
)

FIGURE_4 = Item(
    name="figure-4",
    needs=(MNIST, STAND_IN, ADULT),
    title="local sensitivity from the most to the least dissimilar neighbour",
    caption=(
        "Figure 4: local sensitivity over all steps, from the most to the least dissimilar D' (bounded), for "
        "MNIST by SSIM (a), Location-30 in place of Purchase-100 by Hamming distance (b) and Adult by Manhattan "
        "distance (c)."
    ),
    compute=_by_neighbour,
    draw=_draw_by_neighbour,
    comparisons=(_WIDER,),
    seconds={Scale.SMOKE: 1.0, Scale.FULL: 1.0},
    shared={**_work(MNIST, RANKS), **_work(STAND_IN, ENDS), **_work(ADULT, ENDS)},
    printed={},
    notes=(STAND_IN_NOTE, TRAINED_BOTH),
)


def _gradient_distance(run: ItemRun) -> Values:
    found = extremes(run, MNIST, tuple(RANKS))
    farther, nearer = _ends(found)
    return {**found, "farther": farther, "nearer": nearer}


def _draw_gradient_distance(found: Values) -> Figure:
    figure, (axes,) = panels(
        ["MNIST, bounded"], 1, x="from the largest to the least dataset sensitivity", y="n · ‖ĝ(D) − ĝ(D′)‖", size=3.6
    )
    boxes(axes, found["quantiles"], [RED] * 3 + [BLUE] * 3, [one.replace(" ", "\n") for one in found["ranks"]])
    axes.set_ylim(0, 2.1 * CLIP)
    return figure


FIGURE_5_3 = Item(
    name="figure-5.3",
    needs=(MNIST,),
    title="gradient distance for the three largest and least dataset sensitivities",
    caption=(
        "Figure 5.3: distribution of n ||g(D) - g(D')|| on MNIST over 30 steps, for the three D' that "
        "maximise and the three that minimise dataset sensitivity."
    ),
    compute=_gradient_distance,
    draw=_draw_gradient_distance,
    comparisons=(_WIDER,),
    seconds={Scale.SMOKE: 1.0, Scale.FULL: 1.0},
    shared=_work(MNIST, RANKS),
    printed={},
    notes=(TRAINED_BOTH,),
)


def _over_steps(run: ItemRun) -> Values:
    sets = three_sets()
    rows = {name: four_ways(run, data) for name, data in sets.items()}
    steps = {
        name: {"bounded": row[0]["sensitivity"]["steps"], "unbounded": row[1]["sensitivity"]["steps"]}
        for name, row in rows.items()
    }
    largest = {name: {kind: max(one["quantiles"][-1]) for kind, one in kinds.items()} for name, kinds in steps.items()}
    return {
        "data": {name: title_of(name, data) for name, data in sets.items()},
        "steps": steps,
        "bounded": {name: one["bounded"] for name, one in largest.items()},
        "unbounded": {name: one["unbounded"] for name, one in largest.items()},
        "twice_the_clip": 2 * CLIP,
        "clip": CLIP * (1 + 1e-6),
        "mnist_unbounded": steps["MNIST"]["unbounded"]["mean"],
        "adult_unbounded": steps["Adult"]["unbounded"]["mean"],
    }


def _draw_over_steps(found: Values) -> Figure:
    titles = [f"({letter}) {name}" for letter, name in zip("abc", found["data"].values(), strict=True)]
    figure, axes = panels(titles, 3, x="step", y="sensitivity")
    for part, row in zip(axes, found["steps"].values(), strict=True):
        bands(part, row["bounded"], RED, "local, bounded")
        bands(part, row["unbounded"], ORANGE, "local, unbounded")
        part.axhline(2 * CLIP, color=BLUE, linestyle="--", label="global, bounded (2C)")
        part.axhline(CLIP, color=GREEN, linestyle="--", label="global, unbounded (C)")
        part.set_ylim(0, 2.2 * CLIP)
    legend(axes[2], loc="upper right", anchor=(1, 0.88), fontsize="x-small")
    return figure


FIGURE_5 = Item(
    name="figure-5",
    needs=(MNIST, STAND_IN, ADULT),
    title="sensitivities over the training",
    caption=(
        "Figure 5: local sensitivity of each step (median and middle 90 %) and global sensitivity, at belief "
        "target 0.9, for MNIST, Location-30 in place of Purchase-100, and Adult."
    ),
    compute=_over_steps,
    draw=_draw_over_steps,
    comparisons=(
        Ordered("bounded: local sensitivity stays below 2C", "bounded", "twice_the_clip", strict=True),
        Ordered("unbounded: local sensitivity is at most C", "unbounded", "clip"),
        Claim(
            "MNIST, unbounded: local sensitivity is close to C at every step (mean above 0.9 C)",
            lambda v: min(v["mnist_unbounded"]) > 0.9 * CLIP,
            hindsight=True,
        ),
        Claim(
            "Adult, unbounded: local sensitivity is below C (mean below 0.9 C)",
            lambda v: max(v["adult_unbounded"]) < 0.9 * CLIP,
            hindsight=True,
        ),
    ),
    seconds={Scale.SMOKE: 1.0, Scale.FULL: 1.0},
    shared=ALL_WORK,
    printed={},
    notes=(STAND_IN_NOTE, TRAINED_BOTH),
)
