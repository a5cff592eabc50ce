"""A line that was drawn for one question answers others: the same numbers as lines of their own, within both errors."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deniable.loss.contour import Contour
from deniable.loss.laws import NULL_TAIL, STICK, TAIL, Law
from deniable.loss.saddle import TINY, Composition
from deniable.loss.sampled import Exchanged, Removed
from deniable.loss.steps import GaussianStep

COMPOSITIONS = {
    "narrow": [(Removed(GaussianStep(0.5), 0.002), 500)],
    "middling": [(Removed(GaussianStep(1.0), 0.01), 3000)],
    "wide": [(Removed(GaussianStep(1.2), 0.05), 4000)],
    "added": [(Removed(GaussianStep(1.0), 0.01).reversed(), 3000)],
    "exchanged": [(Exchanged(1.0, 0.02), 1000)],
    "two kinds": [(Removed(GaussianStep(0.7), 0.02), 400), (GaussianStep(0.1), 30)],
}
ASKED = ("hockey_stick", "tail", "null_tail")
questions = st.lists(st.tuples(st.sampled_from(ASKED), st.floats(-5.0, 7.0)), min_size=2, max_size=8)


@pytest.mark.parametrize("name", COMPOSITIONS)
@settings(max_examples=25)
@given(asked=questions)
@example(asked=[("tail", -0.4), ("hockey_stick", -0.4), ("null_tail", -0.1), ("hockey_stick", 0.3)])
def test_earlier_questions_do_not_change_an_answer(name: str, asked: list[tuple[str, float]]) -> None:
    shared = Contour(Composition(COMPOSITIONS[name]))
    for functional, widths in asked:
        k = widths * shared.scale
        together = getattr(shared, functional)(k)
        alone = getattr(Contour(Composition(COMPOSITIONS[name])), functional)(k)
        assert together - together.error <= alone * (1 + 4e-16)
        assert alone - alone.error <= together * (1 + 4e-16)
        assert together == pytest.approx(float(alone), rel=1e-6, abs=1e-50)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_one_line_serves_many_questions(name: str) -> None:
    """Between the losses' means a few lines are enough for all three functionals at twenty thresholds."""
    law = Law(Composition(COMPOSITIONS[name]), TINY, patience=0)
    low, high = law.composition.null_mean, law.composition.mean
    for place in range(20):
        for weight in (STICK, TAIL, NULL_TAIL):
            law.value(low + (high - low) * (place + 0.5) / 20, weight)
    assert len(law.lines) <= 20
