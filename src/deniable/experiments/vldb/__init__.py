"""001 (VLDB): quantifying identifiability to choose and audit epsilon in deep learning."""

from __future__ import annotations

from deniable.experiments import gaussian_pair
from deniable.experiments.item import Paper
from deniable.experiments.vldb.settings_table import TABLE_3

__all__ = ["PAPER"]

PAPER = Paper(
    "001",
    "vldb",
    "Quantifying identifiability to choose and audit epsilon in deep learning",
    (
        gaussian_pair.decision("figure-1", "001 Figure 1"),
        gaussian_pair.errors("figure-2", "001 Figure 2"),
        gaussian_pair.scores("figure-3", "001 Figure 3"),
        TABLE_3,
    ),
)
