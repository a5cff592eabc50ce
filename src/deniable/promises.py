"""THE table of scores: what can be promised, asked and claimed about a release, one entry a score.

An entry has its name (of the option, the JSON key, the keyword and the method of `PrivacyLoss` that answers it), its
range, its words, and the parameters at which it is asked. Calibration, command line, page, sentences, report and
documents read them here: a new score is a class in this file and a method of `PrivacyLoss`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import exp, inf, log, log1p
from typing import Any, ClassVar, Self

from deniable.checks import RefusedError, probability, refuse
from deniable.fields import Field
from deniable.formatting import as_given, at_most, chance, percent_as_given, percent_at_most
from deniable.mechanisms import Adjacency
from deniable.results.explain_result import AnswerInput
from deniable.results.shared import Claimed
from deniable.scores import PrivacyLoss
from deniable.upper import Upper

__all__ = [
    "Accuracy",
    "Advantage",
    "Belief",
    "Epsilon",
    "Noise",
    "PositivePredictiveValue",
    "Promise",
    "Success",
    "TruePositiveRate",
]


@dataclass(frozen=True)
class Question:
    """At which parameters the scores of a release are asked: an attribute each, a tuple where several may be asked."""

    adjacency: Adjacency
    delta: float = 1e-5
    prior: float = 0.5
    fpr: tuple[float, ...] = (1e-3, 1e-2)
    baseline: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any], adjacency: Adjacency) -> Self:
        """From checked numbers by their names; delta is 1/N where it is not given and the number of records is."""
        asked = {name: values[name] for name in PARAMETERS if name in values}
        if "delta" not in asked and "records" in values:
            asked["delta"] = 1 / values["records"]
        if asked.get("delta") == 1:
            raise refuse("delta", 1, "a number below 1", "it would promise nothing")
        return cls(adjacency, **asked)


_PERCENT: dict[str, Any] = {"percent": True}
_EVENLY: dict[str, Any] = {"percent": True, "scale": "linear"}
PARAMETERS: dict[str, Field] = {
    field.name: field
    for field in (
        Field(
            "delta",
            "D",
            "Delta, and the probability that the belief is exceeded. Default 1/N if {records} is given, else 1e-5.",
            "probability",
        ).on_page("Delta", "How often the belief may be exceeded. Empty: 1/records, else 0.00001.", (0, 1)),
        Field("prior", "P", "Belief before the release. Default 0.5.", "share").on_page(
            "Belief before the release", "What the observer believes already.", stops=(1, 99), usual=0.5, **_EVENLY
        ),
        Field(
            "fpr",
            "F",
            "False positive rate of an attack; repeatable. Default 0.001 and 0.01.",
            "probability",
            repeatable=True,
        ).on_page(
            "False positive rate", "Others that an attack accuses wrongly.", (0, 1), (0.01, 20), 0.01, **_PERCENT
        ),
        Field(
            "baseline",
            "P",
            "What an attack reaches without the release: one over the candidates, the share of people that a "
            "description fits, or the best guess of an attribute; repeatable.",
            "probability",
            repeatable=True,
        ).on_page("Success without the release", "Among N candidates 1/N.", (0, 1), (0.0001, 50), 0.001, **_PERCENT),
    )
}
"""At what scores are asked, in the order of `Question`."""
SPELLINGS: dict[str, Field] = {
    "candidates": Field(
        "candidates",
        "N",
        "{baseline} 1/N: one of N candidates is guessed.",
        "whole",
        (2, 1e12),
        gives=("baseline", lambda people: 1 / people),
    ).on_page("Candidates", "", (2, 10**9)),
}
"""Other ways to give a parameter, as one over a number of people."""


def resolve_spellings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with every parameter by its own name, however it was spelled."""
    found = {name: value for name, value in values.items() if name not in SPELLINGS}
    for name, field in SPELLINGS.items():
        if name in values and field.gives is not None:
            parameter, follows = field.gives
            if parameter in values:
                text = f"{{{name}}} {values[name]:g} contradicts {{{parameter}}}: give one of them"
                raise RefusedError(text, name, values[name])
            value = follows(values[name])
            found[parameter] = (value,) if PARAMETERS[parameter].repeatable else value
    return found


