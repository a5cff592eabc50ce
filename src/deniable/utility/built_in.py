"""Frontiers of two real data sets, measured once with `deniable frontier` and kept as its documents."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from deniable.results.frontier_result import FrontierResult
from deniable.utility.expected_quality import read_frontier

BUILT_IN = {
    "adult": "Adult: is a person's income above 50,000 dollars a year? 30,162 people of the US census of 1994 (UCI "
    "Machine Learning Repository; Becker 1996)",
    "mnist": "MNIST: which digit is on a picture? 60,000 handwritten digits (LeCun 1998)",
}
"""What was measured, on whose data. Each document holds the command that made it."""
_PLACE = Path(__file__).parent / "measured"


@cache
def read_built_in(name: str) -> FrontierResult:
    """The frontier of this name, one of `BUILT_IN`."""
    return read_frontier(_PLACE / f"{name}.json")
