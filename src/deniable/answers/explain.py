"""The JSON documents behind `explain` and `choose`: every number once, in full precision; tables are made from them.

A value that is not a finite number is null, and `notes` say why: the documents hold no NaN or Infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from msgspec import convert

from deniable.answers.at_least import epsilon_at_least
from deniable.answers.demands import calibrate_by
from deniable.bounds import METHODS, InapplicableError, any_release_belief, epsilon_to_belief, guarantee
from deniable.bounds.gaussian import classic_is_proved
from deniable.calibration import calibrate
from deniable.formatting import as_given, at_least
from deniable.mechanisms import (
    ApproximateDP,
    Composed,
    GaussianDP,
    Mechanism,
    Sampled,
    Shuffled,
    TotalVariation,
)
from deniable.promises import SCORES, Promise, Question
from deniable.results.shared import Scores
from deniable.scores import PrivacyLoss, privacy_loss
from deniable.upper import Upper

__all__ = [
    "Document",
    "Question",
    "asked",
    "bare_delta",
    "choose",
    "demands",
    "exact_scores",
    "explain",
    "found",
    "joined",
]

Document = dict[str, Any]
TEXTBOOK = "Bernau et al. 2021, Theorem 2"
"""The source of the belief that is read off (epsilon, delta)."""


def explain(mechanism: Mechanism, question: Question, given: Mapping[str, Any]) -> Document:
    """What `mechanism` means for a person; `given` is how the user described it, repeated under "input"."""
    loss = privacy_loss(mechanism, question.adjacency)
    return {"schema": "deniable/explain/2", "input": asked(given, question), **_answer(mechanism, loss, question)}


def choose(
    training: Callable[[float], Mechanism], promise: Promise, question: Question, given: Mapping[str, Any]
) -> Document:
    """The least noise with which `training(noise)` keeps the promise, and what weaker analyses would demand."""
    return joined(found(training, promise, question, given), demands(training, promise, question))


def found(
    training: Callable[[float], Mechanism], promise: Promise, question: Question, given: Mapping[str, Any]
) -> Document:
    """The part of `choose` that is about the least noise itself."""
    plan = calibrate(training, promise, question.adjacency)
    return {
        "schema": "deniable/choose/2",
        "input": asked(given, question),
        "noise": float(plan.value),
        **_answer(plan.mechanism, plan.loss, question),
    }


def demands(training: Callable[[float], Mechanism], promise: Promise, question: Question) -> list[Document]:
    """The part of `choose` that is about weaker analyses; it needs none of the other's results."""
    return [_demand(name, training, promise, question) for name in METHODS]


def joined(exact: Document, weaker: list[Document]) -> Document:
    """The document of `choose` from its two parts."""
    return {**exact, "methods": [{"name": "exact", "noise": exact["noise"]}, *weaker]}


def asked(given: Mapping[str, Any], question: Question) -> Document:
    """What was described and what was asked, as the documents repeat it."""
    return {**given, **question.document()}


def _answer(mechanism: Mechanism, loss: PrivacyLoss, question: Question) -> Document:
    values, belief = _single(loss, question), _belief(mechanism, loss, question)
    least = epsilon_at_least(mechanism, question.delta, question.adjacency)
    errors = {name: _finite(value.error) for name, value in values.items()}
    return {
        "scores": {**_scores(values, belief, loss, question), **({} if least is None else {"epsilon_at_least": least})},
        "errors": {**errors, "belief": belief.error},
        "method": loss.method,
        "bounds": _bounds(mechanism, values["epsilon"], question),
        "notes": [
            *_infinite(values["epsilon"], question),
            *_of_guarantee(mechanism),
            *_of_sampling(mechanism, least, question),
        ],
    }


def exact_scores(mechanism: Mechanism, question: Question) -> Scores:
    """Every score of `mechanism`, as `explain` tells them."""
    loss = privacy_loss(mechanism, question.adjacency)
    return convert(_scores(_single(loss, question), _belief(mechanism, loss, question), loss, question), Scores)


def _single(loss: PrivacyLoss, question: Question) -> dict[str, Upper]:
    """The scores that have one value, but for the belief, which may be another for a bare guarantee."""
    asked = {
        name: score for name, score in reversed(SCORES.items()) if score.list_parameter() is None and name != "belief"
    }
    return {name: score.ask(loss, **_parameters(score, question)) for name, score in asked.items()}


def _parameters(score: type[Promise], question: Question) -> dict[str, Any]:
    return {name: getattr(question, name) for name in score.parameter_names()}


@dataclass(frozen=True)
class _Belief:
    """The belief that is exceeded with probability at most `delta`; no error is known where it is only a bound."""

    value: float
    delta: float
    error: float | None


