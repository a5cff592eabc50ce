"""What a check of a run finds, in the words of `RunCheck.outcome`; and names in its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

AS_CLAIMED: Final = "as claimed"
LESS: Final = "less private"
OTHER: Final = "another recipe"
UNKNOWN: Final = "not shown"
ROUNDING = 2e-3
"""Of float32 sums, relative: a gradient that differs by less is the same."""
NAMED = 3
"""Of several names, so many are told."""


def list_names(names: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
