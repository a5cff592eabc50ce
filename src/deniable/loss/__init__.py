"""Mechanism -> privacy loss.

`dominating_pair` turns a description into the pair of distributions whose loss all scores are read from: a closed
form where there is one; contour inversion where a Gaussian smooths the loss; else a grid with proved upper bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from math import expm1, inf, log1p, sqrt
from typing import TypeGuard

import numpy as np

from deniable.checks import RefusedError
from deniable.loss.arrays import EPS, Floats
from deniable.loss.compose.binomial import MOST_RUNS, Binomial, Mixture, two_losses
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.grid import Grid
from deniable.loss.compose.rough_pairs import rough_pair
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.bounded_range import BoundedRangeStep
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.masses import MassStep, integer_gaussian, integer_laplace, step_of_masses
from deniable.loss.pairs.pair import Pair
from deniable.loss.pairs.renyi_guarantee import (
    ORDERS,
    RenyiCurve,
    add_guarantees,
    concentrated_orders,
    divergences_at,
    selected_divergences,
    step_of_renyi,
)
from deniable.loss.pairs.sampled_steps import sampled_runs
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplaceSum, subsample_replace
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Composed,
    ConcentratedDP,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    Pixelization,
    PmfPair,
    Poisson,
    RandomizedResponse,
    RenyiDP,
    RepeatAndSelect,
    Sampled,
    Subsampled,
    TotalVariation,
)
from deniable.upper import Upper

__all__ = ["Pair", "Upper", "dominating_pair", "renyi_divergences", "rough_pair"]

NOTHING = AtomStep.of_guarantee(0.0, 0.0)
_NO_ESCAPE = 1e-250  # counted for what is too unlikely for a number
_ROUNDING = 1e-11  # relative, granted to moments
LEAST_RATE = 1e-280  # smaller ones are taken for this one, which is on the safe side: nothing may underflow


def dominating_pair(mechanism: Mechanism, adjacency: Adjacency) -> Pair:
    """The pair (data with the person, data without) of the whole release; its `reverse()` is the other direction."""
    parts = _merge_steps(mechanism, adjacency)
    if not parts:
        return NOTHING
    certain = next((step for step, _ in parts if step.escape == 1), None)
    if certain is not None:
        return certain
    (step, count), *others = parts
    if not others and count == 1:
        return step
    if not others and (two := two_losses(step)):
        return Binomial(two, count)
    mixture = _mixture(parts)
    if mixture is not None:
        return mixture
    fades = any(part.fades(count) for part, count in parts)
    return Contour(Composition(parts)) if fades else Grid(Composition(parts))


def _mixture(parts: list[tuple[Step, int]]) -> Mixture | None:
    """A lattice beside one run of something else, where that is all there is."""
    if len(parts) != 2:
        return None
    for (step, count), (other, runs) in (parts, parts[::-1]):
        if runs == 1 and count <= MOST_RUNS and (two := two_losses(step)):
            return Mixture(Binomial(two, count), other)
    return None


def _merge_steps(mechanism: Mechanism, adjacency: Adjacency) -> list[tuple[Step, int]]:
    """The release as unlike steps with their numbers of runs, in an order of its own: composition commutes."""
    counts: Counter[Step] = Counter()
    curves: list[RenyiCurve] = []
    for part, steps in _parts(mechanism):
        if not steps:
            continue
        if isinstance(part, ConcentratedDP | RenyiDP | RepeatAndSelect):
            curves.append(_renyi_curve(part, adjacency).times(steps))
        elif isinstance(part, Sampled):
            step, runs = _sampled_runs(part, adjacency)
            counts[step] += steps * runs
        else:
            counts[_step(part, adjacency)] += steps
    if curves:
        counts[_step_of_curve(reduce(add_guarantees, curves))] += 1
    gaussian = sqrt(sum(count * step.mu**2 for step, count in counts.items() if isinstance(step, GaussianStep)))
    hidden = sum(count * log1p(-step.hidden) for step, count in counts.items() if _is_flat(step) and step.hidden < 1)
    certain = any(count and _is_flat(step) and step.hidden == 1 for step, count in counts.items())
    kept = [(step, n) for step, n in counts.items() if n and not isinstance(step, GaussianStep) and not _is_flat(step)]
    if gaussian > 0:
        kept.append((GaussianStep(gaussian), 1))
    if hidden < 0 or certain:
        kept.append((AtomStep.of_guarantee(0.0, 1.0 if certain else -expm1(hidden)), 1))
    return sorted(kept, key=repr)


def _parts(mechanism: Mechanism) -> Sequence[tuple[Mechanism, int]]:
    return mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),)


def _renyi_curve(mechanism: Mechanism, adjacency: Adjacency) -> RenyiCurve:
    """Orders and Renyi divergences: as given, or of the best of several runs."""
    match mechanism:
        case ConcentratedDP(rho):
            return concentrated_orders(rho)
        case RenyiDP(orders, epsilons):
            return RenyiCurve(orders, epsilons)
        case RepeatAndSelect():
            return _selected_curve(mechanism, adjacency)
    raise TypeError(f"no Renyi divergences of {type(mechanism).__name__}")


def _step_of_curve(curve: RenyiCurve) -> Step:
    """Of a guarantee; where the divergence of some order is 0, both sides are the same."""
    return NOTHING if min(curve.epsilons) == 0 else step_of_renyi(curve)


def _selected_curve(mechanism: RepeatAndSelect, adjacency: Adjacency) -> RenyiCurve:
    pair = dominating_pair(mechanism.mechanism, adjacency)

    def delta(epsilon: float) -> float:
        return max(float(one.hockey_stick(epsilon)) for one in (pair, pair.reverse()))

    epsilons = renyi_divergences(mechanism.mechanism, adjacency)
    kept = np.isfinite(epsilons)
    if not kept.any():
        raise RefusedError("no Renyi divergence of a single run is finite, so nothing is proved for the best of many")
    found = selected_divergences(ORDERS[kept], epsilons[kept], mechanism.mean, mechanism.shape, delta)
    return RenyiCurve(tuple(ORDERS[kept].tolist()), tuple(found.tolist()))


def renyi_divergences(mechanism: Mechanism, adjacency: Adjacency, orders: Floats = ORDERS) -> Floats:
    """Renyi divergences of a release at orders above 1, the larger ones of both directions; inf where not known."""
    total = np.zeros(orders.size)
    rest: list[tuple[Mechanism, int]] = []
    for part, steps in _parts(mechanism):
        if steps and isinstance(part, ConcentratedDP | RenyiDP | RepeatAndSelect):
            total += steps * divergences_at(_renyi_curve(part, adjacency), orders)
        else:
            rest.append((part, steps))
    for step, count in _merge_steps(Composed(tuple(rest)), adjacency):
        if max(step.escape, step.reverse().escape) > _NO_ESCAPE:
            return np.full(orders.size, inf)
        with np.errstate(over="ignore", invalid="ignore"):
            both = np.array([one.tilted_moments(orders)[0] for one in (step, step.reverse())])
        total += count * np.where(np.isfinite(both).all(axis=0), both.max(axis=0), inf) / (orders - 1)
    return np.asarray(total * (1 + _ROUNDING))


def _sampled_runs(part: Sampled, adjacency: Adjacency) -> tuple[Step, int]:
    """The sampling's own pair; of several records in a Poisson sample, whatever the mechanism, all or none of them."""
    sampling = part.sampling
    if not isinstance(sampling, Poisson) or isinstance(part.mechanism, Gaussian):
        return sampled_runs(part.mechanism, sampling, adjacency)
    some = -expm1(sampling.records_per_person * log1p(-sampling.rate)) if sampling.rate < 1 else 1.0
    group = part.mechanism.group(sampling.records_per_person)
    return _step(Subsampled(group, min(1.0, some * (1 + 4 * EPS))), adjacency), 1


