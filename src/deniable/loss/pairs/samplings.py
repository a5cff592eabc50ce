"""One run of a sampling other than Poisson's: its dominating pair, for the neighbours for which one is proved."""

from __future__ import annotations

from scipy.special import betainc

from deniable.checks import RefusedError
from deniable.loss.pairs.allocated import AllocatedRemove
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.blend import Blend
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplace, SubsampledReplaceSum
from deniable.mechanisms import (
    Adjacency,
    CyclicPoisson,
    FixedSize,
    Gaussian,
    Mechanism,
    RandomAllocation,
    Sampling,
    Shuffled,
    TruncatedPoisson,
)

__all__ = ["sampled_runs"]

_MOST_SHIFT = 12.0  # in units of the noise's deviation, from which on allocation hides next to nothing


def sampled_runs(mechanism: Mechanism, sampling: Sampling, adjacency: Adjacency) -> tuple[Step, int]:
    """A step, and how often it runs, that dominate one run of the mechanism on this sampling."""
    if not isinstance(mechanism, Gaussian):
        raise RefusedError(
            f"{type(sampling).__name__} is proved for Gaussian noise on a sum, not for {type(mechanism).__name__}"
        )
    if sampling.records_per_person > 1 or (isinstance(sampling, FixedSize) and sampling.replacement):
        raise RefusedError(f"{sampling} is not built yet")
    mu = 1 / mechanism.noise
    match sampling:
        case RandomAllocation(steps, times):
            return _allocated(mu, steps // times, adjacency), times
        case FixedSize():
            return _fixed_size(mu, sampling, adjacency), 1
        case TruncatedPoisson():
            return _truncated(mu, sampling, adjacency), 1
        case CyclicPoisson(rate, bands):
            return _cyclic(mu, bands * rate, adjacency), 1
        case Shuffled():
            return _shuffled(mu, adjacency), 1
    raise TypeError(f"cannot sample by {type(sampling).__name__}")


def _unproved(what: str, adjacency: Adjacency, expected: str, why: str) -> RefusedError:
    hint = f"{why}; name {expected}"
    return RefusedError(f"{{adjacency}} {adjacency} is not proved for {what}", "adjacency", adjacency, expected, hint)


def _allocated(mu: float, steps: int, adjacency: Adjacency) -> Step:
    """Lemma A1. A single step is no sampling; with faint noise that is as good as all (safe: it dominates)."""
    if adjacency is Adjacency.REPLACE:
        why = "both records are allocated, and no dominating pair of two such mixtures is known"
        raise _unproved("random allocation", adjacency, "add-remove or zero-out", why)
    return GaussianStep(mu) if steps == 1 or mu > _MOST_SHIFT else AllocatedRemove(mu, steps)


def _fixed_size(mu: float, sampling: FixedSize, adjacency: Adjacency) -> Step:
    """Lemma A4. A record blanked out is a record replaced, and may replace one that pulls the other way: 2C."""
    if adjacency is Adjacency.ADD_REMOVE:
        why = "with a record more or less, batches of a fixed size are drawn from other records"
        raise _unproved("batches of a fixed size", adjacency, "replace or zero-out", why)
    mu = 2 * mu if adjacency is Adjacency.ZERO_OUT else mu
    rate = sampling.batch / sampling.records
    return GaussianStep(mu) if rate == 1 else SubsampledReplace(GaussianStep(mu), rate)


def _truncated(mu: float, sampling: TruncatedPoisson, adjacency: Adjacency) -> Step:
    """Ganesh 2025: whether the batch was cut is told; where it was, the record pushes another one out."""
    if adjacency is Adjacency.ADD_REMOVE:
        why = "the chance that a batch is cut depends on the number of records"
        raise _unproved("truncated Poisson batches", adjacency, "zero-out or replace", why)
    rate, cap, records = sampling.rate, sampling.cap, sampling.records
    replaced = adjacency is Adjacency.REPLACE
    plain: Step = SubsampledReplaceSum(mu, rate) if replaced else SubsampledRemove(GaussianStep(mu), rate)
    plain = plain if 0 < rate < 1 else GaussianStep(mu) if rate else AtomStep.of_guarantee(0.0, 0.0)
    cut = float(betainc(cap, records - cap, rate)) if cap < records else 0.0
    if cut == 0:
        return plain
    kept = float(betainc(cap + 1, records - cap, rate)) * cap / (records * cut)
    pushed = SubsampledReplaceSum((2 if replaced else 4) * mu, min(kept, 1 - 1e-16))
    return Blend(((cut, pushed), (1 - cut, plain))) if cut < 1 else pushed


def _cyclic(mu: float, rate: float, adjacency: Adjacency) -> Step:
    """Choquette-Choo 2023: one round of all bands is one sampled release of the record's whole part."""
    if adjacency is Adjacency.REPLACE:
        why = "two records may be in groups that take their turns at different steps"
        raise _unproved("cyclic Poisson batches", adjacency, "add-remove or zero-out", why)
    if rate in (0.0, 1.0):
        return GaussianStep(mu) if rate else AtomStep.of_guarantee(0.0, 0.0)
    return SubsampledRemove(GaussianStep(mu), rate)


def _shuffled(mu: float, adjacency: Adjacency) -> Step:
    """Who is told the order knows more, and sees one release with the record (Lemma A5)."""
    if adjacency is Adjacency.ADD_REMOVE:
        why = "with a record more or less, every later batch begins with another record"
        raise _unproved("shuffled batches", adjacency, "zero-out or replace", why)
    return GaussianStep(mu)
