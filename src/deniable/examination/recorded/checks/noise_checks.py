"""Checks of the noise: its size, by steps and layers, its shape, and fresh noise in every step."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtr

from deniable.examination.diagnostics.p_values import (
    any_of,
    chi_square,
    cosine,
    kurtosis_cumulants,
    kurtosis_p_value,
    normal,
)
from deniable.examination.recorded.checks.excess_noise import is_common_noise, unlike_noise
from deniable.examination.recorded.checks.followed_figures import figure_that_explains
from deniable.examination.recorded.checks.outcomes import AS_CLAIMED, LESS, OTHER, ROUNDING, UNKNOWN, list_names
from deniable.examination.recorded.checks.step_lengths import step_sigmas
from deniable.examination.recorded.run_record import RunRecord, noise_of_step, step_gram
from deniable.examination.signal_to_noise import SignalToNoise
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]
SCALED = ": both are scaled after the noise, which is as safe"
_COPIED = 0.9
"""A cosine above this, either side, is the same noise."""
_ALIKE = 0.1
"""A cosine below this shows nothing that matters."""
_NONE = 1e-3
"""Below this share, all of it may be rounding and what the steps' gradients have left."""
_MISSING = 0.05
"""Noise below this share of the claimed standard deviation is none."""
_SCHEDULED = 0.8
"""The correlation with the step above which noise follows a schedule."""
_MOSTLY = 0.6
"""The share of the noise's size that a figure explains, beside the error of its measurement."""
_UNLIKE = 0.1
"""Layers or steps whose ratios differ by more than this are unlike."""


def _signal(record: RunRecord, sigmas: Array, noise: float) -> SignalToNoise:
    grams = [step_gram(step) / sigma**2 for step, sigma in zip(record.steps, sigmas, strict=True) if sigma > 0]
    along, squares = float(sum(g[0, 1] for g in grams)), float(sum(g[1, 1] for g in grams))
    return SignalToNoise.of(along, squares, noise, np.array(record.lengths))


