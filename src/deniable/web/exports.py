"""A plan as the command and as the Python lines that give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deniable.document import Document

__all__ = ["command", "python"]


_ORDER = (
    *("belief", "advantage", "accuracy", "tpr", "ppv", "epsilon", "tvd", "gdp", "noise", "laplace"),
    *("randomized_response", "mechanism", "categories", "features", "records", "batch", "epochs", "rate", "steps"),
    *("prior", "fpr", "delta", "adjacency"),
)


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
            f"    {_target(given)},",
            f'    "{adjacency}",',
            ")",
            "noise, loss = plan.value, plan.loss",
        ]
    scores = document["scores"]
    bare = what == "explain" and bool({"epsilon", "gdp", "tvd"} & given.keys()) and scores["belief_failure"] > 0
    imports = ["import deniable as dn", *(["from deniable.bounds import any_release_belief"] if bare else [])]
    return "\n".join([*imports, "", *found, *_scores(given, scores["belief_failure"], bare)])


def _scores(given: Document, failure: float, bare: bool) -> list[str]:
    delta, prior, fprs = given["delta"], given["prior"], given["fpr"]
    any_release = f"any_release_belief(loss.epsilon, {failure!r}, {prior!r})"
    return [
        "scores = {",
        f'    "epsilon": loss.epsilon({delta!r}),',
        f'    "belief": {any_release if bare else f"loss.belief({delta!r}, {prior!r})"},',
        '    "advantage": loss.advantage(),',
        f'    "accuracy": loss.accuracy({prior!r}),',
        f'    "tpr": [loss.tpr(fpr) for fpr in {fprs!r}],',
        f'    "ppv": [loss.ppv(fpr, {prior!r}) for fpr in {fprs!r}],',
        "}",
    ]


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


def _target(given: Document) -> str:
    delta, prior, fpr = given["delta"], given["prior"], given["fpr"][0]
    targets: dict[str, Callable[[float], str]] = {
        "belief": lambda bound: f"dn.Belief({bound!r}, {delta!r}, {prior!r})",
        "advantage": lambda bound: f"dn.Advantage({bound!r})",
        "accuracy": lambda bound: f"dn.Accuracy({bound!r}, {prior!r})",
        "tpr": lambda bound: f"dn.TruePositiveRate({bound!r}, {fpr!r})",
        "ppv": lambda bound: f"dn.PositivePredictiveValue({bound!r}, {fpr!r}, {prior!r})",
        "epsilon": lambda bound: f"dn.Epsilon({bound!r}, {delta!r})",
    }
    return next(build(given[name]) for name, build in targets.items() if name in given)