@dataclass(frozen=True)
class Promise(ABC):
    """What is claimed or aimed at: `score(loss) <= bound`.

    The attributes after `bound` are the parameters at which the score is asked.
    """

    field: ClassVar[Field]
    kind: ClassVar[str]
    """As the page lists it: "a posterior belief"."""
    label: ClassVar[str]
    """Of a row that tells the score, with words of `_words` in braces."""
    sentence: ClassVar[str]
    """What the promise says, with words of `_words` in braces."""
    bound: float

    def __post_init__(self) -> None:
        self.field.check(self.bound)
        for name, value in self.parameters.items():
            probability(name, value, open_ends=True)
        floor, why = self.floor
        if not self.bound > floor:
            raise RefusedError(
                f"{{{self.field.name}}} must be above {floor:g} ({why}), got {self.bound!r}",
                self.field.name,
                self.bound,
                f"above {floor:g}",
                "no noise can promise less",
            )

    @property
    def floor(self) -> tuple[float, str]:
        """What no noise brings the score below, and why."""
        return -1.0, "nothing is less"

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """The names of the score's parameters."""
        return tuple(attribute.name for attribute in fields(cls)[1:])

    @classmethod
    def list_parameter(cls) -> str | None:
        """The parameter that may be asked at several values; None where the score has one value."""
        return next((name for name in cls.parameter_names() if PARAMETERS[name].repeatable), None)

    @property
    def parameters(self) -> dict[str, float]:
        """At what the score is asked."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    @property
    def backwards(self) -> bool:
        """Whether the other direction of the pair (data without the person first) usually is the worse one."""
        return False

    def score(self, loss: PrivacyLoss) -> float:
        """The score that was promised, in its own unit."""
        return self.ask(loss, self.parameters)

    @classmethod
    def ask(cls, loss: PrivacyLoss, parameters: Mapping[str, float]) -> Upper:
        """What `loss` answers; the method has the score's name."""
        answer: Upper = getattr(loss, cls.field.name)(**parameters)
        return answer

    @property
    def level(self) -> float:
        """What `risk` must not exceed."""
        return self.bound

    def risk(self, loss: PrivacyLoss) -> float:
        """A quantity that is at most `level` exactly where the promise holds; the score unless another is cheaper."""
        return self.score(loss)

    def least_risk(self, loss: PrivacyLoss) -> float:
        """What the risk is at least, numerical error taken off."""
        risk = self.risk(loss)
        return risk.least if isinstance(risk, Upper) else risk

    @property
    def implied_scores(self) -> dict[str, float]:
        """The scores that are promised with it, by name."""
        return {self.field.name: self.bound}

    def say(self, about: str, delta: str) -> str:
        """What is promised, in words: `about` is what an observer wants to know, `delta` is delta as it was given."""
        bound = percent_as_given(self.bound) if self.field.kind == "share" else as_given(self.bound)
        return self.sentence.format(bound=bound, about=about, **_words(self.parameters, delta))

    @classmethod
    def row(cls, parameters: Mapping[str, float], delta: str) -> str:
        """The label of the score at these parameters."""
        return cls.label.format(**_words(parameters, delta))

    @classmethod
    def format_score(cls, value: float | None, known: float = inf) -> str:
        """A score as people read it, rounded to the safe side, but not above what it is `known` to keep; None is
        infinite."""
        if value is None:
            return "infinite"
        return percent_at_most(value, known=known) if cls.field.kind == "share" else at_most(value, known=known)


def _words(parameters: Mapping[str, float], delta: str) -> dict[str, str]:
    """The parameters as a sentence needs them; `delta` is spelled as it was given."""
    words = {name: percent_as_given(value) for name, value in parameters.items()}
    prior, rare = parameters.get("prior", 0.5), parameters.get("delta", 0.0)
    return {
        **words,
        "delta": delta,
        "rarely": chance(rare),
        "chance_of_more": f" (chance of more: {chance(rare)})" if rare else "",
        "starter": f" who starts at {percent_as_given(prior)}",
        "members": f" where {percent_as_given(prior)} are members",
    }


def _logit(p: float) -> float:
    return log(p) - log1p(-p)


