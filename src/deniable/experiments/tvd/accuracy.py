"""Jia 2023, Figure 3: bounds on the accuracy of membership inference against DP-SGD."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from deniable.bounds import kl_tvd, rdp_epsilon
from deniable.bounds.predictive import accuracy_from_dp, accuracy_from_tvd
from deniable.experiments.compare import Claim, Ordered
from deniable.experiments.drawing import BLUE, GREEN, ORANGE, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale, Values
from deniable.experiments.tvd.training import DELTA, NEIGHBOURS, sampled_training
from deniable.scores import privacy_loss

__all__ = ["FIGURE_3"]

PAIRS = ((300, 6000), (300, 20_000), (600, 6000), (600, 20_000))


def _compute(run: ItemRun) -> Values:
    noises = np.linspace(0.6, 10, run.size(4, 12, 36)).tolist()
    releases = [[sampled_training(noise, batch, steps) for noise in noises] for batch, steps in PAIRS]
    return {
        "noise": noises,
        "batch_and_steps": [list(pair) for pair in PAIRS],
        "dp": [[accuracy_from_dp(rdp_epsilon(one, DELTA, NEIGHBOURS), DELTA) for one in row] for row in releases],
        "tvd": [[accuracy_from_tvd(kl_tvd(one, NEIGHBOURS)) for one in row] for row in releases],
        "exact": [[float(privacy_loss(one, NEIGHBOURS).accuracy()) for one in row] for row in releases],
    }


def _falling(found: Values) -> bool:
    return all(bool((np.diff(row) < 0).all()) for name in ("dp", "tvd", "exact") for row in found[name])


def _draw(found: Values) -> Figure:
    titles = [
        f"({letter}) batch {batch}, {steps:,} steps"
        for letter, (batch, steps) in zip("abcd", found["batch_and_steps"], strict=True)
    ]
    figure, axes = panels(titles, x="noise σ", y="accuracy of MIAs, at most", size=2.9)
    for place, part in enumerate(axes):
        for name, (label, colour, style) in {
            "dp": ("DP", BLUE, "--"),
            "tvd": ("TVD privacy", ORANGE, "-."),
            "exact": ("exact (ours)", GREEN, "-"),
        }.items():
            part.plot(found["noise"], found[name][place], style, color=colour, label=label)
        part.set(ylim=(0.48, 1.02), xlim=(0.5, 10))
        legend(part)
    return figure


FIGURE_3 = Item(
    name="figure-3",
    title="bounds on the accuracy of membership inference over the noise",
    caption="Figure 3: bounds by DP (RDP, delta 1e-5), by TVD, exactly (ours); four pairs of batch and steps.",
    compute=_compute,
    draw=_draw,
    comparisons=(
        Ordered("TVD is always below DP", "tvd", "dp", strict=True),
        Ordered("and the exact accuracy below TVD by KL", "exact", "tvd", strict=True),
        Claim("all fall with the noise", _falling),
    ),
    seconds={Scale.SMOKE: 6.0, Scale.FULL: 15.0},
    printed={},
    notes=("60,000 records and delta 1e-5 are not stated for this figure; they are Figure 4's (erratum 14 for KL).",),
)
