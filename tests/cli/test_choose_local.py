"""`deniable choose --mechanism`: the noise of a local mechanism keeps the promise, and only just."""

from __future__ import annotations

import pytest

import deniable as dn

from .conftest import Run


def test_laplace_noise_is_the_least(run: Run) -> None:
    document = run("choose", "--accuracy", 0.6, "--mechanism", "laplace", "--json").document
    scale = document["noise"]
    assert document["input"]["mechanism"] == "laplace"
    assert (
        dn.privacy_loss(dn.Laplace(scale)).accuracy()
        <= 0.6
        < dn.privacy_loss(dn.Laplace(scale * (1 - 1e-6))).accuracy()
    )
    assert next(method["name"] for method in document["methods"]) == "exact"


def test_randomized_response_has_the_largest_epsilon(run: Run) -> None:
    line = ("choose", "--advantage", 0.3, "--mechanism", "randomized-response", "--categories", 5, "--features", 3)
    document = run(*line, "--json").document

    def advantage(epsilon: float) -> float:
        return dn.privacy_loss(dn.RandomizedResponse(epsilon, 5).composed(3)).advantage()

    epsilon = 1 / document["noise"]
    assert advantage(epsilon) <= 0.3 < advantage(epsilon * (1 + 1e-6))
    words = " ".join(run(*line).out.split())
    assert f"Randomized response with epsilon {str(epsilon)[:6]}" in words
    assert "keeps your promise: no attack has a membership advantage above 30 %" in words


def test_the_records_tell_delta(run: Run) -> None:
    line = ("choose", "--belief", 0.8, "--mechanism", "laplace", "--records", 1000, "--json")
    assert run(*line).document["input"]["delta"] == 0.001


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--mechanism x", "--mechanism must be one of gaussian, laplace, randomized-response, got 'x'"),
        ("--mechanism laplace --steps 3", "--steps 3 describes a training: it does not go with --mechanism laplace"),
        (
            "--mechanism laplace --features 3",
            "--features 3 goes with --mechanism randomized-response, not with laplace",
        ),
        ("--steps 3 --categories 3", "--categories 3 goes with --mechanism randomized-response, not with gaussian"),
        ("--mechanism randomized-response --categories 1", "--categories must be a whole number >= 2, got 1"),
    ],
)
def test_what_does_not_go_together_is_refused(run: Run, line: str, words: str) -> None:
    left = run("choose", "--belief", 0.8, *line.split())
    assert left.code == 2
    assert words in left.err
    assert left.err.count("\n") == 1
