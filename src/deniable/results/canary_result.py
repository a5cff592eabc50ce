"""The file of a canary plan: coins, scores and claim."""

from __future__ import annotations

from deniable.mechanisms import Adjacency
from deniable.results.base import Part


class CanaryClaim(Part, frozen=True, kw_only=True):
    """What is claimed of the training; its noise, rate and steps where they are known."""

    epsilon: float
    delta: float
    noise: float | None = None
    rate: float | None = None
    steps: int | None = None
    adjacency: Adjacency | None = None


class CanaryFile(Part, frozen=True, kw_only=True):
    """Who was drawn, before the training; scores and claim as soon as there are any."""

    format: str
    kind: str
    drawn: str
    """When the coins were tossed, in UTC."""
    records: int
    """Of the data set that the canaries were put into."""
    identifiers: tuple[str, ...]
    coins: tuple[bool, ...]
    """Whether each canary was in the training data."""
    carriers: tuple[int, ...]
    """The record in whose place each canary stands, or with which it is drawn into batches."""
    scores: tuple[float, ...] | None = None
    independence: float | None = None
    """The p-value of what the training showed against canaries that are independent of each other."""
    claim: CanaryClaim | None = None
    per_coordinate: int = 1
    """Canaries that share a coordinate of the gradient."""
    records_per_person: int = 1
    """Of each canary; `carriers` has so many for each, one canary after the other."""
    adaptive: bool = False
    """Whether the scores stand for guesses that knew the coins of those before them."""
    steps: int | None = None
    """In which gradient canaries were, where their run told the scores."""
