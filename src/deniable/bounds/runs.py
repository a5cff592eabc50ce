"""How the named analyses read a mechanism (its single runs, what is sampled, what is pure DP); their free parameters.

Every value of a free parameter proves a bound; the best are searched for.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import expm1, inf, log, log1p
from operator import itemgetter

from deniable.bounds.numeric import InapplicableError, log_mixture, valley
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
    record is needed beside those with either record, and only additive noise tells it (see `numeric`).
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


_ENDS = {
    "order": (log(1e-9), log(1e15)),  # no release of interest has its best order outside
    "slack": (-36.0, 6.0),
    "share": (log(1e-12), log(0.9)),
}
_PRECISION = 1e-8
_ROUGH = 0.03
_TINY = 1e-12
_BESIDE = 1e-10
_FAR = 3.0  # so far from the best value no jump matters


@dataclass
class Tuning:
    """Where the next search starts: each leaves its best parameter here, which also suits the next mechanism."""

    order: float = 2.5
    """ln(order - 1) of Renyi DP."""
    slack: float = 0.0
    """logit of the share of delta that the slack of advanced composition takes."""
    share: float = -2.0
    """ln of the share of a failure probability that an analysis takes as its delta."""
    level: float | None = None
    """Where the bounds are to be compared with it: the farther they are from it, the less exact they need be."""

    def least(self, name: str, bound: Callable[[float], float], jumps: Iterable[float] = ()) -> float:
        """The least bound over all values of the parameter `name`; where it jumps, both sides are searched."""
        start, (low, high) = getattr(self, name), _ENDS[name]
        near = sorted(jump for jump in jumps if abs(jump - start) < _FAR and low < jump < high)
        edges = [low, *(side for jump in near for side in (jump - _BESIDE, jump + _BESIDE)), high]
        pieces = zip(edges[::2], edges[1::2], strict=True)
        found = [valley(bound, piece, start=start, exact=self._exact) for piece in pieces]
        best, least = min(found, key=itemgetter(1))
        setattr(self, name, best)
        return least

    def _exact(self, bound: float) -> float:
        """Within how much of the least bound is enough; no bound means more where it is below 0."""
        if bound <= 0:
            return inf
        rough = 0.0 if self.level is None else _ROUGH * abs(bound - self.level)
        return _PRECISION * max(bound, _TINY) + rough
