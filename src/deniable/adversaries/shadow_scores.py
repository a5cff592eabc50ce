"""Scores from the target's confidence in a record and that of shadow models, as pure functions of arrays.

A confidence is ``phi = ln p / (1 - p)``, p what a model gives to the record's true class; of any other signal (a
negated loss of a regression, say) the Gaussian scores take what is given. Arrays are ``target`` (records,) or (queries,
records), ``shadows`` (shadows, records) or (shadows, queries, records) and ``inside`` (shadows, records): whether the
shadow was trained on the record. Several queries are several ways to show a record to a model; their scores are added.
A larger score speaks for membership. *Online* scores use shadows with and without the record, *offline* ones only those
without it, so that an attacker may train them before knowing whom to ask about. What the record would change they guess
from what the shadows' own records changed.

| score | after | what is estimated for each record |
|---|---|---|
| `lira` | Carlini 2022 | Gaussians with and without it, drawn towards what is usual as far as they are error |
| `rmia` | Zarifzadeh 2024 | how likely its label is without knowing the training set |
| `bayes` | Brannvall 2026 (BaVarIA) | Gaussians whose variances share a prior: Student's predictive densities |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, expit, gammaln, log_expit, log_ndtr, polygamma, psi, stdtr

from deniable.adversaries.usual_gains import (
    LEAST_VARIANCE,
    Alone,
    are_told,
    gains_of_others,
    possible_scales,
    usual_gain,
)
from deniable.checks import probability
from deniable.tradeoff import roc_areas

Floats = NDArray[np.float64]
LIRA_CAUTION = 3.0
"""Times that LiRA counts the variances' prior.

A Gaussian does not know how poorly a variance is known, as the Student of `bayes` does: counted once, records whose
variance came out too small by chance sound false alarms. Chosen on 20 sets with 8, 16 and 32 shadows.
"""
GAIN_CAUTION = 6.0
"""Times that the errors of records' own gains count.

Gains and errors have heavy tails: the Gaussian weight trusts too much in a difference of few values. Chosen on 7 sets
with 8, 32 and 64 shadows.
"""
SURE_SCALE = np.ones((1, 1, 1))
"""Of `possible_scales`: deviations are taken as they are known."""
MOST_FREEDOM = 1e6
"""Of the variances' prior, in degrees of freedom: all variances are one."""
OFFLINE_SLOPE = 0.3
"""Zarifzadeh 2024's a: with the record, the probability of its label is about a p + 1 - a, p the one without it.

This one where no shadow can take the target's place, else the best of `SLOPES`."""
SLOPES = np.linspace(0, 1, 11)
SAME_AREA = 1e-9
"""Areas nearer than this are one, whatever the order in which they were added."""


class Confidences(NamedTuple):
    """Checked arrays: target (queries, records), shadows (shadows, queries, records), inside (shadows, records)."""

    target: Floats
    shadows: Floats
    inside: NDArray[np.bool_]


def read_confidences(target: ArrayLike, shadows: ArrayLike, inside: ArrayLike, *, offline: bool = False) -> Confidences:
    """The arrays in their full shapes; refused unless finite, of one size, and with shadows for every record."""
    asked, made = np.asarray(target, dtype=np.float64), np.asarray(shadows, dtype=np.float64)
    asked = asked[None] if asked.ndim == 1 else asked
    made = made[:, None] if made.ndim == 2 else made
    member = np.asarray(inside, dtype=bool)
    if made.ndim != 3 or made.shape[1:] != asked.shape or member.shape != (len(made), made.shape[2]) or not made.size:
        raise ValueError(
            "target, shadows and inside must be (records,), (shadows, records) and (shadows, records), got "
            f"{np.shape(target)}, {np.shape(shadows)} and {np.shape(inside)}"
        )
    if not np.isfinite(asked).all() or not np.isfinite(made).all():
        raise ValueError("target and shadows must be finite numbers; drop or repair the records that are not")
    if member.all(0).any():
        raise ValueError("inside must leave every record out of at least one shadow, one is in all of them")
    if not offline and not member.any(0).all():
        raise ValueError("inside must have every record in at least one shadow for an online score; or score offline")
    return Confidences(asked, made, member)


