"""The first verdict: whether the trials contradict the claim, and if not, how close the observer came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from deniable.audit.evidence import Measured

__all__ = ["Verdict", "verdict"]

TIGHT = 0.9
"""From this share of the possible advantage on, a bound counts as tight."""


@dataclass(frozen=True)
class Verdict:
    """`violated` is wrong with probability at most 1 - confidence; `consistent` never proves that a claim holds."""

    name: Literal["violated", "consistent", "uninformative"]
    text: str


def verdict(measured: Measured, claimed: Mapping[str, Any], exact: Mapping[str, Any]) -> Verdict:
    """Compare the sound lower limits with the promise and with the exact scores of the claimed noise.

    All limits hold together: they follow from the same two limits on the error rates, those of the advantage being
    the wider ones, so several comparisons cost no confidence.
    """
    broken = list(_broken(measured, claimed, "was promised")) or list(_broken(measured, exact, "the noise allows"))
    if broken:
        return Verdict("violated", f"{' '.join(broken)} (confidence {measured.confidence:.0%}).")
    if measured.advantage.low <= 0:
        return Verdict("uninformative", _nothing(measured, exact["advantage"]))
    return Verdict("consistent", _closeness(measured, exact["advantage"]))


def _broken(measured: Measured, limits: Mapping[str, Any], what: str) -> list[str]:
    found = {"advantage": measured.advantage.low, "epsilon": measured.epsilon_lower_bound}
    return [
        f"The training's {name} is above {low:.3g}, more than the {limits[name]:.3g} that {what}."
        for name, low in found.items()
        if limits[name] is not None and low > limits[name]
    ]


def _closeness(measured: Measured, possible: float) -> str:
    (value, low, high), share = measured.advantage, measured.advantage.value / possible
    limits = f"between {low:.3g} and {high:.3g}"
    reached = f"The observer reached an advantage of {value:.3g} ({limits}); the noise allows {possible:.3g}."
    if share >= TIGHT:
        return f"{reached} The bound is tight for this data, within what the trials can tell."
    if high >= possible:
        return f"{reached} Whether the bound is tight for this data takes more trials to tell."
    return f"{reached} The bound is loose for this data: the observer gets {share:.0%} of what it allows."


def _nothing(measured: Measured, possible: float) -> str:
    return (
        f"{measured.trials} trials cannot tell the observer's advantage (at most {measured.advantage.high:.3g}, and "
        f"{possible:.3g} by the noise) from guessing: run more trials, or more unlike neighbours."
    )
