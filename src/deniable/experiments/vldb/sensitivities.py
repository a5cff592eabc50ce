"""Bernau 2021, Figures 4 and 5: local sensitivity by the choice of D', and over the training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec.structs import asdict

from deniable.experiments.drawing import BLUE, RED, add_letters, boxes, legend, panels
from deniable.experiments.four_ways import (
    ALL_WORK,
    BELOW_CLIP,
    CLIP,
    LEAST_ABOVE_CLIP,
    STAND_IN_NOTE,
    TRAINED_BOTH,
    draw_sensitivities,
    four_ways,
    sensitivity_steps,
)
from deniable.experiments.game_summary import StepSpread
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
from deniable.experiments.item import Item, ItemRun, Scale
from deniable.experiments.statements import Claim, Ordered
from deniable.results.base import Part

ENDS = (0, -1)
RANKS = {0: "max", 1: "2nd max", 2: "3rd max", -3: "3rd min", -2: "2nd min", -1: "min"}
RANK_SECONDS = {MNIST: (5.0, 50.0, 50.0), STAND_IN: (2.0, 15.0, 35.0), ADULT: (1.0, 5.0, 5.0)}
"""For one rank on two cores: smoke, hours, full."""


def _work(data: str, ranks: Iterable[int]) -> dict[str, dict[Scale, float]]:
    taken = dict(zip((Scale.SMOKE, Scale.HOURS, Scale.FULL), RANK_SECONDS[data], strict=True))
    return {f"{data} {RANKS[rank]}": taken for rank in ranks}


class ByNeighbour(Part, frozen=True, kw_only=True):
    """Local sensitivities of trainings against several neighbours, the farthest first."""

    ranks: list[str]
    dissimilarity: list[float]
    mean: list[float]
    quantiles: list[tuple[float, ...]]
    trials: int


class NeighbourPanels(Part, frozen=True, kw_only=True):
    """Figure 4."""

    data: dict[str, str]
    panels: dict[str, ByNeighbour]
    farther: dict[str, float]
    nearer: dict[str, float]


def _measure_neighbours(run: ItemRun, data: str, ranks: tuple[int, ...]) -> ByNeighbour:
    def game(rank: int) -> Game:
        settled = game_of_size(run, data, 0.9, CASES[0], rank)
        return replace(settled, trials=run.size(8, 40, 250), attacked=0)

    rows = measure_games(run, (game(rank) for rank in ranks))
    return ByNeighbour(
        ranks=[RANKS[rank] for rank in ranks],
        dissimilarity=[one.dissimilarity for one in rows],
        mean=[one.sensitivity.mean for one in rows],
        quantiles=[one.sensitivity.quantiles for one in rows],
        trials=rows[0].trials,
    )


def _ends(found: ByNeighbour) -> tuple[float, float]:
    """Mean sensitivity of the farther and of the nearer half of the neighbours."""
    half = len(found.mean) // 2
    return sum(found.mean[:half]) / half, sum(found.mean[half:]) / half


def _by_neighbour(run: ItemRun) -> NeighbourPanels:
    sets = three_sets()
    found = {
        name: _measure_neighbours(run, data, tuple(RANKS) if data == MNIST else ENDS) for name, data in sets.items()
    }
    return NeighbourPanels(
        data={name: title_of(name, data) for name, data in sets.items()},
        panels=found,
        farther={name: _ends(row)[0] for name, row in found.items()},
        nearer={name: _ends(row)[1] for name, row in found.items()},
    )


def _draw_boxes(axes: Axes, found: ByNeighbour) -> None:
    half = len(found.ranks) // 2
    colours = [RED] * half + [BLUE] * half
    boxes(axes, found.quantiles, colours, [one.replace(" ", "\n") for one in found.ranks])
    axes.set_ylim(0, 2.1 * CLIP)


def _draw_by_neighbour(found: NeighbourPanels) -> Figure:
    figure, axes = panels(add_letters(found.data.values()), 3, x="dissimilarity of D and D′", y="local sensitivity")
    for part, row in zip(axes, found.panels.values(), strict=True):
        _draw_boxes(part, row)
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
    read_as=NeighbourPanels,
    draw=_draw_by_neighbour,
    comparisons=(_WIDER,),
    shared={**_work(MNIST, RANKS), **_work(STAND_IN, ENDS), **_work(ADULT, ENDS)},
    notes=(STAND_IN_NOTE, TRAINED_BOTH),
)


class GradientDistances(ByNeighbour, frozen=True, kw_only=True):
    """Figure 5.3 of Bernau 2020."""

    farther: float
    nearer: float


def _gradient_distance(run: ItemRun) -> GradientDistances:
    found = _measure_neighbours(run, MNIST, tuple(RANKS))
    farther, nearer = _ends(found)
    return GradientDistances(**asdict(found), farther=farther, nearer=nearer)


def _draw_gradient_distance(found: GradientDistances) -> Figure:
    figure, (axes,) = panels(
        ["MNIST, bounded"], 1, x="from the largest to the least dataset sensitivity", y="n · ‖ĝ(D) − ĝ(D′)‖", size=3.6
    )
    _draw_boxes(axes, found)
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
    read_as=GradientDistances,
    draw=_draw_gradient_distance,
    comparisons=(_WIDER,),
    shared=_work(MNIST, RANKS),
    notes=(TRAINED_BOTH,),
)


class StepFigure(Part, frozen=True, kw_only=True):
    """Figure 5."""

    data: dict[str, str]
    steps: dict[str, dict[str, StepSpread]]
    bounded: dict[str, float]
    unbounded: dict[str, float]
    twice_the_clip: float
    clip: float
    mnist_unbounded: list[float]
    adult_unbounded: list[float]


def _over_steps(run: ItemRun) -> StepFigure:
    sets = three_sets()
    steps = {name: sensitivity_steps(four_ways(run, data)) for name, data in sets.items()}

    def largest(kind: str) -> dict[str, float]:
        return {name: max(kinds[kind].quantiles[-1]) for name, kinds in steps.items()}

    return StepFigure(
        data={name: title_of(name, data) for name, data in sets.items()},
        steps=steps,
        bounded=largest("bounded"),
        unbounded=largest("unbounded"),
        twice_the_clip=2 * CLIP,
        clip=LEAST_ABOVE_CLIP,
        mnist_unbounded=steps["MNIST"]["unbounded"].mean,
        adult_unbounded=steps["Adult"]["unbounded"].mean,
    )


def _draw_over_steps(found: StepFigure) -> Figure:
    figure, axes = panels(add_letters(found.data.values()), 3, x="", y="")
    for part, kinds in zip(axes, found.steps.values(), strict=True):
        draw_sensitivities(part, kinds)
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
    read_as=StepFigure,
    draw=_draw_over_steps,
    comparisons=(
        *BELOW_CLIP,
        Claim(
            "MNIST, unbounded: local sensitivity is close to C at every step (mean above 0.9 C)",
            lambda found: min(found.mnist_unbounded) > 0.9 * CLIP,
            StepFigure,
            hindsight=True,
        ),
        Claim(
            "Adult, unbounded: local sensitivity is below C (mean below 0.9 C)",
            lambda found: max(found.adult_unbounded) < 0.9 * CLIP,
            StepFigure,
            hindsight=True,
        ),
    ),
    shared=ALL_WORK,
    notes=(STAND_IN_NOTE, TRAINED_BOTH),
)