def _is_flat(step: Step) -> TypeGuard[AtomStep]:
    """Whether all finite losses are 0 (a bare alpha-TVD guarantee); such steps merge into one."""
    return isinstance(step, AtomStep) and step.epsilon == 0


def _step(mechanism: Mechanism, adjacency: Adjacency) -> Step:
    if isinstance(mechanism, Subsampled):
        return _sample_step(mechanism, adjacency)
    if isinstance(mechanism, RepeatAndSelect):
        return _step_of_curve(_selected_curve(mechanism, adjacency))
    step = _noise_step(mechanism) or _guarantee_step(mechanism)
    if step is None:
        raise TypeError(f"cannot compose {type(mechanism).__name__}: use compose(...) and .composed(steps)")
    return step


def _noise_step(mechanism: Mechanism) -> Step | None:
    """Of noise on a query, of randomized answers and of random choices."""
    step: Step | None = None
    match mechanism:
        case Gaussian(noise):
            step = GaussianStep(1 / noise)
        case Laplace(scale):
            step = LaplaceStep(1 / scale)
        case Pixelization(epsilon):
            # A change spread over cells is never easier to see than the same change in one cell: for Laplace noise
            # group privacy (Dong, Roth, Su 2022, Theorem 2.14) is attained by a single shift.
            step = LaplaceStep(epsilon)
        case DiscreteGaussian(sigma, sensitivity):
            step = integer_gaussian(sigma, sensitivity)
        case DiscreteLaplace(scale, sensitivity):
            step = AtomStep.of_response(1 / scale, 2) if sensitivity == 1 else integer_laplace(scale, sensitivity)
        case ExponentialMechanism(epsilon):
            step = BoundedRangeStep(epsilon)
        case RandomizedResponse(epsilon, categories):
            step = AtomStep.of_response(epsilon, categories)
    return step


