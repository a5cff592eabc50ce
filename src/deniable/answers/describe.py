"""A release as options describe it: the reverse of `parse`, for releases that were built in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from deniable.answers.batches import parse_batches
from deniable.answers.python_text import write_python
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

__all__ = ["describe_choice", "describe_release", "mechanism_in"]

_PROBE = 1.25
"""A noise at which a family of releases is looked at."""


def describe_release(mechanism: Mechanism, question: Question) -> AnswerInput:
    """By the options of `explain`; a release that they cannot describe is written out in Python."""
    return _input(question, **(_options(mechanism, question.delta) or {"release": write_python(mechanism)}))


def describe_choice(family: Callable[[float], Mechanism], promise: Promise, question: Question) -> AnswerInput:
    """By the options of `choose`, with the promise; `family` gives the release with a noise."""
    promised = {promise.field.name: promise.bound}
    match _options(family(_PROBE), question.delta):
        case {"noise": noise, **others} if noise == _PROBE:
            return _input(question, **promised, **others)
        case {"laplace": scale} if scale == _PROBE:
            return _input(question, **promised, mechanism="laplace")
        case {"randomized_response": epsilon, "categories": categories, "features": features} if epsilon == 1 / _PROBE:
            kind = "randomized-response"
            return _input(question, **promised, mechanism=kind, categories=categories, features=features)
    return _input(question, **promised, release=write_python(family(_PROBE)).replace(str(_PROBE), "noise"))


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
        return parse_batches({name: value for name, value in structs.asdict(given).items() if value is not None})(noise)
    return Training(noise, given.rate or 1.0, given.steps or 1, given.adjacency).mechanism


def _guarantee(given: AnswerInput) -> Mechanism:
    if given.tvd is not None:
        return TotalVariation(given.tvd)
    return GaussianDP(given.gdp) if given.gdp is not None else ApproximateDP(given.epsilon or 0.0, given.delta)


def _input(question: Question, **described: Any) -> AnswerInput:
    return AnswerInput(
        **described,
        delta=question.delta,
        prior=question.prior,
        fpr=question.fpr,
        baseline=question.baseline,
        adjacency=question.adjacency,
    )


def _options(mechanism: Mechanism, delta: float) -> dict[str, Any]:
    """The options that describe a release; none where they cannot. An epsilon goes with the delta that is asked."""
    match mechanism:
        case ApproximateDP(epsilon, own) if own == delta:
            found = {"epsilon": epsilon}
        case TotalVariation(alpha):
            found = {"tvd": alpha}
        case GaussianDP(mu):
            found = {"gdp": mu}
        case Laplace(scale):
            found = {"laplace": scale}
        case RandomizedResponse(epsilon, categories):
            found = {"randomized_response": epsilon, "categories": categories, "features": 1}
        case Gaussian(noise):
            found = {"noise": noise, "rate": 1.0, "steps": 1}
        case Subsampled(Gaussian(noise), rate):
            found = {"noise": noise, "rate": rate, "steps": 1}
        case Composed(((RandomizedResponse() as answer, features),)) if features > 0:
            found = {**_options(answer, delta), "features": features}
        case Composed((((Gaussian() | Subsampled(Gaussian())) as step, steps),)) if steps > 0:
            found = {**_options(step, delta), "steps": steps}
        case Sampled(Gaussian(noise), sampling):
            found = _drawn(noise, sampling, 1)
        case Composed(((Sampled(Gaussian(noise), sampling), runs),)) if runs > 0:
            found = _drawn(noise, sampling, runs)
        case _:
            found = {}
    return found


def _drawn(noise: float, sampling: Sampling, runs: int) -> dict[str, Any]:
    """The options that describe batches which are not Poisson's; none where they cannot."""
    match sampling:
        case RandomAllocation(steps, 1):
            found = {"sampling": "allocation", "steps_per_epoch": steps, "epochs": runs}
        case Shuffled(steps):
            found = {"sampling": "shuffled", "steps_per_epoch": steps, "epochs": runs}
        case FixedSize(batch, records, replacement):
            found = {"sampling": "fixed", "batch": batch, "records": records, "steps": runs}
            found |= {"with_replacement": True} if replacement else {}
        case TruncatedPoisson(rate, cap, records):
            found = {"sampling": "truncated", "rate": rate, "cap": cap, "records": records, "steps": runs}
        case CyclicPoisson(rate, bands):
            found = {"sampling": "cyclic", "rate": rate, "bands": bands, "steps": runs * bands}
        case Poisson(rate):
            found = {"rate": rate, "steps": runs}
        case _:
            return {}
    person = {"records_per_person": sampling.records_per_person} if sampling.records_per_person > 1 else {}
    return {"noise": noise, **found, **person}
