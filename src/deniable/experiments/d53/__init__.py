"""Bernau 2020 (D5.3): identifiability scores for differentially private deep learning."""

from __future__ import annotations

from deniable.experiments import gaussian_pair
from deniable.experiments.d53.mnist_figures import FIGURE_5_1, FIGURE_5_2, TABLE_5_1
from deniable.experiments.item import Paper
from deniable.experiments.vldb.sensitivities import FIGURE_5_3

__all__ = ["PAPER"]

PAPER = Paper(
    "Bernau 2020",
    "d53",
    "Deliverable 5.3: posterior belief and advantage in deep learning",
    (
        gaussian_pair.decision("figure-3.2", "Figure 3.2"),
        gaussian_pair.errors("figure-4.1", "Figure 4.1"),
        gaussian_pair.scores("figure-4.2", "Figure 4.2"),
        FIGURE_5_1,
        FIGURE_5_2,
        FIGURE_5_3,
        TABLE_5_1,
    ),
)
