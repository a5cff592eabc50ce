"""Estimators for A_DI, whose score is a log-likelihood ratio: they use the whole score instead of a threshold.

A Gaussian release that shifts by mu gives scores N(mu^2 / 2, mu^2) for b = 1 and N(-mu^2 / 2, mu^2) for b = 0 (Lemma
E8).

- `separation`: d' = (mean_1 - mean_0) / sd is mu, whatever noise was really added, since a wrong guess of the noise
  rescales all scores alike. Its limit is that of the noncentral t distribution, exact for Gaussian scores of equal
  variance.
- `likelihood`: the mean of the score, signed by the truth, is mu^2 / 2 and its variance mu^2. One unknown instead of
  two, hence sharper; right where the noise is as claimed, which is tested, but a tenth more or less noise takes more
  than 1000 trials to see. With less noise it stays below the truth; with more it speaks of the claimed noise, so it
  never accuses a training that keeps its claim.

Both hold for Gaussian scores only. Each assumption is tested on the scores, all together at level 0.01, and shown. A
bound whose assumptions fail is not `valid`, its value is 0 (nothing is claimed; `mu` still shows what was found), and
no verdict rests on it. Testing first costs no confidence: where the assumptions hold, being flagged can only withdraw
a statement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, isfinite, sqrt

import numpy as np
from scipy.special import fdtr, nctdtr, ndtr, stdtr

from deniable.checks import probability
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import GAUSSIAN, Assumption, Bound, epsilon_of_mu, one_sided_z
from deniable.search import falls_to

FLAG_LEVEL = 0.01
"""How often right assumptions are flagged, all of an estimator's tests together."""
_LARGEST_SCORE = 1e70
MOST_SCORES_TESTED = 100_000
FEWEST_OF_A_CLASS = 20
"""Trials of either class below which the assumptions cannot be tested, so that no verdict rests on the bound."""


@dataclass(frozen=True)
class ClassMoments:
    """Means and pooled variance of the two classes."""

    members: int
    others: int
    mean: float
    other_mean: float
    variance: float

    @classmethod
    def of(cls, scores: Scores) -> ClassMoments:
        one, zero = scores.members, scores.others
        mean, other, freedom = float(one.mean()), float(zero.mean()), max(len(scores) - 2, 1)
        squares = float(np.square(one - mean).sum() + np.square(zero - other).sum())
        return cls(one.size, zero.size, mean, other, squares / freedom)

    @property
    def freedom(self) -> int:
        return self.members + self.others - 2

    @property
    def weight(self) -> float:
        """The standard deviation of a difference of the means is this times that of a score."""
        return sqrt(1 / self.members + 1 / self.others)

    @property
    def t(self) -> float:
        """Student's statistic of the difference of the means; 0 where the scores do not vary within a class."""
        if self.freedom < 1 or self.variance <= 0:
            return 0.0
        return (self.mean - self.other_mean) / (sqrt(self.variance) * self.weight)


def separation(scores: Scores, delta: float, confidence: float = 0.95) -> Bound:
    """From d', valid for Gaussian scores of equal variance whatever noise was added."""
    scores = _of_moderate_size(scores)
    found = ClassMoments.of(scores)
    limits = separation_mu(found, confidence), largest_separation_mu(found, confidence)
    return _bound(
        "separation", limits, delta, confidence, _test_assumptions(scores, [_normal(scores), _equal_spread(scores)])
    )


def likelihood(scores: Scores, delta: float, confidence: float = 0.95) -> Bound:
    """From the mean log-likelihood ratio, valid where the scores are computed with the noise that was added."""
    scores = _of_moderate_size(scores)
    found = ClassMoments.of(scores)
    limits = likelihood_mu(found, confidence), largest_likelihood_mu(found, confidence)
    tests = [_normal(scores), _equal_spread(scores), _opposite_means(found), _mean_is_half_the_variance(found)]
    return _bound("likelihood", limits, delta, confidence, _test_assumptions(scores, tests))


def _of_moderate_size(scores: Scores) -> Scores:
    """Scores whose squares are finite. No log-likelihood ratio is so large, and d' does not depend on the scale."""
    largest = max(-scores.ascending[0][0], scores.ascending[0][-1], -scores.ascending[1][0], scores.ascending[1][-1])
    if largest <= _LARGEST_SCORE:
        return scores
    return Scores(scores.members / largest * _LARGEST_SCORE, scores.others / largest * _LARGEST_SCORE)


def separation_mu(found: ClassMoments, confidence: float) -> float:
    """Guarantee: above mu with probability at most 1 - confidence. 0 where the scores do not vary within a class."""
    return _shift_reaching(found, confidence) if _apart(found, confidence) else 0.0


def largest_separation_mu(found: ClassMoments, confidence: float) -> float:
    """Guarantee: below mu with probability at most 1 - confidence; infinite where the scores do not vary."""
    risk = 1 - probability("confidence", confidence, open_ends=True)
    if found.freedom < 1 or found.variance <= 0:
        return inf
    return _shift_reaching(found, risk) if float(stdtr(found.freedom, found.t)) > risk else 0.0


def _shift_reaching(found: ClassMoments, share: float) -> float:
    """The mu at which Student's statistic stays below what was found with this probability."""
    t = found.t

    def probability_below(shift: float) -> float:
        """P(T <= t): falls in the shift. SciPy gives NaN where it is beyond tiny."""
        below = float(nctdtr(found.freedom, shift, t))
        return below if isfinite(below) else float(shift < t)

    return falls_to(probability_below, share, (max(t, 0.0), 1.0), floor=0.0, precision=1e-10) * found.weight


