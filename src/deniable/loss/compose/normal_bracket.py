"""A bracket of any functional from the normal law that a sum of many bounded losses nears (Lemma G7).

Where steps are so many that a grid's cells blur the sum, its law tilted to the saddle is nearly normal, and the theorem
of Berry and Esseen says how nearly: proved, at the cost of one moment.
"""

from __future__ import annotations

from math import erf, exp, inf, log, sqrt

from scipy.special import log_ndtr

from deniable.effort import UnresolvedError
from deniable.loss.arrays import EPS
from deniable.loss.compose.cumulants import AXIS_SLACK_NATS, Composition, Saddle
from deniable.loss.compose.saddle import find_saddle
from deniable.loss.functionals import STICK, TAIL, Functional
from deniable.upper import Upper

_BERRY_ESSEEN = 0.56  # for sums of unlike variables (Shevtsova 2010)
_ROUNDINGS = 16.0  # of a step's mean, relative to its largest loss
_VARIANCE_SLACK = 1e-9  # relative
_USEFUL = 0.1  # distance from the normal law, from which on nothing is learnt


def normal_bracket(law: Composition, functional: Functional, k: float) -> Upper:
    """The functional at k; from 0 to 1 where the losses are not bounded or too few."""
    nothing = Upper(1.0, 1.0)
    largest = max(_largest(law), _largest(law.reverse()))
    if inf in (largest, k):
        return nothing
    try:
        saddle = _saddle(law, functional, k)
    except UnresolvedError:
        return nothing
    spread = sqrt(saddle.bend)
    apart = _BERRY_ESSEEN * 2 * largest / spread + _VARIANCE_SLACK + _ROUNDINGS * EPS * law.steps * largest / spread
    if saddle.value == inf or not apart < _USEFUL:
        return nothing
    middle, error = _normal(saddle, functional, k, apart)
    a = saddle.c - functional.shift
    slack = float(law.roundoff(saddle)) + AXIS_SLACK_NATS + 4 * EPS * (a * a * saddle.bend + abs(a * k))
    height = saddle.value - a * k
    least, most = (exp(min(height + sign * slack, 700.0)) * max(middle + sign * error, 0.0) for sign in (-1, 1))
    escape = law.escape if functional.shift else 0.0
    most = min(most + escape, 1.0)
    return Upper.between(min(least + escape * (1 - 1e-12), most), most)


def _largest(law: Composition) -> float:
    """The largest finite loss of a single step, 0 at least."""
    return max(0.0, *(step.largest_finite for step, _ in law.parts))


def _saddle(law: Composition, functional: Functional, k: float) -> Saddle:
    """Right of the pole of P or Q that the functional counts, or on it."""
    tail = TAIL if functional is STICK else functional
    (pole,) = tail.poles
    if k <= law.mean_under(tail):
        return law.saddle(pole)
    return find_saddle(law, tail, k, (pole, inf))


def _normal(saddle: Saddle, functional: Functional, k: float, apart: float) -> tuple[float, float]:
    """E[g(L - k); L > k] of the tilted law as if it were normal, and the error: its distance times g's variation.

    g is e^{-a y}, and e^{-a y} - e^{-(a + 1) y} for a divergence, with a the distance of the saddle from the pole.
    """
    a = saddle.c - functional.shift
    middle, variation = _damped_tail(saddle, k, a), 2.0 if a > 0 else 1.0
    if functional is STICK:
        top = exp(a * log(a) - (a + 1) * log(a + 1)) if a > 0 else 1.0
        middle, variation = middle - _damped_tail(saddle, k, a + 1), 2 * top if a > 0 else 1.0
    return middle, variation * apart


def _damped_tail(saddle: Saddle, k: float, a: float) -> float:
    """E[e^{-a (L - k)}; L > k] of a normal law with the saddle's mean and variance."""
    ahead, spread = saddle.slope - k, sqrt(saddle.bend)
    if a == 0:
        return 0.5 * (1 + erf(ahead / spread / sqrt(2)))
    return exp(min(a * (a * saddle.bend / 2 - ahead) + float(log_ndtr(ahead / spread - a * spread)), 0.0))
