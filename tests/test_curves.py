"""What is drawn: right to about a pixel of what is computed, and never far below it."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.answers.curves import curves
from deniable.answers.describe import describe_release
from deniable.mechanisms import Mechanism
from deniable.promises import Question
from deniable.results.base import plain
from deniable.results.explain_result import CurvesResult

PIXEL = 0.004
RATES = (1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
RELEASES = {
    "training": (dn.Gaussian(1.0).subsampled(0.005).composed(6000), "add-remove"),
    "training, replace": (dn.Gaussian(1.0).subsampled(0.005).composed(6000), "replace"),
    "little noise": (dn.Gaussian(0.5).subsampled(0.01).composed(1000), "add-remove"),
    "much leaks": (dn.Gaussian(10.0).subsampled(0.9).composed(1000), "add-remove"),
    "a few large losses": (dn.Gaussian(0.7).subsampled(0.001).composed(50), "add-remove"),
    "many tiny losses": (dn.Gaussian(1.7).subsampled(1e-4).composed(10**6), "add-remove"),
    "one step": (dn.Gaussian(2.0), "add-remove"),
    "laplace": (dn.Laplace(1.0), "replace"),
    "answers": (dn.RandomizedResponse(1.0, 10).composed(20), "add-remove"),
    "guarantee": (dn.ApproximateDP(2.0, 1e-3), "add-remove"),
    "nothing": (dn.ApproximateDP(0.0, 0.0), "add-remove"),
    "everything": (dn.Gaussian(0.05), "add-remove"),
    "variation": (dn.TotalVariation(0.3), "add-remove"),
}


def draw(mechanism: Mechanism, question: Question) -> CurvesResult:
    return curves(mechanism, describe_release(mechanism, question))


@pytest.mark.parametrize("name", RELEASES)
def test_the_curve_is_the_trade_off(name: str) -> None:
    mechanism, adjacency = RELEASES[name]
    roc = plain(draw(mechanism, Question(adjacency=dn.Adjacency(adjacency))).roc)
    loss = dn.privacy_loss(mechanism, adjacency)
    assert np.all(np.diff(roc["fpr"]) > 0)
    assert (roc["fpr"][0], roc["fpr"][-1], roc["tpr"][-1]) == (0.0, 1.0, 1.0)
    drawn = np.interp(RATES, roc["fpr"], roc["tpr"])
    assert drawn == pytest.approx([float(loss.tpr(rate)) for rate in RATES], abs=PIXEL)


@pytest.mark.parametrize("prior", [0.5, 0.05])
@pytest.mark.parametrize("name", RELEASES)
def test_the_beliefs_are_shares_of_releases(name: str, prior: float) -> None:
    mechanism, adjacency = RELEASES[name]
    question = Question(prior=prior, adjacency=dn.Adjacency(adjacency))
    beliefs = plain(draw(mechanism, question).beliefs)
    inside, outside, edges = (np.array(beliefs[part]) for part in ("inside", "outside", "edges"))
    assert inside.sum() == pytest.approx(1)
    assert outside.sum() == pytest.approx(1)
    assert min(inside.min(), outside.min()) >= 0
    pair = dn.privacy_loss(mechanism, adjacency).pair
    for place in (10, 20, 30):
        loss = np.log(edges[place] / (1 - edges[place])) - np.log(prior / (1 - prior))
        assert inside[place:].sum() == pytest.approx(float(pair.tail(loss)), abs=PIXEL)
        assert outside[place:].sum() == pytest.approx(float(pair.null_tail(loss)), abs=PIXEL)


def test_an_observer_who_sees_nothing_keeps_the_prior() -> None:
    nothing: Mechanism = dn.TotalVariation(0.0)
    beliefs = plain(draw(nothing, Question(dn.Adjacency.ADD_REMOVE, prior=0.31)).beliefs)
    assert beliefs["inside"][12] == 1.0
    assert beliefs["outside"] == beliefs["inside"]