@dataclass(frozen=True)
class NoiseSizes:
    """Of every examined step: the residual's squares across known directions, in claimed variances; how many."""

    squares: Array
    degrees: Array
    batches: Array
    """How many records each step drew, relative to the divisor."""
    signal: SignalToNoise | None = None
    """The gradient beside the noise; None where only sizes are compared."""

    @classmethod
    def of(cls, record: RunRecord, claimed: Training, present: bool = False) -> NoiseSizes:
        """Of a run; see `noise_of_step`."""
        squares, degrees = np.array([noise_of_step(step, present) for step in record.steps]).reshape(-1, 2).T
        batches = np.array([max(1, step.batch) / record.divisors[step.number] for step in record.steps])
        sigmas = step_sigmas(record, claimed)
        scaled = squares / sigmas**2
        signal = _signal(record, sigmas, sqrt(scaled.sum() / max(degrees.sum(), 1.0)))
        return cls(scaled, degrees, batches, signal)

    @property
    def ratios(self) -> Array:
        """Measured standard deviation / claimed, of each step."""
        return np.asarray(np.sqrt(self.squares / self.degrees))

    @property
    def ratio(self) -> float:
        """Measured standard deviation / claimed."""
        return sqrt(self.squares.sum() / self.degrees.sum())

    @property
    def is_bare_in_steps(self) -> bool:
        """Whether some steps have no noise, others have."""
        return bool(self.ratios.min() < _MISSING < self.ratios.max())

    def p_value(self, repeated: bool = False) -> float:
        """Of every step; and of all together, and how they follow the sizes, unless all have the same noise."""
        together = [] if repeated else [chi_square(self.squares.sum(), self.degrees.sum()), normal(self._trend())]
        return any_of(any_of(chi_square(self.squares, self.degrees)), *together)

    def _trend(self) -> float:
        """Standard normal: how far the noise grows with the batch; nan where all are of one size."""
        sizes = np.log(self.batches) - np.log(self.batches).mean()
        spread = sqrt(2 * float(np.square(sizes) @ self.degrees))
        return float(sizes @ (self.squares - self.degrees)) / spread if spread > 0 else np.nan

    @property
    def left(self) -> float:
        """The least share of the noise in any step, where the gradient in it is as much shortened after it; else 1."""
        signal = self.signal
        if signal is None or not (
            signal.is_scaled(self.ratio) or (signal.equally_long and signal.explains(self.ratio))
        ):
            return 1.0
        return min(1.0, float(self.ratios.min()))

    def check(self, record: RunRecord, level: float, repeated: bool = False) -> RunCheck:
        """The size of the noise: of all steps, or of some where these are unlike the others."""
        p_value, ratio = self.p_value(repeated), self.ratio
        all_differ = any_of(chi_square(self.squares.sum(), self.degrees.sum())) < level
        if p_value >= level or ratio < _MISSING:
            signal = None if repeated else self.signal
            return _scale_check("noise", "the noise", p_value, level, ratio=ratio, signal=signal)
        what, shown = ("the noise", ratio) if all_differ else ("the noise of a step", float(self.ratios.min()))
        if repeated:
            return _scale_check("noise", what, p_value, level, ratio=shown, signal=None)
        few = self.ratios < _MISSING
        if few.any() and self.ratios.max() > 2 * _MISSING:
            first = record.steps[int(np.flatnonzero(few)[0])].number + 1
            seen = f"there is no noise in {int(few.sum()):,} of {len(few):,} steps, first in step {first:,}"
            return RunCheck(name="noise", outcome=LESS, observed=seen, expected=_EXPECTED, p_value=p_value)
        if self.follows_size(level, 0.5):
            seen = "the noise grows with the root of the batch's own size: add the same noise in every step"
            return RunCheck(name="noise", outcome=LESS, observed=seen, expected=_EXPECTED, p_value=p_value)
        if any_of(chi_square(self.squares / ratio**2, self.degrees)) < level and np.ptp(self.ratios) > _UNLIKE:
            outcome, seen = self._uneven(record, level)
            return RunCheck(name="noise", outcome=outcome, observed=seen, expected=_EXPECTED, p_value=p_value)
        return _scale_check("noise", what, p_value, level, ratio=shown, signal=self.signal)

    def _uneven(self, record: RunRecord, level: float) -> tuple[Outcome, str]:
        """Of noise that changes from step to step: less in some, or as much or more in all.

        What is too much in some steps and not in others, up and down, may be of another gradient.
        """
        least, most = float(self.ratios.min()), float(self.ratios.max())
        seen = f"the noise changes from step to step, {least:.3g} to {most:.3g} x the claimed standard deviation"
        p_values = chi_square(self.squares, self.degrees) * len(self.squares)
        if self.signal is not None and self.signal.equally_long and self.signal.explains(self.ratio):
            return self._shortened_again(seen)
        if followed := self._followed_figure(record):
            return LESS, f"{seen}: it follows {followed}, which tells of the records; add the same noise in every step"
        if least < 1 - _UNLIKE and p_values[int(np.argmin(self.ratios))] < level:
            if self.signal is not None and self.signal.explains(least):
                return UNKNOWN, f"{seen}, {_SHORTENED}"
            return LESS, seen
        if abs(np.corrcoef(self.ratios, np.arange(len(self.ratios)))[0, 1]) > _SCHEDULED or is_common_noise(record):
            return OTHER, seen
        return UNKNOWN, f"{seen}, or another gradient than the one recomputed is in it (mixed records, augmentations)"

    def _shortened_again(self, seen: str) -> tuple[Outcome, str]:
        """Of noisy gradients that are clipped once more, each as much as its own length asks for."""
        if self.signal is not None and self.signal.is_scaled(self.ratio):
            return OTHER, f"{seen}, as the gradient in it: both are clipped once more after the noise, which is as safe"
        return UNKNOWN, f"{seen}, {_SHORTENED}"

    def _followed_figure(self, record: RunRecord) -> str:
        """The figure of the records that the noise follows; "" for none."""
        series = np.full(len(record.batches), np.nan)
        series[[step.number for step in record.steps]] = self.ratios
        return figure_that_explains(record, series, _MOSTLY, of_released=False)

    def follows_size(self, level: float, power: float = -1.0) -> bool:
        """Whether the noise of every step is the claimed one times a power of its batch's own size."""
        sizes = self.batches
        fits = NoiseSizes(self.squares / sizes ** (2 * power), self.degrees, sizes).p_value() >= level
        return len(sizes) > 1 and bool(np.ptp(sizes)) and fits