class _Moments(NamedTuple):
    """Of each query and record over some of the shadows: mean, sum of squared distances, number."""

    mean: Floats
    squares: Floats
    number: Floats

    @property
    def freedom(self) -> Floats:
        """Degrees of freedom of the sum of squares."""
        return np.maximum(self.number - 1, 0)


def _moments(values: Floats, chosen: NDArray[np.bool_]) -> _Moments:
    weight = chosen[:, None].astype(np.float64)
    count = weight.sum(0)
    mean = (values * weight).sum(0) / count
    return _Moments(mean, (np.square(values - mean) * weight).sum(0), count)


def _groups(given: Confidences, *, offline: bool) -> list[_Moments]:
    """Over shadows without each record and, online, over those with it."""
    chosen = [~given.inside] if offline else [~given.inside, given.inside]
    return [_moments(given.shadows, each) for each in chosen]


def _shared_variance(moments: _Moments) -> Floats:
    """One variance for all records, by query: within records, so that their different means have no part in it."""
    squares = moments.squares.sum(1, keepdims=True)
    freedom = moments.freedom.sum(1, keepdims=True)
    return np.asarray(np.maximum(squares / np.maximum(freedom, 1), LEAST_VARIANCE))


def _own_variance(moments: _Moments) -> Floats:
    """Of each record; of one with a single value, the shared one."""
    own = np.maximum(moments.squares / np.maximum(moments.freedom, 1), LEAST_VARIANCE)
    return np.where(moments.number > 1, own, _shared_variance(moments))


def _pool(groups: Sequence[_Moments]) -> _Moments:
    """Of both groups together, in units of their shared variances: they tell of one variance of each record."""
    squares = np.sum([group.squares / _shared_variance(group) for group in groups], axis=0)
    freedom = np.sum([group.freedom for group in groups], axis=0)
    return _Moments(np.mean([group.mean for group in groups], axis=0), squares, freedom + 1)


def lira(
    target: ArrayLike,
    shadows: ArrayLike,
    inside: ArrayLike,
    *,
    offline: bool = False,
    fixed_variance: bool | None = None,
) -> Floats:
    """The log-likelihood ratio of two Gaussians (Carlini 2022); literally offline, -ln of the tail beyond the target.

    `fixed_variance` takes one variance for all records, one of shadows with them and one of those without (Carlini
    2022, Section VI-C, for few shadows), False each record's own. None draws own ones towards the shared as far as they
    are error (`_probable_variances`): fewer shadows, farther. It also draws means, and what the record itself changes,
    towards what is usual (`_probable_means`): a difference of two means that is mostly their error makes the literal
    score weaker than the loss threshold on models that hardly learnt. Offline, it takes the usual change
    (`usual_gains`) and is a likelihood ratio, too; the tail remains where no other record's change is known.
    """
    given = read_confidences(target, shadows, inside, offline=offline)
    groups = _groups(given, offline=offline)
    if fixed_variance is not None:
        return _literal_lira(given, groups, _shared_variance if fixed_variance else _own_variance)
    variances = _probable_variances(groups, LIRA_CAUTION, around_mean=not offline)[0]
    means, error = _probable_means(groups, variances)
    if offline:
        found = _offline_ratio(given, Alone(means[0], variances[0], error, SURE_SCALE))
        return _tail(given.target, means[0], variances[0]) if found is None else found
    return _ratio_of_normals(given.target, means, variances)


def _literal_lira(given: Confidences, groups: Sequence[_Moments], variance: Callable[[_Moments], Floats]) -> Floats:
    means, variances = [group.mean for group in groups], [variance(group) for group in groups]
    if len(groups) == 1:
        return _tail(given.target, means[0], variances[0])
    return _ratio_of_normals(given.target, means, variances)


