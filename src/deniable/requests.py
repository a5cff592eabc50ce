"""Which settings go together: from checked numbers to a mechanism, a training or a promise.

The command line and the planner ask alike. A refusal names settings as the command line spells them (`--batch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deniable.calibration import (
    Accuracy,
    Advantage,
    Belief,
    Epsilon,
    PositivePredictiveValue,
    Target,
    TruePositiveRate,
)
from deniable.checks import MOST_STEPS
from deniable.document import Question
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    RandomizedResponse,
    TotalVariation,
)

__all__ = ["described", "promised", "question", "trained"]

Values = Mapping[str, Any]

GAUSSIAN = "gaussian"
_LOCAL = ("laplace", "randomized-response")
_COUNTED = ("records", "batch", "epochs")
_SAMPLED = ("rate", "steps")
_RELEASES: dict[str, tuple[str, ...]] = {
    "epsilon": (),
    "tvd": (),
    "gdp": (),
    "noise": (*_SAMPLED, *_COUNTED),
    "laplace": (),
    "randomized_response": ("categories", "features"),
}
_PROMISES: dict[str, tuple[str, ...]] = {
    "belief": (),
    "advantage": (),
    "accuracy": (),
    "tpr": ("fpr",),
    "ppv": ("fpr",),
    "epsilon": (),
}


def question(values: Values, adjacency: str | None) -> Question:
    """What is asked, with the defaults: delta is 1/N where the number of records is known."""
    try:
        kind = Adjacency(adjacency or Adjacency.ADD_REMOVE)
    except ValueError:
        raise ValueError(f"--adjacency must be one of {', '.join(Adjacency)}, got {adjacency!r}") from None
    delta = values.get("delta", 1 / values["records"] if "records" in values else Question.delta)
    if delta == 1:
        raise ValueError("--delta must be a number below 1, got 1: it would promise nothing")
    return Question(delta, values.get("prior", Question.prior), values.get("fpr", Question.fprs), kind)


def described(values: Values, delta: float) -> tuple[Mechanism, dict[str, Any]]:
    """The release that `explain` was asked about, and its description for the document."""
    name = _only(_RELEASES, values, "what was released")
    for owner, companions in _RELEASES.items():
        for stray in companions:
            if stray in values and owner != name:
                raise ValueError(f"{_given(values, stray)} goes with {_option(owner)}, not with {_option(name)}")
    if name == "noise":
        rate, steps = _schedule(values, default_steps=1)
        return _training(rate, steps)(values["noise"]), _described(values, ("noise",), rate, steps)
    answers = {"categories": values.get("categories", 2), "features": values.get("features", 1)}
    builders: dict[str, Callable[[float], Mechanism]] = {
        "epsilon": lambda epsilon: ApproximateDP(epsilon, delta),
        "tvd": TotalVariation,
        "gdp": GaussianDP,
        "laplace": Laplace,
        "randomized_response": lambda epsilon: RandomizedResponse(epsilon, answers["categories"]).composed(
            answers["features"]
        ),
    }
    extra = answers if name == "randomized_response" else {}
    return builders[name](values[name]), {name: values[name], **extra}


def trained(values: Values, mechanism: str | None = None) -> tuple[Callable[[float], Mechanism], dict[str, Any]]:
    """The release whose noise `choose` is to find, and its description with the promise, for the document.

    A training, unless `mechanism` names a local one: Laplace noise of that scale, or randomized response with epsilon
    1 / noise for each answer.
    """
    name = _only(_PROMISES, values, "the promise")
    kind = mechanism or GAUSSIAN
    if kind not in _LOCAL and kind != GAUSSIAN:
        raise ValueError(f"--mechanism must be one of {GAUSSIAN}, {', '.join(_LOCAL)}, got {mechanism!r}")
    for stray in (*_COUNTED, *_SAMPLED) if kind in _LOCAL else ():
        if stray in values and stray != "records":  # the records still tell delta
            raise ValueError(f"{_given(values, stray)} describes a training: it does not go with --mechanism {kind}")
    for stray in () if kind == "randomized-response" else ("categories", "features"):
        if stray in values:
            raise ValueError(f"{_given(values, stray)} goes with --mechanism randomized-response, not with {kind}")
    if kind == GAUSSIAN:
        rate, steps = _schedule(values, default_steps=None)
        return _training(rate, steps), _described(values, (name,), rate, steps)
    kept = {key: values[key] for key in (name, "records") if key in values}
    if kind == "laplace":
        return Laplace, {**kept, "mechanism": kind}
    answers = {"categories": values.get("categories", 2), "features": values.get("features", 1)}
    return _answering(**answers), {**kept, "mechanism": kind, **answers}


def promised(values: Values, asked: Question) -> Target:
    """The promise that `choose` was asked to keep; ValueError names the option where no noise can keep it."""
    name = _only(_PROMISES, values, "the promise")
    for needed in _PROMISES[name]:
        if needed not in values:
            raise ValueError(f"{_option(needed)} is missing: {_option(name)} needs it")
    if name in ("tpr", "ppv") and len(asked.fprs) > 1:
        raise ValueError(f"--fpr must be given once with {_option(name)}, got {len(asked.fprs)} values")
    if asked.delta == 0:
        raise ValueError("--delta must be a number strictly between 0 and 1, got 0: Gaussian noise needs more than 0")
    bound, fpr = values[name], asked.fprs[0]
    builders: dict[str, Callable[[], Target]] = {
        "belief": lambda: Belief(bound, asked.delta, asked.prior),
        "advantage": lambda: Advantage(bound),
        "accuracy": lambda: Accuracy(bound, asked.prior),
        "tpr": lambda: TruePositiveRate(bound, fpr),
        "ppv": lambda: PositivePredictiveValue(bound, fpr, asked.prior),
        "epsilon": lambda: Epsilon(bound, asked.delta),
    }
    try:
        return builders[name]()
    except ValueError as refused:  # its arguments are named like the options
        raise ValueError(f"--{refused}") from None


def _schedule(values: Values, default_steps: int | None) -> tuple[float, int]:
    """Sampling rate and number of steps, from --rate and --steps or from --records, --batch and --epochs."""
    counted = [name for name in _COUNTED if name in values]
    sampled = [name for name in _SAMPLED if name in values]
    if counted and sampled:
        both = f"{_given(values, sampled[0])} contradicts {_given(values, counted[0])}"
        raise ValueError(f"{both}: give {_ways()}, not both")
    if counted:
        for name in _COUNTED:
            if name not in values:
                raise ValueError(f"{_option(name)} is missing: {_list(_COUNTED)} go together")
        records, batch, epochs = (values[name] for name in _COUNTED)
        if batch > records:
            raise ValueError(f"--batch must be a whole number from 1 to --records ({records}), got {batch}")
        steps = -(-records // batch) * epochs
        if steps > MOST_STEPS:
            raise ValueError(f"--epochs must give at most {MOST_STEPS:g} steps, got {epochs:g}: {steps:g} steps")
        return batch / records, steps
    if default_steps is None and "steps" not in values:
        raise ValueError(f"--steps is missing: describe the training by {_ways()}")
    return values.get("rate", 1.0), values.get("steps", default_steps)


def _training(rate: float, steps: int) -> Callable[[float], Mechanism]:
    def of(noise: float) -> Mechanism:
        step: Mechanism = Gaussian(noise)
        step = step.subsampled(rate) if rate < 1 else step
        return step.composed(steps) if steps > 1 else step

    return of


def _answering(categories: int, features: int) -> Callable[[float], Mechanism]:
    """Randomized response to several questions, by its noise 1 / epsilon."""
    return lambda noise: RandomizedResponse(1 / noise, categories).composed(features)


def _described(values: Values, names: Iterable[str], rate: float, steps: int) -> dict[str, Any]:
    named = {name: values[name] for name in (*names, *_COUNTED) if name in values}
    return {**named, "rate": rate, "steps": steps}


def _only(choices: Iterable[str], values: Values, what: str) -> str:
    given = [name for name in choices if name in values]
    if not given:
        raise ValueError(f"name {what}: exactly one of {_list(choices)} is needed")
    if len(given) > 1:
        both = f"{_given(values, given[1])} contradicts {_given(values, given[0])}"
        raise ValueError(f"{both}: give exactly one of {_list(choices)}")
    return given[0]


def _given(values: Values, name: str) -> str:
    return f"{_option(name)} {values[name]:g}"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(_option, names))


def _ways() -> str:
    return "--records --batch --epochs or --rate --steps"
