"""The verdict: whether the trials contradict the claim, and if not, what the observer showed. In words.

Error (Lemma E10). *Violated* is wrong with probability at most 1 - confidence. For an audit's own trials it rests on
all estimators that read the two error rates at one threshold fixed in advance: they follow from one event, so that
using several costs nothing. For scores from elsewhere it rests on one estimator and rule, named before the scores are
seen. All others are shown and decide nothing.

Closeness is a statement about one quantity, the advantage of an audit's own observer at belief = prior: *loose* if its
interval ends below what the noise allows, *tight* if it reaches that and begins above half of it; either is wrong with
probability at most 1 - confidence. Scores from elsewhere get none: what another threshold or attack would show is not
known from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import ndtri

from deniable.evidence.anytime.watch import shift_of
from deniable.evidence.attack_scores import Errors, Scores
from deniable.evidence.bound import INDEPENDENT, Bound
from deniable.evidence.intervals import advantage_interval
from deniable.formatting import as_given, at_least, at_most, count_of, percent_at_most, short, told_apart
from deniable.promises import Epsilon
from deniable.results.shared import Claimed, Watched
from deniable.results.shared import ReleaseScores as ExactScores

if TYPE_CHECKING:
    from deniable.evidence.measured import Measured

Name = Literal["violated", "other recipe", "consistent", "cannot judge"]
Closeness = Literal["tight", "loose"]
DO_NOT_REDUCE = "Do not reduce the noise because of this: another data set or attack may reach more."
MOST_TRIALS_OF_A_KIND = 2**20


@dataclass(frozen=True)
class Verdict:
    """`violated` is wrong with probability at most 1 - confidence; `consistent` never proves that a claim holds.

    `other recipe`, of somebody else's training, is another training than is claimed, but no less private.
    """

    name: Name
    text: str
    closeness: Closeness | None = None
    """Of a consistent audit: whether the interval of the observer's advantage reaches what the noise allows."""
    exceeded_too_often: bool = False
    """Whether it cannot be judged since the belief was exceeded more often than is allowed."""


@dataclass(frozen=True)
class RowCount:
    """So many scores, and what so many can show; that is computed only where a verdict tells it."""

    number: int
    unit: str = "trials"
    """What one of them is called: a trial, or a canary of one training."""
    needed: Callable[[], int | None] = lambda: None
    """How many would let an observer as strong as the claim allows be told from guessing."""
    provable: Callable[[], float] = lambda: inf
    """The largest bound that so many can give."""

    def __str__(self) -> str:
        return f"{self.number:,} {self.unit}"


def judge_bound(bound: Bound, claim: Epsilon, rows: RowCount) -> Verdict:
    """The verdict of one estimator."""
    if not bound.decides:
        return Verdict("cannot judge", " ".join(_why_undecided(bound)))
    sure = f"(confidence {bound.confidence:.4g}{_conditions(bound)})"
    if bound.value > claim.bound:
        least = f"at least {told_apart(bound.value, claim.bound)[0]}" if bound.value < inf else "beyond all bounds"
        what = f"The release leaks more than is claimed: epsilon at delta {short(claim.delta)} is {least}"
        return Verdict("violated", f"{what}, not {as_given(claim.bound)} {sure}.")
    if bound.value > 0 and (most := rows.provable()) <= claim.bound:
        return Verdict("cannot judge", _beyond_proof(bound, claim, most, rows))
    if bound.value > 0:
        proven = f"the attack proves an epsilon of at least {at_least(bound.value)} {sure}"
        text = f"No violation found: {proven}; {as_given(claim.bound)} is claimed."
        return Verdict("consistent", " ".join([text, *_reach(bound, claim)]))
    nothing = f"By {bound.method}, {rows} prove no epsilon above 0 at delta {short(claim.delta)}"
    return Verdict("cannot judge", f"{nothing}. {_say_needed(rows.needed(), rows.number, rows.unit)}")


def _conditions(bound: Bound) -> str:
    """What the bound takes on trust of the release or of the canaries; of rows, it is asked for how they arose."""
    trusted = [one.text for one in bound.assumptions if one.holds is None and one.text != INDEPENDENT.text]
    return "".join(f"{', if' if number == 0 else '; and if'} {text}" for number, text in enumerate(trusted))