def _tail(x: Floats, mean: Floats, variance: Floats) -> Floats:
    """-ln of a normal value's chance to be larger."""
    return np.asarray(-log_ndtr((mean - x) / np.sqrt(variance)).sum(0))


def _ratio_of_normals(x: Floats, means: Sequence[Floats], variances: Sequence[Floats]) -> Floats:
    without, together = (_log_normal(x, mean, variance) for mean, variance in zip(means, variances, strict=True))
    return np.asarray((together - without).sum(0))


def _offline_ratio(given: Confidences, alone: Alone) -> Floats | None:
    """How much likelier the target is after a gain like others'; None where none is known."""
    gains = gains_of_others(given.shadows, given.inside, alone)
    return None if gains is None else gains.log_ratio(given.target, alone).sum(0)


class _Means(NamedTuple):
    """Of each group, (queries, records), and the variance of their error."""

    means: list[Floats]
    error: Floats


def _probable_means(groups: Sequence[_Moments], variances: Sequence[Floats]) -> _Means:
    """Each record's mean without it (and with it), as likely as all records together make them (empirical Bayes).

    Their middle and their difference have normal priors: the middle's has one mean for all records, the difference's
    is above zero and around the usual gain in the record's own deviations. The errors of both do not depend on each
    other where as many shadows have the record as have it not.
    """
    errors = [np.broadcast_to(v / group.number, group.mean.shape) for group, v in zip(groups, variances, strict=True)]
    middle = np.mean([group.mean for group in groups], axis=0)
    centred, error = _shrink(middle, np.sum(errors, axis=0) / len(groups) ** 2, middle.mean(1, keepdims=True))
    if len(groups) == 1:
        return _Means([centred], error)
    unit = np.sqrt(np.mean(np.broadcast_arrays(*variances), axis=0))
    gains = (groups[1].mean - groups[0].mean) / unit
    usual = usual_gain(gains, middle)
    probable, doubt = _shrink(gains, np.sum(errors, axis=0) / unit**2, usual, caution=GAIN_CAUTION)
    told = are_told(gains)
    gained = unit * _mean_above_zero(probable, doubt) * (told | ~told.any())
    return _Means([centred - gained / 2, centred + gained / 2], error + unit**2 * doubt / 4)


def _shrink(values: Floats, errors: Floats, usual: Floats, *, caution: float = 1.0) -> tuple[Floats, Floats]:
    """Posterior means and variances, by query, of normal values around the `usual` with error variances `errors`.

    The values are drawn as if the errors were `caution` times as large.
    """
    spread = np.maximum(0, (np.square(values - usual) - errors).mean(1, keepdims=True))
    weight = spread / (spread + caution * errors)
    return np.asarray(usual + weight * (values - usual)), np.asarray(weight * errors)


def _mean_above_zero(mean: Floats, variance: Floats) -> Floats:
    """Of a normal value that is known to be positive."""
    deviation = np.sqrt(variance + LEAST_VARIANCE)
    more = np.sqrt(2 / np.pi) / erfcx(-mean / deviation / np.sqrt(2))
    return np.asarray(np.maximum(mean + deviation * more, 0))


def _log_normal(x: Floats, mean: Floats, variance: Floats) -> Floats:
    """Up to a constant."""
    return np.asarray(-0.5 * (np.square(x - mean) / variance + np.log(variance)))


