"""The verdict: whether the trials contradict the claim, and if not, how close the observer came. In words.

Error. *Violated* is wrong with probability at most 1 - confidence. For an audit's own trials it rests on all
estimators that read the two error rates at one threshold fixed in advance: they follow from one event, so that using
several costs nothing. For scores from elsewhere it rests on one estimator and rule, named before the scores are seen.
All others are shown and decide nothing. *Loose* is wrong, about this attack, with probability at most 1 - confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from deniable.audit.bound import Bound
from deniable.audit.scores_input import Scores

if TYPE_CHECKING:
    from deniable.audit.evidence import Measured

__all__ = ["Claim", "Closeness", "Verdict", "ideal_scores", "judge_bound", "trials_to_decide", "verdict"]

Name = Literal["violated", "other recipe", "consistent", "cannot judge"]
Closeness = Literal["tight", "loose"]
NO_GUARANTEE = "Such a saving is no guarantee: it holds for this attack on this data."
MOST_TRIALS = 2**20


@dataclass(frozen=True)
class Verdict:
    """`violated` is wrong with probability at most 1 - confidence; `consistent` never proves that a claim holds.

    `other recipe`, of somebody else's training, is another training than is claimed, but no less private.
    """

    name: Name
    text: str
    closeness: Closeness | None = None
    """Of a consistent claim: whether the interval reaches it (tight) or falls short of it (loose)."""


@dataclass(frozen=True)
class Claim:
    """An epsilon at a delta; the noise multiplier behind it, if one was named; the largest advantage under it."""

    epsilon: float
    delta: float
    advantage: float
    noise: float | None = None


def judge_bound(bound: Bound, claim: Claim, trials: int, needed: Callable[[], int | None]) -> Verdict:
    """The verdict of one estimator; `needed` tells how many trials would decide, if it is asked."""
    if not bound.decides:
        return Verdict("cannot judge", " ".join(_undecided(bound)))
    sure = f"(confidence {bound.confidence:.4g})"
    if bound.value > claim.epsilon:
        least = f"at least {bound.value:.3g}" if bound.value < inf else "beyond all bounds"
        what = f"The release leaks more than is claimed: epsilon at delta {claim.delta:g} is {least}"
        return Verdict("violated", f"{what}, not {claim.epsilon:.3g} {sure}.")
    between = f"this attack shows an epsilon between {bound.value:.3g} and {_most(bound.upper)} {sure}"
    if bound.upper < claim.epsilon:
        text = f"Nothing contradicts epsilon {claim.epsilon:.3g}; {between}, so the claim is loose for it."
        return Verdict("consistent", f"{text} {saving(bound, claim)}", "loose")
    if bound.value > 0:
        text = f"Nothing contradicts epsilon {claim.epsilon:.3g}; {between}, which reaches the claim"
        return Verdict("consistent", f"{text}: it is tight within what {trials:,} trials can tell.", "tight")
    return Verdict(
        "cannot judge", f"{trials:,} trials cannot tell this attack from guessing. {_wanted(needed(), trials)}"
    )


def saving(bound: Bound, claim: Claim) -> str:
    """How much noise the data at hand would allow to save, with the warning that belongs to it."""
    if claim.noise is None or bound.least_noise is None:
        return "How much noise could be saved takes the noise to tell (method mechanism)."
    if bound.least_noise == inf:
        return f"Noise {claim.noise:.3g} could be far less before this attack sees anything. {NO_GUARANTEE}"
    share = claim.noise / bound.least_noise
    less = f"noise {claim.noise * share:.3g} in place of {claim.noise:.3g}, {1 - share:.0%} less"
    return f"The claim would hold against it with {less}. {NO_GUARANTEE}"


def trials_to_decide(shows: Callable[[Scores], bool], advantage: float, threshold: float = 0.0) -> int | None:
    """How many trials, half of each kind, let an observer with this advantage be told from guessing; None: too many."""
    if advantage <= 0:
        return None
    each = 4
    while each <= MOST_TRIALS and not shows(ideal_scores(advantage, each, threshold)):
        each *= 2
    if each > MOST_TRIALS:
        return None
    low, high = each // 2, each
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if shows(ideal_scores(advantage, middle, threshold)) else (middle, high)
    return 2 * high


def ideal_scores(advantage: float, each: int, threshold: float = 0.0) -> Scores:
    """Evenly spaced Gaussian scores of an observer with this advantage, whose best threshold is `threshold`."""
    mu = 2 * float(ndtri((1 + min(advantage, 1 - 1e-12)) / 2))
    even = ndtri((np.arange(each) + 0.5) / each) * mu  # variance mu^2, as that of log-likelihood ratios
    return Scores(threshold + even + mu * mu / 2, threshold + even - mu * mu / 2)


def _undecided(bound: Bound) -> Iterator[str]:
    if bound.kind == "credible":
        yield "A credible interval is no statement of confidence: no verdict rests on it."
    for assumption in bound.assumptions:
        if assumption.holds is False:
            yield f"No verdict rests on this estimator: the scores speak against what it assumes, {assumption.text}."


def _wanted(needed: int | None, trials: int) -> str:
    if needed is None:
        return "No practical number of trials would, so small is what the claim allows."
    if needed <= trials:
        enough = f"About {needed:,} are enough for an observer as strong as the claim allows"
        return f"{enough}: this one is weaker or had bad luck. Run more trials, or use a stronger attack."
    return f"About {needed:,} would, for an observer as strong as the claim allows; or use a stronger attack."


def _most(upper: float) -> str:
    return f"{upper:.3g}" if upper < inf else "any value"


def verdict(measured: Measured, claimed: Mapping[str, Any], exact: Mapping[str, Any]) -> Verdict:
    """Compare the sound lower limits of an audit's trials with the promise and with the scores of the claimed noise.

    All limits hold together: they follow from the same two limits on the error rates, those of the advantage being
    the wider ones, so several comparisons cost no confidence.
    """
    broken = list(_broken(measured, claimed, "was promised")) or list(_broken(measured, exact, "the noise allows"))
    if broken:
        return Verdict("violated", f"{'; '.join(broken)} (confidence {measured.confidence:.4g}).")
    curve = measured.bound("mechanism")
    upper = inf if curve is None else curve.upper
    if exact["epsilon"] is not None and upper < exact["epsilon"]:
        return Verdict("consistent", _loose(measured, exact), "loose")
    if measured.advantage.low <= 0 and (curve is None or curve.value <= 0):
        return Verdict("cannot judge", _nothing(measured, exact["advantage"]))
    return Verdict("consistent", f"{_reached(measured, exact['advantage'])} {_tight(measured)}", "tight")


def _broken(measured: Measured, limits: Mapping[str, Any], what: str) -> list[str]:
    found = {"advantage": measured.advantage.low, "epsilon": measured.largest_bound}
    return [
        f"The training's {name} is above {_most(low)}, more than the {limits[name]:.3g} that {what}"
        for name, low in found.items()
        if limits[name] is not None and low > limits[name]
    ]


def _reached(measured: Measured, possible: float) -> str:
    value, low, high = measured.advantage
    limits = f"between {low:.3g} and {high:.3g}"
    return f"The observer reached an advantage of {value:.3g} ({limits}); the noise allows {possible:.3g}."


def _tight(measured: Measured) -> str:
    return f"The bound is tight for this data, within what {measured.trials:,} trials can tell."


def _loose(measured: Measured, exact: Mapping[str, Any]) -> str:
    share = measured.advantage.value / exact["advantage"]
    curve = measured.bound("mechanism")
    text = f"The bound is loose for this data: the observer gets {max(share, 0):.0%} of what it allows."
    claim = Claim(exact["epsilon"], exact["delta"], exact["advantage"], measured.noise)
    return " ".join([_reached(measured, exact["advantage"]), text, *([saving(curve, claim)] if curve else [])])


def _nothing(measured: Measured, possible: float) -> str:
    needed = trials_to_decide(measured.tells, possible)
    return (
        f"{measured.trials:,} trials cannot tell the observer's advantage (at most {measured.advantage.high:.3g}, and "
        f"{possible:.3g} by the noise) from guessing. {_wanted(needed, measured.trials)}"
    )