def _beyond_proof(bound: Bound, claim: Epsilon, most: float, rows: RowCount) -> str:
    """A claim so large that so many rows could not refute it, however good the attack."""
    return (
        f"By {bound.method}, {rows} prove an epsilon of at least {at_least(bound.value)} (confidence "
        f"{bound.confidence:.4g}{_conditions(bound)}); of a perfect attack they could prove {at_least(most)} at most, "
        f"so no violation of {as_given(claim.bound)} could be found. Show more of them."
    )


def _reach(bound: Bound, claim: Epsilon) -> Iterator[str]:
    """What the attack falls short of, where that is known; it limits the attack alone."""
    if bound.upper < claim.bound:
        where = "with this threshold" if bound.rule == "fixed" else "at any threshold"
        most = f"The most that this attack could show {where} is {at_most(bound.upper)}"
        yield f"{most}, which is no limit on the true epsilon. {DO_NOT_REDUCE}"


def trials_to_decide(shows: Callable[[Scores], bool], advantage: float, threshold: float = 0.0) -> int | None:
    """How many trials, half of each kind, let an observer with this advantage be told from guessing; None: too many."""
    if advantage <= 0:
        return None
    each = 4
    while each <= MOST_TRIALS_OF_A_KIND and not shows(ideal_scores(advantage, each, threshold)):
        each *= 2
    if each > MOST_TRIALS_OF_A_KIND:
        return None
    low, high = each // 2, each
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if shows(ideal_scores(advantage, middle, threshold)) else (middle, high)
    return 2 * high


def ideal_scores(advantage: float, each: int, threshold: float = 0.0) -> Scores:
    """Evenly spaced Gaussian scores of an observer with this advantage, whose best threshold is `threshold`."""
    mu = shift_of(advantage)
    even = ndtri((np.arange(each) + 0.5) / each) * mu  # variance mu^2, as that of log-likelihood ratios
    return Scores(threshold + even + mu * mu / 2, threshold + even - mu * mu / 2)


def _why_undecided(bound: Bound) -> Iterator[str]:
    if bound.kind == "credible":
        yield "A credible interval is no statement of confidence: no verdict rests on it."
    failed = [assumption.text for assumption in bound.assumptions if assumption.holds is False]
    if failed:
        yield f"No verdict rests on this estimator. It assumes what does not hold here: {'; and '.join(failed)}."


def _say_needed(needed: int | None, trials: int, unit: str = "trials", stronger: str = "a stronger attack") -> str:
    if needed is None:
        return f"No practical number of {unit} would, so small is what the claim allows."
    if needed <= trials:
        enough = f"About {_roughly(needed)} are enough for an observer as strong as the claim allows"
        return f"{enough}: this one is weaker or had bad luck. Use more {unit}, or {stronger}."
    return f"About {_roughly(needed)} would, for an observer as strong as the claim allows; or use {stronger}."


def _roughly(needed: int) -> str:
    """To two digits, as the search finds it."""
    return f"{float(f'{needed:.2g}'):,.0f}"


def verdict(measured: Measured, claimed: Claimed, exact: ExactScores) -> Verdict:
    """Compare the sound lower limits of an audit's trials with the promise and with the scores of the claimed noise.

    All limits hold together: they follow from the same two limits on the error rates, those of the advantage being
    the wider ones, so several comparisons cost no confidence.
    """
    broken = list(_broken(measured, claimed, "was promised")) or list(_broken(measured, exact, "the noise allows"))
    if broken:
        return Verdict("violated", f"{'; '.join(broken)} (confidence {at_least(measured.confidence, 4)}).")
    if measured.violations.low > exact.belief_delta:
        return Verdict("cannot judge", _too_often(measured, exact), exceeded_too_often=True)
    if not _is_refutable(measured, claimed, exact):
        return Verdict("cannot judge", _not_refutable(measured, exact))
    if measured.advantage.high < exact.advantage:
        below = f"{_advantage(measured)} is below the {at_most(exact.advantage)} that this noise allows"
        return Verdict("consistent", f"{_say_exceeded(measured, exact)} {below}. {DO_NOT_REDUCE}", "loose")
    curve = measured.bound("mechanism")
    if measured.advantage.low <= 0 and (curve is None or curve.value <= 0):
        return Verdict("cannot judge", _nothing(measured, exact.advantage))
    tight = measured.advantage.low >= exact.advantage / 2
    how = "agrees with" if tight else "is too little known to be compared with"
    found = f"{_advantage(measured)} {how} the {at_most(exact.advantage)} that theory predicts"
    return Verdict("consistent", f"{_say_exceeded(measured, exact)} {found}.", "tight" if tight else None)


