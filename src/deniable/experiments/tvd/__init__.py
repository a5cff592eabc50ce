"""Jia 2023 (TVD): total variation distance privacy."""

from __future__ import annotations

from deniable.experiments.item import Paper
from deniable.experiments.tvd.accuracy import FIGURE_3
from deniable.experiments.tvd.composition_figures import FIGURE_9, FIGURE_10
from deniable.experiments.tvd.curve_figures import FIGURE_1, FIGURE_2, FIGURE_8
from deniable.experiments.tvd.example import SECTION_3
from deniable.experiments.tvd.indicators import FIGURE_5, FIGURE_6, FIGURE_7
from deniable.experiments.tvd.training_figure import FIGURE_4

__all__ = ["PAPER"]

PAPER = Paper(
    "Jia 2023",
    "tvd",
    "Total variation distance privacy: accurately measuring inference attacks and improving utility",
    (
        SECTION_3,
        FIGURE_1,
        FIGURE_2,
        FIGURE_3,
        FIGURE_4,
        FIGURE_5,
        FIGURE_6,
        FIGURE_7,
        FIGURE_8,
        FIGURE_9,
        FIGURE_10,
    ),
)
