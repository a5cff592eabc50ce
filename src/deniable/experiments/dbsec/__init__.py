"""Bernau 2021b (DBSec): local against central differential privacy under membership inference."""

from __future__ import annotations

from deniable.experiments.dbsec.class_sizes import FIGURE_6, FIGURE_7
from deniable.experiments.dbsec.epsilon_table import TABLE_1, TABLE_2
from deniable.experiments.dbsec.figures import FIGURES
from deniable.experiments.item import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    "Bernau 2021b",
    "dbsec",
    "Comparing local and central differential privacy using membership inference attacks",
    (TABLE_1, TABLE_2, *FIGURES, FIGURE_6, FIGURE_7),
)
