"""At which parameters scores are asked: delta, prior, false positive rate, baseline, and how people may spell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from deniable.checks import RefusedError, refuse
from deniable.fields import Field
from deniable.mechanisms import Adjacency


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
