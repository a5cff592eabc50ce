"""What a person is told: the promise, the verdict, what was measured, and what all of it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, inf, log

from deniable.answers.strength import weakness
from deniable.bounds import epsilon_to_belief
from deniable.evidence.verdict import DO_NOT_REDUCE
from deniable.formatting import (
    ALMOST_ALL,
    as_given,
    at_least,
    chance,
    count_of,
    percent_as_given,
    percent_at_most,
    short,
)
from deniable.report.words.amount_text import allowed_figure, figure, share
from deniable.results.audit_result import AuditResult
from deniable.results.shared import EpsilonBound
from deniable.results.shared import MeasuredLimits as Measured
from deniable.results.verdict_result import VerdictResult

OBSERVER = "an observer who knows everyone else's records and watches every step"
TEST_MODE = (
    "Test mode. Noise was fitted to this data set (to its local sensitivity) to check the theory. A model trained this "
    "way is NOT private."
)
ATTACKS = {
    "whitebox": "white-box",
    "shadow": "shadow-model",
    "threshold": "loss-threshold",
    "lira": "LiRA",
    "lira-offline": "offline LiRA",
    "rmia": "RMIA",
    "rmia-offline": "offline RMIA",
    "bayes": "Bayesian LiRA",
    "bayes-offline": "offline Bayesian LiRA",
    "quantile": "quantile-regression",
    "strongest": "strongest",
    "all": "strongest",
}
WIDE_ADVANTAGE = 0.3
"""A 95 % interval of the advantage at least this wide is called rough."""


def is_test_mode(document: AuditResult) -> bool:
    """Whether an audit's noise followed the data, so that it protects nobody."""
    return document.input.sensitivity != "global"


def whose_noise(document: AuditResult) -> str:
    """The noise that exact figures are of: this one's of our own training, the claimed one of somebody else's."""
    return "this noise" if document.diagnostics is None else "the claimed noise"


def region_caveat(document: AuditResult) -> str:
    """Why the truth need not lie between analyses and attack; empty where it does."""
    if is_test_mode(document):
        return "Test mode: the analyses are those of noise fitted to this data set, and no bound for any other."
    if document.verdict == "violated":
        return "The claim is refuted: the analyses are those of the claim, and no bound on this training's epsilon."
    if document.verdict == "other recipe":
        return "The training is another than is claimed: the analyses are those of the claim, and no bound on it."
    if document.diagnostics is not None:
        return "The analyses are those of the claim, and bound this training's epsilon only if it is as claimed."
    return ""


def aim(document: AuditResult) -> str:
    """What an audit's target is called: a test mode promises nothing."""
    return "Tested" if is_test_mode(document) else "Promised"


def bare_scores(epsilon: float, delta: float) -> tuple[float, float, float]:
    """(advantage, belief from 50 %, how often it may be exceeded) that (epsilon, delta)-DP alone allows."""
    odds = exp(-epsilon)
    advantage = min(1.0, (1 - odds + 2 * delta * odds) / (1 + odds))
    if delta >= 0.5:
        return advantage, 1.0, delta
    return advantage, epsilon_to_belief(epsilon + (log(2) if delta > 0 else 0.0)), 2 * delta


def badge(verdict: str, weak: str | None, test_mode: bool = False) -> str:
    """The verdict in a word or two; of a weak promise also that it is."""
    if test_mode:
        return f"Test mode: {verdict}"
    but = f", but {weak} protection" if weak and verdict == "consistent" else ""
    return f"{verdict.capitalize()}{but}"


def tone(verdict: str, weak: str | None, test_mode: bool = False) -> str:
    """How the page colours a verdict: green only where a promise is consistent and worth something."""
    if test_mode:
        return "open"
    if verdict == "violated":
        return "bad"
    if verdict not in ("consistent", "other recipe"):
        return "open"
    if verdict == "other recipe":
        return "odd"
    return {"hardly any": "bad", "weak": "odd"}.get(weak or "", "good")


def audit_tone(document: AuditResult) -> str:
    """The colour of an audit: no green where so few hardly show a violation, or where parts stayed unseen."""
    found = tone(document.verdict, protection(document), is_test_mode(document))
    if found == "good" and document.diagnostics is not None:
        return "open" if document.diagnostics.not_examined else "good"
    if found != "good":
        return found
    shown = document.measured.trials > 0 and _tells(document)
    return "good" if shown and not any(_rough(document)) else "open"


