"""The decision box follows the verdict, its colour, the promise's strength and the evidence."""

from __future__ import annotations

from itertools import product

import pytest

from deniable.report.decision import decide

VERDICTS = ("violated", "other recipe", "consistent", "cannot judge")


@pytest.mark.parametrize(
    ("verdict", "tone", "weak", "answer"),
    [
        ("violated", "bad", None, "Do not release"),
        ("consistent", "good", None, "Release"),
        ("consistent", "open", None, "Not enough evidence"),
        ("consistent", "odd", "weak", "Do not release"),
        ("consistent", "bad", "hardly any", "Do not release"),
        ("other recipe", "odd", None, "Not enough evidence"),
        ("cannot judge", "open", None, "Not enough evidence"),
        ("cannot judge", "open", "weak", "Do not release"),
        ("other recipe", "odd", "weak", "Not enough evidence"),
    ],
)
def test_the_answer_follows_the_verdict(verdict: str, tone: str, weak: str | None, answer: str) -> None:
    found = decide(verdict, tone, weak, ["Because."])
    assert found.answer == answer
    assert found.reasons[0] == "Because."
    assert found.would_change
    assert found.next_steps


def test_release_is_said_in_one_case_alone() -> None:
    """Whatever else is combined, nothing but a green, strong, well shown and real promise is released."""
    tones, weak = ("good", "bad", "odd", "open"), (None, "weak", "hardly any")
    for verdict, tone, how, enough, test_mode in product(VERDICTS, tones, weak, (True, False), (True, False)):
        found = decide(verdict, tone, how, [], enough=enough, test_mode=test_mode)
        wanted = (verdict, tone, how, enough, test_mode) == ("consistent", "good", None, True, False)
        assert (found.answer == "Release") == wanted
        assert (found.tone == "good") == wanted
        if verdict == "violated":
            assert found.answer == "Do not release"


@pytest.mark.parametrize("named", [True, False])
def test_a_cause_is_to_be_mended_where_it_is_named_and_found_where_not(named: bool) -> None:
    steps = " ".join(decide("violated", "bad", None, [], cause_named=named).next_steps)
    assert ("that the report names" in steps) == named
    assert ("Find the cause" in steps) != named


def test_what_would_change_it_is_what_the_verdict_says() -> None:
    """ "More trials" stood beside "no practical number of trials would"."""
    said = "No practical number of trials would, so small is what the claim allows."
    assert decide("cannot judge", "open", None, [], missing=said).would_change == said
    assert "deniable examine" in " ".join(decide("cannot judge", "open", None, [], missing=said).next_steps)
