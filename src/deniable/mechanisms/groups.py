"""Group privacy: neighbours that differ in several records."""

from __future__ import annotations

from dataclasses import replace
from math import expm1, inf

from deniable.checks import RefusedError, whole
from deniable.mechanisms.mechanism import Composed, Mechanism
from deniable.mechanisms.releases import (
    ApproximateDP,
    ConcentratedDP,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GaussianDP,
    Laplace,
    Pixelization,
    RandomizedResponse,
    RepeatAndSelect,
    TotalVariation,
)
from deniable.mechanisms.samplings import Poisson, Sampled, Subsampled, sample_by

_MOST_NATS = 700.0


def group(mechanism: Mechanism, size: int) -> Mechanism:
    """The release as a group of `size` records sees it, whose records may all differ between neighbours.

    Noise: the sensitivity is `size` times as large, exactly. Pure and approximate DP, total variation: Dong, Roth, Su
    2022, Theorem 2.14, and Vadhan 2017, Lemma 2.2. zCDP: Bun, Steinke 2016, Proposition 27. Samples: as many records
    per person.
    """
    whole("size", size)
    if size == 1:
        return mechanism
    if isinstance(mechanism, Composed):
        return Composed(tuple((group(part, size), steps) for part, steps in mechanism.parts))
    if isinstance(mechanism, RepeatAndSelect):
        return replace(mechanism, mechanism=group(mechanism.mechanism, size))
    return _of_sample(mechanism, size) or _of_release(mechanism, size)


def _of_sample(mechanism: Mechanism, size: int) -> Mechanism | None:
    match mechanism:
        case Subsampled(inner, rate):
            return sample_by(inner, Poisson(rate, records_per_person=size))
        case Sampled(inner, sampling):
            return Sampled(inner, replace(sampling, records_per_person=sampling.records_per_person * size))
    return None


def _of_release(mechanism: Mechanism, size: int) -> Mechanism:
    found: Mechanism
    match mechanism:
        case Gaussian(noise):
            found = Gaussian(noise / size)
        case Laplace(scale):
            found = Laplace(scale / size)
        case DiscreteGaussian() | DiscreteLaplace():
            found = replace(mechanism, sensitivity=mechanism.sensitivity * size)
        case ExponentialMechanism(epsilon):
            found = ExponentialMechanism(size * epsilon)
        case Pixelization(epsilon):
            found = Laplace(1 / (size * epsilon))
        case RandomizedResponse(epsilon):
            found = ApproximateDP(size * epsilon)
        case ApproximateDP(epsilon, delta):
            found = ApproximateDP(size * epsilon, min(1.0, delta * _geometric_sum(epsilon, size)))
        case TotalVariation(alpha):
            found = TotalVariation(min(1.0, size * alpha))
        case GaussianDP(mu):
            found = GaussianDP(size * mu)
        case ConcentratedDP(rho):
            found = ConcentratedDP(size * size * rho)
        case _:
            why = "describe the release between data sets that differ in the whole group"
            raise RefusedError(f"no group privacy is proved here for {type(mechanism).__name__}: {why}")
    return found


def _geometric_sum(epsilon: float, size: int) -> float:
    """1 + e^epsilon + ... + e^{(size - 1) epsilon}."""
    if epsilon == 0:
        return size
    return inf if size * epsilon > _MOST_NATS else expm1(size * epsilon) / expm1(epsilon)
