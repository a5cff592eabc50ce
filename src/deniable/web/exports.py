"""A plan as the command and as the Python lines that give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deniable.answers.explain import Document
from deniable.answers.parse import COUNTED, LOCAL, RELEASES, SAMPLED
from deniable.promises import PARAMETERS, SCORES, SPELLINGS, promise_in

__all__ = ["command", "python"]


_ORDER = (*SCORES, *RELEASES, "mechanism", *LOCAL, *COUNTED, *SAMPLED, *PARAMETERS, *SPELLINGS, "adjacency")


def command(what: str, values: Mapping[str, Any]) -> str:
    """The command line of a request."""
    words = ["deniable", what]
    for name, value in sorted(values.items(), key=lambda item: _ORDER.index(item[0])):
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [f"--{name.replace('_', '-')}", str(one)]
    return " ".join(words)


def python(what: str, document: Document) -> str:
    """Lines that end with `scores`, the same numbers as in the document (and with `noise`, for `choose`)."""
    given, adjacency = document["input"], document["input"]["adjacency"]
    if what == "explain":
        found = [f'loss = dn.privacy_loss({_mechanism(given)}, "{adjacency}")']
    else:
        found = [
            "plan = dn.calibrate(",
            f"    lambda noise: {_unknown(given)},",
            f"    {_promise(given)},",
            f'    "{adjacency}",',
            ")",
            "noise, loss = plan.value, plan.loss",
        ]
    scores = document["scores"]
    bare = what == "explain" and bool({"epsilon", "gdp", "tvd"} & given.keys()) and scores["belief_delta"] > 0
    imports = ["import deniable as dn", *(["from deniable.bounds import any_release_belief"] if bare else [])]
    return "\n".join([*imports, "", *found, *_scores(given, scores["belief_delta"], bare)])


def _scores(given: Document, belief_delta: float, bare: bool) -> Iterator[str]:
    yield "scores = {"
    for name, score in sorted(SCORES.items(), key=lambda item: item[0] != "epsilon"):  # asked first, as by `explain`
        at = {parameter: given.get(parameter, []) for parameter in score.parameter_names()}
        listed = score.list_parameter()
        call = f"loss.{name}({', '.join(one if one == listed else repr(at[one]) for one in at)})"
        if name == "belief" and bare:
            call = f"any_release_belief(loss.epsilon, {belief_delta!r}, {given['prior']!r})"
        if listed is not None:
            call = f"[{call} for {listed} in {at[listed]!r}]"
        if listed is None or at[listed]:
            yield f'    "{name}": {call},'
    yield "}"


def _mechanism(given: Document) -> str:
    if "noise" in given:
        return _training(given, repr(given["noise"]))
    if "randomized_response" in given:
        return _answers(given, repr(given["randomized_response"]))
    builders: dict[str, Callable[[float], str]] = {
        "epsilon": lambda value: f"dn.ApproximateDP({value!r}, {given['delta']!r})",
        "tvd": lambda value: f"dn.TotalVariation({value!r})",
        "gdp": lambda value: f"dn.GaussianDP({value!r})",
        "laplace": lambda value: f"dn.Laplace({value!r})",
    }
    return next(build(given[name]) for name, build in builders.items() if name in given)


def _unknown(given: Document) -> str:
    """The release as an expression of its `noise`."""
    match given.get("mechanism"):
        case "laplace":
            return "dn.Laplace(noise)"
        case "randomized-response":
            return _answers(given, "1 / noise")
    return _training(given, "noise")


def _training(given: Document, noise: str) -> str:
    sampled = f".subsampled({given['rate']!r})" if given["rate"] < 1 else ""
    composed = f".composed({given['steps']})" if given["steps"] > 1 else ""
    return f"dn.Gaussian({noise}){sampled}{composed}"


def _answers(given: Document, epsilon: str) -> str:
    return f"dn.RandomizedResponse({epsilon}, {given['categories']}).composed({given['features']})"


def _promise(given: Document) -> str:
    promise = promise_in(given)
    arguments = promise.bound, *promise.parameters.values()
    return f"dn.{type(promise).__name__}({', '.join(map(repr, arguments))})"
