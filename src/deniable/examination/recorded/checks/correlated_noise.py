"""Noise that has something in common with that of other steps, and filters of noisy sums: do they hide as much?

Fresh noise of the claimed size with any more on top has, in every sum of steps, at least as much noise as independent
claimed noise. A sum that has less, surely, shows what the noise of each step should hide, and nothing else in the
residuals makes it shorter. A filter of noisy sums is as safe as these: what it holds of earlier applied sums is
released, and beside them its noise is as large for its clipped sum as is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc

from deniable.examination.recorded.checks.noise_checks import NoiseSizes
from deniable.examination.recorded.checks.outcomes import LESS, OTHER, UNKNOWN
from deniable.examination.recorded.checks.step_lengths import step_sigmas
from deniable.examination.recorded.noise.noise_series import CommonNoise
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]
_EXPECTED = "independent noise"
_BETTER = 50.0
"""Variances of the noise by which an explanation must be nearer than any other."""
_FITTED = 2.0
"""What a fitted number gains by chance, and as much again."""
_ERRORS, _ROUNDING = 4.0, 0.02
"""Standard errors, and the share, that noise may be below the claimed one."""
_UNSURE = 0.2
"""An error of the noise beside the clipped sum above this share leaves it open."""
_ODD = 1e-3
"""Factors of the clipped sum that chance makes so rarely are not one."""


def summed_noise_check(record: RunRecord, claimed: Training, level: float) -> RunCheck | None:
    """None where sums of steps have as much noise as the same number of independent ones.

    Guarantee: with noise whose covariance over the steps is that of fresh claimed noise and of any more on top, it is
    *less private* with probability at most `level`, whatever gradients are in the residuals.
    """
    common = record.common_noise
    if common is None or not common.tried:
        return None
    variance = _claimed_variance(record, claimed)
    relative, absolute = _p_value(common, None), _p_value(common, variance)
    if relative >= level:
        return None
    what = _tell_common(common)
    if absolute >= level:
        seen = f"{what}, but no sum of steps has less noise than claimed, which is as safe"
        return RunCheck(name=_NAME, outcome=OTHER, observed=seen, expected=_EXPECTED, p_value=absolute)
    least = _tell_least(common, variance)
    seen = f"{what}, so that sums of steps show what the noise of each should hide{least}: {_FRESH}"
    return RunCheck(name=_NAME, outcome=LESS, observed=seen, expected=_EXPECTED, p_value=absolute)


_NAME = "independent steps"
_FRESH = "draw fresh noise in every step"


def _claimed_variance(record: RunRecord, claimed: Training) -> float:
    """In clipping norms."""
    return float(np.mean(step_sigmas(record, claimed) / [step.clip for step in record.steps])) ** 2


def _p_value(common: CommonNoise, variance: float | None) -> float:
    """Of so little noise in sums of steps, and in the combination with the least: of their own size, or of a claim.

    The least singular value of T independent steps of n numbers is below sqrt(n) - sqrt(T) - t sqrt(n) with
    probability at most exp(-n t^2 / 2) [Davidson and Szarek 2001, Theorem II.13].
    """
    least = common.relative if variance is None else common.least / variance
    short = 1 - sqrt(common.steps / common.numbers) - sqrt(max(least, 0.0))
    of_any = exp(-common.numbers * short**2 / 2) if short > _ROUNDING else 1.0
    sums = [one for one in common.sums if _size(one.relative, one.degrees, 1.0) < 1 - _ROUNDING]
    both = [one.relative if variance is None else max(one.relative, one.squares / variance) for one in sums]
    of_sums = [chdtr(one.degrees, squares) for one, squares in zip(sums, both, strict=True)]
    return min(1.0, 2 * min(of_any, common.tried * min(of_sums, default=1.0)))


def _size(squares: float, degrees: int, variance: float) -> float:
    return sqrt(max(squares, 0.0) / degrees / variance)


def _tell_common(common: CommonNoise) -> str:
    before = "the step before" if common.lag == 1 else f"{common.lag:,} steps before"
    what = "is in it again" if common.correlation > 0 else "is taken back"
    return f"{abs(common.correlation):.2g} x the noise of {before} {what} (correlated noise)"


def _tell_least(common: CommonNoise, variance: float) -> str:
    """Of the sums that were tried, or of any."""
    least = sqrt(max(common.least, 0.0) / variance)
    sizes = [_size(one.squares, one.degrees, variance) for one in common.sums]
    return f" (some have {min([least, *sizes]):.2g} x the claimed standard deviation)"


def correlated_check(record: RunRecord, claimed: Training, level: float, *, alike: bool) -> RunCheck | None:
    """Of earlier noisy sums in later ones, or of noise that has something in common; None where neither is seen.

    `alike`: whether anything is, in two steps at least.
    """
    summed = summed_noise_check(record, claimed, level)
    fit = Filter.of(record, claimed) if alike or summed is not None else None
    if fit is not None and fit.is_nearest and (fit.own <= 1 or fit.tell()[0] != LESS):
        return fit.check()  # else another gradient is in it, of which other checks tell
    if summed is None or summed.outcome != LESS or fit is None:
        return summed
    if fit.distance - fit.rival < _BETTER and fit.tell()[0] == OTHER:
        seen = f"{summed.observed} (or a filter of noisy sums is applied, which is as safe: watch it before that)"
        return msgspec.structs.replace(summed, outcome=UNKNOWN, observed=seen)
    return summed


def directions_check(record: RunRecord, claimed: Training) -> RunCheck | None:
    """None where cosines of different steps' noise are as small as those of noise in all directions.

    Of d directions they have a mean square of 1 / d, with signs of chance; what steps have in common has others.
    """
    common = record.common_noise
    if common is None or common.pairs < _FEWEST_PAIRS:
        return None
    error = _ERROR_OF_MEDIAN / sqrt(common.pairs)
    usual = sqrt(common.spread / common.numbers)
    of_lags = abs(common.correlation) > _FAR * usual or common.usual > usual / 2
    if common.spread < max(_FEW, 1 + _SURELY * error) or of_lags:
        return None
    signal = NoiseSizes.of(record, claimed).signal
    whole = signal is not None and signal.factor > 1 - _WHOLE
    seen = (
        f"the noise of different steps is as alike as if it lay in about {1 / common.spread:.0%} of all directions, "
        "and along the others there were none: "
    )
    seen += "draw it in all directions" if whole else "if the gradient lies in the same public ones, that is as safe"
    outcome: Outcome = LESS if whole else UNKNOWN
    return RunCheck(name="noise", outcome=outcome, observed=seen, expected="noise in all directions")


_FEW = 2.0
"""Directions that are fewer than one in so many."""
_WHOLE = 0.2
"""The share of the clipped sum that may be missing by chance, and is not where it is projected, too."""
_FAR = 4.0
"""Usual cosines, beyond which the mean one of steps that are equally far apart is no chance."""
_FEWEST_PAIRS, _ERROR_OF_MEDIAN, _SURELY = 21, 2.3, 6.0
"""Of seven steps; the standard error of a median squared normal number, times the root of how many; and so many."""


def left_by_filter(record: RunRecord, claimed: Training) -> float:
    """The least share of the noise that a filter of noisy sums leaves a step of its own; 1 without one."""
    fit = Filter.of(record, claimed)
    return fit.least if fit is not None and fit.is_nearest and fit.tell()[0] == OTHER else 1.0


@dataclass(frozen=True)
class Filter:
    """What was applied, as earlier applied sums and a part of the step's own noisy sum: how near that is."""

    distance: float
    """In variances of the noise that is left."""
    rival: float
    """The same of the nearest other explanation: earlier noise alone, earlier clipped sums alone, nothing."""
    noise: float
    """In a step, beside its part of the clipped sum, over the claimed one."""
    error: float
    own: float
    """The part of the step's own clipped sum."""
    share: float
    """Of the step before."""
    least: float
    """The noise in any step that is its own, over the claimed one."""

    @classmethod
    def of(cls, record: RunRecord, claimed: Training) -> Filter | None:
        """None for too few steps."""
        rows = [s.earlier_sums for s in record.steps if s.earlier_sums is not None and s.earlier_sums.applied > 1]
        if len(rows) < _FEWEST:
            return None
        values = np.array([msgspec.structs.astuple(row) for row in rows])
        numbers, whole, alone, past, noises, left, applied, carried, cleans, factors, across, shares = values.T
        families = ((left, applied), (past, noises), (carried, cleans), (alone, np.ones(len(rows))), (whole, 0 * whole))
        variance = min(float(rest.sum() / (numbers - count).sum()) for rest, count in families)
        near, *far = (float(rest.sum() / variance + _FITTED * count.sum()) for rest, count in families)
        sigma, own = _claimed_variance(record, claimed) ** 0.5, np.sqrt(left / (numbers - applied))
        degrees, weights = float((numbers - applied).sum()), across / sigma**2
        noise, error = sqrt(left.sum() / degrees) / sigma, 1 / sqrt(2 * degrees)
        mean = float(np.average(factors, weights=np.maximum(across, 1e-300)))
        if chdtrc(len(rows), float((np.square(factors - 1) * across / own**2).sum())) < _ODD:
            beside = float(weights @ (factors * sigma / own)) / max(float(weights.sum()), 1e-300)
            noise, error = 1 / max(beside, 1e-12), 1 / sqrt(max(float(weights.sum()), 1e-300)) / max(beside, 1e-12)
        else:
            mean = 1.0
        return cls(near, min(far), noise, error, mean, float(shares.mean()), float(own.min() / sigma))

    @property
    def is_nearest(self) -> bool:
        """Whether nothing else is about as near."""
        return self.distance + _BETTER < self.rival

    def check(self) -> RunCheck:
        """What it says."""
        outcome, rest = self.tell()
        beside = "" if self.own == 1 else f"beside {self.own:.2g} x its own (a filter of noisy sums), "
        seen = f"{self.share:.2g} x the noisy sum of the step before is in it, {beside}{rest}"
        return RunCheck(name="noise", outcome=outcome, observed=seen, expected="1 x the claimed standard deviation")

    def tell(self) -> tuple[Outcome, str]:
        """Beside noise of the claimed size nothing else fits into what is left."""
        off = max(_ERRORS * self.error, _ROUNDING)
        if self.noise < 1 - off:
            told = "the noise of a step itself" if self.own == 1 else "beside its own part the noise of a step"
            return LESS, f"which is as safe, but {told} has {self.noise:.3g} x the claimed standard deviation"
        if self.error > _UNSURE:
            return (
                UNKNOWN,
                "and the part of its own gradient is too small to be compared with its noise: watch the noisy sum",
            )
        if self.noise <= 1 + off:
            return OTHER, "which is as safe"
        return UNKNOWN, (
            f"and what is left is {self.noise:.3g} x as long as the claimed noise: more noise, or gradients that are "
            "carried over from step to step without clipping; add the noise to the "
            "clipped sum, before momentum or an optimizer"
        )


_FEWEST = 4
"""Steps."""