@dataclass(frozen=True)
class Belief(Promise):
    """Nobody becomes more than `bound` sure of a person's membership, except with probability `delta`."""

    field = Field("belief", "P", "Nobody becomes more than P sure, except with probability {delta}.", "share").on_page(
        "Nobody becomes surer than",
        "Belief that the person is in the data, seen from the prior below.",
        stops=(51, 99),
        usual=0.75,
        **_EVENLY,
    )
    kind = "a posterior belief"
    label = "Belief, starting from {prior}{chance_of_more}"
    sentence = "nobody{starter} becomes more than {bound} sure {about}, except with a chance of {rarely}"
    delta: float
    prior: float = 0.5

    @property
    def floor(self) -> tuple[float, str]:
        return self.prior, "the prior belief"

    @property
    def level(self) -> float:
        return self.delta

    @property
    def loss_bound(self) -> float:
        """The privacy loss that takes the prior to the bound."""
        return _logit(self.bound) - _logit(self.prior)

    def risk(self, loss: PrivacyLoss) -> float:
        return loss.exceedance(self.loss_bound)

    @property
    def implied_scores(self) -> dict[str, float]:
        """A loss that exceeds epsilon with probability at most delta is (epsilon, delta)-DP, but not vice versa."""
        return {"belief": self.bound, "epsilon": self.loss_bound}


@dataclass(frozen=True)
class Advantage(Promise):
    """No attack has TPR - FPR above `bound`."""

    field = Field("advantage", "A", "No attack has TPR - FPR above A.", "share").on_page(
        "Advantage of any attack", "True positive rate minus false positive rate.", stops=(1, 99), usual=0.1, **_EVENLY
    )
    kind = "a membership advantage"
    label = "Membership advantage (TPR - FPR; total variation)"
    sentence = "no attack has a membership advantage above {bound}"


@dataclass(frozen=True)
class Accuracy(Promise):
    """No attack guesses membership right more often than `bound`, where a share `prior` are members."""

    field = Field("accuracy", "A", "No attack guesses membership right more often than A.", "share").on_page(
        "Right guesses of any attack", "Share of right guesses about membership.", stops=(51, 99), usual=0.6, **_EVENLY
    )
    kind = "an attack accuracy"
    label = "Right guesses of an attack, where {prior} are members"
    sentence = "no attack guesses right more than {bound} of the time{members}"
    prior: float = 0.5

    @property
    def floor(self) -> tuple[float, str]:
        return max(self.prior, 1 - self.prior), "what guessing by the prior achieves"


class _OfCurve(Promise):
    """A point of the trade-off curve: what an attack finds whose false positive rate is the first parameter."""

    @property
    def curve_at(self) -> float:
        """The false positive rate at which the curve is read."""
        return next(iter(self.parameters.values()))

    @property
    def backwards(self) -> bool:
        """On the flat part of the trade-off curve."""
        return self.level + self.curve_at > 1

    def risk(self, loss: PrivacyLoss) -> float:
        return loss.tpr_bound(self.curve_at)

    def least_risk(self, loss: PrivacyLoss) -> float:
        return loss.tpr(self.curve_at).least


@dataclass(frozen=True)
class TruePositiveRate(_OfCurve):
    """No attack with false positive rate `fpr` finds more than a share `bound` of the members."""

    field = Field("tpr", "T", "No attack finds more than a share T of members, at {fpr}.", "share").on_page(
        "Members found by any attack", "At the false positive rate below.", stops=(0.02, 50), usual=0.05, **_PERCENT
    )
    kind = "a detection rate (TPR)"
    label = "Members found (TPR), at {fpr} false alarms (FPR)"
    sentence = "an attack with {fpr} false alarms finds at most {bound} of the members"
    fpr: float

    @property
    def floor(self) -> tuple[float, str]:
        return self.fpr, "the false positive rate, which blind guessing achieves"


@dataclass(frozen=True)
class PositivePredictiveValue(_OfCurve):
    """Of those an attack with false positive rate `fpr` accuses, at most a share `bound` are members."""

    field = Field("ppv", "V", "At most a share V of the accused are members, at {fpr} and {prior}.", "share").on_page(
        "Members among the accused",
        "Of those an attack accuses, at most this share are members.",
        stops=(2, 99),
        usual=0.6,
        **_EVENLY,
    )
    kind = "a predictive value (PPV)"
    label = "If flagged (at {fpr} false alarms): chance to be a member (PPV)"
    sentence = (
        "if an attacker with {fpr} false alarms flags someone{members}, the chance that they really were in the data "
        "is at most {bound}"
    )
    fpr: float
    prior: float

    @property
    def floor(self) -> tuple[float, str]:
        return self.prior, "the prior, which blind guessing achieves"

    @property
    def level(self) -> float:
        """The true positive rate at which the predictive value is `bound`."""
        return min(1.0, self.fpr * exp(_logit(self.bound) - _logit(self.prior)))


