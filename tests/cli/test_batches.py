"""How batches are drawn, on the command line: every answer says it, and what does not go together is refused."""

from __future__ import annotations

import json

import pytest

import deniable as dn
from deniable.cli.show.show_answer import show
from deniable.results import ChooseResult
from deniable.results.reading import read_result

from .conftest import Run

ALLOCATION = ("--sampling", "allocation", "--steps-per-epoch", 100, "--epochs", 10)


def test_allocation_is_explained(run: Run) -> None:
    document = json.loads(run("explain", "--noise", 1.426215, *ALLOCATION, "--json").out)
    assert document["scores"]["epsilon"] == pytest.approx(0.942732, rel=1e-5)
    assert document["input"]["sampling"] == "allocation"
    assert "epsilon_at_least" not in document["scores"]
    text = " ".join(run("explain", "--noise", 1.426215, *ALLOCATION).out.split())
    assert "Assumes 10 epochs of 100 steps; in each epoch every record takes part in exactly one step" in text


def test_shuffled_passes_say_what_is_known(run: Run) -> None:
    asked = ("--noise", 0.5, "--sampling", "shuffled", "--steps-per-epoch", 10_000, "--delta", 1e-6)
    document = json.loads(run("explain", *asked, "--adjacency", "zero-out", "--json").out)
    assert document["scores"]["epsilon_at_least"] == pytest.approx(10.9948, abs=1e-4)
    assert document["scores"]["epsilon"] > document["scores"]["epsilon_at_least"]
    assert "is at least 10.9 for some data; the value for Poisson batches is not theirs" in document["notes"][0]


def test_truncated_and_fixed_batches_are_explained(run: Run) -> None:
    truncated = ("--sampling", "truncated", "--rate", 0.01, "--cap", 30, "--records", 1000, "--steps", 50)
    document = json.loads(run("explain", "--noise", 1, *truncated, "--adjacency", "zero-out", "--json").out)
    assert document["input"]["cap"] == 30
    fixed = ("--sampling", "fixed", "--records", 1000, "--batch", 10, "--steps", 20, "--adjacency", "replace")
    text = " ".join(run("explain", "--noise", 1, *fixed).out.split())
    assert "Assumes 20 steps, each on 10 of 1,000 records, drawn at random without replacement." in text


def test_groups_that_take_turns_are_explained(run: Run) -> None:
    """Of 100 steps with 8 bands there are 13 rounds, each at rate 8 x .01."""
    asked = ("--sampling", "cyclic", "--rate", 0.01, "--bands", 8, "--steps", 100, "--delta", 1e-6)
    document = json.loads(run("explain", "--noise", 1.1, *asked, "--json").out)
    rounds = dn.privacy_loss(dn.Gaussian(1.1).subsampled(0.08).composed(13), "add-remove")
    assert document["scores"]["epsilon"] == rounds.epsilon(1e-6)
    assert (document["input"]["bands"], document["input"]["steps"]) == (8, 100)
    text = " ".join(run("explain", "--noise", 1.1, *asked).out.split())
    assert "100 steps with noise that is correlated over 8 of them" in text
    assert "drawn independently with probability 8 %" in text
    assert "the sensitivity is C x the largest column norm of the matrix" in text
    chosen = json.loads(run("choose", "--advantage", 0.1, *asked, "--json").out)
    assert chosen["scores"]["advantage"] <= 0.1
    again = json.loads(run("explain", "--noise", chosen["noise"], *asked, "--json").out)
    assert again["scores"] == chosen["scores"]


@pytest.mark.parametrize(
    ("options", "neighbours"),
    [
        (ALLOCATION, "add-remove"),
        (("--sampling", "shuffled", "--steps-per-epoch", 9), "zero-out"),
        (("--sampling", "truncated", "--rate", 0.01, "--cap", 30, "--records", 1000, "--steps", 1), "zero-out"),
        (("--sampling", "fixed", "--records", 1000, "--batch", 10, "--steps", 2), "replace"),
        (("--sampling", "cyclic", "--rate", 0.1, "--bands", 2, "--steps", 9), "add-remove"),
    ],
)
def test_neighbours_that_are_not_named_are_those_that_are_proved(
    run: Run, options: tuple[object, ...], neighbours: str
) -> None:
    for command in (("explain", "--noise", 1), ("choose", "--advantage", 0.3)):
        assert json.loads(run(*command, *options, "--json").out)["input"]["adjacency"] == neighbours


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--sampling", "banana"), "--sampling must be one of poisson, allocation, shuffled, fixed, truncated, cyclic"),
        (("--bands", 3), "--bands needs --sampling, as in --sampling cyclic"),
        (
            ("--sampling", "cyclic", "--rate", 0.5, "--bands", 3, "--steps", 9),
            "--rate must be at most 1 / 3 with 3 bands",
        ),
        (
            ("--sampling", "cyclic", "--rate", 0.1, "--bands", 3, "--steps", 9, "--adjacency", "replace"),
            "--adjacency replace is not proved for cyclic Poisson batches",
        ),
        (("--steps-per-epoch", 3), "--steps-per-epoch needs --sampling, as in --sampling allocation"),
        (("--sampling", "allocation"), "--steps-per-epoch is missing: --sampling allocation needs it"),
        ((*ALLOCATION, "--rate", 0.1), "--rate does not go with --sampling allocation"),
        (
            ("--sampling", "shuffled", "--records", 5000, "--batch", 256),
            "it takes --steps-per-epoch, --epochs, --records; 5,000 records in batches of 256 are --steps-per-epoch 20",
        ),
        ((*ALLOCATION, "--adjacency", "replace"), "--adjacency replace is not proved for random allocation"),
        (
            ("--sampling", "shuffled", "--steps-per-epoch", 9, "--adjacency", "add-remove"),
            "is not proved for shuffled batches",
        ),
        (
            ("--sampling", "fixed", "--records", 10, "--batch", 20, "--steps", 5),
            "--batch must be at most the 10 records",
        ),
        (("--sampling", "truncated", "--cap", 0), "--cap must be a whole number >= 1"),
    ],
)
def test_bad_input_is_one_clear_line(run: Run, options: tuple[object, ...], told: str) -> None:
    outcome = run("explain", "--noise", 1, *options)
    assert outcome.code == 2
    assert told in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_noise_that_is_not_known_closely_says_from_where_on_it_is_too_little(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    sampling = ("--sampling", "truncated", "--rate", ".01", "--cap", "20", "--records", "600", "--steps", "30")
    chosen = read_result(run("choose", "--belief", ".9", *sampling, "--json").document)
    assert isinstance(chosen, ChooseResult)
    show(chosen)
    text = " ".join(capsys.readouterr().out.split())
    loose = chosen.noise_error > 1e-3 * chosen.noise
    assert ("Below 0." in text) == loose
    assert ("Less is too little." in text) != loose
