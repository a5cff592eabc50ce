"""What a record's confidence gains where a model was trained on it, as the shadows' own records tell it.

Gains are counted in each record's own deviations over models without it. Records that are as likely without them gain
about as much: a polynomial of the mean confidence says how much, a gamma distribution how far gains scatter about it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, logsumexp, psi

Floats = NDArray[np.float64]
GAIN_DEGREE = 3
"""Of the polynomial in a record's mean confidence that says what such records usually gain."""
LEAST_GAIN = 0.2
"""Of the mean gain: no record is taken to gain less, for training on a record does not make it less likely."""
LEAST_KNOWN = 10 * (GAIN_DEGREE + 1)
"""Records in some shadow: fewer do not tell what others gain."""
SURE_ERRORS = 3
"""So many standard errors above zero, a mean gain is one."""
LEAST_VARIANCE = 1e-12
SPREADS = (0.01, 0.25, 0.5, 0.75, 1.0, 1.5)
"""Deviations of gains over the usual one, among which the shadows choose."""
MIDDLES = (np.arange(12) + 0.5) / 12
"""Chances in the middle of equal parts: sums over them stand for integrals."""


class Alone(NamedTuple):
    """Confidences of models without each record, (queries, records): mean and variance, and that of the mean's error.

    `scales` are what deviations may be out by, (scales, queries, records), 1 where they are taken as known.
    """

    mean: Floats
    variance: Floats
    error: Floats
    scales: Floats

    @property
    def unit(self) -> Floats:
        """The deviation of the next value."""
        return np.sqrt(self.variance + self.error)

    def widen(self, narrowing: Floats, number: int | NDArray[np.integer] = 1) -> Floats:
        """The variance, in squared units, of the mean of `number` values `narrowing` times as variable."""
        return np.asarray((narrowing * self.variance / number + self.error) / np.square(self.unit))


class UsualGains(NamedTuple):
    """Of each query and record: the gain that is usual for it, (queries, records), and by query (queries, 1) the rest.

    `spread` is the deviation of gains over the usual one, `narrowing` the variance over shadows with a record over that
    without it, `told` whether there surely are gains: models know no mirror image of a digit.
    """

    usual: Floats
    spread: Floats
    narrowing: Floats
    told: NDArray[np.bool_]

    def log_ratio(self, values: Floats, alone: Alone) -> Floats:
        """ln of how much likelier values are with the record than without it; zero where nothing is told."""
        place = (values - alone.mean) / alone.unit
        found = _log_density(place, self.usual, self.spread, alone.widen(self.narrowing), alone.scales)
        without = _log_density(place, np.zeros_like(place), self.spread, np.ones_like(place), alone.scales)
        return np.asarray(self.told * (found - without))


def possible_scales(freedom: Floats) -> Floats:
    """Equally likely ratios of a deviation, known with so much freedom, to the true one: (scales, queries, records)."""
    values, place = np.unique(freedom, return_inverse=True)
    return np.asarray(np.sqrt(_gamma_values(values / 2))[:, place.reshape(freedom.shape)])


def gains_of_others(values: Floats, inside: NDArray[np.bool_], alone: Alone) -> UsualGains | None:
    """As the records tell that some shadows had; None where these are few, or gain nothing that can be told.

    `values` are of the shadows, (shadows, queries, records). The spread is the one that makes the gains likeliest.
    """
    known, number = np.asarray(inside.any(0)), np.maximum(inside.sum(0), 1)
    if known.sum() < LEAST_KNOWN:
        return None
    gains = ((values * inside[:, None]).sum(0) / number - alone.mean) / alone.unit
    told = are_told(gains[:, known])
    if not told.any():
        return None
    usual, narrowing = usual_gain(gains, alone.mean, known), _narrowing(values, inside, alone.mean)
    spreads, variance = [np.full((len(gains), 1), spread) for spread in SPREADS], alone.widen(narrowing, number)
    likelihood = [_log_density(gains, usual, each, variance, alone.scales)[:, known].mean(1) for each in spreads]
    return UsualGains(usual, np.take(SPREADS, np.argmax(likelihood, axis=0))[:, None], narrowing, told)


def usual_gain(gains: Floats, at: Floats, known: NDArray[np.bool_] | None = None) -> Floats:
    """What records with such a mean confidence `at` gain, by query: a polynomial through the known gains."""
    chosen = np.ones(gains.shape[1], dtype=bool) if known is None else known
    usual = np.stack([_fit(*each, chosen, degree=GAIN_DEGREE) for each in zip(gains, at, strict=True)])
    least = LEAST_GAIN * gains[:, chosen].mean(1, keepdims=True)
    return np.asarray(np.maximum(usual, np.maximum(least, LEAST_VARIANCE)))


def are_told(gains: Floats) -> NDArray[np.bool_]:
    """Of which queries, (queries, 1), the mean gain is surely one."""
    error = gains.std(1, keepdims=True) / np.sqrt(gains.shape[1])
    return np.asarray(gains.mean(1, keepdims=True) > SURE_ERRORS * error)


def _fit(values: Floats, at: Floats, known: NDArray[np.bool_], *, degree: int) -> Floats:
    """The polynomial in `at` that fits the known values best; beyond 3 deviations it stays level."""
    place = np.clip((at - at.mean()) / np.sqrt(at.var() + LEAST_VARIANCE), -3, 3)
    powers = place[:, None] ** np.arange(degree + 1)
    return np.asarray(powers @ np.linalg.lstsq(powers[known], values[known], rcond=None)[0])


def _narrowing(values: Floats, inside: NDArray[np.bool_], at: Floats) -> Floats:
    """The variance over shadows with a record over that without it, as usual for such a mean; 1 where none is known."""
    found = np.zeros_like(at)
    for query, ratios in enumerate(_log_variance(values, inside) - _log_variance(values, ~inside)):
        known = np.isfinite(ratios)
        if known.sum() >= LEAST_KNOWN:
            found[query] = _fit(ratios, at[query], known, degree=GAIN_DEGREE)
    return np.asarray(np.exp(found))


def _log_variance(values: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Of each query and record over the chosen shadows, without the logarithm's bias; NaN of one or of equal values."""
    weight = chosen[:, None].astype(np.float64)
    count = weight.sum(0)
    mean = (values * weight).sum(0) / np.maximum(count, 1)
    squares = (np.square(values - mean) * weight).sum(0)
    known = (count > 1) & (squares > LEAST_VARIANCE)
    return np.where(known, np.log(np.where(known, squares, 1) / 2) - psi(np.maximum(count - 1, 1) / 2), np.nan)


def _log_density(place: Floats, usual: Floats, spread: Floats, variance: Floats, scales: Floats) -> Floats:
    """But for a constant, of normal values about gains that scatter about the usual, in deviations that may be out."""
    gains = (_gamma_values(spread**-2.0) * usual)[:, None]
    exponents = np.log(scales) - np.square(place * scales - gains) / (2 * variance)
    return np.asarray(logsumexp(exponents, axis=(0, 1)) - np.log(variance) / 2)


def _gamma_values(shape: Floats) -> Floats:
    """Equally likely values of gamma variables with mean 1, along a new first axis."""
    drawn = gammaincinv(shape, MIDDLES.reshape(-1, *[1] * np.ndim(shape)))
    return np.asarray(drawn / drawn.mean(0))