@dataclass(frozen=True)
class Success(_OfCurve):
    """No attack succeeds more often than `bound` that succeeds with `baseline` without the release.

    Singling out, re-identification, attribute inference or reconstruction; see `PrivacyLoss.success`.
    """

    field = Field(
        "success",
        "S",
        "No singling out, re-identification, inference, reconstruction above S, at {baseline}.",
        "share",
    ).on_page(
        "Success of any attack", "At the success without the release below.", stops=(0.02, 99), usual=0.05, **_PERCENT
    )
    kind = "a success (singling out, re-identification, ...)"
    label = "Singled out, re-identified, inferred or reconstructed, from {baseline}"
    sentence = (
        "no attack that succeeds with a chance of {baseline} without the release (singling out, re-identification, "
        "attribute inference, reconstruction) succeeds with more than {bound}"
    )
    baseline: float

    @property
    def floor(self) -> tuple[float, str]:
        return self.baseline, "the success without the release"


@dataclass(frozen=True)
class Epsilon(Promise):
    """The release is (bound, delta)-DP."""

    field = Field("epsilon", "E", "(E, D)-DP, D from {delta}.", "from zero", (0, 1e6)).on_page(
        "Epsilon", "Of an (epsilon, delta) guarantee.", (1e-3, 100), (0.05, 20), 1.0
    )
    kind = "an epsilon"
    label = "Epsilon at delta {delta}"
    sentence = "the release is ({bound}, {delta})-differentially private"
    delta: float

    @property
    def level(self) -> float:
        return self.delta

    def risk(self, loss: PrivacyLoss) -> float:
        return loss.delta(self.bound)


@dataclass(frozen=True)
class Noise(Promise):
    """The noise multiplier itself: no score is promised but what this noise implies."""

    field = Field("noise", "Z", "What noise of Z x sensitivity promises.", "positive", (1e-2, 1e6))
    sentence = "the noise is {bound} x sensitivity"

    def score(self, loss: PrivacyLoss) -> float:
        """What was promised, since it is not about the loss."""
        return self.bound

    @property
    def implied_scores(self) -> dict[str, float]:
        return {}


SCORES: dict[str, type[Promise]] = {
    entry.field.name: entry
    for entry in (Belief, Advantage, Accuracy, TruePositiveRate, PositivePredictiveValue, Success, Epsilon)
}
"""Every score by its name, in the order in which they are shown."""
AUDITED: dict[str, type[Promise]] = {entry.field.name: entry for entry in (Belief, Advantage, Epsilon, Noise)}
"""What an audit may be asked to hold a training to, most telling first."""


def audited_promise(claim: Mapping[str, float], delta: float) -> Promise:
    """The one promise of an audit, by its name; `delta` is also how often a belief may be exceeded."""
    probability("delta", delta, open_ends=True)
    if len(claim) != 1 or not claim.keys() <= AUDITED.keys():
        names, found = (", ".join(f"{{{name}}}" for name in names) for names in (AUDITED, claim))
        raise RefusedError(f"name the promise: exactly one of {names}, got {found.replace(', ', ' and ') or 'none'}")
    ((name, bound),) = claim.items()
    entry = AUDITED[name]
    return entry(entry.field.check(bound), **({"delta": delta} if "delta" in entry.parameter_names() else {}))


def claimed_scores(promise: Promise | None, delta: float) -> Claimed:
    """The scores that an audit's trials are held against; None where nothing is promised."""
    implied = {} if promise is None else promise.implied_scores
    return Claimed(**{name: implied.get(name) for name in AUDITED if name != "noise"}, delta=delta)


def promise_in(given: AnswerInput) -> Promise:
    """The promise that `choose` was given; of several values of a parameter the first is meant."""
    name = next(name for name in SCORES if getattr(given, name) is not None)
    asked = {at: _first(getattr(given, at)) for at in SCORES[name].parameter_names()}
    return SCORES[name](getattr(given, name), **asked)


def promised_bound(given: AnswerInput, name: str, parameters: Mapping[str, float] | None = None) -> float:
    """What was promised of a score at these parameters; infinite where nothing was promised of it."""
    bound = getattr(given, name)
    meant = all(value == _first(getattr(given, at)) for at, value in (parameters or {}).items())
    return bound if bound is not None and meant else inf


def _first(value: Any) -> Any:
    return next(iter(value), None) if isinstance(value, tuple) else value
