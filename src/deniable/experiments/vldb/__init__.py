"""Bernau 2021 (VLDB): quantifying identifiability to choose and audit epsilon in deep learning."""

from __future__ import annotations

from deniable.experiments import gaussian_pair
from deniable.experiments.item import Paper
from deniable.experiments.vldb.auditing import FIGURE_7, FIGURE_8, FIGURE_9
from deniable.experiments.vldb.belief_figure import FIGURE_6
from deniable.experiments.vldb.costs import TABLE_1
from deniable.experiments.vldb.observer_table import TABLE_2
from deniable.experiments.vldb.sensitivities import FIGURE_4, FIGURE_5
from deniable.experiments.vldb.settings_table import TABLE_3

__all__ = ["PAPER"]

PAPER = Paper(
    "Bernau 2021",
    "vldb",
    "Quantifying identifiability to choose and audit epsilon in deep learning",
    (
        gaussian_pair.decision("figure-1", "Figure 1"),
        gaussian_pair.errors("figure-2", "Figure 2"),
        gaussian_pair.scores("figure-3", "Figure 3"),
        TABLE_1,
        FIGURE_4,
        FIGURE_5,
        TABLE_2,
        FIGURE_6,
        TABLE_3,
        FIGURE_7,
        FIGURE_8,
        FIGURE_9,
    ),
)
