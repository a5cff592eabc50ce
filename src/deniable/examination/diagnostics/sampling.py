"""Batches as claimed: their sizes, every record equally often, independent between steps and between trainings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from deniable.examination.diagnostics.p_values import any_of, binomial, normal
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence

Array = NDArray[np.float64]
FAR = 6.0
"""Standard errors from which on an overlap of batches names a cause."""
_ACROSS = "trainings with different seeds draw the same batches: draw them from the training's own seed"
NOT_YIELDED = (
    "sampling is claimed, but no step yields the indices of its batch, and the sums are not those of all records: "
    "without the indices no sum can be recomputed; yield them (AppliedStep(..., batch=indices))"
)
_SAMPLE = "draw every record with the claimed probability, independently"


def batch_sizes(evidence: Evidence) -> Diagnosis:
    """Poisson batches have binomial sizes; full batches have all records, once."""
    batch, rate = evidence.trials.batch, evidence.claim.rate
    sizes, members = batch.sum(2).astype(float), evidence.members.sum(1, keepdims=True)
    expected = f"{rate * members.mean():.4g} of {members.mean():.4g} records on average"
    observed = f"{sizes.mean():.4g} on average, from {sizes.min():.4g} to {sizes.max():.4g}"
    if int(batch.max(initial=0)) > 1:
        sentence = "a record is in the same batch more than once and counts double: draw each record at most once"
        return Diagnosis("batch sizes", 0.0, observed, expected, sentence)
    if rate < 1 and sizes.std() > 0 and (evidence.trials.divisor == np.maximum(sizes, 1)).all():
        sentence = (
            "the noisy sum is divided by the batch's own size, so the size of what is released shows whether a record "
            "was in the batch: divide by the expected size, rate x records"
        )
        return Diagnosis("batch sizes", 0.0, observed, expected, sentence)
    if rate == 1:
        full = bool((sizes == members).all())
        sentence = "the batches are smaller than claimed, which is all records: claim the sampling, subsampled(rate)"
        return Diagnosis("batch sizes", float(full), observed, expected, sentence, weakens=False)
    p_value = any_of(
        binomial(sizes.sum(), (members * np.ones_like(sizes)).sum(), rate),
        normal(_excess_spread(sizes, members, np.full(sizes.shape[1], rate))[0]),
        _p_of_least(sizes, members, rate),
    )
    if evidence.twins is not None and not evidence.twins.shows_batches and not evidence.gradient_fits:
        return Diagnosis("batch sizes", 0.0, "not yielded", expected, NOT_YIELDED, weakens=None)
    found = _size_fault(sizes, members, rate, evidence.level)
    smaller = sizes.mean() < (members * rate).mean() and not found
    sentence = f"{found or _mean_size(sizes, members * rate)}: {_SAMPLE}"
    return Diagnosis("batch sizes", p_value, observed, expected, sentence, weakens=not smaller)


def _excess_spread(sizes: Array, members: Array, rates: Array, fitted: bool = False) -> tuple[float, float]:
    """By how many standard errors sizes (trials, steps) vary more than binomial ones, and by what factor.

    `fitted` rates are the steps' own, which costs one degree of freedom each.
    """
    variance = np.maximum(members * rates * (1 - rates), 1e-9)
    deviations = np.square(sizes - members * rates) / variance
    deviations *= len(sizes) / max(1, len(sizes) - 1) if fitted else 1.0
    # the variance of a squared standardised binomial number
    error = np.sqrt((2 + (1 - 6 * rates * (1 - rates)) / variance).sum())
    return float((deviations - 1).sum() / error), float(deviations.mean())


def _size_fault(sizes: Array, members: Array, rate: float, level: float) -> str:
    """What makes batches less private than Poisson samples, however large they are on average; "" if nothing does."""
    if bool((sizes == members).all()):
        return "sampling is claimed, but every record is used in every step, which has none of sampling's protection"
    if _is_one_size(sizes, members * rate):
        return "the batches all have the same size, so they are not Poisson samples, and the claimed loss is not theirs"
    own = sizes.sum(0) / members.sum()
    usual = max(rate, float(own.mean()))
    below = _p_of_least(sizes, members, usual) < level / 3
    if below and (sizes.min() == 1 or _p_of_most(sizes, members, usual) >= level / 3):
        fewer = f"no batch has fewer than {sizes.min():.0f} records, as some Poisson samples have"
        least = "batches are never empty, as some Poisson samples are" if sizes.min() == 1 else fewer
        return f"{least} (they are drawn again, or filled up), which tells of the records"
    each_step = binomial(sizes.sum(0), members.sum() * np.ones(sizes.shape[1]), rate)
    if (larger := (each_step * sizes.shape[1] < level) & (sizes.mean(0) > rate * members.mean())).any():
        which = "" if larger.all() else f" in {int(larger.sum())} of {len(larger)} steps"
        return f"{_mean_size(sizes[:, larger], members * rate)}{which}"
    excess, spread = _excess_spread(sizes, members, own, fitted=True)
    if float(normal(excess)) >= level:
        return ""
    why = "records are drawn together, several by one coin" if excess > 0 else "they are kept alike"
    return f"the batches' sizes have {spread:.2g} x the variance of Poisson samples' ({why})"


def _mean_size(sizes: Array, expected: Array) -> str:
    than = "larger" if sizes.mean() > expected.mean() else "smaller"
    return f"the batches are {than} than claimed ({sizes.mean():.4g} records, not {expected.mean():.4g})"


def _p_of_least(sizes: Array, members: Array, rate: float) -> float:
    """Of the smallest batch being so large; every step has the chance of the largest data set, which is the least."""
    smaller = float(bdtr(sizes.min() - 1, int(members.max()), rate)) if sizes.min() > 0 else 0.0
    return float((1 - smaller) ** sizes.size)


def _p_of_most(sizes: Array, members: Array, rate: float) -> float:
    """Of the largest batch being so small."""
    return float(bdtr(sizes.max(), int(members.min()), rate) ** sizes.size)


def _is_one_size(sizes: Array, expected: Array) -> bool:
    return bool(sizes.std() == 0 or np.abs(sizes - expected).max() <= 1)


def dependent(evidence: Evidence) -> bool:
    """Whether batches share far more, or far fewer, records than independent ones."""
    if evidence.claim.rate == 1:
        return False
    return bool(np.abs([*_overlaps_within(evidence), _overlaps_across(evidence)]).max() > FAR)


def _odd(evidence: Evidence) -> tuple[NDArray[np.bool_], Array]:
    """The records (columns) that are drawn too often or too rarely, and how often each is drawn, of its chances."""
    drawn, chances = (evidence.trials.batch > 0).sum((0, 1)), (evidence.members * evidence.steps).sum(0)
    each = binomial(drawn, chances, evidence.claim.rate)
    return each * len(each) < evidence.level, drawn / np.maximum(chances, 1)


def few_odd(evidence: Evidence) -> bool:
    """Whether a few records are drawn unlike all others, which have the claimed rate."""
    if evidence.claim.rate == 1:
        return False
    odd, shares = _odd(evidence)
    if not 0 < odd.sum() <= max(1, len(odd) // 10):
        return False
    chances = (evidence.members * evidence.steps).sum(0)[~odd]
    return bool(binomial((shares[~odd] * chances).sum().round(), chances.sum(), evidence.claim.rate) > evidence.level)


def batches(evidence: Evidence) -> Diagnosis:
    """Every record is drawn equally often, and batches share as many records as independent ones do."""
    batch, members, rate = evidence.trials.batch, evidence.members, evidence.claim.rate
    if rate == 1 or batch.shape[2] < 2:
        return Diagnosis("independent batches", 1.0, "no sampling is claimed", "full batches", checked=False)
    drawn, chances = (batch > 0).sum((0, 1)), (members * batch.shape[1]).sum(0)
    each = binomial(drawn, chances, rate)
    within, across = _overlaps_within(evidence), _overlaps_across(evidence)
    worst, odd = int(np.argmin(each)), each * len(each) < evidence.level
    few = 0 < odd.sum() <= max(1, len(odd) // 10)
    # a few records that are always drawn are shared by all batches: look at the others for a cause
    others = (_overlaps_within(evidence, odd), _overlaps_across(evidence, odd)) if few else (within, across)
    sentence = _batch_sentence(evidence, any_of(each), (drawn / np.maximum(chances, 1))[worst], *others)
    extreme = max((*within, across), key=abs)
    rarer = few and not dependent(evidence) and bool((drawn / np.maximum(chances, 1))[odd].max() < rate)
    return Diagnosis(
        "independent batches",
        any_of(any_of(each), normal([*within, across])),
        f"shared records {extreme:+.3g} standard errors from chance, drawn {drawn.min()} to {drawn.max()} times",
        f"0 standard errors, about {rate * chances.max():.4g} times each",
        sentence + (" (that is safe, but not what is claimed)" if rarer else ""),
        weakens=not rarer,
    )


def _overlaps_within(evidence: Evidence, without: NDArray[np.bool_] | None = None) -> tuple[float, float]:
    """Excess of shared records in standard errors: neighbouring steps, and all pairs of steps, of each training."""
    excess, variance = np.zeros(2), np.zeros(2)
    for batch, members in zip(evidence.trials.batch, evidence.members, strict=True):
        used = members > 0 if without is None else (members > 0) & ~without
        drawn = (batch[:, used] > 0).astype(np.float64)
        difference, spread = _chance(drawn @ drawn.T, drawn.sum(1), drawn.sum(1), drawn.shape[1])
        pairs = np.triu_indices(len(drawn), 1)
        near = pairs[1] - pairs[0] == 1
        excess += [difference[pairs][near].sum(), difference[pairs].sum()]
        variance += [spread[pairs][near].sum(), spread[pairs].sum()]
    first, second = excess / np.sqrt(np.maximum(variance, 1e-300))
    return float(first), float(second)


def _come_again(evidence: Evidence) -> bool:
    """Whether in most trainings two steps have the very same batch."""
    found = [len(np.unique(batch, axis=0)) < len(batch) for batch in evidence.trials.batch]
    return float(np.mean(found)) > 0.5


def _overlaps_across(evidence: Evidence, without: NDArray[np.bool_] | None = None) -> float:
    """The same for a step of one training and the same step of the next, over the records that both have."""
    excess = variance = 0.0
    batch, members = evidence.trials.batch > 0, evidence.members > 0
    members = members if without is None else members & ~without
    for one in range(len(batch) - 1):
        common = members[one] & members[one + 1]
        left, right = batch[one][:, common].astype(float), batch[one + 1][:, common].astype(float)
        difference, spread = _chance((left * right).sum(1), left.sum(1), right.sum(1), left.shape[1], paired=True)
        excess, variance = excess + difference.sum(), variance + spread.sum()
    return float(excess / np.sqrt(max(variance, 1e-300)))


def _chance(shared: Array, left: Array, right: Array, records: int, paired: bool = False) -> tuple[Array, Array]:
    """Shared records minus their expectation, and its variance, given both sizes (hypergeometric)."""
    a, b = (left, right) if paired else (left[:, None], right[None, :])
    variance = a * b * (records - a) * (records - b) / (records**2 * max(1, records - 1))
    return shared - a * b / records, variance


def _batch_sentence(evidence: Evidence, each: float, share: float, within: tuple[float, float], across: float) -> str:
    if across > max(FAR, *np.abs(within)):
        return _ACROSS
    if max(within) > FAR:
        return "the same batch is drawn again in later steps: draw a new one in every step"
    if min(within) < -FAR:
        again = "the data is cut into batches that come again in every pass"
        apart = "a record in one batch is kept out of the next (shuffled passes over the data)"
        what = again if _come_again(evidence) else apart
        return f"{what}, so the batches are not Poisson samples: draw every record independently in every step"
    if abs(across) > FAR:
        return _ACROSS
    if each < evidence.level:
        often = "never" if share == 0 else f"in {share:.3g} of the steps"
        advice = f"draw every record with probability {evidence.claim.rate:.4g}"
        return f"records are not drawn equally often (one of them {often}): {advice}"
    return "the batches are not drawn independently: draw every record independently in every step"
