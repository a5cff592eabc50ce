"""Releases beyond noise and randomized answers, as masses of losses: from their definitions alone, as `hunt.laws`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom, hypergeom

import deniable as dn

__all__ = ["Masses", "allocated", "integer_noise", "numbers_drawn", "pair_masses", "renyi_witnesses", "selected"]

Floats = NDArray[np.float64]
Masses = tuple[tuple[tuple[float, float], ...], float, float]
"""(loss, ln of its probability under P) of every finite loss; what P alone, and what Q alone, may produce."""

_FAR_SIGMAS = 38.0
_ATOMS = 500  # of an epoch's law between two averages
_LEFT_OUT = 1e-25
_STRIPS = 400


def integer_noise(mechanism: dn.DiscreteGaussian | dn.DiscreteLaplace) -> Masses:
    """The noise on a number against that on the number less the sensitivity."""
    shift = mechanism.sensitivity
    if isinstance(mechanism, dn.DiscreteLaplace):
        inner = np.arange(1, shift)
        fall = exp(-1 / mechanism.scale)
        losses = np.concatenate([[-shift], 2 * inner - shift, [shift]]) / mechanism.scale
        logs = np.concatenate([[-shift / mechanism.scale], -(shift - inner) / mechanism.scale + log1p(-fall), [0.0]])
        return tuple(zip(losses.tolist(), (logs - log1p(fall)).tolist(), strict=True)), 0.0, 0.0
    sigma = mechanism.sigma
    outputs = np.arange(-np.ceil(_FAR_SIGMAS * sigma), np.ceil(_FAR_SIGMAS * sigma) + shift + 1)
    logs = -(((outputs - shift) / sigma) ** 2) / 2
    logs -= np.log(np.exp(logs).sum())
    losses = (2 * outputs * shift - shift**2) / (2 * sigma**2)
    return tuple(zip(losses.tolist(), logs.tolist(), strict=True)), 0.0, 0.0


def pair_masses(own: Floats, null: Floats) -> Masses:
    """Of two probability mass functions."""
    both = (own > 0) & (null > 0)
    losses, logs = np.log(own[both]) - np.log(null[both]), np.log(own[both])
    return tuple(zip(losses.tolist(), logs.tolist(), strict=True)), float(own[~both].sum()), float(null[~both].sum())


# --- a person with several records ---


def numbers_drawn(sampling: dn.FixedSize | dn.Poisson) -> tuple[float, tuple[tuple[int, float], ...]]:
    """The chance that some of a person's records are in the batch, and of each number of them given that."""
    person = sampling.records_per_person
    if isinstance(sampling, dn.Poisson):
        law = binom(person, sampling.rate)
    elif sampling.replacement:
        law = binom(sampling.batch, person / sampling.records)
    else:
        law = hypergeom(sampling.records, person, sampling.batch)
    most = person if isinstance(sampling, dn.Poisson) or not sampling.replacement else sampling.batch
    numbers = np.arange(1, min(most, 400) + 1)
    chances = law.pmf(numbers)
    shares = chances / chances.sum()
    return float(law.sf(0)), tuple((int(n), float(p)) for n, p in zip(numbers, shares, strict=True) if p > 0)


# --- the best of several runs ---


def _runs_transform(mean: float, shape: float) -> Callable[[Floats], Floats]:
    """1 - E[z^runs] as a function of 1 - z."""
    if shape == inf:
        return lambda left: -np.expm1(-mean * left)
    if shape == 0:
        gamma = brentq(lambda g: (1 / g - 1) / -log(g) - mean, 1e-14, 1 - 1e-12)
        return lambda left: 1 - np.log(gamma + (1 - gamma) * left) / log(gamma)
    gamma = brentq(lambda g: shape * (1 - g) / (g * -expm1(shape * log(g))) - mean, 1e-14, 1 - 1e-12)
    top = gamma**-shape
    return lambda left: 1 - ((gamma + (1 - gamma) * left) ** -shape - 1) / (top - 1)


def selected(mechanism: dn.RepeatAndSelect) -> Masses:
    """The largest of the runs' outputs, told to within a strip: no more than the release tells."""
    inner, runs = mechanism.mechanism, 1
    if isinstance(inner, dn.Composed):
        ((inner, runs),) = inner.parts
    mu = sqrt(runs) / inner.noise if isinstance(inner, dn.Gaussian) else 1 / inner.scale  # type: ignore[attr-defined]
    above = ndtr if isinstance(inner, dn.Gaussian) else _laplace_above
    edges = np.concatenate([[-inf], np.linspace(-6.0, mu + 8.0, _STRIPS), [inf]])
    one = _runs_transform(mechanism.mean, mechanism.shape)
    own, null = one(above(mu - edges)), one(above(-edges))
    masses = [np.append(-np.diff(far), 1 - far[0]) for far in (own, null)]  # the last one: no run at all
    kept = (masses[0] > 1e-13) & (masses[1] > 1e-13)  # differences of numbers near 1 tell no more
    rest = [np.append(mass[kept], max(1 - mass[kept].sum(), 1e-300)) for mass in masses]
    return pair_masses(*rest)


def _laplace_above(x: Floats) -> Floats:
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0.0)), 1 - 0.5 * np.exp(-np.maximum(x, 0.0)))


# --- bare Renyi guarantees: releases that keep them, and what they allow at most ---


def renyi_curve(mechanism: dn.ConcentratedDP | dn.RenyiDP) -> tuple[Floats, Floats]:
    if isinstance(mechanism, dn.RenyiDP):
        return np.array(mechanism.orders), np.array(mechanism.epsilons)
    orders = 1 + np.geomspace(1e-3, 1e4, 200)
    return orders, mechanism.rho * orders


