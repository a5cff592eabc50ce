"""The JSON documents: their form is fixed, and their numbers are the library's own."""

from __future__ import annotations

from typing import Any

import pytest

import deniable as dn
from deniable import bounds
from deniable.answers.explain import bare_delta
from deniable.results.base import plain

from .conftest import Run

SCORES = {"epsilon", "delta", "belief", "belief_delta", "prior", "advantage", "accuracy", "tpr", "ppv", "gaussian"}
ANSWER = {"strength", "schema", "input", "scores", "errors", "method", "bounds", "notes"}
ANALYSES = ["naive", "advanced", "zcdp", "rdp", "kl", "classic"]

RELEASES: dict[str, tuple[dn.Mechanism, dict[str, Any]]] = {
    "--epsilon 2.2 --delta 1e-5": (dn.ApproximateDP(2.2, 1e-5), {"epsilon": 2.2}),
    "--epsilon 2.2": (dn.ApproximateDP(2.2, 1e-5), {"epsilon": 2.2}),
    "--epsilon 1.1 --delta 0": (dn.ApproximateDP(1.1, 0.0), {"epsilon": 1.1}),
    "--tvd .1": (dn.TotalVariation(0.1), {"tvd": 0.1}),
    "--gdp .5": (dn.GaussianDP(0.5), {"gdp": 0.5}),
    "--noise 2": (dn.Gaussian(2.0), {"noise": 2.0, "rate": 1.0, "steps": 1}),
    "--noise 8 --steps 30": (dn.Gaussian(8.0).composed(30), {"noise": 8.0, "rate": 1.0, "steps": 30}),
    "--noise 1 --rate .01 --steps 1e3": (
        dn.Gaussian(1.0).subsampled(0.01).composed(1000),
        {"noise": 1.0, "rate": 0.01, "steps": 1000},
    ),
    "--noise 1 --records 1000 --batch 300 --epochs 3": (
        dn.Gaussian(1.0).subsampled(0.3).composed(12),
        {"noise": 1.0, "records": 1000, "batch": 300, "epochs": 3, "rate": 0.3, "steps": 12},
    ),
    "--laplace 1": (dn.Laplace(1.0), {"laplace": 1.0}),
    "--randomized-response 1 --categories 3": (
        dn.RandomizedResponse(1.0, 3),
        {"randomized_response": 1.0, "categories": 3, "features": 1},
    ),
    "--randomized-response .1 --features 600": (
        dn.RandomizedResponse(0.1).composed(600),
        {"randomized_response": 0.1, "categories": 2, "features": 600},
    ),
}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "zero-out"])
@pytest.mark.parametrize("line", RELEASES)
def test_explain_says_what_the_library_says(run: Run, line: str, adjacency: str) -> None:
    mechanism, described = RELEASES[line]
    options = ["--prior", ".1", "--fpr", "1e-4", "--fpr", ".05", "--adjacency", adjacency, "--json"]
    document = run("explain", *line.split(), *options).document
    delta = 0.0 if "--delta 0" in line else 1 / 1000 if "--records" in line else 1e-5
    loss = dn.privacy_loss(mechanism, adjacency)
    epsilon = float(loss.epsilon(delta))
    failure = bare_delta(mechanism, delta)  # of a bare guarantee, the belief is that of every release
    belief = loss.belief(delta, 0.1) if failure is None else bounds.any_release_belief(loss.epsilon, failure, 0.1)
    assert document["schema"] == "deniable/explain/2"
    assert document["input"] == {
        **described,
        "delta": delta,
        "prior": 0.1,
        "fpr": [1e-4, 0.05],
        "adjacency": adjacency,
    }
    assert document["scores"] == {
        "epsilon": None if epsilon == float("inf") else epsilon,
        "delta": delta,
        "belief": float(belief),
        "belief_delta": delta if failure is None else failure,
        "prior": 0.1,
        "advantage": float(loss.advantage()),
        "accuracy": float(loss.accuracy(0.1)),
        "tpr": [{"fpr": fpr, "tpr": float(loss.tpr(fpr))} for fpr in (1e-4, 0.05)],
        "ppv": [{"fpr": fpr, "prior": 0.1, "ppv": float(loss.ppv(fpr, 0.1))} for fpr in (1e-4, 0.05)],
        "gaussian": plain(dn.fit_gaussian(loss)),
    }
    assert document["method"] == loss.method


