"""What pictures show of the trials, as JSON values: beliefs, their course, sensitivities, rates, the region of privacy.

A record that holds it can be drawn without its trials, by anybody who was given the one document. In the region of
privacy (Erlingsson 2019, Section 5.3) the truth lies between best analysis and best attack.

"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.bounds import analyses
from deniable.evidence.measured import Trials
from deniable.mechanisms import Adjacency, Mechanism
from deniable.results.audit_result import Band, BeliefCourse, CourseResult, FinalBeliefs, Roc
from deniable.results.compare_result import NamedEpsilons, RegionRow
from deniable.scores import beliefs, privacy_loss
from deniable.tradeoff import rates

BINS = 40
"""Of the histogram of final beliefs, from 0 to 1."""
MOST_POINTS = 200
"""Of every line: more would not be seen."""
QUANTILES = (0.05, 0.5, 0.95)
"""The middle 90 % of the trials, and the median."""


def course(trials: Trials) -> CourseResult:
    """Histogram of the final beliefs in D, bands over the steps and the ROC of the final log-likelihood ratios."""
    steps = _spread(trials.log_likelihood_ratio.shape[1])
    believed = beliefs(trials.log_likelihood_ratio[:, steps])
    sides = {"d": trials.trained_on_d, "other": ~trials.trained_on_d}
    return CourseResult(
        quantiles=QUANTILES,
        steps=tuple((steps + 1).tolist()),
        steps_in_all=trials.log_likelihood_ratio.shape[1],
        final_beliefs=FinalBeliefs(**{name: _histogram(believed[side, -1]) for name, side in sides.items()}),
        belief=BeliefCourse(**{name: _band(believed[side]) for name, side in sides.items()}),
        sensitivity=_band(trials.local_sensitivity[:, steps]),
        roc=_roc(trials),
    )


def _histogram(values: NDArray[np.float64]) -> tuple[int, ...]:
    return tuple(int(count) for count in np.histogram(values[np.isfinite(values)], bins=BINS, range=(0, 1))[0])


def _band(rows: NDArray[np.float64]) -> Band | None:
    """Low, middle and high over the steps; None where there is nothing to take them of."""
    known = rows[np.isfinite(rows).all(axis=1)]
    if not len(known):
        return None
    return tuple(_short(values) for values in np.quantile(known, QUANTILES, axis=0))


def _roc(trials: Trials) -> Roc | None:
    """Rates at every threshold; None where only one of the two data sets was ever trained on."""
    final = trials.log_likelihood_ratio[:, -1]
    if np.isnan(final).any() or trials.trained_on_d.all() or not trials.trained_on_d.any():
        return None
    curve = rates(final, trials.trained_on_d)
    shown = _spread(len(curve.fpr))
    return Roc(fpr=_short(curve.fpr[shown]), tpr=_short(curve.tpr[shown]), thresholds=len(curve.fpr))


def _spread(number: int) -> NDArray[np.intp]:
    """At most `MOST_POINTS` of so many places, the first and the last among them."""
    return np.unique(np.linspace(0, number - 1, min(number, MOST_POINTS)).round().astype(np.intp))


def _short(values: NDArray[Any]) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values)


NAMED = ("naive", "advanced", "rdp")
"""The analyses of Erlingsson et al. 2019, Tables 1 and 2, from loose to tight."""
_LARGEST = 1e100
"""An epsilon from here on says nothing, and no picture can hold it."""


def region(
    rows: Iterable[tuple[float, Mechanism, float | None]], delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> list[RegionRow]:
    """From (noise, release, the attack's lower bound), sorted from little noise to much (Erlingsson et al. 2019)."""
    found = []
    for noise, mechanism, lower in sorted(rows, key=lambda row: row[0]):
        known = {name: bound.value for name, bound in analyses(mechanism, delta, adjacency).items()}
        named = {name: value if (value := known.get(name, inf)) < _LARGEST else None for name in NAMED}
        exact = float(privacy_loss(mechanism, adjacency).epsilon(delta))
        found.append(RegionRow(noise=noise, exact=exact, named=NamedEpsilons(**named), lower=lower))
    return found
