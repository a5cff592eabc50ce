"""One run of a sampling other than Poisson's: its dominating pair, for the neighbours for which one is proved.

Of a person with several records, the law of their number in a batch.

"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, log, log1p, sqrt
from sys import float_info

import numpy as np
from scipy.special import betainc

from deniable.checks import RefusedError, refuse
from deniable.loss.pairs.allocated import AllocatedRemove
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.blend import Blend
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.several_records import SeveralRemove
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplace, SubsampledReplaceSum
from deniable.mechanisms import (
    Adjacency,
    CyclicPoisson,
    FixedSize,
    Gaussian,
    Mechanism,
    Poisson,
    RandomAllocation,
    Sampling,
    Shuffled,
    TruncatedPoisson,
)

_LEFT_OUT_NATS = 690.0  # e^-690 = 2e-300: the chance of larger numbers that is left out (Lemma A7)
_MOST_NUMBERS = 4000


@dataclass(frozen=True)
class RecordNumbers:
    """The chance that there are any, and of each number from the first one on, ln of its weight over that before it."""

    presence: float
    first: int
    last: int
    log_ratio: Callable[[int], float]
    """Of the weight of a number + 1 to that of the number."""

    def shares(self) -> list[tuple[int, float]]:
        """Numbers above 0 with their chances given that there are any."""
        logs, top, number = [0.0], 0.0, self.first
        while number < self.last and logs[-1] > top - _LEFT_OUT_NATS:
            logs.append(logs[-1] + self.log_ratio(number))
            top, number = max(top, logs[-1]), number + 1
            if len(logs) > _MOST_NUMBERS:
                raise RefusedError(f"more than {_MOST_NUMBERS} of a person's records may be in one batch")
        weights = np.exp(np.array(logs) - top)
        return [(self.first + place, float(w)) for place, w in enumerate(weights / weights.sum()) if w > 0]


def drawn_apart(draws: int, rate: float) -> RecordNumbers:
    """Each of so many draws finds one of them with this chance, independently: binomial."""
    if rate >= 1:
        return RecordNumbers(1.0, draws, draws, lambda _: 0.0)
    odds = log(rate) - log1p(-rate)
    presence = -expm1(draws * log1p(-rate))
    return RecordNumbers(presence, 1, draws, lambda m: odds + log((draws - m) / (m + 1)))


def drawn_together(records: int, own: int, batch: int) -> RecordNumbers:
    """A batch without replacement of all records, so many of which are the person's own: hypergeometric."""
    others = records - own
    missing = sum(log1p(-batch / (records - place)) for place in range(own)) if batch <= others else 0.0
    presence = -expm1(missing) if batch <= others else 1.0
    first = max(1, batch - others)
    return RecordNumbers(
        presence, first, min(own, batch), lambda m: log((own - m) * (batch - m) / ((m + 1) * (others - batch + m + 1)))
    )


_MOST_RECORDS = 1000
_MOST_SHIFT = 18.0  # in units of the noise's deviation, from which on allocation hides next to nothing


