"""Scores from the target's confidence in a record and that of shadow models, as pure functions of arrays.

A confidence is ``phi = ln p / (1 - p)``, p what a model gives to the record's true class; of any other signal (a
negated loss of a regression, say) the Gaussian scores take what is given. Arrays are ``target`` (records,) or (queries,
records), ``shadows`` (shadows, records) or (shadows, queries, records) and ``inside`` (shadows, records): whether the
shadow was trained on the record. Several queries are several ways to show a record to a model; their scores are added.
A larger score speaks for membership. *Online* scores use shadows with and without the record, *offline* ones only those
without it, so that an attacker may train them before knowing whom to ask about.

| score | after | what is estimated for each record |
|---|---|---|
| `lira` | Carlini 2022 | Gaussians with and without it; what shadows tell poorly is taken from all records |
| `rmia` | Zarifzadeh 2024 | how likely its label is without knowing the training set |
| `bayes` | Brannvall 2026 (BaVarIA) | Gaussians whose variances share a prior: Student's predictive densities |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln, log_expit, log_ndtr, polygamma, psi, stdtr

from deniable.checks import probability

__all__ = ["RULES", "Confidences", "bayes", "lira", "read_confidences", "rmia"]

Floats = NDArray[np.float64]
LEAST_VARIANCE = 1e-12
MUCH_MORE = 3.0
"""Times as many values as the variances' prior is worth, from which on a record's own variance is used.

On five sets (tables and images, 6 to 28 shadows) the AUC is then within .002 of the better of both."""
MOST_FREEDOM = 1e6
"""Of the variances' prior, in degrees of freedom: all variances are one."""
OFFLINE_SLOPE = 0.3
"""Zarifzadeh 2024's a: with the record, the probability of its label is about a p + 1 - a, p the one without it."""


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


def _moments(values: Floats, chosen: NDArray[np.bool_]) -> _Moments:
    weight = chosen[:, None].astype(np.float64)
    count = weight.sum(0)
    mean = (values * weight).sum(0) / count
    return _Moments(mean, (np.square(values - mean) * weight).sum(0), count)


def _shared_variance(moments: _Moments) -> Floats:
    """One variance for all records, by query: within records, so that their different means have no part in it."""
    squares = moments.squares.sum(1, keepdims=True)
    freedom = np.maximum(moments.number - 1, 0).sum(1, keepdims=True)
    return np.asarray(np.maximum(squares / np.maximum(freedom, 1), LEAST_VARIANCE))


def _own_variance(moments: _Moments) -> Floats:
    """Of each record; of one with a single value, the shared one."""
    own = np.maximum(moments.squares / np.maximum(moments.number - 1, 1), LEAST_VARIANCE)
    return np.where(moments.number > 1, own, _shared_variance(moments))


def _suitable_variances(groups: Sequence[_Moments]) -> list[Floats]:
    """Each record's own where they tell much more than what all records have in common, by query; else shared ones.

    The prior of `bayes` is worth as many values as it has degrees of freedom.
    """
    freedoms = [np.maximum(group.number - 1, 0) for group in groups]
    priors = [_variance_prior(group, own)[0] for group, own in zip(groups, freedoms, strict=True)]
    common = np.any([MUCH_MORE * prior > own.mean() for prior, own in zip(priors, freedoms, strict=True)], axis=0)
    return [np.where(common, _shared_variance(group), _own_variance(group)) for group in groups]


def lira(
    target: ArrayLike,
    shadows: ArrayLike,
    inside: ArrayLike,
    *,
    offline: bool = False,
    fixed_variance: bool | None = None,
) -> Floats:
    """The log-likelihood ratio of two Gaussians (Carlini 2022); offline, -ln of the tail beyond the target's value.

    `fixed_variance` takes one variance for all records, one of shadows with them and one of those without (Carlini
    2022, Section VI-C, for few shadows); None where the records' own variances are too poorly known to be of use.
    None also draws what the record itself changes towards what is usual (`_probable_means`): a difference of two means
    that is mostly their error makes the literal score weaker than the loss threshold on models that hardly learnt.
    """
    given = read_confidences(target, shadows, inside, offline=offline)
    groups = [_moments(given.shadows, ~given.inside)]
    if not offline:
        groups.append(_moments(given.shadows, given.inside))
    if fixed_variance is None:
        variances = _suitable_variances(groups)
    else:
        variances = [(_shared_variance if fixed_variance else _own_variance)(group) for group in groups]
    if offline:
        return np.asarray(-log_ndtr(-(given.target - groups[0].mean) / np.sqrt(variances[0])).sum(0))
    means = [group.mean for group in groups] if fixed_variance is not None else _probable_means(groups, variances)
    without, together = (_log_normal(given.target, mean, v) for mean, v in zip(means, variances, strict=True))
    return np.asarray((together - without).sum(0))


def _probable_means(groups: Sequence[_Moments], variances: Sequence[Floats]) -> list[Floats]:
    """Each record's mean without and with it, both as likely as all records together make them (empirical Bayes).

    Their middle and their difference have normal priors: the middle's has one mean for all records, the difference's
    a cubic in the middle, since records that are hard to learn gain more. The errors of both do not depend on each
    other where as many shadows have the record as have it not.
    """
    error = sum(variance / group.number for group, variance in zip(groups, variances, strict=True))
    without, together = (group.mean for group in groups)
    middle, gain = (together + without) / 2, together - without
    errors = np.broadcast_to(error, middle.shape)
    gained = np.stack([_shrink(*each, degree=3) for each in zip(gain, errors, middle, strict=True)])
    centred = np.stack([_shrink(*each, degree=0) for each in zip(middle, errors / 4, middle, strict=True)])
    return [centred - gained / 2, centred + gained / 2]


