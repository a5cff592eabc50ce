"""The hunt of theory finds what is wrong, leaves alone what is right, and shows it in its simplest form."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from random import Random

import pytest

import deniable as dn
from deniable.loss import Upper
from hunt import theory
from hunt.questions import Question
from hunt.shrink import shrunk, simpler_mechanisms
from hunt.theory import Case, TooLongError, check, random_case, within
from hunt.trees import random_mechanism, text
from hunt.truth import Truth

RELEASE = dn.compose(dn.Gaussian(1.0), dn.RandomizedResponse(0.5))
QUESTIONS = [
    Question("delta", (0.5,)),
    Question("epsilon", (1e-5,)),
    Question("advantage"),
    Question("accuracy", (0.3,)),
    Question("tpr", (0.01,)),
    Question("ppv", (0.01, 0.4)),
    Question("belief", (0.3, 0.5)),
    Question("exceedance", (0.4,)),
    Question("quantile", (0.99,)),
    Question("pair.tail", (0.2,)),
    Question("pair.null_tail", (0.2,)),
    Question("pair.reverse().hockey_stick", (0.2,)),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_a_right_answer_passes_and_a_wrong_one_does_not(question: Question) -> None:
    truth, right = Truth(RELEASE, "add-remove"), question.ask(dn.privacy_loss(RELEASE, adjacency="add-remove"))
    error = getattr(right, "error", 0.0)
    assert question.judge(truth, right, error) is None
    assert question.judge(truth, 0.97 * right, error) is not None, "on the unsafe side"
    assert question.judge(truth, 1.03 * right, 0.0) is not None, "an error that does not cover"
    assert question.judge(truth, 1.03 * right, 0.2 * right) is None, "loose, but it says so"
    assert question.judge(truth, nan, 0.0) is not None
    assert question.judge(truth, right, nan) is not None


def test_infinity_is_wrong_where_a_number_is_right() -> None:
    assert Question("epsilon", (1e-5,)).judge(Truth(RELEASE, "add-remove"), inf, 0.0) is not None


def test_no_loss_at_all_is_right_where_everything_may_be_exceeded() -> None:
    """A quantile of -inf made the judge ask for a tail at NaN."""
    bare = dn.ConcentratedDP(0.1)
    assert check(Case(bare, "zero-out", Question("quantile", (0.0,)))) is None
    assert Question("quantile", (0.5,)).judge(Truth(RELEASE, "add-remove"), -inf, 0.0) is not None


def test_an_exception_is_a_find_and_a_refusal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(RELEASE, "add-remove", Question("advantage"))
    monkeypatch.setattr(dn.PrivacyLoss, "advantage", lambda _: 1 / 0)
    found = check(case)
    assert found is not None
    assert "ZeroDivisionError" in found.says
    assert check(replace(case, question=Question("delta", (inf,)))) is None, "epsilon must be a finite number"


def test_what_does_not_end_is_stopped() -> None:
    def for_ever() -> float:
        while True:
            pass

    with pytest.raises(TooLongError):
        within(0.05, for_ever)


def test_a_find_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every advantage is too low, one simple step is left of a mixed release."""
    monkeypatch.setattr(dn.PrivacyLoss, "advantage", lambda _: Upper(1e-3))
    mixed = dn.compose(dn.RandomizedResponse(1.2345, 3).subsampled(0.1234).composed(5), dn.ApproximateDP(0.123, 0.1))
    case = Case(mixed, "zero-out", Question("advantage"))
    small = shrunk(case, theory._simpler, lambda other: check(other) is not None)
    assert str(small) == 'PL(dn.ApproximateDP(1.0, 1.0), "add-remove").advantage()'


@pytest.mark.parametrize("seed", range(20))
def test_text_is_the_mechanism(seed: int) -> None:
    mechanism = random_mechanism(Random(seed))
    again = eval(text(mechanism), {"dn": dn})
    assert again == mechanism
    assert all(isinstance(simpler, dn.Mechanism) for simpler in simpler_mechanisms(mechanism))


def test_a_seed_is_a_case() -> None:
    assert random_case(7)[0] == random_case(7)[0]
    assert len({str(random_case(seed)[0].question) for seed in range(8)}) > 4