def sampled_runs(mechanism: Mechanism, sampling: Sampling, adjacency: Adjacency) -> tuple[Step, int]:
    """A step, and how often it runs, that dominate one run of the mechanism on this sampling."""
    if not isinstance(mechanism, Gaussian):
        raise RefusedError(
            f"{type(sampling).__name__} is proved for Gaussian noise on a sum, not for {type(mechanism).__name__}"
        )
    mu, person = 1 / mechanism.noise, sampling.records_per_person
    split = sqrt(person) * mu  # the noise shared out among a person's records (Lemma A8)
    match sampling:
        case Poisson(rate):
            found = _several(mu, rate, person, adjacency), 1
        case RandomAllocation(steps, times):
            found = _random_allocation(split, steps // times, adjacency), times * person
        case FixedSize():
            found = _fixed_size(mu, sampling, adjacency), 1
        case TruncatedPoisson():
            found = _truncated_poisson(mu, sampling, adjacency), 1
        case CyclicPoisson(rate, bands):
            found = _cyclic(split, bands * rate, adjacency), person
        case Shuffled():
            found = _shuffled_pass(person * mu, adjacency), 1
        case _:
            raise TypeError(f"cannot sample by {type(sampling).__name__}")
    return found


def _refuse_unproved(what: str, adjacency: Adjacency, expected: str, why: str) -> RefusedError:
    hint = f"{why}; name {expected}"
    return RefusedError(f"{{adjacency}} {adjacency} is not proved for {what}", "adjacency", adjacency, expected, hint)


def _random_allocation(mu: float, steps: int, adjacency: Adjacency) -> Step:
    """Lemma A1. A single step is no sampling. Where noise is faint the steps are told apart, which dominates: a bound
    on the exact value, as for `Shuffled`."""
    if adjacency is Adjacency.REPLACE:
        why = "both records are allocated, and no dominating pair of two such mixtures is known"
        raise _refuse_unproved("random allocation", adjacency, "add-remove or zero-out", why)
    return GaussianStep(mu) if steps == 1 or mu > _MOST_SHIFT else AllocatedRemove(mu, steps)


def _several(mu: float, rate: float, records: int, adjacency: Adjacency) -> Step:
    """Lemma A6; under replace Lemma A7."""
    if rate in (0.0, 1.0):
        return GaussianStep(records * mu) if rate else AtomStep.of_guarantee(0.0, 0.0)
    if records > _MOST_RECORDS:
        raise refuse("records_per_person", records, f"at most {_MOST_RECORDS} on a Poisson sample")
    if adjacency is Adjacency.REPLACE:
        return _by_number(mu, drawn_apart(records, rate))
    return SeveralRemove(mu, rate, records)


def _by_number(mu: float, numbers: RecordNumbers) -> Step:
    """Lemma A7: the number of a person's records in the batch is told where it is not 0."""
    parts = tuple((share, GaussianStep(number * mu)) for number, share in numbers.shares())
    base = parts[0][1] if len(parts) == 1 else Blend(parts)
    return SubsampledReplace(base, numbers.presence) if numbers.presence < 1 else base


def _fixed_size(mu: float, sampling: FixedSize, adjacency: Adjacency) -> Step:
    """Lemmas A4 and A7. A record blanked out is a record replaced, and may replace one that pulls the other way: 2C."""
    if adjacency is Adjacency.ADD_REMOVE:
        why = "with a record more or less, batches of a fixed size are drawn from other records"
        raise _refuse_unproved("batches of a fixed size", adjacency, "replace or zero-out", why)
    mu = 2 * mu if adjacency is Adjacency.ZERO_OUT else mu
    batch, records, person = sampling.batch, sampling.records, sampling.records_per_person
    if sampling.replacement:
        return _by_number(mu, drawn_apart(batch, person / records))
    if person > 1:
        return _by_number(mu, drawn_together(records, person, batch))
    rate = batch / records
    return GaussianStep(mu) if rate == 1 else SubsampledReplace(GaussianStep(mu), rate)


def _truncated_poisson(mu: float, sampling: TruncatedPoisson, adjacency: Adjacency) -> Step:
    """Ganesh 2025: whether the batch was cut is told; where it was, the record pushes another one out."""
    if adjacency is Adjacency.ADD_REMOVE:
        why = "the chance that a batch is cut depends on the number of records"
        raise _refuse_unproved("truncated Poisson batches", adjacency, "zero-out or replace", why)
    if sampling.records_per_person > 1:
        why = "they push each other out of the batch; name 1 and take the whole release's group privacy"
        raise RefusedError(f"{{records_per_person}} above 1 is not proved for truncated Poisson batches: {why}")
    rate, cap, records = sampling.rate, sampling.cap, sampling.records
    replaced = adjacency is Adjacency.REPLACE
    plain: Step = SubsampledReplaceSum(mu, rate) if replaced else SubsampledRemove(GaussianStep(mu), rate)
    plain = plain if 0 < rate < 1 else GaussianStep(mu) if rate else AtomStep.of_guarantee(0.0, 0.0)
    cut = float(betainc(cap, records - cap, rate)) if cap < records else 0.0
    if cut == 0:
        return plain
    kept = float(betainc(cap + 1, records - cap, rate)) * cap / (records * cut)
    kept = min(max(kept, float_info.min), 1 - 1e-16)  # rounded up where it underflows
    pushed = SubsampledReplaceSum((2 if replaced else 4) * mu, kept)
    return Blend(((cut, pushed), (1 - cut, plain))) if cut < 1 else pushed


def _cyclic(mu: float, rate: float, adjacency: Adjacency) -> Step:
    """Choquette-Choo 2023: one round of all bands is one sampled release of the record's whole part."""
    if adjacency is Adjacency.REPLACE:
        why = "two records may be in groups that take their turns at different steps"
        raise _refuse_unproved("cyclic Poisson batches", adjacency, "add-remove or zero-out", why)
    if rate in (0.0, 1.0):
        return GaussianStep(mu) if rate else AtomStep.of_guarantee(0.0, 0.0)
    return SubsampledRemove(GaussianStep(mu), rate)


def _shuffled_pass(mu: float, adjacency: Adjacency) -> Step:
    """Who is told the order knows more, and sees one release with the record (Lemma A5)."""
    if adjacency is Adjacency.ADD_REMOVE:
        why = "with a record more or less, every later batch begins with another record"
        raise _refuse_unproved("shuffled batches", adjacency, "zero-out or replace", why)
    return GaussianStep(mu)