def with_watch(found: Verdict, watched: Watched) -> Verdict:
    """The verdict of limits and watch together: either may find a violation, each with its own share of the risk."""
    if watched.refuted_after is None:
        return found
    bound = watched.epsilon
    least = "beyond all bounds" if bound.value is None else f"at least {at_least(bound.value)}"
    trusted = [one.text for one in bound.assumptions if one.holds is None]
    if_so = f", if {'; and if '.join(trusted)}" if trusted else ""
    epsilon = f"Epsilon at delta {short(bound.delta)} is {least}{if_so}."
    limits = [found.text] if found.name == "violated" else []
    return Verdict("violated", " ".join([watched.text, epsilon, *limits]))


def _broken(measured: Measured, limits: Claimed | ExactScores, what: str) -> Iterator[str]:
    """What is above its limit. The epsilon that assumes nothing leads; that of the claimed training's curve says so."""
    if limits.advantage is not None and measured.advantage.low > limits.advantage:
        yield _above("The training's advantage", measured.advantage.low, limits.advantage, what)
    if limits.epsilon is None:
        return
    curve = measured.bound("mechanism")
    as_claimed = "If sampling and steps are as claimed and the noise alone is not, the training's epsilon"
    if measured.epsilon_lower_bound > limits.epsilon:
        yield _above("The training's epsilon", measured.epsilon_lower_bound, limits.epsilon, what)
    elif curve is not None and curve.value > limits.epsilon:
        yield _above(as_claimed, curve.value, limits.epsilon, what)


def _above(what: str, low: float, limit: float, allowed: str) -> str:
    found, most = told_apart(low, limit) if low < inf else ("any value", at_most(limit, 4))
    return f"{what} is above {found}, more than the {most} that {allowed}"


def _is_refutable(measured: Measured, claimed: Claimed, exact: ExactScores) -> bool:
    """Whether so few trials could have shown a violation, if the observer had never been wrong."""
    half = max(1, measured.trials // 2)
    advantage = advantage_interval(Errors(0, half, 0, half), measured.confidence).low
    found = ((advantage, limits.advantage) for limits in (claimed, exact))
    epsilons = ((measured.provable_epsilon, limits.epsilon) for limits in (claimed, exact))
    return any(limit is not None and most > limit for most, limit in (*found, *epsilons))


def _not_refutable(measured: Measured, exact: ExactScores) -> str:
    trials = count_of(measured.trials, "training")
    allowed = "any epsilon" if exact.epsilon is None else f"an epsilon of {at_most(exact.epsilon)}"
    return (
        f"Even of an observer who is never wrong, {trials} can prove an epsilon of "
        f"{at_least(measured.provable_epsilon)} at most by its errors, and the noise allows {allowed}: no violation "
        "could have been found by them. Play more."
    )


def _say_exceeded(measured: Measured, exact: ExactScores) -> str:
    """How often the belief was exceeded, beside how often it may be."""
    often, allowed = (f"{100 * share:.3g} %" for share in (measured.violations.value, exact.belief_delta))
    return (
        f"No violation found. The observer exceeded a belief of {percent_at_most(measured.belief_bound, 4)} in {often} "
        f"of {count_of(measured.trials, 'training')}; {allowed} is allowed."
    )


def _too_often(measured: Measured, exact: ExactScores) -> str:
    """The belief is exceeded too often, though the error rates, on which *violated* rests, do not prove it."""
    belief, often = percent_at_most(measured.belief_bound, 4), f"{100 * measured.violations.low:.3g} %"
    return (
        f"The observer exceeded a belief of {belief} in at least {often} of the trainings (confidence "
        f"{at_least(measured.confidence, 4)}), and {100 * exact.belief_delta:.3g} % is allowed; but its errors alone "
        "do not prove a violation. Do not rely on the promise before more trials decide."
    )


def _advantage(measured: Measured) -> str:
    value, low, high = measured.advantage
    return f"Its advantage ({value:.2g}, {at_least(100 * measured.confidence, 4)} % interval {low:.2g} to {high:.2g})"


_MORE_UNLIKE = "data of which one record changes more"  # no attack is stronger than an audit's observer


def _nothing(measured: Measured, possible: float) -> str:
    needed = trials_to_decide(measured.tells, possible)
    wanted = _say_needed(needed, measured.trials, stronger=_MORE_UNLIKE)
    return (
        f"{count_of(measured.trials, 'trial')} cannot tell the observer's advantage (at most "
        f"{measured.advantage.high:.3g}, and {at_most(possible)} by the noise) from guessing. {wanted}"
    )