def renyi_witnesses(mechanism: dn.ConcentratedDP | dn.RenyiDP) -> tuple[float, float]:
    """mu of Gaussian noise and epsilon of a randomized answer that keep the guarantee."""
    orders, epsilons = renyi_curve(mechanism)
    mu = sqrt(2 * float((epsilons / orders).min())) * (1 - 1e-9)

    def kept(epsilon: float) -> bool:
        one, other = (orders - 1) * epsilon, -(orders - 1) * epsilon
        logs = np.logaddexp(one - np.logaddexp(0, -epsilon), other - np.logaddexp(0, epsilon))
        return bool((logs / (orders - 1) <= epsilons).all())

    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    return mu, low * (1 - 1e-9)


def renyi_ceiling(orders: Floats, epsilons: Floats, k: float) -> float:
    """The largest delta at epsilon k >= 0 (Canonne, Kamath, Steinke 2020, Proposition 12)."""
    logs = (orders - 1) * (epsilons - k) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
    return float(np.exp(min(logs.min(), 0.0)))


# --- random allocation: an epoch's law between two that are less and more spread out ---


@lru_cache(maxsize=64)
def allocated(mu: float, steps: int, wider: bool) -> Masses:
    """e^L is the mean of `steps` lognormal variables. Sums of e^L and its divergences are convex in every one of them.

    So atoms that are joined at their mean give less, atoms that are split around their mean give more of every
    divergence, in both directions and after any composition (convex order).
    """
    power, found, count = _lognormal(mu, wider), None, 0
    size = 1
    while size <= steps:
        if steps & size:
            found = power if found is None else _average(found, count, power, size, wider)
            count += size
        if 2 * size <= steps:
            power = _average(power, size, power, size, wider)
        size *= 2
    assert found is not None
    ratios, null = found
    own = null * ratios
    hidden, null_hidden = (max(0.0, 1 - float(mass.sum())) + 1e-13 if wider else 0.0 for mass in (own, null))
    logs = np.log(own) - (0.0 if wider else log(own.sum()))
    return tuple(zip(np.log(ratios).tolist(), logs.tolist(), strict=True)), hidden, null_hidden


_Law = tuple[Floats, Floats]  # values of e^L, and their probabilities under Q


def _lognormal(mu: float, wider: bool) -> _Law:
    x = np.linspace(-9.5, 9.5 + mu, 3 * _ATOMS)
    if not wider:
        ends = np.concatenate([[-inf], x, [inf]])
        null, own = _strips(ends, 0.0), _strips(ends, mu)
        return _joined(own / null, null)
    null, own = _strips(x, 0.0), _strips(x, mu)
    return _split_between(np.exp(mu * x - mu * mu / 2), null, own)


def _strips(x: Floats, centre: float) -> Floats:
    z = x - centre
    return np.where(z[1:] <= 0, np.diff(ndtr(z)), -np.diff(ndtr(-z))).clip(min=0.0)


def _split_between(values: Floats, null: Floats, own: Floats) -> _Law:
    """Mass and mean of every strip on its two ends."""
    share = np.clip((own / np.maximum(null, 1e-300) - values[:-1]) / np.diff(values), 0.0, 1.0)
    masses = np.append((1 - share) * null, 0.0) + np.append(0.0, share * null)
    kept = masses > 0
    return values[kept], masses[kept]


def _average(one: _Law, ones: int, other: _Law, others: int, wider: bool) -> _Law:
    """The mean of `ones` and `others` of them, on a few atoms again."""
    total = ones + others
    values = (ones / total * one[0][:, None] + others / total * other[0]).ravel()
    masses = (one[1][:, None] * other[1]).ravel()
    kept = masses > _LEFT_OUT * 1e-15
    order = np.argsort(values[kept], kind="stable")
    values, masses = values[kept][order], masses[kept][order]
    return _split(values, masses) if wider else _joined(values, masses)


def _places(values: Floats, masses: Floats) -> Floats:
    """Atoms: some by probability under either side, some by the size of the loss."""
    places = [np.linspace(log(values[0]), log(values[-1]), _ATOMS // 3)]
    for weights in (masses, masses * values):
        below = np.cumsum(weights) / weights.sum()
        shares = np.linspace(0, 1, _ATOMS // 3)
        places.append(np.log(values[np.minimum(np.searchsorted(below, shares), values.size - 1)]))
    return np.unique(np.exp(np.concatenate(places)))


def _joined(values: Floats, masses: Floats) -> _Law:
    """Atoms between two places at their mean."""
    cell = np.searchsorted(_places(values, masses), values, side="right")
    null, own = np.bincount(cell, masses), np.bincount(cell, masses * values)
    kept = null > 0
    return own[kept] / null[kept], null[kept]


def _split(values: Floats, masses: Floats) -> _Law:
    """Every atom on the two places around it, with its mean."""
    places = _places(values, masses)
    places[0], places[-1] = min(places[0], values[0]), max(places[-1], values[-1])
    cell = np.clip(np.searchsorted(places, values, side="right") - 1, 0, places.size - 2)
    low, high = places[cell], places[cell + 1]
    share = np.clip((values - low) / (high - low), 0.0, 1.0)
    spread = np.bincount(cell, masses * (1 - share), places.size) + np.bincount(cell + 1, masses * share, places.size)
    kept = spread > 0
    return places[kept], spread[kept]
