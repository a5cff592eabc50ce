"""Reading a mechanism: its single runs, the mechanism under the sampling, and what is pure DP."""

from __future__ import annotations

from collections.abc import Iterator
from math import expm1, log1p

from deniable.bounds.numeric import InapplicableError, log_mixture
from deniable.checks import MOST_NOISE
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Composed,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    Pixelization,
    RandomizedResponse,
    Sampled,
    Subsampled,
)

_LARGEST_EPSILON = 1e130  # of a bare guarantee: its square, times any order and number of steps, is finite
_HUGE = 500.0


def runs(mechanism: Mechanism) -> list[tuple[Mechanism, int]]:
    """The single runs with their counts, compositions unfolded and idle ones (no steps, rate 0, mu 0) left out."""
    found = [(part, steps) for part, steps in _unfold(mechanism, 1) if steps > 0 and not _is_idle(part)]
    for part, _ in found:
        if isinstance(part, Sampled):
            raise InapplicableError("no weaker analysis here knows this sampling, or several records of a person")
        if (pure_epsilon(base(part)) or 0.0) > _LARGEST_EPSILON:
            raise InapplicableError(f"{part}: a privacy loss above {_LARGEST_EPSILON:g} is beyond every analysis here")
    return found


def runs_between(mechanism: Mechanism, adjacency: Adjacency) -> list[tuple[Mechanism, int]]:
    """`runs`, for an analysis that heeds sampling.

    Raises `InapplicableError` where sampling under `replace` has no proved form: the law of the release without the
    record is needed beside those with either record, and only additive noise tells it (see `sampled`).
    """
    found = runs(mechanism)
    for part, _ in found:
        if adjacency is Adjacency.REPLACE and sampling(part) < 1 and not isinstance(base(part), (Gaussian, Laplace)):
            raise InapplicableError(
                f"{part}: sampling under replace adjacency is proved for Gaussian and Laplace noise only; "
                "use add-remove, or leave the sampling out (safe)"
            )
    return found


def base(mechanism: Mechanism) -> Mechanism:
    """The mechanism under all sampling."""
    return base(mechanism.mechanism) if isinstance(mechanism, Subsampled) else mechanism


def sampling(mechanism: Mechanism) -> float:
    """The overall sampling rate; samples of samples multiply."""
    return mechanism.rate * sampling(mechanism.mechanism) if isinstance(mechanism, Subsampled) else 1.0


def amplify_epsilon(epsilon: float, rate: float) -> float:
    """ln(1 + rate (e^epsilon - 1)): (epsilon, delta)-DP on a Poisson sample is (this, rate delta)-DP.

    Balle, Barthe and Gaboardi 2018, Theorem 8 (add-remove). For `replace` and additive noise the same holds: by
    their advanced joint convexity the divergence is at most rate times a mixture of those of record against record
    and of record against none, and the latter pair lies nearer.
    """
    if rate in (0.0, 1.0):
        return rate * epsilon
    return log1p(rate * expm1(epsilon)) if epsilon < _HUGE else float(log_mixture(rate, epsilon))


def gaussian_noise(mechanism: Mechanism) -> float | None:
    """Noise of the Gaussian under all sampling, a mu-GDP guarantee counting as noise 1/mu; None for anything else."""
    match base(mechanism):
        case Gaussian(noise):
            return noise
        case GaussianDP(mu):
            return 1 / max(mu, 1 / MOST_NOISE)
    return None


def pure_epsilon(mechanism: Mechanism) -> float | None:
    """Epsilon of one run that is pure epsilon-DP, amplified by sampling; None for anything else."""
    match mechanism:
        case Laplace(scale):
            return 1 / scale
        case RandomizedResponse(epsilon) | Pixelization(epsilon) | ApproximateDP(epsilon, 0.0):
            return epsilon
        case Subsampled(inner, rate):
            epsilon_of_inner = pure_epsilon(inner)
            return None if epsilon_of_inner is None else amplify_epsilon(epsilon_of_inner, rate)
    return None


def _is_idle(part: Mechanism) -> bool:
    return sampling(part) == 0 or base(part) == GaussianDP(0.0)


def _unfold(mechanism: Mechanism, steps: int) -> Iterator[tuple[Mechanism, int]]:
    if not isinstance(mechanism, Composed):
        yield mechanism, steps
        return
    for part, count in mechanism.parts:
        yield from _unfold(part, count * steps)
