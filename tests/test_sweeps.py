"""Many settings at once: the same as one by one, within the stated error, and honest where nothing is smooth."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.loss import Upper


def _epsilon(noise: float) -> Upper:
    return dn.privacy_loss(dn.Gaussian(noise).subsampled(0.01).composed(1000), adjacency="add-remove").epsilon(1e-5)


def test_a_sweep_is_what_one_by_one_gives_on_the_safe_side():
    noises = np.linspace(0.7, 3.0, 400)
    found = dn.sweep(_epsilon, noises)
    assert found.computed < 200
    chosen = np.random.default_rng(1).choice(noises.size, 25, replace=False)
    truth = [_epsilon(noise) for noise in noises[chosen].tolist()]
    assert (found.values[chosen] >= np.array(truth) - np.array([each.error for each in truth])).all()
    assert (found.values[chosen] - found.errors[chosen] <= np.array(truth)).all()
    assert (found.errors <= 1e-7 * found.values).all()


@pytest.mark.parametrize("kink", [0.0, 0.31, 1.0])
def test_a_kink_or_a_jump_is_not_smoothed_over(kink: float):
    settings = np.linspace(0.0, 1.0, 3001)

    def truth(x: float) -> float:
        return 1 + abs(x - kink) + 0.2 * (x > kink)

    found = dn.sweep(truth, settings)
    exact = np.array([truth(x) for x in settings.tolist()])
    assert (found.values >= exact * (1 - 1e-12)).all()
    assert (found.values - found.errors <= exact * (1 + 1e-12)).all()
    assert found.computed < 1500


def test_zeros_and_infinities_are_computed_themselves():
    settings = np.linspace(-1.0, 1.0, 500)
    found = dn.sweep(lambda x: 0.0 if x < -0.5 else inf if x > 0.5 else np.exp(x), settings)
    assert (found.values[settings < -0.5] == 0).all()
    assert (found.values[settings > 0.5] == inf).all()
    assert found.values[250] == pytest.approx(np.exp(settings[250]), rel=1e-7)


def test_whole_settings_arrive_as_whole_numbers_in_any_order_and_repeated():
    seen: list[object] = []

    def truth(steps: float) -> float:
        seen.append(steps)
        return steps**0.5

    steps = np.random.default_rng(0).permutation(np.repeat(np.arange(1, 1001), 2))
    found = dn.sweep(truth, steps)
    assert all(isinstance(each, int) for each in seen)
    np.testing.assert_allclose(found.values, np.sqrt(steps), rtol=1e-7)
    assert len(seen) == found.computed < 300


@given(st.lists(st.floats(-50, 50), max_size=120), st.floats(0.1, 3))
def test_any_settings_are_covered(settings: list[float], power: float):
    found = dn.sweep(lambda x: 1 + np.exp(power * np.tanh(x)), settings)
    exact = 1 + np.exp(power * np.tanh(np.array(settings)))
    assert found.values.shape == exact.shape
    assert (found.values >= exact * (1 - 1e-13)).all()
    assert (found.values - found.errors <= exact * (1 + 1e-13)).all()


def test_a_calibration_can_be_swept_too():
    bounds = np.linspace(0.6, 0.95, 200)

    def noise(bound: float) -> float:
        return dn.calibrate(lambda s: dn.Gaussian(s).composed(50), dn.Belief(bound, 1e-5)).value

    found = dn.sweep(noise, bounds)
    assert found.computed < 150
    assert found.values[57] == pytest.approx(noise(float(bounds[57])), rel=1e-7)


@pytest.mark.parametrize("settings", [[[1.0, 2.0]], [1.0, np.nan], ["a"], [inf]])
def test_bad_settings_are_refused(settings: list[object]):
    with pytest.raises(ValueError, match="settings"):
        dn.sweep(_epsilon, settings)
