"""What people describe: releases and trainings, field by field, and which of them go together.

The command line and the planner ask alike: from checked numbers to a mechanism or a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from deniable.answers.batches import BATCHES, PERSON, REPLACEMENT, are_poisson, parse_batches
from deniable.answers.describe import describe_choice, describe_release
from deniable.answers.written import parse_written, written_by
from deniable.checks import MOST_STEPS, RefusedError, one_of, refuse
from deniable.fields import Field
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    GaussianDP,
    Laplace,
    Mechanism,
    RandomizedResponse,
    TotalVariation,
    Training,
)
from deniable.promises import PARAMETERS, SCORES, Promise, Question
from deniable.results.explain_result import AnswerInput
from deniable.scores import privacy_loss

Values = Mapping[str, Any]
Family = Callable[[float], Mechanism]
"""A release by its noise."""

GAUSSIAN, LAPLACE, RESPONSE = "gaussian", "laplace", "randomized-response"
MECHANISMS = GAUSSIAN, LAPLACE, RESPONSE


def _by_name(*fields: Field) -> dict[str, Field]:
    return {field.name: field for field in fields}


COUNTED = _by_name(
    Field("records", "N", "Number of training records.", "whole", (2, 1e12)).on_page(
        "Records", "People in the training data.", (2, 10**9), (100, 10_000_000), 60_000
    ),
    Field("batch", "B", "Expected batch size: the sampling rate is B/N.", "whole").on_page(
        "Batch", "Records in a step, on average.", (1, 10**9), (1, 100_000), 300
    ),
    Field("epochs", "E", "Passes over the data: there are E x ceil(N/B) steps.", "whole", (1, 1e6)).on_page(
        "Epochs", "Passes over the data.", (1, 10**5), (1, 1000), 30
    ),
)
"""A training by its records."""
SAMPLED = _by_name(
    Field("rate", "Q", "Sampling rate: each record joins a step with probability Q. Default 1.", "probability").on_page(
        "Rate", "Chance of each record to be in a step.", (1e-7, 1), (0.0001, 1), 0.005
    ),
    Field("steps", "T", "Number of training steps.", "whole", (1, MOST_STEPS)).on_page(
        "Steps", "Of the training.", (1, 10**7), (1, 1_000_000), 6000
    ),
)
"""A training by its rate."""
LOCAL = _by_name(
    Field("categories", "K", "Possible values of each answer. Default 2.", "whole", (2, 1e9)).on_page(
        "Possible answers", "To each question.", (2, 10**6), (2, 1000), 2
    ),
    Field("features", "F", "Answers per person. Default 1.", "whole", (1, 1e6)).on_page(
        "Questions", "Answers of each person.", (1, 2000), (1, 1000), 1
    ),
)
"""Answers that are randomized before they leave a person's device."""


@dataclass(frozen=True)
class Release:
    """One way to describe a release; `companions` describe it further."""

    field: Field
    kind: str
    """As the page lists it."""
    companions: Mapping[str, Field]
    build: Callable[[float, Values, Question], Mechanism]
    """From the field's number, all numbers and what is asked."""


_NOISE = (
    "Gaussian noise of Z x sensitivity: one release, or every step of a training, described by {rate} {steps} or by "
    "{records} {batch} {epochs}."
)
RELEASES: dict[str, Release] = {
    release.field.name: release
    for release in (
        Release(
            Field(
                "epsilon",
                "E",
                "An (E, D)-DP guarantee with D from {delta}; for pure DP, {delta} 0.",
                "from zero",
                (0, 1e6),
            ).on_page("Epsilon", "Of an (epsilon, delta) guarantee.", (0, 100), (0.05, 20), 1.0),
            "an (epsilon, delta) guarantee",
            {},
            lambda epsilon, values, asked: ApproximateDP(epsilon, asked.delta),
        ),
        Release(
            Field("tvd", "A", "A total variation (membership advantage) of at most A.", "probability").on_page(
                "Total variation", "Membership advantage of at most this.", (0, 1), (1, 99), 0.1, "linear", True
            ),
            "a total variation",
            {},
            lambda alpha, values, asked: TotalVariation(alpha),
        ),
        Release(
            Field("gdp", "MU", "A MU-GDP (Gaussian DP) guarantee.", "from zero", (0, 1e3)).on_page(
                "Mu", "Of a mu-GDP guarantee.", (0, 100), (0.02, 10), 1.0
            ),
            "a mu-GDP guarantee",
            {},
            lambda mu, values, asked: GaussianDP(mu),
        ),
        Release(
            Field("noise", "Z", _NOISE, "positive", (1e-2, 1e6)).on_page(
                "Noise", "Standard deviation of the noise / sensitivity, in every step.", (0.2, 1e5), (0.3, 50), 1.0
            ),
            "a noise in training",
            {**SAMPLED, **COUNTED},
            lambda noise, values, asked: _training(*_schedule(values, default_steps=1), asked.adjacency)(noise),
        ),
        Release(
            Field("laplace", "B", "Laplace noise of scale B x sensitivity.", "positive", (1e-3, 1e6)).on_page(
                "Laplace scale", "Scale of the noise / sensitivity.", (1e-2, 1e5), (0.1, 50), 1.0
            ),
            "Laplace noise",
            {},
            lambda scale, values, asked: Laplace(scale),
        ),
        Release(
            Field(
                "randomized_response", "EPS", "Randomized response, EPS per answer.", "positive", (1e-6, 700)
            ).on_page(
                "Epsilon of each answer",
                "The true value is e^epsilon times as likely as another.",
                (1e-3, 100),
                (0.05, 10),
                1.0,
            ),
            "randomized response",
            LOCAL,
            lambda epsilon, values, asked: _answering(epsilon, **_answers(values)),
        ),
    )
}
"""What may have been released, in the order in which it is listed."""


