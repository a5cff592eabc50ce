"""What a person looks at: the trade-off curve and the observer's beliefs, as points to draw.

Drawn, not promised: right to about a pixel (rough_pairs.py), quickly enough to follow a slider. Numbers to rely on
are those of `explain`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from deniable.loss import Pair, dominating_pair
from deniable.loss.arrays import Floats
from deniable.loss.compose.rough_pairs import drawn_tails, extent
from deniable.mechanisms import Mechanism
from deniable.results.explain_result import AnswerInput, BeliefShares, CurvesResult, RocCurve

_THRESHOLDS = 128
_BINS = 40


def curves(mechanism: Mechanism, given: AnswerInput) -> CurvesResult:
    """The best attack's ROC curve, and how sure the observer ends: shares of releases in equal bins of belief."""
    pair = dominating_pair(mechanism, given.adjacency)
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    thresholds = np.linspace(*extent(pair), _THRESHOLDS)
    tails, null_tails = drawn_tails(pair, np.concatenate([thresholds, _losses(edges[1:-1], given.prior)]))
    fpr, tpr = _roc(pair, null_tails[:_THRESHOLDS], tails[:_THRESHOLDS])
    inside, outside = _shares(tails[_THRESHOLDS:]), _shares(null_tails[_THRESHOLDS:])
    return CurvesResult(
        input=given,
        roc=RocCurve(fpr=tuple(fpr.tolist()), tpr=tuple(tpr.tolist())),
        beliefs=BeliefShares(
            edges=tuple(edges.tolist()), inside=tuple(inside.tolist()), outside=tuple(outside.tolist())
        ),
    )


def _roc(pair: Pair, fpr: Floats, tpr: Floats) -> tuple[Floats, Floats]:
    """The concave hull of both directions' curves; the other direction's is the mirror image on the anti-diagonal."""
    rates = list(zip(fpr.tolist(), tpr.tolist(), strict=True))
    mirrored = [(1 - right, 1 - wrong) for wrong, right in rates]
    corners = [(0.0, max(pair.escape, pair.reverse().escape)), (1.0, 1.0)]
    hull = _hull(sorted([*rates, *mirrored, *corners]))
    return np.array([fpr for fpr, _ in hull]), np.array([tpr for _, tpr in hull])


def _hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The upper concave hull (Andrew's monotone chain)."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while hull and hull[-1][0] == x:
            hull.pop()
        while len(hull) > 1 and _turns_left(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return hull


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])


def _losses(beliefs: Floats, prior: float) -> Floats:
    """The losses after which an observer is that sure."""
    return np.asarray(logit(beliefs) - logit(prior))


def _shares(tails: Floats) -> Floats:
    """Shares of releases between the edges of the bins, of which all inner ones' tails are given."""
    return np.asarray(-np.diff(np.minimum.accumulate(np.concatenate([[1.0], tails, [0.0]]))))
