"""What every promise has: a bound, the parameters at which its score is asked, its words, its risk."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Any, ClassVar, Self

from deniable.checks import RefusedError, of_kind, probability, refuse
from deniable.fields import Field
from deniable.formatting import as_given, at_most, chance, percent_as_given, percent_at_most
from deniable.mechanisms import Adjacency
from deniable.scores import PrivacyLoss
from deniable.upper import Upper


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


PERCENT: dict[str, Any] = {"percent": True}
EVENLY: dict[str, Any] = {"percent": True, "scale": "linear"}
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
            "Belief before the release", "What the observer believes already.", stops=(1, 99), usual=0.5, **EVENLY
        ),
        Field(
            "fpr",
            "F",
            "False positive rate of an attack; repeatable. Default 0.001 and 0.01.",
            "probability",
            repeatable=True,
        ).on_page("False positive rate", "Others that an attack accuses wrongly.", (0, 1), (0.01, 20), 0.01, **PERCENT),
        Field(
            "baseline",
            "P",
            "What an attack reaches without the release: one over the candidates, the share of people that a "
            "description fits, or the best guess of an attribute; repeatable.",
            "probability",
            repeatable=True,
        ).on_page("Success without the release", "Among N candidates 1/N.", (0, 1), (0.0001, 50), 0.001, **PERCENT),
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

    Examples:
        >>> import deniable as dn
        >>> dn.Belief(0.75, delta=1e-5)
        Belief(bound=0.75, delta=1e-05, prior=0.5)
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
        infinite, and so is told what no number can hold."""
        if value is None or value > _LARGEST_TOLD:
            return "infinite"
        return percent_at_most(value, known=known) if cls.field.kind == "share" else at_most(value, known=known)


_LARGEST_TOLD = 1e300
"""What an analysis cannot bound is rounded up to the largest number."""


def _words(parameters: Mapping[str, float], delta: str) -> dict[str, str]:
    """The parameters as a sentence needs them; `delta` is spelled as it was given."""
    words = {name: percent_as_given(value) for name, value in parameters.items()}
    words |= {"baseline": chance(parameters["baseline"])} if "baseline" in parameters else {}
    prior, rare = parameters.get("prior", 0.5), parameters.get("delta", 0.0)
    return {
        **words,
        "delta": delta,
        "rarely": chance(rare),
        "chance_of_more": f" (chance of more: {chance(rare)})" if rare else "",
        "starter": f" who starts at {percent_as_given(prior)}",
        "members": f" where {percent_as_given(prior)} are members",
    }


def check_promise(value: object) -> Promise:
    """A promise of the table of scores; anything else is refused."""
    return of_kind(
        "promise", value, Promise, "one of the table of scores", "for example deniable.Belief(0.75, delta=1e-5)"
    )