def _guarantee_step(mechanism: Mechanism) -> Step | None:
    """Of what is known by its guarantee alone."""
    step: Step | None = None
    match mechanism:
        case GaussianDP(mu):
            step = GaussianStep(mu) if mu > 0 else NOTHING
        case ApproximateDP(epsilon, delta):
            step = AtomStep.of_guarantee(epsilon, delta)
        case TotalVariation(alpha):
            step = AtomStep.of_guarantee(0.0, alpha)
        case PmfPair(own, null):
            step = step_of_masses(own, null)
        case ConcentratedDP(rho):
            step = _step_of_curve(concentrated_orders(rho))
        case RenyiDP(orders, epsilons):
            step = _step_of_curve(RenyiCurve(orders, epsilons))
    return step


def _is_never_sampled(mechanism: Mechanism) -> bool:
    """Whether some rate is 0; a product of many may underflow."""
    return isinstance(mechanism, Subsampled) and (mechanism.rate == 0 or _is_never_sampled(mechanism.mechanism))


def _sample_step(mechanism: Subsampled, adjacency: Adjacency) -> Step:
    inner, rate, error = mechanism.mechanism, mechanism.rate, 0.0
    while isinstance(inner, Subsampled):  # a Poisson sample of a Poisson sample is one
        rate, error = rate * inner.rate, error + EPS
        inner = inner.mechanism
    base = _step(inner, adjacency)
    if _is_never_sampled(mechanism) or base == NOTHING:
        return NOTHING
    rate = max(rate, LEAST_RATE)
    if rate == 1:
        return base
    if adjacency != Adjacency.REPLACE:
        return SubsampledRemove(base, rate, rate_error=error)
    if isinstance(inner, Gaussian) and isinstance(base, GaussianStep):
        return SubsampledReplaceSum(base.mu, rate, rate_error=error)
    if isinstance(base, AtomStep | LaplaceStep | GaussianStep | MassStep | BoundedRangeStep):
        return subsample_replace(base, rate, error)
    raise TypeError(f"cannot sample {type(inner).__name__} under replace")