def protection(document: AuditResult) -> str | None:
    """How weak the noise behind an audit is, if it is."""
    exact = document.exact
    return weakness(exact.advantage, exact.belief)


def claimed_protection(document: AuditResult | VerdictResult) -> str | None:
    """How weak a claim is, if it is: by the exact scores of its noise, or by the bare epsilon where none is known."""
    if isinstance(document, AuditResult):
        return protection(document)
    return weakness(*_claimed_scores(document))


def _claimed_scores(document: VerdictResult) -> tuple[float, float]:
    """(advantage, belief from 50 %) that a claim allows: the advantage of its noise where that is known."""
    given, exact = document.input, document.exact
    if exact is None:
        return bare_scores(given.claimed_epsilon, given.delta)[:2]
    noisy = inf if exact.epsilon is None else exact.epsilon
    return exact.advantage, bare_scores(max(given.claimed_epsilon, noisy), given.delta)[1]


def scored_meaning(document: VerdictResult) -> str:
    """A verdict on scores for somebody who has to decide."""
    verdict, bound = document.verdict, document.measured.epsilon.lower_bound
    claimed = document.input.claimed_epsilon
    if verdict == "violated":
        return "The claim is broken: more was shown than it allows. Do not rely on it until the cause is found."
    if verdict != "consistent":
        return "These scores cannot tell: the claim is neither contradicted nor supported."
    if bound.upper is not None and bound.upper < claimed:
        return f"No violation found. This attack shows less than is claimed. {DO_NOT_REDUCE}"
    return "No violation found. What this attack shows does not contradict the claim; a stronger attack may show more."


def scored_cautions(document: VerdictResult) -> list[str]:
    """What must stand beside a verdict on scores."""
    weak = claimed_protection(document)
    if weak is None:
        return []
    advantage, belief = _claimed_scores(document)
    who = "alone, it" if document.exact is None else "its noise"
    return [
        f"The claim itself is {weak} protection: {who} allows an observer who starts at 50 % to become "
        f"{_sure(belief)}, and to guess right {percent_at_most((1 + advantage) / 2)} of the time."
    ]


def verdict_limits(document: AuditResult) -> list[tuple[float, float, float]]:
    """(low, high, what the noise allows) of every interval that an audit shows beside its verdict."""
    exact, found = document.exact, document.game
    limits = [(found.advantage.low, found.advantage.high, exact.advantage)]
    belief = found.belief.at_delta
    if belief is not None:
        limits.append((belief.low, belief.high, exact.belief))
    bound = deciding(document)
    if bound is not None and exact.epsilon is not None:
        low, high = (inf if end is None else end for end in (bound.value, bound.upper))
        limits.append((low, high, exact.epsilon))
    return limits


def deciding(document: AuditResult) -> EpsilonBound | None:
    """The estimator that an audit's verdict rests on: the exact trade-off curve, or the region where it cannot."""
    valid = {bound.name: bound for bound in document.game.epsilon.estimators if bound.valid}
    return valid.get("mechanism") or valid.get("region")


def _stays_below(document: AuditResult) -> bool:
    """Whether every interval lies wholly below what the noise allows."""
    return all(high < allowed for _, high, allowed in verdict_limits(document))


def meaning(document: AuditResult) -> str:
    """An audit's verdict for somebody who has to decide."""
    if document.verdict == "violated" and is_test_mode(document):
        return "In this test more was shown than theory allows: by chance, or since the training is not as described."
    if document.verdict == "violated":
        named = document.diagnostics is not None and document.diagnostics.cause
        broken = "the training does not do what it claims" if named else "more was shown than it allows"
        mended = "mended" if named else "found and mended"
        return f"The promise is broken: {broken}. Do not rely on it until the cause is {mended}."
    if document.verdict == "consistent":
        return _no_violation(document)
    if any(_exceeded_too_often(document)):
        return (
            "The belief was exceeded more often than is allowed. Do not rely on the promise before more trials decide."
        )
    if document.verdict == "other recipe":
        return "The training is not the one that is claimed, though nothing shows that it is less private."
    return _tell_undecided(document)


