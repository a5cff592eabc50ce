"""Bernau 2021, Figure 6: the beliefs of A_DI after training, and the accuracy of the models."""

from __future__ import annotations

from matplotlib.figure import Figure

from deniable.experiments.drawing import add_letters, boxes, panels
from deniable.experiments.four_ways import (
    ALL_WORK,
    CASE_LABELS,
    COLOURS,
    LOCAL_CASES,
    STAND_IN_NOTE,
    TRAINED_BOTH,
    Columns,
    draw_final_beliefs,
    four_ways,
)
from deniable.experiments.game_summary import (
    BeliefSpread,
    ExactBelief,
    GameSummary,
    QuantileSpread,
    exact_belief,
)
from deniable.experiments.games import ADULT, MNIST, STAND_IN, three_sets, title_of
from deniable.experiments.item import Item, ItemRun, present
from deniable.experiments.statements import Ordered, Within
from deniable.results.base import Part


class BeliefPanel(Part, frozen=True, kw_only=True):
    """One data set, the four ways."""

    beliefs: list[list[int]]
    belief: list[BeliefSpread]
    accuracy: list[QuantileSpread]
    expected_advantage: list[float]


class BeliefFigure(Part, frozen=True, kw_only=True):
    """Figure 6."""

    data: dict[str, str]
    panels: dict[str, BeliefPanel]
    mean_belief: Columns
    local: dict[str, Columns]
    exact: dict[str, Columns]
    global_mean_less_3_errors: dict[str, float]
    exact_mean: dict[str, float]
    global_bounded: list[float]
    local_bounded: list[float]
    accuracy: Columns


def _belief_panel(row: list[GameSummary]) -> BeliefPanel:
    return BeliefPanel(
        beliefs=[one.beliefs for one in row],
        belief=[one.belief for one in row],
        accuracy=[present(one.accuracy) for one in row],
        expected_advantage=[one.expected_advantage for one in row],
    )


def _beliefs(run: ItemRun) -> BeliefFigure:
    sets = three_sets()
    rows = {name: four_ways(run, data) for name, data in sets.items()}
    middle = {name: [one.belief.mean for one in row] for name, row in rows.items()}
    high = {name: [one.belief.quantiles[-1] for one in row] for name, row in rows.items()}
    exact = {name: exact_belief(row[0].exact_advantage, row[0].trials) for name, row in rows.items()}

    return BeliefFigure(
        data={name: title_of(name, data) for name, data in sets.items()},
        panels={name: _belief_panel(row) for name, row in rows.items()},
        mean_belief=middle,
        local={
            "mean": {name: row[:LOCAL_CASES] for name, row in middle.items()},
            "high": {name: row[:LOCAL_CASES] for name, row in high.items()},
        },
        exact={
            key: {name: [getattr(one, key)] * LOCAL_CASES for name, one in exact.items()}
            for key in ExactBelief.__struct_fields__
        },
        global_mean_less_3_errors={
            name: max(row[LOCAL_CASES:]) - 3 * exact[name].mean_error for name, row in middle.items()
        },
        exact_mean={name: one.mean for name, one in exact.items()},
        global_bounded=[row[2] for row in high.values()],
        local_bounded=[row[0] for row in high.values()],
        accuracy={name: [present(one.accuracy).mean for one in row] for name, row in rows.items()},
    )


def _draw_beliefs(found: BeliefFigure) -> Figure:
    first, *_ = found.data.values()
    figure, axes = panels(add_letters([*found.data.values(), "test accuracy, " + first]), 2, x="", y="")
    for part, row in zip(axes, found.panels.values(), strict=False):
        draw_final_beliefs(part, row.beliefs, [one.quantiles[2] for one in row.belief])
    accuracy, *_ = (row.accuracy for row in found.panels.values())
    boxes(axes[3], [one.quantiles for one in accuracy], COLOURS, CASE_LABELS)
    axes[3].set(ylabel="test accuracy")
    for part in axes:
        part.tick_params(axis="x", labelsize="small")
    return figure


FIGURE_6 = Item(
    name="figure-6",
    needs=(MNIST, STAND_IN, ADULT),
    title="beliefs after training, and test accuracy",
    caption=(
        "Figure 6: final beliefs of A_DI at target 0.9 for MNIST (a), Location-30 in place of Purchase-100 "
        "(b) and Adult (c), for local and global sensitivity, bounded and unbounded; test accuracy of the MNIST "
        "models (d; the paper does not name the data set of its example)."
    ),
    compute=_beliefs,
    read_as=BeliefFigure,
    draw=_draw_beliefs,
    comparisons=(
        Within(
            "with local sensitivity beliefs lie on average only slightly above 0.5, where the noise really added has "
            "them",
            "local.mean",
            "exact.mean",
            "exact.mean_error",
        ),
        Ordered(
            "with global sensitivity at most there, plus 3 standard errors",
            "global_mean_less_3_errors",
            "exact_mean",
        ),
        Ordered(
            "bounded: global sensitivity keeps the 95 % quantile of beliefs below local sensitivity's",
            "global_bounded",
            "local_bounded",
            strict=True,
            smallest="smoke",
        ),
        Within(
            "with local sensitivity bounded and unbounded beliefs have the same 95 % quantile, that of the noise",
            "local.high",
            "exact.high",
            "exact.high_error",
            smallest="hours",
        ),
    ),
    shared=ALL_WORK,
    notes=(
        STAND_IN_NOTE,
        TRAINED_BOTH,
        "30 steps of SGD with learning rate 0.005 hardly move the network, so (d) stays near guessing; the paper "
        "names no optimizer. Bernau 2020 (Figure 5.2) shows the accuracy with DP-Adam and more records.",
    ),
)
