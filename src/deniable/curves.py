"""What a person looks at: the trade-off curve and the observer's beliefs, as points to draw.

Drawn, not promised: right to about a pixel (see `loss.drawn`), quickly enough to follow a slider. Numbers to rely on
are those of `document`.
"""

from __future__ import annotations

from math import log, log1p

import numpy as np
from numpy.typing import NDArray

from deniable.document import Document, Question, asked
from deniable.loss import Pair, dominating_pair
from deniable.loss.drawn import drawn_tails, extent
from deniable.mechanisms import Mechanism

__all__ = ["curves"]

_THRESHOLDS = 128
_BINS = 40
Floats = NDArray[np.float64]


def curves(mechanism: Mechanism, question: Question, given: Document) -> Document:
    """The best attack's ROC curve, and how sure the observer ends: shares of releases in equal bins of belief."""
    pair = dominating_pair(mechanism, question.adjacency)
    fpr, tpr = _roc(pair)
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    inside, outside = _beliefs(pair, question.prior, edges)
    return {
        "schema": "deniable/curves/1",
        "input": asked(given, question),
        "roc": {"fpr": fpr.tolist(), "tpr": tpr.tolist()},
        "beliefs": {"edges": edges.tolist(), "inside": inside.tolist(), "outside": outside.tolist()},
    }


def _roc(pair: Pair) -> tuple[Floats, Floats]:
    """The concave hull of both directions' curves; the other direction's is the mirror image on the anti-diagonal."""
    tails, null_tails = drawn_tails(pair, np.linspace(*extent(pair), _THRESHOLDS))
    rates = list(zip(null_tails.tolist(), tails.tolist(), strict=True))
    mirrored = [(1 - right, 1 - wrong) for wrong, right in rates]
    corners = [(0.0, max(pair.escape, pair.reversed().escape)), (1.0, 1.0)]
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


def _beliefs(pair: Pair, prior: float, edges: Floats) -> tuple[Floats, Floats]:
    """Shares of releases whose belief falls between the edges: the person is in the data, or is not."""
    odds = log(prior) - log1p(-prior)
    losses = np.log(edges[1:-1]) - np.log1p(-edges[1:-1]) - odds
    inside, outside = (np.concatenate([[1.0], tails, [0.0]]) for tails in drawn_tails(pair, losses))
    return -np.diff(np.minimum.accumulate(inside)), -np.diff(np.minimum.accumulate(outside))
