"""One run of a sampling other than Poisson's: its dominating pair, for the neighbours for which one is proved."""

from __future__ import annotations

from deniable.checks import RefusedError
from deniable.loss.pairs.allocated import AllocatedRemove
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.step import Step
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, RandomAllocation, Sampling

__all__ = ["sampled_runs"]

_MOST_SHIFT = 12.0  # in units of the noise's deviation, from which on allocation hides next to nothing


def sampled_runs(mechanism: Mechanism, sampling: Sampling, adjacency: Adjacency) -> tuple[Step, int]:
    """A step, and how often it runs, that dominate one run of the mechanism on this sampling."""
    match sampling:
        case RandomAllocation(steps, times):
            return _allocated(_shift(mechanism, sampling), steps // times, adjacency), times
        case _:
            raise TypeError(f"cannot sample by {type(sampling).__name__}")


def _shift(mechanism: Mechanism, sampling: Sampling) -> float:
    if not isinstance(mechanism, Gaussian):
        raise RefusedError(
            f"{type(sampling).__name__} is proved for Gaussian noise on a sum, not for {type(mechanism).__name__}"
        )
    return 1 / mechanism.noise


def _allocated(mu: float, steps: int, adjacency: Adjacency) -> Step:
    """Lemma A1. A single step is no sampling; with faint noise that is as good as all (safe: it dominates)."""
    if adjacency is Adjacency.REPLACE:
        raise RefusedError(
            "{adjacency} replace is not proved for random allocation",
            "adjacency",
            adjacency,
            "add-remove or zero-out",
            "both records are allocated, and no dominating pair of two such mixtures is known",
        )
    return GaussianStep(mu) if steps == 1 or mu > _MOST_SHIFT else AllocatedRemove(mu, steps)
