"""004 (Erlingsson): upper bounds by analysis, lower bounds by attack, and the region between them."""

from __future__ import annotations

from deniable.experiments.erlingsson.noise import TABLE_1
from deniable.experiments.item import Paper

__all__ = ["PAPER"]

PAPER = Paper("004", "erlingsson", "That which we call private", (TABLE_1,))
