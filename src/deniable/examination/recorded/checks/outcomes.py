"""What a check of a run finds, in the words of `RunCheck.outcome`."""

from __future__ import annotations

from typing import Final

AS_CLAIMED: Final = "as claimed"
LESS: Final = "less private"
OTHER: Final = "another recipe"
UNKNOWN: Final = "not shown"
ROUNDING = 2e-3
"""Of float32 sums, relative: a gradient that differs by less is the same."""
