"""Many unlike sampled steps together: the same as one by one, whatever stands for them."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.loss import dominating_pair
from deniable.loss.compose import schedules
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.schedules import Schedule, together
from deniable.mechanisms import Adjacency

_DRAWN = np.random.default_rng(5)
SCHEDULES = {
    "noise": [(1 + i / 100, 0.01, 1) for i in range(100)],
    "rate": [(1.0, 0.001 * (1 + i / 40), 3) for i in range(100)],
    "both": [(3 * 0.99**i, 0.02 + 1e-5 * i, 2) for i in range(100)],
    "cloud": [(*pair, 1) for pair in zip(_DRAWN.uniform(0.8, 3, 30), _DRAWN.uniform(0.001, 0.02, 30), strict=True)],
}


def _mechanism(rows: list[tuple[float, float, int]]) -> dn.Mechanism:
    return dn.compose(*(dn.Gaussian(noise).subsampled(rate).composed(count) for noise, rate, count in rows))


def _pair(name: str, adjacency: str) -> Contour:
    pair = dominating_pair(_mechanism(SCHEDULES[name]), Adjacency(adjacency))
    assert isinstance(pair, Contour)
    return pair


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_cumulants_are_the_sum_of_the_steps_own(name: str, adjacency: str):
    for pair in (_pair(name, adjacency), _pair(name, adjacency).reverse()):
        composition = pair.composition
        ((schedule, once),) = together(composition.parts)
        assert isinstance(schedule, Schedule)
        assert once == 1
        last = 9 / composition.scale
        for c in (0.5, -0.5 / composition.scale, 1 + 0.5 / composition.scale):
            line = c + 1j * np.linspace(0, last, 50)
            exact = sum(count * step.cumulant(line) for step, count in composition.parts)
            matters = np.exp(exact.real - exact[0].real)
            allowed = schedule.error + 2e-15 * composition.steps
            assert (np.abs(schedule.cumulant(line) - exact) * matters <= allowed).all()
            tilted = sum(count * step.tilted_moments(line[:1].real) for step, count in composition.parts)
            np.testing.assert_allclose(schedule.tilted_moments(line[:1].real), tilted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("name", "adjacency"), [("noise", "add-remove"), ("both", "replace"), ("cloud", "add-remove")])
def test_scores_are_those_of_the_steps_one_by_one(name: str, adjacency: str, monkeypatch: pytest.MonkeyPatch):
    mechanism = _mechanism(SCHEDULES[name])
    quick = dn.privacy_loss(mechanism, adjacency)
    found = quick.advantage(), quick.epsilon(1e-5)
    monkeypatch.setattr(schedules, "_MANY", 10**6)
    slow = dn.privacy_loss(mechanism, adjacency)
    for ours, exact in zip(found, (slow.advantage(), slow.epsilon(1e-5)), strict=True):
        assert ours >= exact - exact.error
        assert ours - ours.error <= exact
        assert ours.error <= 1e-9 * ours


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_few_steps_stand_for_a_large_cloud(adjacency: str):
    drawn = np.random.default_rng(7)
    rows = [
        (noise, rate, 1) for noise, rate in zip(drawn.uniform(0.8, 2, 400), drawn.uniform(2e-3, 0.02, 400), strict=True)
    ]
    composition = dominating_pair(_mechanism(rows), Adjacency(adjacency)).composition
    for law in (composition, composition.reverse()):
        ((schedule, _),) = together(law.parts)
        for c in (-2.0, 0.5, 4.0):
            line = c + 1j * np.linspace(0, 20, 9)
            few = next(schedule._stand_ins(1 - c if schedule.mirrored else c))
            assert few.weights.size < 60
            exact = sum(count * step.cumulant(line) for step, count in law.parts)
            np.testing.assert_allclose(schedule.cumulant(line), exact, rtol=0, atol=schedule.error)
            tilted = sum(count * step.tilted_moments(line[:1].real) for step, count in law.parts)
            np.testing.assert_allclose(schedule.tilted_moments(line[:1].real), tilted, rtol=1e-7, atol=1e-9)
    centres = np.sum([np.multiply(count, step.centres) for step, count in composition.parts[:50]], axis=0)
    ((part, _),) = together(composition.parts[:50])
    np.testing.assert_allclose(part.centres, centres, rtol=1e-9)


def test_steps_of_very_unlike_noise_are_picked_by_higher_frequencies():
    """There e^K falls so slowly that steps picked by the Gaussian's width alone fail on the rest of the line."""
    drawn = np.random.default_rng(1)
    noises, rates = (np.exp(drawn.uniform(np.log(a), np.log(b), 300)) for a, b in ((0.5, 5), (1e-4, 0.1)))
    composition = dominating_pair(
        _mechanism([(*row, 1) for row in zip(noises, rates, strict=True)]), Adjacency("add-remove")
    ).composition
    ((schedule, _),) = together(composition.parts)
    c = 2.4
    assert schedule._few_steps(c) == []
    assert len(schedule._few_steps_by_more(c)) == 1
    line = c + 1j * np.linspace(0, schedule._last_frequency(c), 21)
    exact = sum(count * step.cumulant(line) for step, count in composition.parts)
    matters = np.exp(np.minimum(exact.real - exact[0].real, 0.0))
    assert (np.abs(schedule.cumulant(line) - exact) * matters).max() <= schedule.error


def test_steps_that_do_not_stand_for_all_are_not_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedules, "_NO_NEWS", 1e-3)
    drawn = np.random.default_rng(7)
    rows = [
        (noise, rate, 1) for noise, rate in zip(drawn.uniform(1, 2, 90), drawn.uniform(0.01, 0.02, 90), strict=True)
    ]
    composition = dominating_pair(_mechanism(rows), Adjacency("add-remove")).composition
    ((schedule, _),) = together(composition.parts)
    assert list(schedule._stand_ins(-2.0)) == []


def test_only_steps_on_one_curve_are_interpolated():
    for name in SCHEDULES:
        ((schedule, _),) = together(_pair(name, "add-remove").composition.parts)
        assert isinstance(schedule, Schedule)
        assert bool(schedule._polynomials) == (name != "cloud")


def test_too_few_nodes_are_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedules, "_SIZES", (3,))
    test_cumulants_are_the_sum_of_the_steps_own("noise", "add-remove")


def test_too_few_nodes_would_be_wrong(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedules, "_SIZES", (3,))
    monkeypatch.setattr(schedules, "_MOST_TOLERANCE", 1.0)
    monkeypatch.setattr(schedules, "_TOLERANCE", 1e9)
    monkeypatch.setattr(Schedule, "error", 0.0)
    with pytest.raises(AssertionError):
        test_cumulants_are_the_sum_of_the_steps_own("noise", "add-remove")


def test_other_steps_and_few_stay_by_themselves():
    rows = SCHEDULES["noise"][:30]
    mechanism = dn.compose(_mechanism(rows), dn.Laplace(2.0).subsampled(0.1), dn.Gaussian(5.0))
    pair = dominating_pair(mechanism, Adjacency.ADD_REMOVE)
    assert isinstance(pair, Contour)
    kinds = sorted(type(moments).__name__ for moments, _ in together(pair.composition.parts))
    assert kinds == ["GaussianStep", "Schedule", "SubsampledRemove"]
    few = dominating_pair(_mechanism(rows[:10]), Adjacency.ADD_REMOVE)
    assert isinstance(few, Contour)
    assert len(together(few.composition.parts)) == 10