def test_the_form_of_explain(run: Run) -> None:
    document = run("explain", "--noise", 1, "--rate", 0.01, "--steps", 1000, "--json").document
    assert set(document) == ANSWER
    assert set(document["scores"]) == SCORES
    assert set(document["errors"]) == {"epsilon", "belief", "advantage", "accuracy"}
    assert list(document["bounds"]) == [*ANALYSES, "theorem_2"]
    assert document["bounds"]["classic"] == {
        "epsilon": None,
        "why": "classic: the formula is for Gaussian steps without sampling",
    }
    assert document["notes"] == []


def test_bounds_are_the_named_analyses_and_never_below_the_exact_value(run: Run) -> None:
    document = run("explain", "--noise", 8, "--steps", 30, "--delta", 1e-6, "--json").document
    named, scores = document["bounds"], document["scores"]
    for name in ("naive", "advanced", "zcdp", "rdp"):
        known = bounds.guarantee(name, dn.Gaussian(8).composed(30), 1e-6)
        assert isinstance(known, dn.ApproximateDP)
        assert named[name] == {"epsilon": known.epsilon}
        assert named[name]["epsilon"] >= scores["epsilon"]
    assert named["kl"]["advantage"] >= scores["advantage"]
    assert named["classic"] == {"epsilon": pytest.approx(3.628, abs=1e-3), "proved": False}


def test_the_exact_belief_is_not_the_one_read_off_epsilon_and_delta(run: Run) -> None:
    """erratum 4: the loss exceeds epsilon(delta) with probability above delta."""
    document = run("explain", "--noise", 1, "--rate", 0.01, "--steps", 1000, "--json").document
    read_off = document["bounds"]["theorem_2"]["belief"]
    assert read_off == pytest.approx(dn.posterior(document["scores"]["epsilon"]), rel=1e-12)
    assert read_off < document["scores"]["belief"]


def test_a_bare_guarantee_tells_what_any_release_keeps(run: Run) -> None:
    """An (epsilon, delta)-DP release with Pr[loss > epsilon] = 2.1 delta: merge the revealing outcome with another.

    The textbook's belief is then exceeded with probability above delta. The one that leads may be exceeded with
    probability 2 delta at most, so it is not.
    """
    epsilon, delta = 1.0, 1e-3
    document = run("explain", "--epsilon", epsilon, "--delta", delta, "--json").document
    known, odds = document["scores"], 2.718281828459045
    with_person = delta + 1.1 * delta  # of which delta could not have come from data without the person
    without = 1.1 * delta / odds
    belief = with_person / (with_person + without)
    assert with_person > known["belief_delta"] > delta
    assert document["bounds"]["theorem_2"]["belief"] < belief <= known["belief"]
    assert "Bernau et al. 2021" in document["notes"][0]


def test_infinite_epsilon_is_null_with_a_note(run: Run) -> None:
    document = run("explain", "--tvd", 0.1, "--json").document
    assert document["scores"]["epsilon"] is None
    assert document["scores"]["belief"] == 1
    assert "infinite" in document["notes"][0]


EXTREMES = {
    "--noise": (0.01, 1, 1e6),
    "--epsilon": (0, 800),
    "--tvd": (0, 1),
    "--gdp": (0, 1000),
    "--laplace": (0.001, 1e6),
    "--randomized-response": (1e-6, 700),
}


@pytest.mark.parametrize("extremes", [("--fpr", 0, "--fpr", 1), ("--delta", 0), ("--delta", 1e-30), ("--prior", 1e-9)])
@pytest.mark.parametrize("release", [(name, value) for name, values in EXTREMES.items() for value in values])
def test_extremes_give_numbers(run: Run, release: tuple[object, ...], extremes: tuple[object, ...]) -> None:
    scores = run("explain", *release, *extremes, "--json").document["scores"]
    shares = [scores["belief"], scores["advantage"], scores["accuracy"]]
    shares += [row["tpr"] for row in scores["tpr"]] + [row["ppv"] for row in scores["ppv"]]
    assert all(0 <= share <= 1 for share in shares)
    assert scores["epsilon"] is None or scores["epsilon"] >= 0