def _apart(found: ClassMoments, confidence: float) -> bool:
    """Whether equal classes would have this difference, or less, with more than this probability; never below 0."""
    return found.t > 0 and float(stdtr(found.freedom, found.t)) > probability("confidence", confidence, open_ends=True)


def likelihood_mu(found: ClassMoments, confidence: float) -> float:
    """Guarantee: above mu with probability at most 1 - confidence: solves mean = mu^2 / 2 + z mu / sqrt(trials).

    0 where the classes cannot be told apart (Student's test): so scores that say nothing, whatever their variance,
    show something with probability at most 1 - confidence, too.
    """
    return _mu_of_mean(found, one_sided_z(confidence)) if _apart(found, confidence) else 0.0


def largest_likelihood_mu(found: ClassMoments, confidence: float) -> float:
    """Guarantee: below mu with probability at most 1 - confidence."""
    return _mu_of_mean(found, -one_sided_z(probability("confidence", confidence, open_ends=True)))


def _mu_of_mean(found: ClassMoments, z: float) -> float:
    trials = found.members + found.others
    mean = (found.members * found.mean - found.others * found.other_mean) / trials
    step = z / sqrt(trials)
    return max(0.0, sqrt(max(step * step + 2 * mean, 0.0)) - step)


def _bound(
    name: str, limits: tuple[float, float], delta: float, confidence: float, assumptions: tuple[Assumption, ...]
) -> Bound:
    probability("delta", delta, open_ends=True)
    low, high = epsilon_of_mu(limits[0], delta), epsilon_of_mu(limits[1], delta, at_most=True)
    found = Bound(name, low, delta, confidence, high, mu=limits[0], most_mu=limits[1], assumptions=assumptions)
    return found if found.valid else replace(found, value=0.0, upper=inf, most_mu=inf)


Test = tuple[str, float]


def _test_assumptions(scores: Scores, tests: list[Test]) -> tuple[Assumption, ...]:
    """Each at an equal part of FLAG_LEVEL; with too few trials to test, nothing is assumed to hold."""
    few = min(scores.members.size, scores.others.size) < FEWEST_OF_A_CLASS
    taken = Assumption(
        f"at least {FEWEST_OF_A_CLASS} trials of either class, so that the assumptions can be tested", not few
    )
    both = np.sort(np.concatenate(scores.ascending), kind="stable")  # two ascending runs: merged, not sorted
    changes = np.flatnonzero(both[1:] != both[:-1])
    longest = int(np.diff(changes, prepend=-1, append=both.size - 1).max())
    # scores rounded to a twentieth of their standard deviation have one value 2 % of the time, and lose nothing by it
    distinct = Assumption("the scores differ, as Gaussian ones do", longest <= max(2, both.size // 50))
    part = FLAG_LEVEL / len(tests)
    return GAUSSIAN, taken, distinct, *(Assumption(text, not few and p >= part, p) for text, p in tests)


def _normal(scores: Scores) -> Test:
    """Anderson and Darling's test of the scores less their class's mean; p-value after Stephens (1986).

    Of very many scores a random part is tested: what 100,000 do not show matters little.
    """
    text = "the scores are Gaussian (Anderson-Darling)"
    rest = np.concatenate([values - values.mean() for values in (scores.members, scores.others)])
    if rest.size > MOST_SCORES_TESTED:
        rest = np.random.default_rng(0).choice(rest, MOST_SCORES_TESTED)
    spread, n = float(rest.std()), rest.size
    if spread == 0 or n < 8:
        return text, 0.0
    ordered = np.clip(ndtr(np.sort(rest) / spread), 1e-300, 1 - 1e-16)
    odd = 2 * np.arange(1, n + 1) - 1
    statistic = -n - float(odd @ (np.log(ordered) + np.log1p(-ordered[::-1]))) / n
    return text, _anderson_darling_p(statistic * (1 + 0.75 / n + 2.25 / n**2))


def _anderson_darling_p(a: float) -> float:
    if a >= 0.6:
        return exp(1.2937 - 5.709 * a + 0.0186 * a * a) if a < 13 else 0.0
    if a > 0.34:
        return exp(0.9177 - 4.279 * a - 1.38 * a * a)
    if a > 0.2:
        return 1 - exp(-8.318 + 42.796 * a - 59.938 * a * a)
    return 1 - exp(-13.436 + 101.14 * a - 223.73 * a * a)


def _equal_spread(scores: Scores) -> Test:
    """The F test of two variances, both tails."""
    text = "both classes have the same variance (F test)"
    one, zero = scores.members, scores.others
    if min(one.size, zero.size) < 2 or zero.var() == 0:
        return text, 0.0
    below = float(fdtr(one.size - 1, zero.size - 1, one.var(ddof=1) / zero.var(ddof=1)))
    return text, min(1.0, 2 * min(below, 1 - below))


def _opposite_means(found: ClassMoments) -> Test:
    text = "the two means are opposite, as for any log-likelihood ratio of a Gaussian shift (t test)"
    if found.freedom < 1 or found.variance <= 0:
        return text, 0.0
    t = (found.mean + found.other_mean) / (sqrt(found.variance) * found.weight)
    return text, 2 * float(stdtr(found.freedom, -abs(t)))


def _mean_is_half_the_variance(found: ClassMoments) -> Test:
    text = "the means lie apart by the variance: the noise is as claimed"
    if found.freedom < 1 or found.variance <= 0:
        return text, 0.0
    deviation = sqrt(found.variance * found.weight**2 + 2 * found.variance**2 / found.freedom)
    z = (found.mean - found.other_mean - found.variance) / deviation
    return text, 2 * float(ndtr(-abs(z)))
