"""`choose`: the least noise that keeps a promise, and what weaker analyses would demand for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from deniable.answers.demands import calibrate_by
from deniable.answers.describe import describe_choice
from deniable.answers.explain import explain_loss, short_reason, weaker_analysis
from deniable.bounds import METHODS, InapplicableError
from deniable.calibration import calibrate
from deniable.checks import family_of_releases
from deniable.mechanisms import Adjacency, Mechanism, named_adjacency
from deniable.promises import Promise, Question, check_promise
from deniable.results.explain_result import AnswerInput, ChooseResult, Demand

Family = Callable[[float], Mechanism]
"""A release by its noise."""


def choose(
    family: Family,
    promise: Promise,
    adjacency: Adjacency | str | None = None,
    *,
    delta: float | None = None,
    prior: float | None = None,
    fpr: Sequence[float] | None = None,
    baseline: Sequence[float] | None = None,
) -> ChooseResult:
    """The least noise with which `family(noise)` keeps a promise, and what weaker analyses would demand.

    Args:
        family: the release by its noise, for example `lambda noise: Gaussian(noise).subsampled(0.01).composed(1000)`.
        promise: what is to hold, for example `Belief(0.75, delta=1e-5)`.
        adjacency: what neighbours are; may be left out where batches are not sampled.
        delta: at which the other scores are told. Default: the promise's, else 1e-5.
        prior: the belief before the release, likewise. Default: the promise's, else 0.5.
        fpr: false positive rates, likewise. Default: the promise's, else 0.001 and 0.01.
        baseline: successes without the release, likewise. Default: the promise's, else none.

    Returns:
        The noise and every score of the training with it; `summary()` says it in sentences.

    Examples:
        >>> import deniable as dn
        >>> def train(noise):
        ...     return dn.Gaussian(noise).subsampled(0.01).composed(1000)
        >>> round(dn.choose(train, dn.Belief(0.75, delta=1e-5), "add-remove").noise, 4)
        1.4966
    """
    family_of_releases("family", family)
    own = check_promise(promise).parameters
    asked = {
        "delta": own.get("delta") if delta is None else delta,
        "prior": own.get("prior") if prior is None else prior,
        "fpr": _several(own.get("fpr"), fpr),
        "baseline": _several(own.get("baseline"), baseline),
    }
    given = {name: value for name, value in asked.items() if value is not None}
    question = Question.of(given, named_adjacency(family(1.0), adjacency))
    return choose_input(family, promise, describe_choice(family, promise, question))


def _several(own: float | None, given: Sequence[float] | None) -> tuple[float, ...] | None:
    if given is not None:
        return tuple(given)
    return None if own is None else (own,)


def choose_input(family: Family, promise: Promise, given: AnswerInput) -> ChooseResult:
    """The same for a training that options describe; `given` is how, and what is asked."""
    return join_demands(find_noise(family, promise, given), find_demands(family, promise, given))


def find_noise(family: Family, promise: Promise, given: AnswerInput) -> ChooseResult:
    """The least noise itself; no weaker analysis is looked at."""
    plan = calibrate(family, promise, given.adjacency)
    noise, found = float(plan.value), explain_loss(plan.mechanism, plan.loss, given)
    demand = Demand(name="exact", noise=noise)
    return ChooseResult(**structs.asdict(found), noise=noise, noise_error=plan.error, methods=(demand,))


def find_demands(family: Family, promise: Promise, given: AnswerInput) -> tuple[Demand, ...]:
    """What weaker analyses demand; it needs nothing of `find_noise`."""
    return tuple(_demand(name, family, promise, given) for name in METHODS)


def join_demands(exact: ChooseResult, weaker: Sequence[Demand]) -> ChooseResult:
    """The result from its two parts."""
    return exact.replace(methods=(*exact.methods, *weaker))


def _demand(name: str, family: Family, promise: Promise, given: AnswerInput) -> Demand:
    try:
        noise = calibrate_by(name, family, promise, given.delta, given.adjacency)
    except InapplicableError as reason:
        return Demand(name=name, noise=None, why=short_reason(reason))
    if name != "classic":
        return Demand(name=name, noise=noise)
    return Demand(name=name, noise=noise, proved=weaker_analysis(name, family(noise), given).proved)