def _tell_undecided(document: AuditResult) -> str:
    if document.diagnostics is None and document.measured.trials and not _tells(document):
        return (
            "These trainings cannot tell the observer from one who guesses. Nothing shows more than is promised, but "
            "that supports the promise little."
        )
    return "These trainings cannot tell: the promise is neither contradicted nor supported."


def _no_violation(document: AuditResult) -> str:
    found = "No violation found."
    if document.diagnostics is not None:
        return "No violation found: what was examined is as claimed."
    if not document.measured.trials:
        return f"{found} Nothing was played."
    if _stays_below(document):
        return f"{found} On this data the observer stays below what the noise allows. {DO_NOT_REDUCE}"
    if not _tells(document):
        return f"{found} But the observer could hardly be told from one who guesses: this supports the promise little."
    if any(high < allowed for _, high, allowed in verdict_limits(document)):
        return f"{found} By some figures the observer is below what the noise allows, by others it may reach it."
    return f"{found} What the observer reached agrees with what the noise allows, as far as these trainings can tell."


def _tells(document: AuditResult) -> bool:
    """Whether the trainings prove that the observer does better than one who guesses: by advantage or epsilon."""
    by = deciding(document)
    return document.game.advantage.low > 0 or (by is not None and (by.value is None or by.value > 0))


def agreement(document: AuditResult) -> str:
    """The measured advantage beside the exact one: below it, in agreement, or above."""
    found, allowed = document.game.advantage, document.exact.advantage
    sure = _confidence(document)
    limits = f"{figure(found.value)}, {sure} interval {figure(found.low)} to {figure(found.high)}"
    if found.high < allowed:
        held = f"is below the {allowed_figure(allowed)} that the noise allows"
    elif found.low > allowed:
        held = f"is above the {allowed_figure(allowed)} that the noise allows"
    elif not _tells(document):
        held = f"cannot be told from guessing (0), nor from the {allowed_figure(allowed)} that the noise allows"
    elif found.low <= 0:
        fits = f"fits the {allowed_figure(allowed)} that the noise allows, and guessing (0)"
        held = f"{fits}; epsilon shows more than guessing"
    else:
        held = f"agrees with the {allowed_figure(allowed)} that theory allows at worst"
    return f"Its advantage ({limits}) {held}."


def headline(document: AuditResult) -> str:
    """What an audit found, with figures; a verdict other than consistent gives its own reason."""
    if document.verdict != "consistent" or not document.measured.trials:
        return document.verdict_text
    below = f" {DO_NOT_REDUCE}" if _stays_below(document) else ""
    return f"No violation found. {exceedance_text(document)} {agreement(document)}{below}"


def exceedance_text(document: AuditResult) -> str:
    """How often the belief was above its bound, beside how often it may be."""
    found = document.game
    belief, limits = found.belief, found.belief.violation_interval
    if belief.bound >= 1:
        return "No limit on the belief below 100 % follows from the promise, so none can be exceeded."
    often = share(belief.violation_rate) if belief.violation_rate else "none"
    interval = f"{_confidence(document)} interval {share(limits.low)} to {share(limits.high)}"
    return (
        f"The observer exceeded {_belief(belief.bound)} in {often} of {count_of(found.trials, 'training')} "
        f"({interval}); {rarely(document)} is allowed."
    )


def _belief(bound: float) -> str:
    shown = percent_at_most(bound)
    return f"a belief of {shown}" if shown == ALMOST_ALL else f"{shown} belief"


def _confidence(document: AuditResult) -> str:
    return f"{at_least(100 * document.game.epsilon.lower_bound.confidence, 4)} %"


def promise(document: AuditResult) -> str:
    """An audit's promise in a sentence."""
    told = _promise(document)
    return f"Tested, not promised: {told[0].lower()}{told[1:]}" if is_test_mode(document) else told


def _promise(document: AuditResult) -> str:
    claimed, given, exact = document.claimed, document.input, document.exact
    if claimed.belief is not None:
        most = percent_as_given(claimed.belief)
        return (
            f"Nobody becomes more than {most} sure whether a person is in the data: not even {OBSERVER}, starting from "
            f"50 %, except with probability {rarely(document)}."
        )
    if claimed.advantage is not None:
        right = percent_at_most((1 + claimed.advantage) / 2)
        return (
            f"Nobody guesses right more than {right} of the time whether a person is in the data: not even {OBSERVER}. "
            f"A coin is right 50 % of the time (membership advantage {as_given(claimed.advantage)})."
        )
    if claimed.epsilon is not None:
        return _promised_epsilon(claimed.epsilon, claimed.delta)
    more = f"; the chance of more is at most {chance(exact.belief_delta)}" if exact.belief < 1 else ""
    return (
        f"Noise of {figure(given.noise)} times the sensitivity in each of {count_of(given.steps, 'step')}. It "
        f"allows {OBSERVER}, starting from 50 %, to become {_sure(exact.belief)}{more}."
    )


