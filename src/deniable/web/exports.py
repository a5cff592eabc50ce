"""A plan as the command and as the Python lines that give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deniable.answers.parse import COUNTED, LOCAL, RELEASES, SAMPLED
from deniable.promises import PARAMETERS, SCORES, SPELLINGS, promise_in
from deniable.results.explain_result import AnswerInput, ChooseResult, ExplainResult

__all__ = ["command", "python"]


_ORDER = (*SCORES, *RELEASES, "mechanism", *LOCAL, *COUNTED, *SAMPLED, *PARAMETERS, *SPELLINGS, "adjacency")


def command(what: str, values: Mapping[str, Any]) -> str:
    """The command line of a request."""
    words = ["deniable", what]
    for name, value in sorted(values.items(), key=lambda item: _ORDER.index(item[0])):
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [f"--{name.replace('_', '-')}", str(one)]
    return " ".join(words)


def python(result: ExplainResult) -> str:
    """Lines that end with `scores`, the same numbers as in the result (and with `noise`, for `choose`)."""
    given = result.input
    if isinstance(result, ChooseResult):
        found = [
            "plan = dn.calibrate(",
            f"    lambda noise: {_unknown(given)},",
            f"    {_promise(given)},",
            f'    "{given.adjacency}",',
            ")",
            "noise, loss = plan.value, plan.loss",
        ]
    else:
        found = [f'loss = dn.privacy_loss({_mechanism(given)}, "{given.adjacency}")']
    belief_delta = result.scores.belief_delta
    bare = not isinstance(result, ChooseResult) and given.is_bare and belief_delta > 0
    imports = ["import deniable as dn", *(["from deniable.bounds import any_release_belief"] if bare else [])]
    return "\n".join([*imports, "", *found, *_scores(given, belief_delta, bare)])


def _scores(given: AnswerInput, belief_delta: float, bare: bool) -> Iterator[str]:
    yield "scores = {"
    for name, score in sorted(SCORES.items(), key=lambda item: item[0] != "epsilon"):  # asked first, as by `explain`
        at = {parameter: getattr(given, parameter) for parameter in score.parameter_names()}
        listed = score.list_parameter()
        call = f"loss.{name}({', '.join(one if one == listed else repr(at[one]) for one in at)})"
        if name == "belief" and bare:
            call = f"any_release_belief(loss.epsilon, {belief_delta!r}, {given.prior!r})"
        if listed is not None:
            call = f"[{call} for {listed} in {list(at[listed])!r}]"
        if listed is None or at[listed]:
            yield f'    "{name}": {call},'
    yield "}"


def _mechanism(given: AnswerInput) -> str:
    if given.noise is not None:
        return _training(given, repr(given.noise))
    if given.randomized_response is not None:
        return _answers(given, repr(given.randomized_response))
    if given.epsilon is not None:
        return f"dn.ApproximateDP({given.epsilon!r}, {given.delta!r})"
    builders = {"dn.TotalVariation": given.tvd, "dn.GaussianDP": given.gdp, "dn.Laplace": given.laplace}
    return next(f"{name}({value!r})" for name, value in builders.items() if value is not None)


def _unknown(given: AnswerInput) -> str:
    """The release as an expression of its `noise`."""
    if given.is_laplace:
        return "dn.Laplace(noise)"
    return _answers(given, "1 / noise") if given.is_response else _training(given, "noise")


def _training(given: AnswerInput, noise: str) -> str:
    sampled = f".subsampled({given.rate!r})" if given.rate is not None and given.rate < 1 else ""
    composed = f".composed({given.steps})" if given.steps is not None and given.steps > 1 else ""
    return f"dn.Gaussian({noise}){sampled}{composed}"


def _answers(given: AnswerInput, epsilon: str) -> str:
    return f"dn.RandomizedResponse({epsilon}, {given.categories}).composed({given.features})"


def _promise(given: AnswerInput) -> str:
    promise = promise_in(given)
    arguments = promise.bound, *promise.parameters.values()
    return f"dn.{type(promise).__name__}({', '.join(map(repr, arguments))})"
