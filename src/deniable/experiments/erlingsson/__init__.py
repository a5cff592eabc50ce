"""Erlingsson 2019: upper bounds by analysis, lower bounds by attack, and the region between them."""

from __future__ import annotations

from deniable.experiments.erlingsson.analysis_tables import FIGURE_1, FIGURE_2, TABLE_1, TABLE_2
from deniable.experiments.erlingsson.rotation import SECTION_3, SECTION_4
from deniable.experiments.item import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    "Erlingsson 2019",
    "erlingsson",
    "That which we call private",
    (SECTION_3, SECTION_4, TABLE_1, TABLE_2, FIGURE_1, FIGURE_2),
)
