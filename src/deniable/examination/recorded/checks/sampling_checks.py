"""Checks of who was drawn: the number of steps, Poisson batches, and the divisor."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from deniable.examination.diagnostics.p_values import any_of, binomial, chi_square
from deniable.examination.recorded.checks.outcomes import AS_CLAIMED, LESS, OTHER, UNKNOWN
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]


def steps_check(record: RunRecord, claimed: Training) -> RunCheck:
    """As many steps as claimed; whether fewer were planned, or the records stopped the run, one run does not show."""
    taken = len(record.batches)
    outcome: Outcome = AS_CLAIMED
    seen = f"{taken:,}"
    if not record.ended and taken <= claimed.steps:
        outcome = UNKNOWN
        seen = (
            f"the recording ends after step {taken:,}, before the watch was over: watch the run to its end, in a with "
            "block, or examine the watcher itself"
        )
    elif taken > claimed.steps:
        outcome, seen = (
            LESS,
            f"{taken:,} steps were taken in place of {claimed.steps:,}: every further step costs privacy",
        )
    elif taken < claimed.steps:
        outcome = UNKNOWN
        seen = (
            f"{taken:,} steps were watched, {claimed.steps:,} are claimed (an examination ends the watch): a run that "
            f"stops early by the loss of its own records tells of them, which no noise hides; claim {taken:,} steps if "
            "that number was fixed before"
        )
    return RunCheck(name="number of steps", outcome=outcome, observed=seen, expected=f"{claimed.steps:,}")


def sampling_check(record: RunRecord, claimed: Training, level: float) -> RunCheck:
    """Poisson batches: sizes are binomial, every record is drawn by itself."""
    sizes, n, rate = np.array(record.batches), record.records, claimed.rate
    expected = f"each record in a batch with probability {rate:g}"
    if record.repeated:
        seen = f"records are in a batch more than once, in {record.repeated:,} steps, and count as often there"
        return RunCheck(name="sampling", outcome=LESS, observed=seen, expected=expected)
    if rate == 1:
        whole = bool((sizes == n).all())
        between = f"batches of {sizes.min():,} to {sizes.max():,} of {n:,} records"
        seen = "all records in every batch" if whole else between
        return RunCheck(name="sampling", outcome=AS_CLAIMED if whole else OTHER, observed=seen, expected=expected)
    spread = any_of(spread_p_value(sizes, n, rate), *_extreme_sizes(sizes, n, rate))
    mean = any_of(binomial(int(sizes.sum()), n * len(sizes), rate))
    draws = np.array(record.draws)
    each = any_of(binomial(draws, len(sizes), rate)) if len(draws) else 1.0
    p_value = any_of(spread, mean, spread_p_value(draws, len(sizes), rate), each, _overlap_p_value(record))
    outcome: Outcome = AS_CLAIMED
    seen = f"batches of {sizes.mean():.4g} records on average"
    if p_value < level or record.batches_again:
        together = _overlap_p_value(record) < level
        again = _AGAIN.format(record.batches_again, len(sizes)) if record.batches_again else ""
        outcome, seen = _what_is_drawn(
            sizes, draws, n, rate, total_differs=mean < level, together=together, again=again
        )
    return RunCheck(name="sampling", outcome=outcome, observed=seen, expected=expected, p_value=p_value)


_TOGETHER = (
    "batches have more, or fewer, records in common than independent draws have: records are drawn together, by what "
    "they are (their class) or by their place among the records; draw every record independently"
)


_AGAIN = (
    "batches come again: {:,} of {:,} are of just the records of an earlier one, so that a record's draws are known or "
    "used again (one seed for every epoch); draw a new batch in every step"
)


def _overlap_p_value(record: RunRecord) -> float:
    """Of the squared deviations, as a chi-square of their mean and variance."""
    squares, variance, pairs = record.overlaps
    if pairs < _FEWEST_PAIRS:
        return 1.0
    wider = variance / (2 * pairs)
    return float(chi_square(squares / wider, pairs / wider))


_FEWEST_PAIRS = 100


def _what_is_drawn(
    sizes: Array, draws: Array, n: int, rate: float, *, total_differs: bool, together: bool, again: str
) -> tuple[Outcome, str]:
    """How batches that are no Poisson samples are drawn."""
    if text := _dependent_draws(sizes, draws, n, rate) or again or _unequal_draws(draws, len(sizes)):
        return LESS, text
    if together:
        return LESS, _TOGETHER
    if not total_differs:
        return LESS, "batches vary in size as Poisson samples do not: draw every record independently, in every step"
    found = float(sizes.sum()) / (n * len(sizes))
    if min(*_extreme_sizes(sizes, n, found)) < _ODD:
        where = "small" if _extreme_sizes(sizes, n, found)[0] < _ODD else "large"
        return LESS, f"there are no {where} batches, as Poisson samples have them: draw every record independently"
    return (LESS if found > rate else OTHER), f"records are drawn with rate {found:.4g} in place of {rate:g}"


def _dependent_draws(sizes: Array, draws: Array, n: int, rate: float) -> str:
    """Why records are not drawn independently, in words; "" if they may be."""
    not_theirs = "not by Poisson sampling, whose amplification is then not theirs"
    even = sizes[:-1].std() < 0.5 * sqrt(n * rate * (1 - rate))
    if not even and np.mean(sizes[1:] == sizes[:-1]) > _REPEATED:
        return (
            "batches are used in several steps in a row, so that a record is in all of them or in none: draw a new one"
        )
    if len(draws) and bool(np.isin(draws, (0, len(sizes))).all()):
        return f"the same {int((draws > 0).sum()):,} records are in every batch, the others in none"
    alike = len(draws) and draws.std() < _ALIKE * sqrt(len(sizes) * rate * (1 - rate))  # a last batch may be left out
    if even and len(draws) and (np.ptp(draws) <= 1 or alike):
        return f"batches are drawn in passes over shuffled records, {not_theirs}"
    return f"batches are drawn of a fixed size, {not_theirs}" if even else ""


def _unequal_draws(draws: Array, steps: int) -> str:
    """That some records are drawn more often than others, in words; "" if they are not, or it is not known."""
    if not len(draws):
        return ""
    rate = float(np.median(draws)) / steps if np.median(draws) > 0 else float(draws.mean()) / steps
    often = (binomial(draws, steps, rate) * len(draws) < _RARE) & (draws > steps * rate)
    if 0 < often.sum() <= max(3, len(draws) // 20):
        count, most = int(often.sum()), int(draws[often].max())
        which = "1 record is" if count == 1 else f"{count:,} records are"
        return (
            f"at least {which} drawn more often than others, one in {most:,} of {steps:,} batches: draw every record "
            "with the same probability"
        )
    wide = draws.std() > sqrt(steps * rate * (1 - rate))
    uneven = wide and spread_p_value(draws, steps, float(draws.mean()) / steps) < _RARE
    return (
        "some records are drawn more often than others: draw every record with the same probability" if uneven else ""
    )


def _extreme_sizes(sizes: Array, n: int, rate: float) -> tuple[float, float]:
    """The chances that no batch is smaller than the smallest, and none larger than the largest."""
    least, most = float(sizes.min()), float(sizes.max())
    above = 1.0 if least == 0 else float(bdtrc(least - 1, n, rate))
    return above ** len(sizes), float(bdtr(most, n, rate)) ** len(sizes)


_REPEATED = 0.3
"""The share of steps whose batch is as large as the one before, beyond chance for batches that vary in size."""
_ALIKE = 0.6
"""Of the spread of independent draws, that of records which take turns."""
_ODD = 1e-3
"""The same where it is only asked which of two faults it is."""
_RARE = 1e-4
"""A coincidence of smaller probability is none."""


def spread_p_value(counts: Array, of: int, rate: float) -> float:
    """Of binomial counts, by their squares; 1 without counts, as of a recording that was cut.

    The squares are no chi-square where counts are small: mean and variance of their sum are matched to one.
    """
    variance = of * rate * (1 - rate)
    if variance <= 0:
        return 1.0
    wider = 1 + (1 - 6 * rate * (1 - rate)) / (2 * variance)
    return any_of(chi_square(((counts - of * rate) ** 2).sum() / variance / wider, len(counts) / wider))


def divisor_check(record: RunRecord) -> RunCheck:
    """The same in all steps."""
    fixed = len(set(record.divisors)) == 1
    seen = "the same in all steps" if fixed else "the divisor changes from step to step: divide by a public number"
    return RunCheck(
        name="divisor", outcome=AS_CLAIMED if fixed else LESS, observed=seen, expected="the same in all steps"
    )
