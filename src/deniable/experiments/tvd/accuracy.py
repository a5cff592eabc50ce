"""Jia 2023, Figure 3: bounds on the accuracy of membership inference against DP-SGD."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from deniable.bounds import kl_tvd, rdp_epsilon
from deniable.bounds.risk_bounds import accuracy_from_dp, accuracy_from_tvd
from deniable.experiments.drawing import add_letters, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale
from deniable.experiments.statements import Claim, Ordered
from deniable.experiments.tvd.three_bounds import draw_three
from deniable.experiments.tvd.training_figure import DELTA, NEIGHBOURS, sampled_training
from deniable.results.base import Part
from deniable.scores import privacy_loss

PAIRS = ((300, 6000), (300, 20_000), (600, 6000), (600, 20_000))


class AccuracyBounds(Part, frozen=True, kw_only=True):
    """Figure 3: a row for each pair of batch and steps, a value for each noise."""

    noise: list[float]
    batch_and_steps: list[tuple[int, int]]
    dp: list[list[float]]
    tvd: list[list[float]]
    exact: list[list[float]]


def _compute(run: ItemRun) -> AccuracyBounds:
    noises = np.linspace(0.6, 10, run.size(4, 12, 36)).tolist()
    releases = [[sampled_training(noise, batch, steps) for noise in noises] for batch, steps in PAIRS]
    return AccuracyBounds(
        noise=noises,
        batch_and_steps=list(PAIRS),
        dp=[[accuracy_from_dp(rdp_epsilon(one, DELTA, NEIGHBOURS), DELTA) for one in row] for row in releases],
        tvd=[[accuracy_from_tvd(kl_tvd(one, NEIGHBOURS)) for one in row] for row in releases],
        exact=[[float(privacy_loss(one, NEIGHBOURS).accuracy()) for one in row] for row in releases],
    )


def _falling(found: AccuracyBounds) -> bool:
    return all(bool((np.diff(row) < 0).all()) for row in (*found.dp, *found.tvd, *found.exact))


def _draw(found: AccuracyBounds) -> Figure:
    titles = add_letters(f"batch {batch}, {steps:,} steps" for batch, steps in found.batch_and_steps)
    figure, axes = panels(titles, x="noise σ", y="accuracy of MIAs, at most", size=2.9)
    for part, *rows in zip(axes, found.dp, found.tvd, found.exact, strict=True):
        draw_three(part, found.noise, rows)
        part.set(ylim=(0.48, 1.02), xlim=(0.5, 10))
        legend(part)
    return figure


FIGURE_3 = Item(
    name="figure-3",
    title="bounds on the accuracy of membership inference over the noise",
    caption="Figure 3: bounds by DP (RDP, delta 1e-5), by TVD, exactly (ours); four pairs of batch and steps.",
    compute=_compute,
    read_as=AccuracyBounds,
    draw=_draw,
    comparisons=(
        Ordered("TVD is always below DP", "tvd", "dp", strict=True),
        Ordered("and the exact accuracy below TVD by KL", "exact", "tvd", strict=True),
        Claim("all fall with the noise", _falling, AccuracyBounds),
    ),
    seconds={Scale.SMOKE: 6.0, Scale.FULL: 15.0},
    notes=("60,000 records and delta 1e-5 are not stated for this figure; they are Figure 4's (erratum 14 for KL).",),
)
