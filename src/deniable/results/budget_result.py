"""What has been spent of a promise."""

from __future__ import annotations

from typing import Literal

from deniable.results.base import Part

BudgetRule = Literal["planned", "gaussian", "renyi"]


class BudgetReading(Part, frozen=True, kw_only=True):
    """How far a budget is used up, and for which choices of the next release that is proved."""

    releases: int
    """That were spent."""
    score: float
    """The promised score of all of them together; exact under `planned`, of the bound that is counted under others."""
    promised: float
    """What it must not exceed."""
    share: float
    """Of what the rule counts (divergence, squared mu; under `planned` the score), how much is spent."""
    left: float
    """Of it, how much is left, in the rule's unit."""
    rule: BudgetRule
    adaptive: bool
    """Whether releases may be chosen after looking at the outputs of earlier ones."""
    sentence: str