def bare_delta(mechanism: Mechanism, delta: float) -> float | None:
    """Of a bare guarantee, how often the belief that is told may be exceeded; None where the loss itself is known.

    (epsilon, delta)-DP alone leaves room for Pr[loss > t] >= delta at every t, so that twice delta is taken.
    """
    match mechanism:
        case ApproximateDP(_, bare) if 0 < bare < 0.5:
            return 2 * bare
        case ApproximateDP(_, bare) if bare > 0:
            return bare
        case GaussianDP() | TotalVariation() if delta > 0:
            return delta
    return None


def _belief(mechanism: Mechanism, loss: PrivacyLoss, question: Question) -> _Belief:
    """What holds for every release with this guarantee, or exactly for this mechanism where it is known."""
    delta = bare_delta(mechanism, question.delta)
    if delta is not None:
        return _Belief(any_release_belief(loss.epsilon, delta, question.prior), delta, None)
    exact = loss.belief(question.delta, question.prior)
    return _Belief(float(exact), question.delta, _finite(exact.error))


def _scores(values: Mapping[str, Upper], belief: _Belief, loss: PrivacyLoss, question: Question) -> Document:
    """Every score of the table at the question's parameters; one with many values is a list."""
    scores: Document = {"delta": question.delta, "prior": question.prior}
    for name, score in SCORES.items():
        at, listed = _parameters(score, question), score.list_parameter()
        if name == "belief":
            scores |= {"belief": belief.value, "belief_delta": belief.delta}
        elif listed is None:
            scores[name] = _finite(values[name])
        elif at[listed]:
            rows = [{**at, listed: one} for one in at[listed]]
            scores[name] = [{**row, name: float(score.ask(loss, **row))} for row in rows]
    return scores


def _bounds(mechanism: Mechanism, epsilon: float, question: Question) -> Document:
    """The named analyses; `theorem_2` reads the belief off (epsilon, delta), as textbooks do: it may be too low."""
    bounds = {name: _bound(name, mechanism, question) for name in METHODS}
    read_off = epsilon_to_belief(epsilon, question.prior) if isfinite(epsilon) else 1.0
    bounds["theorem_2"] = {"belief": read_off, "source": TEXTBOOK}
    return bounds


def _bound(name: str, mechanism: Mechanism, question: Question) -> Document:
    score = "advantage" if name == "kl" else "epsilon"
    if question.delta == 0:
        return {score: None, "why": "needs a delta above 0"}
    try:
        known = guarantee(name, mechanism, question.delta, question.adjacency)
    except InapplicableError as reason:
        return {score: None, "why": _short(reason)}
    if isinstance(known, TotalVariation):
        return {score: float(known.alpha)}
    proved = {"proved": classic_is_proved(known.epsilon)} if name == "classic" else {}
    return {score: _finite(known.epsilon), **proved}


def _demand(name: str, training: Callable[[float], Mechanism], promise: Promise, question: Question) -> Document:
    try:
        noise = calibrate_by(name, training, promise, question.delta, question.adjacency)
    except InapplicableError as reason:
        return {"name": name, "noise": None, "why": _short(reason)}
    if name != "classic":
        return {"name": name, "noise": noise}
    return {"name": name, "noise": noise, "proved": _bound(name, training(noise), question)["proved"]}


def _infinite(epsilon: float, question: Question) -> list[str]:
    """Whether none holds, or only none was found."""
    if isfinite(epsilon):
        return []
    if getattr(epsilon, "error", 0.0) > 0:
        return [f"No finite epsilon was found at delta {as_given(question.delta)}: it is too small for this method."]
    return [f"Epsilon is infinite: no finite one holds at delta {as_given(question.delta)}."]


def _of_guarantee(mechanism: Mechanism) -> list[str]:
    """A bare guarantee bounds every test, but not how often a belief is exceeded: say what was done about it."""
    match mechanism:
        case ApproximateDP(_, delta) if delta > 0:
            return [
                "The belief holds for every release with this guarantee. The one that textbooks read off epsilon and "
                f"delta ({TEXTBOOK}) may be too low: it is right only where the privacy loss exceeds epsilon with "
                "probability at most delta, which this guarantee does not promise."
            ]
        case GaussianDP() | TotalVariation():
            return ["The belief holds for every release with this guarantee; of a known mechanism it may be lower."]
    return []


def _of_sampling(mechanism: Mechanism, least: float | None, question: Question) -> list[str]:
    """Where only bounds are known, what is known from below."""
    if least is None:
        return []
    parts = mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),)
    known = f"Epsilon at delta {as_given(question.delta)} is at least {at_least(least)} for some data."
    if any(isinstance(part, Sampled) and isinstance(part.sampling, Shuffled) for part, _ in parts):
        return [
            "For shuffled batches nothing better than no sampling is proved: the figures are those of one release on "
            f"all records in every epoch. {known} The value for Poisson batches is not theirs."
        ]
    return [f"For batches of a fixed size the figures are bounds. {known} The value for Poisson batches is not theirs."]


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _short(reason: InapplicableError) -> str:
    """The reason without the mechanism's description, which the document holds already."""
    return str(reason).partition(", got ")[0]