def rmia(
    target: ArrayLike,
    shadows: ArrayLike,
    inside: ArrayLike,
    *,
    offline: bool = False,
    slope: float | None = None,
    population: NDArray[np.integer] | None = None,
    gamma: float = 1.0,
) -> Floats:
    """ln of p(label | target) / p(label), p(label) the mean over shadows with and without the record.

    Zarifzadeh 2024's score is the share of a `population` of other records z with ``ratio(x) / ratio(z) >= gamma``: a
    non-decreasing function of ratio(x), so it orders records as the ratio does, with ties. With `population` (places of
    records) that share is returned. Offline, ``p = ((1 + a) p_out + 1 - a) / 2`` with a the `slope`; None chooses it by
    the shadows alone (`_best_slope`).
    """
    given = read_confidences(target, shadows, inside, offline=offline)
    made = expit(given.shadows)
    without = _moments(made, ~given.inside).mean
    if offline:
        usual = _between(without, _best_slope(given) if slope is None else probability("slope", slope))
    else:
        usual = (_moments(made, given.inside).mean + without) / 2
    ratio = _log_ratio(given.target, usual)
    if population is None:
        return ratio
    others = np.sort(ratio[population] + np.log(gamma))
    return np.asarray(np.searchsorted(others, ratio, side="right") / len(others))


def _between(without: Floats, slope: float) -> Floats:
    """The mean of p with a record and without it, from that without it."""
    return ((1 + slope) * without + 1 - slope) / 2


def _log_ratio(asked: Floats, usual: Floats) -> Floats:
    """ln of p(label | asked model) / p(label), the mean over queries."""
    return np.asarray((log_expit(asked) - np.log(np.maximum(usual, np.finfo(float).tiny))).mean(0))


def _best_slope(given: Confidences) -> float:
    """The slope with which shadows, each once in the target's place, are told apart best by the others (AUC).

    The target's own records are not asked for, only which ones its shadows had.
    """
    made, outside = expit(given.shadows), ~given.inside
    total, number = (made * outside[:, None]).sum(0), outside.sum(0)
    areas = np.zeros(SLOPES.size)
    for place, member in enumerate(given.inside):
        left = number - outside[place]
        asked = left > 0
        if 0 < member[asked].sum() < asked.sum():
            without = (total - made[place] * outside[place])[:, asked] / left[asked]
            ratios = [_log_ratio(given.shadows[place][:, asked], _between(without, slope)) for slope in SLOPES]
            areas += roc_areas(np.stack(ratios), member[asked])
    best = areas >= areas.max() - SAME_AREA * len(made)
    return float(SLOPES[best.argmax()]) if areas.any() else OFFLINE_SLOPE


def bayes(target: ArrayLike, shadows: ArrayLike, inside: ArrayLike, *, offline: bool = False) -> Floats:
    """LiRA with Student's predictive densities: each record's variance has a prior, fitted to all records' variances.

    Normal with an inverse-gamma variance (Brannvall 2026); the prior by moments of the log variances (Smyth 2004).
    Shadows with and without the record tell of one variance, but for a factor that all records share; means are those
    of `lira`. With few shadows the variances are nearly the usual ones, with many nearly each record's own.
    """
    given = read_confidences(target, shadows, inside, offline=offline)
    groups = _groups(given, offline=offline)
    variances, freedom = _probable_variances(groups)
    means, error = _probable_means(groups, variances)
    if offline:
        found = _offline_ratio(given, Alone(means[0], variances[0], error, possible_scales(freedom)))
        if found is not None:
            return found
    next_values = [_Predictive(m, np.sqrt(v + error), freedom) for m, v in zip(means, variances, strict=True)]
    if offline:
        return np.asarray(next_values[0].surprise(given.target).sum(0))
    without, together = (each.log_density(given.target) for each in next_values)
    return np.asarray((together - without).sum(0))


def _probable_variances(
    groups: Sequence[_Moments], caution: float = 1.0, *, around_mean: bool = False
) -> tuple[list[Floats], Floats]:
    """Of each group, as likely as all records together make them, and the degrees of freedom that they have.

    The prior counts `caution` times, around its own usual variance or the mean of all.
    """
    pooled = _pool(groups)
    prior = _variance_prior(pooled)
    worth, usual = caution * prior.freedom, 1.0 if around_mean else prior.usual
    freedom = np.broadcast_to(worth + pooled.freedom, pooled.squares.shape)
    variance = np.maximum((worth * usual + pooled.squares) / freedom, LEAST_VARIANCE)
    return [_shared_variance(group) * variance for group in groups], freedom


