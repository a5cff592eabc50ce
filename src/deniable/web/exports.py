"""A plan as the command and as the Python lines that give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deniable.answers.batches import BATCHES, PERSON, REPLACEMENT
from deniable.answers.describe import mechanism_in
from deniable.answers.parse import COUNTED, LOCAL, RELEASES, SAMPLED
from deniable.answers.python_text import write_python
from deniable.answers.written import WRITTEN
from deniable.promises import PARAMETERS, SCORES, SPELLINGS, promise_in
from deniable.results.explain_result import AnswerInput, ChooseResult, ExplainResult

_ORDER = (
    *SCORES,
    *RELEASES,
    *WRITTEN,
    "mechanism",
    *LOCAL,
    "sampling",
    *BATCHES,
    REPLACEMENT,
    *COUNTED,
    *SAMPLED,
    PERSON.name,
    *PARAMETERS,
    *SPELLINGS,
    "adjacency",
)
_PROBE = 1.25
"""A noise that is written as the word."""


def command(what: str, values: Mapping[str, Any]) -> str:
    """The command line of a request; documents are files of their name."""
    words = ["deniable", what]
    for name, value in sorted(values.items(), key=lambda item: _ORDER.index(item[0])):
        given = value if isinstance(value, (list, tuple)) and name not in WRITTEN else [value]
        for one in given:
            text = [] if one is True else [f"{name}.json" if name in WRITTEN else str(one)]
            words += [f"--{name.replace('_', '-')}", *text] if one is not False else []
    return " ".join(words)


def python(result: ExplainResult, values: Mapping[str, Any]) -> str:
    """Lines that end with `scores`, the same numbers as in the result (and with `noise`, for `choose`).

    `values` are those of the request: a document is a file of its name.
    """
    given, document = result.input, next((name for name in WRITTEN if name in values), None)
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
        found = [f'loss = dn.privacy_loss({_mechanism(given, document, values)}, "{given.adjacency}")']
    belief_delta = result.scores.belief_delta
    bare = not isinstance(result, ChooseResult) and given.is_bare and belief_delta > 0
    imports = ["import json", ""] if document else []
    imports += ["import deniable as dn", *(["from deniable.bounds import any_release_belief"] if bare else [])]
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


def _mechanism(given: AnswerInput, document: str | None, values: Mapping[str, Any]) -> str:
    if document is not None:
        sampling = f', sampling="{values["sampling"]}"' if "sampling" in values else ""
        read = f'dn.from_{document}(json.load(open("{document}.json")), "{given.adjacency}"{sampling})'
        return read if given.records_per_person is None else f"{read}.group({given.records_per_person})"
    mechanism = mechanism_in(given)
    assert mechanism is not None
    return write_python(mechanism, "dn.")


def _unknown(given: AnswerInput) -> str:
    """The release as an expression of its `noise`."""
    if given.is_response:
        return f"dn.RandomizedResponse(1 / noise, {given.categories}).composed({given.features})"
    mechanism = mechanism_in(given, _PROBE)
    assert mechanism is not None
    return write_python(mechanism, "dn.").replace(f"({_PROBE})", "(noise)", 1)


def _promise(given: AnswerInput) -> str:
    promise = promise_in(given)
    arguments = promise.bound, *promise.parameters.values()
    return f"dn.{type(promise).__name__}({', '.join(map(repr, arguments))})"
