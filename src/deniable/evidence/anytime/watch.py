"""A watch over a campaign: after every block it says whether the claim is refuted, so that the campaign may end there.

Blocks are added in the order of their numbers, so the answer does not depend on who played them, nor when. Error: a
claim that is kept is ever called refuted with probability at most `risk` (Lemma E11), and every bound holds whenever
the watch ends (Lemma E13).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from deniable.checks import probability, whole
from deniable.evidence.anytime.sequential import SLOPES, THRESHOLDS, Tally, hockey_sticks, largest_refuted, log_wealth
from deniable.evidence.attack_scores import Floats
from deniable.evidence.bound import Bound
from deniable.evidence.estimators import MechanismCurve
from deniable.evidence.measured import Trials
from deniable.formatting import at_least, at_most, count_of
from deniable.mechanisms import ApproximateDP, Training
from deniable.results.shared import Watched
from deniable.scores import PrivacyLoss, privacy_loss

Stop = Literal["certain", "never"]
"""When a campaign ends: as soon as the claim is certainly refuted, or never before all trials are played."""
STOPS: tuple[Stop, ...] = ("certain", "never")
WATCH_SHARE = 0.5
"""Of the risk 1 - confidence of a campaign that may end early, so much is the watch's and the rest that of limits."""
EARLY_SHARE = 0.1
"""Of the limits' risk, so much is for campaigns that end early."""
NEXT_LOOK = 1.05
"""After so many times the trials of the last look, and a block's end, comes the next one."""
FEWEST_TRIALS = 20
"""From fewer trials nothing is forecast."""
MOST_TRIALS = 10**9
_MOST_EPSILON = 100.0
_MOST_LOG_WEALTH = 700.0
_SHOWN_LOOKS = 200


def looks(trials: int, per_block: int, next_look: float = NEXT_LOOK) -> list[int]:
    """After how many of all `trials`, played in blocks, a watch looks at the evidence; the last is after all."""
    found: list[int] = []
    for end in range(per_block, trials + per_block, per_block):
        if not found or end >= next_look * found[-1] or end >= trials:
            found.append(min(end, trials))
    return found


def limits_confidence(confidence: float, played: int, ends: list[int]) -> float:
    """Of limits beside a watch, where a campaign that may end after each of `ends` trials has ended after `played`.

    Guarantee: all ends together leave the limits a risk of at most (1 - WATCH_SHARE) (1 - confidence), so that they
    hold whenever the campaign ends, and the watch and the limits err with at most 1 - confidence together.
    """
    early = len(ends) - 1
    share = 1.0 if not early else 1 - EARLY_SHARE if played >= ends[-1] else EARLY_SHARE / early
    return 1 - (1 - WATCH_SHARE) * share * (1 - confidence)


class Watch:
    """Hears of the blocks of a campaign in the order of their numbers, and says when its claim is refuted."""

    @classmethod
    def beside_limits(cls, claim: PrivacyLoss, trials: int, confidence: float) -> Watch:
        """With its share of the risk 1 - `confidence`."""
        return cls(claim, trials, WATCH_SHARE * (1 - probability("confidence", confidence, open_ends=True)))

    def __init__(self, claim: PrivacyLoss, trials: int, risk: float) -> None:
        """A watch over at most so many trials; what the last block has more is left out."""
        self._deltas, self._most = hockey_sticks(claim), whole("trials", trials)
        self._risk = probability("risk", risk, open_ends=True)
        self._seen, self._looked, self._log_wealth = Tally.of([], []), list[Tally](), list[float]()

    def add(self, block: Trials) -> bool:
        """Count the next block; whether the claim is refuted by now, and the campaign may end."""
        return self.count(block.log_likelihood_ratio[:, -1], block.trained_on_d)

    def count(self, log_odds: ArrayLike, trained_on_d: ArrayLike) -> bool:
        """The same of trials with these log-odds for D."""
        room = self._most - self._seen.trials
        self._seen += Tally.of(np.asarray(log_odds)[:room], np.asarray(trained_on_d)[:room])
        if not self._looked or self._seen.trials >= min(NEXT_LOOK * self._looked[-1].trials, self._most):
            self._looked.append(self._seen)
            self._log_wealth.append(float(log_wealth([self._seen], self._deltas)[0]))
        return max(self._log_wealth) >= log(1 / self._risk)

    def evidence(self) -> WatchEvidence:
        """What the blocks so far show."""
        return WatchEvidence(tuple(self._looked), np.array(self._log_wealth), self._deltas, self._risk)


