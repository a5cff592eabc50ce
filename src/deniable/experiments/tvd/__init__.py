"""002 (TVD): total variation distance privacy."""

from __future__ import annotations

from deniable.experiments.item import Paper
from deniable.experiments.tvd.example import SECTION_3

__all__ = ["PAPER"]

PAPER = Paper(
    "002",
    "tvd",
    "Total variation distance privacy: accurately measuring inference attacks",
    (SECTION_3,),
)