_EXPECTED = "1 x the claimed standard deviation"


def layers_check(record: RunRecord, claimed: Training, level: float, least_share: float = 0.0) -> RunCheck | None:
    """The noise of each parameter of at least this share of the weights; None where all are alike."""
    parts = np.array([step.residual for step in record.steps]) / step_sigmas(record, claimed)[:, None] ** 2
    sizes = np.array([step.sizes for step in record.steps]).sum(0)
    parts, ratios = parts.sum(0), np.sqrt(parts.sum(0) / np.maximum(sizes, 1))
    p_value = any_of(chi_square(parts, sizes))
    rest = np.sqrt((parts.sum() - parts) / np.maximum(sizes.sum() - sizes, 1))
    below = fdtr(sizes, np.maximum(sizes.sum() - sizes, 1), np.square(ratios / np.maximum(rest, 1e-12)))
    unlike = (chi_square(parts, sizes) * len(sizes) < level) & (np.abs(ratios - rest) > _UNLIKE * np.maximum(rest, 0.1))
    unlike &= 2 * np.minimum(below, 1 - below) * len(sizes) < level
    unlike &= (sizes >= least_share * sizes.sum()) | (ratios < _MISSING)  # none at all is told, however few they are
    if len(sizes) < 2 or p_value >= level:
        seen = "alike in all layers"
        return RunCheck(name=_LAYERS, outcome=AS_CLAIMED, observed=seen, expected=_EXPECTED, p_value=p_value)
    if not unlike.any():
        return None
    if (bare := np.flatnonzero(unlike & (ratios < _MISSING))).size:
        seen = f"there is no noise on {list_names([_name(record, int(at)) for at in bare])}: add it to every layer"
        return RunCheck(name=_LAYERS, outcome=LESS, observed=seen, expected=_EXPECTED, p_value=p_value)
    found = [
        _layer_check(record, claimed, level, int(at), (float(ratios[at]), p_value)) for at in _by_size(unlike, ratios)
    ]
    return min(found, key=lambda check: _ORDER.index(check.outcome))


_ORDER = (LESS, UNKNOWN, OTHER, AS_CLAIMED)


def _by_size(unlike: NDArray[np.bool_], ratios: Array) -> Array:
    """The unlike layers with too little noise, the least first; without any, that of the least."""
    order = np.argsort(np.where(unlike, ratios, np.inf))
    few = int((unlike & (ratios < 1)).sum())
    return np.asarray(order[: max(1, few)])


def _layer_check(record: RunRecord, claimed: Training, level: float, at: int, found: tuple[float, float]) -> RunCheck:
    """Of one layer, with its ratio and the p-value of all."""
    ratio, p_value = found
    signal = _signal_of_layer(record, claimed, at, ratio)
    return _scale_check(_LAYERS, f"the noise of {_name(record, at)}", p_value, level, ratio=ratio, signal=signal)


def _name(record: RunRecord, at: int) -> str:
    return record.names[at] if record.names else f"parameter {at}"


_LAYERS = "noise of each layer"