PROMISES: dict[str, dn.Promise] = {
    "--belief .75": dn.Belief(0.75, 1e-5),
    "--belief .75 --prior .1 --delta 1e-3": dn.Belief(0.75, 1e-3, 0.1),
    "--advantage .1": dn.Advantage(0.1),
    "--accuracy .6": dn.Accuracy(0.6),
    "--accuracy .92 --prior .1": dn.Accuracy(0.92, 0.1),
    "--tpr .01 --fpr .001": dn.TruePositiveRate(0.01, 0.001),
    "--ppv .5 --fpr .001 --prior .1": dn.PositivePredictiveValue(0.5, 0.001, 0.1),
    "--success .02 --baseline .001": dn.Success(0.02, 1e-3),
    "--success .02 --candidates 1000": dn.Success(0.02, 1e-3),
    "--epsilon 1": dn.Epsilon(1.0, 1e-5),
}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("line", PROMISES)
def test_choose_keeps_the_promise_with_the_least_noise(run: Run, line: str, adjacency: str) -> None:
    target = PROMISES[line]
    document = run("choose", *line.split(), "--steps", 30, "--adjacency", adjacency, "--json").document
    found = dn.calibrate(lambda noise: dn.Gaussian(noise).composed(30), target, adjacency)
    assert set(document) == ANSWER | {"noise", "noise_error", "methods"}
    assert document["schema"] == "deniable/choose/2"
    assert document["noise"] == found.value
    assert target.score(dn.privacy_loss(dn.Gaussian(document["noise"]).composed(30), adjacency)) <= target.bound
    assert [method["name"] for method in document["methods"]] == ["exact", *ANALYSES]
    assert document["methods"][0] == {"name": "exact", "noise": document["noise"]}
    for method in document["methods"]:
        assert method["noise"] >= document["noise"] or not method["proved"]


def test_choose_and_explain_agree(run: Run) -> None:
    training = ("--records", 60000, "--batch", 300, "--epochs", 30)
    chosen = run("choose", "--advantage", 0.1, *training, "--json").document
    explained = run("explain", "--noise", chosen["noise"], *training, "--json").document
    assert chosen["input"]["steps"] == 6000
    assert chosen["input"]["delta"] == 1 / 60000
    assert chosen["scores"] == explained["scores"]
    assert chosen["bounds"] == explained["bounds"]
    assert chosen["methods"][6] == {
        "name": "classic",
        "noise": None,
        "why": "classic: the formula is for Gaussian steps without sampling",
    }


def test_an_analysis_that_cannot_keep_a_promise_says_why(run: Run) -> None:
    """A TPR below delta cannot follow from any (epsilon, delta) guarantee."""
    line = ("choose", "--tpr", 9e-6, "--fpr", 1e-6, "--steps", 10, "--delta", 1e-5, "--json")
    methods = {method["name"]: method for method in run(*line).document["methods"]}
    assert methods["rdp"]["noise"] is None
    assert "no noise" in methods["rdp"]["why"]
    assert methods["kl"]["noise"] > methods["exact"]["noise"]


# Jia 2023, Figure 4 (seed_numbers.json, tvd_figure_4): noise rounded up to one decimal, 6000 steps at rate .005, delta
# 1e-5.
@pytest.mark.parametrize(
    ("accuracy", "dp", "kl"), [(0.8, 1.4, 0.7), (0.7, 2.0, 0.8), (0.6, 3.7, 1.4), (0.55, 7.0, 2.4)]
)
def test_choose_reproduces_figure_4_of_002(run: Run, accuracy: float, dp: float, kl: float) -> None:
    line = ("choose", "--accuracy", accuracy, "--rate", 0.005, "--steps", 6000, "--json")
    noises = {method["name"]: method["noise"] for method in run(*line).document["methods"]}
    assert dp - 0.1 < noises["rdp"] <= dp
    assert noises["exact"] < noises["kl"] <= kl


# Bernau 2021, Table 3 (seed_numbers.json, vldb_table_3): epsilon and the belief that Theorem 2 reads off it.
@pytest.mark.parametrize(("epsilon", "belief"), [(0.08, 0.52), (1.1, 0.75), (2.2, 0.9), (4.6, 0.99)])
def test_explain_reproduces_table_3_of_001(run: Run, epsilon: float, belief: float) -> None:
    document = run("explain", "--epsilon", epsilon, "--delta", 0.01, "--json").document
    assert document["bounds"]["theorem_2"]["belief"] == pytest.approx(belief, abs=0.005)