_USUAL_NEIGHBOURS = {
    "shuffled": Adjacency.ZERO_OUT,
    "truncated": Adjacency.ZERO_OUT,
    "fixed": Adjacency.REPLACE,
}
"""Where batches are drawn in a way for which add-remove neighbours are not proved."""


def parse_release(values: Values, adjacency: str | None) -> tuple[Mechanism, AnswerInput]:
    """The release that `explain` was asked about, and what was given."""
    companions = [name for release in RELEASES.values() for name in release.companions]
    if written := written_by(values, (*RELEASES, *companions, *BATCHES, REPLACEMENT, "sampling")):
        mechanism, neighbours = parse_written(written, values, adjacency)
        given = _with_counts(describe_release(mechanism, Question.of(values, neighbours)), values)
        return _of_person(mechanism, values), given
    question = parse_question(values, adjacency)
    name = _only(RELEASES, values, "what was released")
    for owner, other in RELEASES.items():
        for stray in other.companions:
            if stray in values and owner != name:
                raise _contradiction(values, stray, f"goes with {{{owner}}}, not with {{{name}}}")
    for stray in (*BATCHES, REPLACEMENT, "sampling"):
        if stray in values and name != "noise":
            raise RefusedError(f"{{{stray}}} goes with {{noise}}, not with {{{name}}}", stray, values[stray])
    if are_poisson(values):
        mechanism = RELEASES[name].build(values[name], values, question)
    else:
        mechanism = parse_batches(values)(values[name])
    given = _with_counts(describe_release(mechanism, question), values)
    return _prove(_of_person(mechanism, values), question), given


def parse_choice(values: Values, adjacency: str | None, mechanism: str | None) -> tuple[Family, Promise, AnswerInput]:
    """The release whose noise `choose` is to find, the promise to keep, and what was given."""
    question = parse_question(values, adjacency)
    promise = parse_promise(values, question)
    family = _family(values, question, mechanism)
    given = _with_counts(describe_choice(family, promise, question), values)
    _prove(_of_person(family(1.0), values), question)
    return lambda noise: _of_person(family(noise), values), promise, given


def _of_person(mechanism: Mechanism, values: Values) -> Mechanism:
    """The release between data sets that differ in all records of one person."""
    records = values.get(PERSON.name, 1)
    return mechanism.group(records) if records > 1 else mechanism


def _prove(mechanism: Mechanism, asked: Question) -> Mechanism:
    """The release, if its loss is proved for the neighbours that are asked; it is refused otherwise."""
    if mechanism.samples:
        privacy_loss(mechanism, asked.adjacency)
    return mechanism


def parse_question(values: Values, adjacency: str | None) -> Question:
    """What is asked, with the defaults; where no neighbours are named, the first for which the batches are proved."""
    usual = _USUAL_NEIGHBOURS.get(str(values.get("sampling")), Adjacency.ADD_REMOVE)
    return Question.of(values, Adjacency(adjacency or usual))


def parse_promise(values: Values, asked: Question) -> Promise:
    """The promise that `choose` was asked to keep; `RefusedError` names the field where no noise can keep it."""
    name = _only(SCORES, values, "the promise")
    at = {needed: getattr(asked, needed) for needed in SCORES[name].parameter_names()}
    for needed in (one for one in at if PARAMETERS[one].repeatable):
        if needed not in values:
            raise RefusedError(f"{{{needed}}} is missing: {{{name}}} needs it", needed)
        if len(at[needed]) > 1:
            text = f"{{{needed}}} must be given once with {{{name}}}, got {len(at[needed])} values"
            raise RefusedError(text, needed, at[needed], "one value")
        at[needed] = at[needed][0]
    if asked.delta == 0:
        raise refuse("delta", 0, "a number strictly between 0 and 1", "Gaussian noise needs more than 0")
    return SCORES[name](values[name], **at)


