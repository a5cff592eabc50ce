"""A line that was drawn for one question answers others, with the very digits that each has when asked alone."""

from __future__ import annotations

from math import pi

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from deniable.effort import UnresolvedError
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.cumulants import TINY, Composition
from deniable.loss.compose.inversion import Inversion
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL, Functional
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplaceSum

COMPOSITIONS = {
    "narrow": [(SubsampledRemove(GaussianStep(0.5), 0.002), 500)],
    "middling": [(SubsampledRemove(GaussianStep(1.0), 0.01), 3000)],
    "wide": [(SubsampledRemove(GaussianStep(1.2), 0.05), 4000)],
    "added": [(SubsampledRemove(GaussianStep(1.0), 0.01).reverse(), 3000)],
    "exchanged": [(SubsampledReplaceSum(1.0, 0.02), 1000)],
    "few steps": [(SubsampledReplaceSum(0.105, 0.00172), 7)],
    "two kinds": [(SubsampledRemove(GaussianStep(0.7), 0.02), 400), (GaussianStep(0.1), 30)],
}
ASKED = ("hockey_stick", "tail", "null_tail")
questions = st.lists(st.tuples(st.sampled_from(ASKED), st.floats(-5.0, 7.0)), min_size=2, max_size=8)


@pytest.mark.parametrize("name", COMPOSITIONS)
@settings(max_examples=25)
@given(asked=questions)
@example(asked=[("tail", -0.4), ("hockey_stick", -0.4), ("null_tail", -0.1), ("hockey_stick", 0.3)])
@example(asked=[("tail", -1.2), ("hockey_stick", 0.09)])  # the masses of P and Q nearly cancel
def test_earlier_questions_do_not_change_an_answer(name: str, asked: list[tuple[str, float]]) -> None:
    shared = Contour(Composition(COMPOSITIONS[name]))
    for functional, widths in asked:
        k = widths * shared.scale
        together = getattr(shared, functional)(k)
        alone = getattr(Contour(Composition(COMPOSITIONS[name])), functional)(k)
        assert (float(together), together.error) == (float(alone), alone.error)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_one_line_serves_many_questions(name: str) -> None:
    """Between the losses' means a few lines are enough for all three functionals at twenty thresholds."""
    law = Inversion(Composition(COMPOSITIONS[name]), TINY)
    low, high = law.composition.null_mean, law.composition.mean
    for place in range(20):
        for functional in (STICK, TAIL, NULL_TAIL):
            law.value(functional, low + (high - low) * (place + 0.5) / 20)
    assert len(law.lines) <= 20


@pytest.mark.parametrize("name", COMPOSITIONS)
@settings(max_examples=40)
@given(widths=st.floats(-9.0, 9.0), functional=st.sampled_from([STICK, TAIL, NULL_TAIL]))
def test_what_is_known_without_a_line_holds_the_value(name: str, widths: float, functional: Functional) -> None:
    """Chernoff's bounds answer where no line can be drawn; a wrong side of them would be an unsafe answer."""
    law = Inversion(Composition(COMPOSITIONS[name]), TINY)
    k = widths * law.composition.scale
    bound, error = law.known(functional, k)
    try:
        value, own = law.value(functional, k)
    except UnresolvedError:
        reject()
    assert bound - error <= (value + own) * (1 + 1e-12) + 1e-15
    assert value - own <= (bound + error) * (1 + 1e-12) + 1e-15


def test_little_noise_gives_no_less_than_more() -> None:
    """Twelve steps at rate .084 (replace): at noise .07 hardly any doubt is left about who was sampled."""
    rate, steps = 9839 / 116911, 12
    surely_sampled = 1 - (1 - rate) ** steps
    for noise in (0.1, 0.08, 0.07):
        pair = Contour(Composition([(SubsampledReplaceSum(1 / noise, rate), steps)]))
        assert 0.99 * surely_sampled < pair.hockey_stick(0.0) <= surely_sampled * (1 + 1e-9)


@pytest.mark.parametrize(
    ("mu", "rate", "steps", "functional", "widths"),
    [
        (0.238, 0.209, 12, "tail", 4.0),
        (0.8, 1e-4, 15, "hockey_stick", -2.5),
        (1.0, 0.01, 61, "tail", 3.0),
        (0.5, 0.4, 600_000, "hockey_stick", 0.0),
        (1.2, 0.05, 4000, "null_tail", 2.0),
    ],
)
def test_lines_know_their_round_off(mu: float, rate: float, steps: int, functional: str, widths: float) -> None:
    """K on a line against plain sums in 30 digits: never farther off than the line says."""
    pair = Contour(Composition([(SubsampledRemove(GaussianStep(mu), rate), steps)]))
    getattr(pair, functional)(widths * pair.scale)
    whole = pair._whole
    for line in [line for line in (*whole.lines.values(), *whole.tapered_lines.values()) if line is not None]:
        alive = np.flatnonzero(np.abs(np.exp(line.cumulants - line.saddle.value)) > 1e-6)
        for place in {0, alive[alive.size // 3], alive[-1]}:
            s = mp.mpc(line.saddle.c, line.frequencies[place])
            apart = complex(mp.mpc(complex(line.cumulants[place])) - steps * _log_moment(mu, rate, s))
            turns = round(apart.imag / (2 * pi))
            assert abs(apart - 2j * pi * turns) < line.noises[place]


@mp.workdps(30)
def _log_moment(mu: float, rate: float, s: mp.mpc) -> mp.mpc:
    """log E_Q[e^{sL}] by the trapezoidal rule on the real axis."""
    shift, share = mp.mpf(mu), mp.mpf(rate)
    places = (mp.mpf(place) / 25 for place in range(-18 * 25, 36 * 25))
    terms = (
        mp.exp(s * mp.log1p(share * mp.expm1(shift * x - shift**2 / 2)) - x * x / 2) / (25 * mp.sqrt(2 * mp.pi))
        for x in places
    )
    return mp.log(mp.fsum(terms))