def _signal_of_layer(record: RunRecord, claimed: Training, place: int, ratio: float) -> SignalToNoise | None:
    """The gradient of one parameter beside its noise; that of all where it was not kept."""
    rows = [(step.by_parameter[place], s) for step, s in zip(record.steps, step_sigmas(record, claimed), strict=True)]
    if any(len(row) < _KEPT for row, _ in rows):
        return NoiseSizes.of(record, claimed).signal
    along, squares = (sum(row[at] / sigma**2 for row, sigma in rows) for at in (2, 3))
    return SignalToNoise.of(float(along), float(squares), ratio, np.array(record.lengths))


_KEPT = 4
"""Numbers of `ExaminedStep.by_parameter`."""


def shape_check(record: RunRecord, claimed: Training, level: float) -> RunCheck | None:
    """Normal numbers have a mean fourth power of three squared variances; None where that was not recorded.

    Of every step beside its own variance, so that the noise's size does not matter. Numbers of which a share has no
    noise have the others' variance times the rest, and so many more than three squared variances.
    """
    fourth = np.array([step.fourth for step in record.steps if step.fourth is not None])
    numbers = np.array([float(sum(step.sizes)) for step in record.steps])
    if len(fourth) < len(record.steps) or numbers.sum() < _LEAST_NUMBERS:
        return None
    squares = np.array([max(sum(step.residual), 1e-300) for step in record.steps])
    kurtosis = fourth * numbers / squares**2
    expected, _, _ = kurtosis_cumulants(numbers)
    p_value, mean = kurtosis_p_value(kurtosis, numbers), float((kurtosis / expected).mean())
    fails = p_value < level
    looks = "cut off or uniform" if mean < 1 else "heavy-tailed, as if Laplacian"
    seen = f"the noise is not Gaussian: it looks {looks}" if fails else "as of a normal distribution"
    share = NoiseSizes.of(record, claimed).ratio ** 2
    if fails and share < 1 - _UNLIKE and abs(share * mean - 1) < _UNLIKE:
        seen = f"there is no noise on about {1 - share:.0%} of the weights, the others have it: add it to every weight"
    outcome: Outcome = LESS if fails else AS_CLAIMED
    signal = NoiseSizes.of(record, claimed).signal
    if fails and mean < 1 and signal is not None and signal.explains(signal.noise):
        outcome, seen = UNKNOWN, f"{seen}, {_SHORTENED}"
    return RunCheck(name="shape of the noise", outcome=outcome, observed=seen, expected="normal", p_value=p_value)


_SHORTENED = (
    "but the gradient in it may be shortened by as much (clipped or cut off once more after the noise, or another "
    "divisor), which is as safe: watch the noisy gradient before that, and name its divisor"
)
_LEAST_NUMBERS = 1000
"""Fewer numbers show only shapes that nobody draws noise from."""


def centre_check(record: RunRecord) -> RunCheck | None:
    """Noise whose numbers are all above zero on average, or all below; None where they are not.

    The mean of n normal numbers is beyond `_SURE_ERRORS` / sqrt(n) standard deviations once in 10^9 steps, and it is
    asked for in all steps, with one sign.
    """
    if not record.steps or any(step.total is None for step in record.steps):
        return None
    numbers = np.array([float(sum(step.sizes)) for step in record.steps])
    means = np.array([step.total for step in record.steps], dtype=float) / numbers
    spread = np.sqrt([sum(step.residual) for step in record.steps] / numbers)
    shares = means / np.maximum(spread, 1e-300)
    least = np.maximum(_OFF_CENTRE, _SURE_ERRORS / np.sqrt(numbers))
    if not ((shares > least).all() or (shares < -least).all()):
        return None
    seen = (
        f"the noise is not centred: its mean is {shares.mean():.2g} x its root mean square in every step, and only the "
        "rest hides anything: draw it from a normal distribution of mean zero"
    )
    return RunCheck(name="shape of the noise", outcome=LESS, observed=seen, expected="normal, of mean zero")


_OFF_CENTRE, _SURE_ERRORS = 0.2, 6.0
"""The mean of noise, in its root mean squares and in standard errors, that no gradient and no chance makes."""