@dataclass(frozen=True)
class WatchEvidence:
    """What a watch saw against a claim; all of it holds together, and whenever the watch ends."""

    looked: tuple[Tally, ...]
    """All trials so far, at every look."""
    log_wealth: Floats
    """Of the bets against the claim, at every look."""
    deltas: Floats
    """The claim (`hockey_sticks`)."""
    risk: float

    @property
    def trials(self) -> int:
        """At the last look."""
        return self.looked[-1].trials if self.looked else 0

    @property
    def wealth(self) -> float:
        """The most that bets against the claim ever made of 1; at 1/risk the claim is refuted."""
        return exp(min(float(self.log_wealth.max(initial=0.0)), _MOST_LOG_WEALTH))

    @property
    def refuted_after(self) -> int | None:
        """After how many trials the claim was refuted, if it was."""
        refuted = np.flatnonzero(self.log_wealth >= log(1 / self.risk))
        return self.looked[refuted[0]].trials if refuted.size else None

    @property
    def trials_in_sight(self) -> int | None:
        """How many trials in all will probably refute the claim, if they go on as so far; None if none will.

        Some bet always seems to grow by chance: there is no forecast before the wealth as a whole has grown.
        """
        if self.refuted_after is not None:
            return self.refuted_after
        if self.trials < FEWEST_TRIALS or self.log_wealth[-1] <= 0:
            return None
        return expected_trials(self.looked[-1], self.deltas, self.risk)

    def bare_bound(self, delta: float) -> Bound:
        """A lower bound on epsilon at `delta`, of any mechanism."""

        def claim(epsilon: float) -> Floats:
            return hockey_sticks(privacy_loss(ApproximateDP(epsilon, delta)))

        found = largest_refuted(self.looked, claim, _MOST_EPSILON, self.risk) if self.looked else 0.0
        return Bound("watch", found, delta, 1 - self.risk)

    def mechanism_bound(self, training: Training, delta: float) -> Bound:
        """The same of a training whose noise alone may be less than is claimed."""
        curve = MechanismCurve.of(training, delta)

        def claim(shift: float) -> Floats:
            return hockey_sticks(curve.loss(1 / shift)) if shift > 0 else np.zeros(len(SLOPES))

        shift = largest_refuted(self.looked, claim, 1 / curve.least, self.risk) if self.looked else 0.0
        noise = 1 / shift if shift > 0 else inf
        found = Bound("watch", curve.epsilon(noise), delta, 1 - self.risk, assumptions=(curve.assumption,))
        return replace(found, noise=noise)

    def trials_at_half_noise(self, training: Training) -> int | None:
        """How many trials would probably refute the claim, had the training half of the noise; None if too many.

        Of the strongest observer; an expectation from theory, known before the first trial.
        """
        halved = replace(training, noise=training.noise / 2)
        advantage = float(privacy_loss(halved.mechanism, halved.adjacency).advantage())
        return expected_trials(observer_tally(shift_of(advantage)), self.deltas, self.risk)

    def result(self, bound: Bound, unit: str = "trial", training: Training | None = None) -> Watched:
        """As results show it, with one of the bounds above; `unit` is what a trial is called.

        With the `training` that is claimed, a forecast tells what half of its noise would take.
        """
        at_half_noise = None if training is None else self.trials_at_half_noise(training)
        return Watched(
            trials=self.trials,
            risk=self.risk,
            wealth=self.wealth,
            refuted_after=self.refuted_after,
            trials_in_sight=self.trials_in_sight,
            trials_at_half_noise=at_half_noise,
            epsilon=bound.result(),
            **self._course(),
            text=" ".join([self._finding(unit), *self._forecast(unit, at_half_noise)]),
        )

    def _course(self) -> dict[str, tuple[Any, ...]]:
        """The evidence at some of the looks, for a picture."""
        step = -(-len(self.looked) // _SHOWN_LOOKS) or 1
        chosen = sorted({*range(0, len(self.looked), step), *range(len(self.looked))[-1:]})
        wealth = np.exp(np.minimum(self.log_wealth, _MOST_LOG_WEALTH))
        return {
            "looks": tuple(self.looked[place].trials for place in chosen),
            "evidence": tuple(float(f"{wealth[place]:.4g}") for place in chosen),
        }

    def _finding(self, unit: str) -> str:
        needed = f"under the claim it reaches {at_least(1 / self.risk)} with probability at most {at_most(self.risk)}"
        if self.refuted_after is None:
            so_far = f"the evidence against the claim never passed {at_least(self.wealth)}"
            return f"Watched over {count_of(self.trials, unit)}, {so_far}; {needed}."
        after = f"After {count_of(self.refuted_after, unit)} the claim was refuted"
        return f"{after}: the evidence against it reached {at_least(self.wealth)}; {needed}, however long one watches."

    def _forecast(self, unit: str, at_half_noise: int | None) -> Iterator[str]:
        if self.refuted_after is not None:
            return
        if self.trials_in_sight is not None:
            more = f"about {self.trials_in_sight:,} {unit}s in all will refute the claim"
            yield f"If it goes on growing as so far, {more}."
        elif self.trials >= FEWEST_TRIALS:
            yield "It has not grown, so that nothing can be forecast from it."
        if at_half_noise is not None:
            yield half_noise_text(at_half_noise, unit)


def half_noise_text(trials: int, unit: str = "trial") -> str:
    """The forecast from theory in a sentence."""
    observer = f"the strongest observer would probably refute the claim with {trials:,} {unit}s"
    return f"Had the training half of the claimed noise, {observer}."


def expected_trials(pace: Tally, deltas: Floats, risk: float) -> int | None:
    """How many trials like those of `pace` refute a claim, more often than not earlier; None where none do."""

    def refute(trials: int) -> bool:
        named = pace.named * (trials / pace.trials)
        return bool(log_wealth([Tally(trials, named)], deltas)[0] >= log(1 / risk))

    if not refute(MOST_TRIALS):
        return None
    low, high = 0, MOST_TRIALS  # the logarithm of the wealth is convex in the trials, and 0 at 0: it crosses once
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refute(middle) else (middle, high)
    return high


def shift_of(advantage: float) -> float:
    """The mu of the Gaussian release whose strongest observer has this advantage."""
    return 2 * float(ndtri((1 + min(advantage, 1 - 1e-12)) / 2))


def observer_tally(mu: float, trials: int = 10**6) -> Tally:
    """What an observer of a Gaussian release with this mu names on average, from its log-likelihood ratios."""
    if mu <= 0:
        return Tally(trials, np.full((len(THRESHOLDS), 4), trials / 4))
    threshold = np.array(THRESHOLDS)
    right, wrong = (trials / 2 * ndtr((sign * mu / 2) - threshold / mu) for sign in (1, -1))
    return Tally(trials, np.stack([right, wrong, right, wrong], axis=1))