def _shrink(values: Floats, errors: Floats, at: Floats, *, degree: int) -> Floats:
    """Posterior means of normal values with error variances `errors`; the prior's mean is a polynomial in `at`."""
    place = np.clip((at - at.mean()) / np.sqrt(at.var() + LEAST_VARIANCE), -3, 3)
    powers = place[:, None] ** np.arange(degree + 1)
    usual = powers @ np.linalg.lstsq(powers, values, rcond=None)[0]
    spread = max(0.0, float((np.square(values - usual) - errors).mean()))
    return np.asarray(usual + spread / (spread + errors) * (values - usual))


def _log_normal(x: Floats, mean: Floats, variance: Floats) -> Floats:
    """Up to a constant."""
    return np.asarray(-0.5 * (np.square(x - mean) / variance + np.log(variance)))


def rmia(
    target: ArrayLike,
    shadows: ArrayLike,
    inside: ArrayLike,
    *,
    offline: bool = False,
    slope: float = OFFLINE_SLOPE,
    population: NDArray[np.integer] | None = None,
    gamma: float = 1.0,
) -> Floats:
    """ln of p(label | target) / p(label), p(label) the mean over shadows with and without the record.

    Zarifzadeh 2024's score is the share of a `population` of other records z with ``ratio(x) / ratio(z) >= gamma``: a
    non-decreasing function of ratio(x), so it orders records as the ratio does, with ties. With `population` (places of
    records) that share is returned. Offline, ``p = ((1 + a) p_out + 1 - a) / 2`` with a the `slope`.
    """
    given = read_confidences(target, shadows, inside, offline=offline)
    probability("slope", slope)
    made = expit(given.shadows)
    without = _moments(made, ~given.inside).mean
    usual = ((1 + slope) * without + 1 - slope) / 2 if offline else (_moments(made, given.inside).mean + without) / 2
    ratio = np.asarray((log_expit(given.target) - np.log(np.maximum(usual, np.finfo(float).tiny))).mean(0))
    if population is None:
        return ratio
    others = np.sort(ratio[population] + np.log(gamma))
    return np.asarray(np.searchsorted(others, ratio, side="right") / len(others))


def bayes(target: ArrayLike, shadows: ArrayLike, inside: ArrayLike, *, offline: bool = False) -> Floats:
    """LiRA with Student's predictive densities: each record's variance has a prior, fitted to all records' variances.

    Normal with an inverse-gamma variance (Brannvall 2026); the prior by moments of the log variances (Smyth 2004), the
    mean's prior flat. With few shadows the variances are nearly one, with many nearly each record's own.
    """
    given = read_confidences(target, shadows, inside, offline=offline)
    without = _Predictive.of(_moments(given.shadows, ~given.inside))
    if offline:
        z = (given.target - without.mean) / without.scale
        scores = -np.log(np.maximum(stdtr(without.freedom, -z), np.finfo(float).tiny))
    else:
        together = _Predictive.of(_moments(given.shadows, given.inside))
        scores = together.log_density(given.target) - without.log_density(given.target)
    return np.asarray(scores.sum(0))


class _Predictive(NamedTuple):
    """Student's density of the next value, for each query and record."""

    mean: Floats
    scale: Floats
    freedom: Floats

    @classmethod
    def of(cls, moments: _Moments) -> _Predictive:
        own = np.maximum(moments.number - 1, 0)
        prior, usual = _variance_prior(moments, own)
        freedom = prior + own
        variance = np.maximum((prior * usual + moments.squares) / freedom, LEAST_VARIANCE)
        return cls(moments.mean, np.sqrt(variance * (1 + 1 / moments.number)), np.broadcast_to(freedom, variance.shape))

    def log_density(self, x: Floats) -> Floats:
        nu, z = self.freedom, (x - self.mean) / self.scale
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
        return np.asarray(constant - np.log(self.scale) - (nu + 1) / 2 * np.log1p(np.square(z) / nu))


def _variance_prior(moments: _Moments, own: Floats) -> tuple[Floats, Floats]:
    """(degrees of freedom, usual variance) of each query's prior, (queries, 1)."""
    usual = _shared_variance(moments)
    if not (own > 0).any():
        return np.full_like(usual, MOST_FREEDOM), usual
    freedom = np.full_like(usual, MOST_FREEDOM)
    half = np.broadcast_to(own, moments.squares.shape) / 2
    for query, squares in enumerate(moments.squares):
        known = (half[query] > 0) & (squares > LEAST_VARIANCE)
        if known.sum() < 2:
            continue
        d = half[query][known]
        logs = np.log(squares[known] / (2 * d)) - psi(d) + np.log(d)
        excess = float(np.var(logs, ddof=1) - polygamma(1, d).mean())
        freedom[query] = min(MOST_FREEDOM, 2 * _inverse_trigamma(excess)) if excess > 0 else MOST_FREEDOM
        usual[query] = np.exp(logs.mean() + psi(freedom[query] / 2) - np.log(freedom[query] / 2))
    return freedom, usual


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