def own_size_check(p_value: float) -> RunCheck:
    """The finding that everything is divided by the batch's own size."""
    seen = "the noisy sum is divided by the batch's own size, which depends on the records: divide by a public number"
    return RunCheck(name="divisor", outcome=LESS, observed=seen, expected="the same in all steps", p_value=p_value)


def _scale_check(
    name: str, what: str, p_value: float, level: float, *, ratio: float, signal: SignalToNoise | None
) -> RunCheck:
    seen = f"{what} has {ratio:.3g} x the claimed standard deviation"
    if ratio < _NONE:
        seen = f"there is no noise ({what} has {ratio:.1g} x the claimed standard deviation): add it in every step"
    outcome: Outcome = AS_CLAIMED if p_value >= level or abs(ratio - 1) < ROUNDING else LESS if ratio < 1 else OTHER
    if outcome == LESS and signal is not None and signal.is_scaled(ratio):
        seen += (
            f", and so has the gradient in it{signal.tell_error()}: both are scaled after the noise, which is as safe"
        )
        outcome = OTHER
    elif outcome == LESS and signal is not None and signal.explains(ratio):
        outcome, seen = UNKNOWN, f"{seen}, {_SHORTENED}"
    return RunCheck(name=name, outcome=outcome, observed=seen, expected=_EXPECTED, p_value=p_value)


def surely_noise(check: RunCheck, record: RunRecord) -> RunCheck:
    """The check, but that more noise is not judged where it may be a gradient that was not recomputed."""
    if check.outcome != OTHER or check.observed.endswith(SCALED) or not (unlike := unlike_noise(record)):
        return check
    seen = (
        f"{check.observed}, but not all of it looks like noise ({unlike}): another gradient than the one recomputed "
        "may be in it (a loss that mixes records, other records); name the loss that is trained on"
    )
    return msgspec.structs.replace(check, outcome=UNKNOWN, observed=seen)


def independence_check(record: RunRecord, level: float) -> RunCheck:
    """Independent noise has small cosines between steps, on the watched weights.

    The same noise has one of 1. In between something is common to steps that may be noise or a gradient.
    """
    cosines = np.array(record.cosines)
    compared = np.arange(1, len(cosines) + 1)
    p_value = any_of(np.minimum(1.0, compared * cosine(cosines, record.watched_weights))) if len(cosines) else 1.0
    signed = float(cosines[np.abs(cosines).argmax()]) if len(cosines) else 0.0
    largest = abs(signed)
    outcome: Outcome = AS_CLAIMED
    chance = ", as chance gives" if p_value >= level else ""
    seen = f"the noise of different steps has cosines up to {largest:.2g}{chance}"
    if p_value < level and largest > _COPIED:
        which = "the same noise" if signed > 0 else "the same noise with the opposite sign"
        seen = f"{which} is used in different steps (a cosine of {signed:.2g}): draw fresh noise in every step"
        outcome = LESS
    elif p_value < level and largest > _ALIKE:
        outcome = UNKNOWN
        seen = (
            f"what is left of the applied gradients without the clipped sums is alike in different steps (a cosine of "
            f"{signed:.2g}): noise that depends on earlier steps', or another gradient than the one recomputed (name "
            "its loss=; weights of records, augmentations)"
        )
    return RunCheck(
        name="independent steps", outcome=outcome, observed=seen, expected="independent noise", p_value=p_value
    )


def shifts_check(record: RunRecord) -> RunCheck | None:
    """None where no stretch of noise comes again at other places; residuals without noise may be alike, too."""
    copies = [step.shifted for step in record.steps if step.shifted >= _FEWEST_COPIES]
    if not copies:
        return None
    seen = (
        f"the same numbers of noise are used again at other places, in {len(copies):,} of {len(record.steps):,} steps "
        f"up to {max(copies):,} of them (slices or tiles of one pool): draw fresh noise for every weight in every step"
    )
    return RunCheck(name="independent steps", outcome=LESS, observed=seen, expected="independent noise")


_FEWEST_COPIES = 128
"""Two stretches."""