def _promised_epsilon(epsilon: float, delta: float) -> str:
    advantage, belief, failure = bare_scores(epsilon, delta)
    right = percent_at_most((1 + advantage) / 2)
    rest = f" (the chance of more is at most {chance(failure)})" if failure and belief < 1 else ""
    return (
        f"The training is differentially private with epsilon {as_given(epsilon)} at delta {short(delta)}. This "
        f"promise alone allows {OBSERVER}, starting from 50 %, to become {_sure(belief)}{rest}, and to guess right "
        f"{right} of the time."
    )


def _sure(belief: float) -> str:
    return "certain" if belief >= 1 else f"{percent_at_most(belief)} sure"


def measured_text(document: AuditResult) -> str:
    """What an audit's trainings showed, in a sentence or two."""
    if not document.measured.trials:
        return "Nothing was trained, so nothing was measured."
    found = document.game
    observer = f"In {count_of(found.trials, 'training')} the observer {guess_text(found.advantage)}"
    return f"{observer} {exceedance_text(document)}"


def guess_text(advantage: Measured) -> str:
    """How often the observer was right, from its advantage."""
    right, low, high = (share((1 + end) / 2) for end in (advantage.value, advantage.low, advantage.high))
    if advantage.low <= -1 and advantage.high >= 1:
        return "may have been right by chance: so few tell nothing (limits 0 % to 100 %)."
    return (
        f"guessed right {right} of the time, the mean over D and D' (limits {low} to {high}); a coin is right 50 % of "
        "the time."
    )


def rarely(document: AuditResult) -> str:
    """How often a promised belief may be exceeded, as a person would write it: 1 %, or 1/60,000 of the records."""
    failure, records = document.exact.belief_delta, document.input.records
    return f"1/{records:,}" if records > 100 and failure == 1 / records else percent_at_most(failure)


def cautions(document: AuditResult) -> list[str]:
    """What must stand beside an audit's verdict, so that nobody takes it for more or less than it is."""
    seen = document.diagnostics
    differs = "What differs" if document.verdict == "other recipe" else "The cause"
    found = [f"{differs}: {seen.cause}."] if seen is not None and seen.cause else []
    found += [f"Not examined: {'; '.join(seen.not_examined)}."] if seen is not None and seen.not_examined else []
    if is_test_mode(document):
        return [*found, TEST_MODE]
    return [*found, *_weak(document), *_exceeded_too_often(document), *_rough(document)]


def _weak(document: AuditResult) -> Iterator[str]:
    weak, exact = protection(document), document.exact
    if weak:
        yield (
            f"This is {weak} protection, whatever the verdict: the noise allows an observer who starts at 50 % to "
            f"become {_sure(exact.belief)}, and to guess right {percent_at_most((1 + exact.advantage) / 2)} of "
            "the time."
        )


def _exceeded_too_often(document: AuditResult) -> Iterator[str]:
    if not document.measured.trials:
        return
    found = document.game
    low = found.belief.violation_interval.low
    if low > document.exact.belief_delta:
        yield (
            f"The belief of {percent_at_most(found.belief.bound)} was exceeded in at least {at_least(100 * low)} % of "
            f"the trainings ({_confidence(document)} confidence), more often than the {rarely(document)} that is "
            "allowed."
        )


def _rough(document: AuditResult) -> Iterator[str]:
    """How little few trainings can show."""
    if not document.measured.trials or document.verdict == "violated" or document.diagnostics is not None:
        return
    found = document.game
    width = found.advantage.high - found.advantage.low
    if width >= WIDE_ADVANTAGE:
        yield (
            f"Rough: {count_of(found.trials, 'training')} can tell the advantage (0 is guessing, 1 is certainty) to "
            f"no better than an interval from {figure(found.advantage.low)} to {figure(found.advantage.high)}."
        )