class _Predictive(NamedTuple):
    """Student's density of the next value, for each query and record."""

    mean: Floats
    scale: Floats
    freedom: Floats

    def surprise(self, x: Floats) -> Floats:
        """-ln of the chance of a larger value."""
        tail = stdtr(self.freedom, -(x - self.mean) / self.scale)
        return np.asarray(-np.log(np.maximum(tail, np.finfo(float).tiny)))

    def log_density(self, x: Floats) -> Floats:
        nu, z = self.freedom, (x - self.mean) / self.scale
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
        return np.asarray(constant - np.log(self.scale) - (nu + 1) / 2 * np.log1p(np.square(z) / nu))


class _VariancePrior(NamedTuple):
    """Scaled inverse chi-square, by query, (queries, 1): degrees of freedom and the usual variance."""

    freedom: Floats
    usual: Floats


def _variance_prior(moments: _Moments) -> _VariancePrior:
    """By moments of the log variances (Smyth 2004); with fewer than three of them, all variances are one."""
    freedom, usual = np.full((len(moments.squares), 1), MOST_FREEDOM), _shared_variance(moments)
    half = np.broadcast_to(moments.freedom, moments.squares.shape) / 2
    for query, squares in enumerate(moments.squares):
        known = (half[query] > 0) & (squares > LEAST_VARIANCE)
        if known.sum() > 2:
            freedom[query], usual[query] = _fit_log_variances(squares[known], half[query][known])
    return _VariancePrior(freedom, usual)


def _fit_log_variances(squares: Floats, half: Floats) -> tuple[float, float]:
    """(degrees of freedom, usual variance) of one query's prior."""
    logs = np.log(squares / (2 * half)) - psi(half) + np.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    freedom = min(MOST_FREEDOM, 2 * _inverse_trigamma(excess)) if excess > 0 else MOST_FREEDOM
    return freedom, float(np.exp(logs.mean() + psi(freedom / 2) - np.log(freedom / 2)))


def _inverse_trigamma(value: float) -> float:
    """x > 0 with trigamma(x) = value, by Newton's method on 1 / trigamma, which is nearly straight (Smyth 2004)."""
    x = 0.5 + 1 / value
    for _ in range(50):
        found = float(polygamma(1, x))
        step = found * (1 - found / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


def turn_errors(
    target: ArrayLike, shadows: ArrayLike, inside: ArrayLike, *, offline: bool = False
) -> tuple[Floats, Floats]:
    """Confidences of the target and the shadows from a regression's errors: how far they are from where shadows err.

    Training on a record moves its error towards zero, that is up, whichever way shadows err, and past zero still up.
    Errors are nearly normal and move by many deviations, the logarithms of their squares are neither.
    """
    given = read_confidences(target, shadows, inside, offline=offline)
    usual = np.mean([group.mean for group in _groups(given, offline=offline)], axis=0)
    return -np.sign(usual) * given.target, -np.sign(usual) * given.shadows


def confidence(target: ArrayLike, shadows: ArrayLike, inside: ArrayLike) -> Floats:
    """The target's own confidence, whatever the shadows say: the loss threshold's order (Yeom 2018)."""
    return np.asarray(read_confidences(target, shadows, inside, offline=True).target.sum(0))


RULES: dict[str, Callable[[ArrayLike, ArrayLike, ArrayLike], Floats]] = {
    "lira": lira,
    "lira-offline": partial(lira, offline=True),
    "rmia": rmia,
    "rmia-offline": partial(rmia, offline=True),
    "bayes": bayes,
    "bayes-offline": partial(bayes, offline=True),
    "threshold": confidence,
}
"""The scores by name."""
