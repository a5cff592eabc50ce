"""What was found in one watched run."""

from __future__ import annotations

from typing import ClassVar, Literal

from deniable.mechanisms import Adjacency
from deniable.results.base import Part, Result
from deniable.results.shared import VerdictName

Outcome = Literal["as claimed", "less private", "another recipe", "not shown"]


class RunInput(Part, frozen=True, kw_only=True):
    """The claim."""

    noise: float
    rate: float
    steps: int
    adjacency: Adjacency
    confidence: float


class CodePlace(Part, frozen=True, kw_only=True):
    """A line of the user's code."""

    file: str
    line: int
    text: str = ""
    """The line itself, without its indentation."""


class RunCheck(Part, frozen=True, kw_only=True):
    """One part of the claim: what was seen of it, and what it means."""

    name: str
    outcome: Outcome
    observed: str
    expected: str
    p_value: float | None = None
    place: CodePlace | None = None
    """The line that decides this part, where the training's code was watched (`check_training`)."""


class RunResult(Result, frozen=True, kw_only=True, tag="deniable/run/1"):
    """The verdict on one run, its checks, and what one run cannot show."""

    kind: ClassVar[str] = "run"
    input: RunInput
    verdict: VerdictName
    verdict_text: str
    checks: tuple[RunCheck, ...]
    not_shown: tuple[str, ...]
    claimed_advantage: float
    """What the claimed noise allows an observer of all steps."""
    claimed_belief: float
    """Exceeded with probability `claimed_belief_delta` at most, from a belief of one half."""
    claimed_belief_delta: float | None = None
    """1 / records; None in documents of older versions."""
    steps: int
    examined_steps: int
    recomputed: tuple[int, ...]
    """The numbers of the examined steps, from 0 on, and each one's noise as a share of the claimed one."""
    noise_ratios: tuple[float, ...]
    least_visible_noise: float | None
    """A noise multiplier below this share of the claimed one, in all steps, is found with probability 95 % or more."""
    power_text: str = ""
    """The same as a sentence, also for a single step that was not recomputed."""
    watcher_share: float
    """Of the run's time that the watcher took."""
    unfinished: str = ""
    """How far the run came where it was ended before its last step; empty where it was not."""
