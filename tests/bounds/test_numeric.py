from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds.numeric import log_excess, log_mixture


@settings(max_examples=50, deadline=None)
@given(st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-150))
def test_log_excess_equals_its_twin(x):
    with mp.workdps(400):
        twin = float(mp.log(mp.exp(mp.mpf(x)) - 1 - mp.mpf(x)))
    assert float(log_excess(x)) == pytest.approx(twin, rel=2e-15, abs=4e-15)


@pytest.mark.parametrize("x", [-1.0, 1.0, 40.0, np.nextafter(1, 0), np.nextafter(40, 0)])
def test_log_excess_is_seamless_where_its_pieces_meet(x):
    here, beside = log_excess([x, np.nextafter(x, 100)])
    assert beside == pytest.approx(here, rel=1e-14, abs=0)


def test_log_excess_at_zero_is_minus_infinity_without_a_warning():
    assert log_excess(0.0) == -np.inf


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-12, 1 - 1e-12), st.floats(-1e4, 1e4))
def test_log_mixture_equals_its_twin(rate, x):
    with mp.workdps(40):
        twin = float(mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(x))))
    assert float(log_mixture(rate, x)) == pytest.approx(twin, rel=1e-13 if x < 0 else 1e-14, abs=1e-300)


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1 - 2**-53])
def test_log_mixture_at_extreme_rates_is_finite(rate):
    assert np.all(np.isfinite(log_mixture(rate, [-1e8, -1.0, 0.0, 1.0, 499.0, 501.0, 1e8])))