def _family(values: Values, asked: Question, mechanism: str | None) -> Family:
    """A training by its noise, unless `mechanism` names a local one.

    Laplace noise of that scale, or randomized response with epsilon 1 / noise for each answer.
    """
    kind = one_of("mechanism", mechanism or GAUSSIAN, MECHANISMS)
    for stray in (*COUNTED, *SAMPLED) if kind != GAUSSIAN else ():
        if stray in values and stray != "records":  # the records still tell delta
            raise _contradiction(values, stray, f"describes a training: it does not go with {{mechanism}} {kind}")
    for stray in (*BATCHES, REPLACEMENT, "sampling") if kind != GAUSSIAN else ():
        if stray in values:
            text = f"{{{stray}}} describes a training: it does not go with {{mechanism}} {kind}"
            raise RefusedError(text, stray, values[stray])
    for stray in () if kind == RESPONSE else LOCAL:
        if stray in values:
            raise _contradiction(values, stray, f"goes with {{mechanism}} {RESPONSE}, not with {kind}")
    match kind:
        case "laplace":
            return Laplace
        case "randomized-response":
            answers = _answers(values)
            return lambda noise: _answering(1 / noise, **answers)
    if are_poisson(values):
        return _training(*_schedule(values, default_steps=None), asked.adjacency)
    return parse_batches(values)


def _with_counts(given: AnswerInput, values: Values) -> AnswerInput:
    kept = (*COUNTED, "steps", PERSON.name) if given.sampling == "cyclic" else (*COUNTED, PERSON.name)
    return structs.replace(given, **{name: values[name] for name in kept if name in values})


def _schedule(values: Values, default_steps: int | None) -> tuple[float, int]:
    """Sampling rate and number of steps, from rate and steps or from records, batch and epochs."""
    counted = [name for name in COUNTED if name in values]
    sampled = [name for name in SAMPLED if name in values]
    if counted and sampled:
        contradicts = f"contradicts {_spell_given(values, counted[0])}: give {_WAYS}, not both"
        raise _contradiction(values, sampled[0], contradicts)
    if counted:
        return _from_counts(values)
    if default_steps is None and "steps" not in values:
        raise RefusedError("{steps} is missing", "steps", hint=f"describe the training by {_WAYS}")
    return values.get("rate", 1.0), values.get("steps", default_steps)


_WAYS = "{records} {batch} {epochs} or {rate} {steps}"


def _from_counts(values: Values) -> tuple[float, int]:
    for name in COUNTED:
        if name not in values:
            raise RefusedError(f"{{{name}}} is missing: {_list(COUNTED)} go together", name)
    records, batch, epochs = (values[name] for name in COUNTED)
    if batch > records:
        expected = f"a whole number from 1 to {{records}} ({records})"
        raise RefusedError(f"{{batch}} must be {expected}, got {batch}", "batch", batch, expected)
    steps = -(-records // batch) * epochs
    if steps > MOST_STEPS:
        expected = f"such that there are at most {MOST_STEPS:g} steps"
        text = f"{{epochs}} must give at most {MOST_STEPS:g} steps, got {epochs:g}: {steps:g} steps"
        raise RefusedError(text, "epochs", epochs, expected)
    return batch / records, steps


def _training(rate: float, steps: int, adjacency: Adjacency) -> Family:
    return lambda noise: Training(noise, rate, steps, adjacency).mechanism


def _answers(values: Values) -> dict[str, int]:
    return {"categories": values.get("categories", 2), "features": values.get("features", 1)}


def _answering(epsilon: float, categories: int, features: int) -> Mechanism:
    return RandomizedResponse(epsilon, categories).composed(features)


def _only(choices: Iterable[str], values: Values, what: str) -> str:
    given = [name for name in choices if name in values]
    if not given:
        raise RefusedError(f"name {what}: exactly one of {_list(choices)} is needed")
    if len(given) > 1:
        contradicts = f"contradicts {_spell_given(values, given[0])}: give exactly one of {_list(choices)}"
        raise _contradiction(values, given[1], contradicts)
    return given[0]


def _contradiction(values: Values, field: str, why: str) -> RefusedError:
    return RefusedError(f"{_spell_given(values, field)} {why}", field, values[field])


def _spell_given(values: Values, name: str) -> str:
    return f"{{{name}}} {values[name]:g}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
