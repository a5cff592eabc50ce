"""A release told back: as the options of `parse`, and as the line of Python that builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from msgspec.structs import asdict, replace

from deniable.answers.batches import parse_batches
from deniable.mechanisms import (
    ApproximateDP,
    Composed,
    CyclicPoisson,
    FixedSize,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    Poisson,
    RandomAllocation,
    RandomizedResponse,
    Sampled,
    Sampling,
    Shuffled,
    Subsampled,
    TotalVariation,
    Training,
    TruncatedPoisson,
)
from deniable.promises import Promise, Question
from deniable.results.explain_result import AnswerInput

_PROBE = 1.25
"""A noise at which a family of releases is looked at."""


def describe_release(mechanism: Mechanism, question: Question) -> AnswerInput:
    """By the options of `explain`; a release that they cannot describe is written out in Python."""
    asked = _input_of(question)
    return _by_options(asked, mechanism) or replace(asked, release=write_python(mechanism))


def describe_choice(family: Callable[[float], Mechanism], promise: Promise, question: Question) -> AnswerInput:
    """By the options of `choose`, with the promise; `family` gives the release with a noise."""
    asked = _input_of(question)
    promised = {promise.field.name: promise.bound}
    match _by_options(asked, family(_PROBE)):
        case AnswerInput(noise=noise) as found if noise == _PROBE:
            return replace(found, noise=None, **promised)
        case AnswerInput(laplace=scale) if scale == _PROBE:
            return replace(asked, mechanism="laplace", **promised)
        case AnswerInput(randomized_response=epsilon) as found if epsilon == 1 / _PROBE:
            kind = "randomized-response"
            return replace(asked, mechanism=kind, categories=found.categories, features=found.features, **promised)
    return replace(asked, release=write_python(family(_PROBE)).replace(str(_PROBE), "noise"), **promised)


def mechanism_in(given: AnswerInput, chosen_noise: float | None = None) -> Mechanism | None:
    """The release that was described, with the noise that was chosen for it; None where it is known by name alone."""
    found = None if given.release is not None else _of_record(given, chosen_noise)
    return found if found is None or given.records_per_person is None else found.group(given.records_per_person)


def _of_record(given: AnswerInput, chosen_noise: float | None) -> Mechanism:
    noise = given.noise if chosen_noise is None else chosen_noise
    if given.is_laplace:
        return Laplace(noise or given.laplace or 0.0)
    if given.is_response:
        epsilon = given.randomized_response if noise is None else 1 / noise
        return RandomizedResponse(epsilon or 0.0, given.categories or 2).composed(given.features or 1)
    return _guarantee(given) if noise is None else _training(given, noise)


def _training(given: AnswerInput, noise: float) -> Mechanism:
    if given.sampling is not None:
        return parse_batches({name: value for name, value in asdict(given).items() if value is not None})(noise)
    return Training(noise, given.rate or 1.0, given.steps or 1, given.adjacency).mechanism


def _guarantee(given: AnswerInput) -> Mechanism:
    if given.tvd is not None:
        return TotalVariation(given.tvd)
    return GaussianDP(given.gdp) if given.gdp is not None else ApproximateDP(given.epsilon or 0.0, given.delta)


def _input_of(question: Question) -> AnswerInput:
    return AnswerInput(
        delta=question.delta,
        prior=question.prior,
        fpr=question.fpr,
        baseline=question.baseline,
        adjacency=question.adjacency,
    )


def _by_options(asked: AnswerInput, mechanism: Mechanism) -> AnswerInput | None:
    """With the options that describe a release; None where they cannot. An epsilon goes with the asked delta."""
    match mechanism:
        case ApproximateDP(epsilon, own) if own == asked.delta:
            return replace(asked, epsilon=epsilon)
        case TotalVariation(alpha):
            return replace(asked, tvd=alpha)
        case GaussianDP(mu):
            return replace(asked, gdp=mu)
        case Laplace(scale):
            return replace(asked, laplace=scale)
        case Composed(((step, runs),)) if runs > 0:
            return _by_runs(asked, step, runs)
    return _by_runs(asked, mechanism, 1)


def _by_runs(asked: AnswerInput, step: Mechanism, runs: int) -> AnswerInput | None:
    match step:
        case RandomizedResponse(epsilon, categories):
            return replace(asked, randomized_response=epsilon, categories=categories, features=runs)
        case Gaussian(noise):
            return replace(asked, noise=noise, rate=1.0, steps=runs)
        case Subsampled(Gaussian(noise), rate):
            return replace(asked, noise=noise, rate=rate, steps=runs)
        case Sampled(Gaussian(noise), sampling):
            return _by_sampling(replace(asked, noise=noise), sampling, runs)
    return None


def _by_sampling(asked: AnswerInput, sampling: Sampling, runs: int) -> AnswerInput | None:
    """With the options that describe batches which are not Poisson's; None where they cannot."""
    match sampling:
        case RandomAllocation(steps, 1):
            found = replace(asked, sampling="allocation", steps_per_epoch=steps, epochs=runs)
        case Shuffled(steps):
            found = replace(asked, sampling="shuffled", steps_per_epoch=steps, epochs=runs)
        case FixedSize(batch, records, replacement):
            found = replace(asked, sampling="fixed", batch=batch, records=records, steps=runs)
            found = replace(found, with_replacement=True) if replacement else found
        case TruncatedPoisson(rate, cap, records):
            found = replace(asked, sampling="truncated", rate=rate, cap=cap, records=records, steps=runs)
        case CyclicPoisson(rate, bands):
            found = replace(asked, sampling="cyclic", rate=rate, bands=bands, steps=runs * bands)
        case Poisson(rate):
            found = replace(asked, rate=rate, steps=runs)
        case _:
            return None
    person = sampling.records_per_person
    return replace(found, records_per_person=person) if person > 1 else found


_MOST_PARTS = 12


def write_python(mechanism: Mechanism, prefix: str = "") -> str:
    """`Gaussian(1.0).subsampled(0.01).composed(1000)`, with `prefix` before names; of many parts some are left out."""
    match mechanism:
        case Composed(((part, runs),)):
            return f"{write_python(part, prefix)}.composed({runs})"
        case Composed(parts):
            shown = [_run(part, runs, prefix) for part, runs in parts[:_MOST_PARTS]]
            left = [f"... {len(parts) - _MOST_PARTS} more"] if len(parts) > _MOST_PARTS else []
            return f"{prefix}compose({', '.join(shown + left)})"
        case Subsampled(inner, rate):
            return f"{write_python(inner, prefix)}.subsampled({rate!r})"
        case Sampled(inner, sampling):
            return f"{write_python(inner, prefix)}.subsampled({_call(sampling, prefix)})"
    return _call(mechanism, prefix)


def _run(part: Mechanism, runs: int, prefix: str) -> str:
    return write_python(part if runs == 1 else part.composed(runs), prefix)


def _call(described: Mechanism | Sampling, prefix: str) -> str:
    """The call of a description's class; what has its default is left out."""
    arguments = []
    for field in fields(described):
        value = getattr(described, field.name)
        if field.default is MISSING or value != field.default:
            arguments.append(
                f"{field.name}={_value(value, prefix)}" if field.default is not MISSING else _value(value, prefix)
            )
    return f"{prefix}{type(described).__name__}({', '.join(arguments)})"


def _value(value: Any, prefix: str) -> str:
    if isinstance(value, Mechanism):
        return write_python(value, prefix)
    if isinstance(value, float) and value == float("inf"):
        return 'float("inf")'
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
