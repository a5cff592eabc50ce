"""`choose`: the least noise that keeps a promise, and what weaker analyses would demand for it.

Weaker analyses demand more noise for the same promise: the price of not being exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import exp, expm1, inf, log, log1p, sqrt

from msgspec import structs

from deniable.answers.describe import describe_choice
from deniable.answers.explain import explain_loss, short_reason, weaker_analysis
from deniable.bounds import METHODS, InapplicableError, Tuning, belief_to_epsilon, guarantee, loss_bound
from deniable.bounds.divergences import epsilon_to_rho
from deniable.calibration import MOST_NOISE, calibrate, first_safe
from deniable.checks import family_of_releases, probability
from deniable.mechanisms import Adjacency, ApproximateDP, Mechanism, TotalVariation, named_adjacency
from deniable.promises import Belief, Epsilon, Promise, Question, check_promise
from deniable.results.explain_result import AnswerInput, ChooseResult, Demand
from deniable.scores import privacy_loss
from deniable.search import falls_to

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


_PRECISION = 1e-6
_HUGE = 1e300
LEAST_NOISE = 1e-3
"""Where the search for a noise begins; less is not tried."""


def calibrate_by(
    name: str,
    mechanism_of: Callable[[float], Mechanism],
    target: Promise,
    delta: float,
    adjacency: Adjacency | str | None = None,
) -> float:
    """The least noise with which analysis `name` (one of `METHODS`) proves the promise.

    The analysis turns the release into a bare guarantee at `delta`, and the guarantee is scored like any release. For
    a belief that would not do (erratum 4): there the analysis must bound the tail of the loss itself. The result keeps
    the promise and is at most 1e-6 of itself too large. Raises `InapplicableError` where the analysis has no form for
    the mechanism, or no noise up to 1e9 will do.
    """
    probability("delta", delta, open_ends=True)
    kind = None if adjacency is None else Adjacency(adjacency)
    failure = target.delta if isinstance(target, Belief) else delta
    weakest = _weakest(target, name == "kl", delta, kind)
    epsilon = min(max(weakest, 1e-9), 1e3)
    rho, tail = epsilon_to_rho(epsilon, failure), -log(failure)
    # at the start, what suits Gaussian steps without sampling
    tuning = Tuning(order=0.5 * log(tail / rho), share=log(epsilon / (epsilon + 2 * tail)), level=weakest)

    def proved_by(analysis: str, noise: float) -> float:
        known = guarantee(analysis, mechanism_of(noise), failure, kind, tuning)
        return known.alpha if isinstance(known, TotalVariation) else known.epsilon

    @cache
    def bound_at(noise: float) -> float:
        if isinstance(target, Belief) and name != "kl":
            return loss_bound(name, mechanism_of(noise), failure, kind, tuning)
        return proved_by(name, noise)

    # Renyi DP sees nearly a Gaussian loss, whose KL divergence is rho
    by, level = ("kl", sqrt(rho / 2)) if name == "rdp" else (name, epsilon)
    far = _bound_or_infinite(lambda noise: proved_by(by, noise), MOST_NOISE)
    start = _extrapolate_noise(far, level) if weakest < inf else LEAST_NOISE
    # a bound may jump (to 0, to infinity), which the search bears
    noise = first_safe(lambda noise: _bound_or_infinite(bound_at, noise), weakest, (log(start), 0.2), _PRECISION / 3)
    if bound_at(min(noise, MOST_NOISE)) > weakest:
        raise InapplicableError(f"{name}: no noise up to {MOST_NOISE:g} keeps this promise at delta {delta:g}")
    return noise


@lru_cache(maxsize=64)  # the analyses are asked in turn
def _weakest(target: Promise, of_variation: bool, delta: float, adjacency: Adjacency | None) -> float:
    """The largest epsilon at `delta` (or total variation) that keeps the promise; negative where none does.

    For a belief the epsilon is the loss that may be exceeded as seldom as was promised, and total variation alpha
    bounds Pr[loss > epsilon] by alpha / (1 - e^-epsilon) (`loss_bound`).
    """
    match target:
        case Belief(bound, failure, prior):
            epsilon = belief_to_epsilon(bound, prior)
            return -failure * expm1(-epsilon) if of_variation else epsilon
        case Epsilon(bound, at) if at == delta and not of_variation:
            return bound

    def risk(parameter: float) -> float:
        known = TotalVariation(parameter) if of_variation else ApproximateDP(parameter, delta)
        return target.risk(privacy_loss(known, adjacency))

    if risk(0.0) > target.level:
        return -1.0
    if risk(1.0 if of_variation else _HUGE) <= target.level:
        return inf
    found = falls_to(lambda x: risk(exp(-x)), target.level, (0.0, 1.0), precision=_PRECISION / 10, unit=1.0)
    return exp(-found)


def _extrapolate_noise(far: float, level: float) -> float:
    """Where a bound is about `level` that is `far` at most noise: it falls like sqrt(e^(1/noise^2) - 1)."""
    return 1 / sqrt(log1p(min(max(MOST_NOISE * far / level, 0.1), MOST_NOISE) ** -2))


def _bound_or_infinite(bound_at: Callable[[float], float], noise: float) -> float:
    """An analysis that applies for large noise may have nothing to say for less: then the promise is not proved."""
    try:
        return bound_at(noise)
    except InapplicableError:
        return inf
