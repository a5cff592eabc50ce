"""Files of other tools on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run

HISTORY = [[1.0, 0.01, 500], [1.3, 0.01, 100]]
STEPS = {
    "class_name": "SelfComposedDpEvent",
    "count": 1000,
    "event": {
        "class_name": "PoissonSampledDpEvent",
        "sampling_probability": 0.01,
        "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0},
    },
}


def written(tmp_path: Path, content: object) -> str:
    place = tmp_path / "release.json"
    place.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(place)


def test_an_event_is_the_same_as_its_options(run: Run, tmp_path: Path) -> None:
    event = run("explain", "--dp-event", written(tmp_path, STEPS), "--json").document
    assert event == run("explain", "--noise", 1, "--rate", 0.01, "--steps", 1000, "--json").document


@pytest.mark.parametrize("history", [[[1.0, 0.01, 1000]], {"history": [[1.0, 0.01, 1000]], "mechanism": "prv"}])
def test_an_opacus_history_is_the_same_as_its_options(run: Run, tmp_path: Path, history: object) -> None:
    found = run("explain", "--opacus", written(tmp_path, history), "--json").document
    assert found == run("explain", "--noise", 1, "--rate", 0.01, "--steps", 1000, "--json").document


def test_the_answer_says_what_is_assumed(run: Run, tmp_path: Path) -> None:
    text = " ".join(run("explain", "--opacus", written(tmp_path, HISTORY)).out.split())
    assert (
        "Assumes compose(Gaussian(1.0).subsampled(0.01).composed(500), Gaussian(1.3).subsampled(0.01).composed(100))."
        in text
    )
    shuffled = run("explain", "--opacus", written(tmp_path, HISTORY), "--sampling", "shuffled", "--json").document
    assert shuffled["input"]["adjacency"] == "zero-out"
    assert shuffled["scores"]["epsilon"] > shuffled["scores"]["epsilon_at_least"] > 2


def test_noise_is_halved_for_replaced_records(run: Run, tmp_path: Path) -> None:
    found = run("explain", "--dp-event", written(tmp_path, STEPS), "--adjacency", "replace", "--json").document
    assert found["input"]["noise"] == 0.5


@pytest.mark.parametrize(
    ("options", "content", "told"),
    [
        (("--opacus",), "{", "--opacus release.json is not JSON"),
        (("--opacus",), "7", "history must be a list of (noise multiplier, sample rate, steps), got 7"),
        (("--opacus",), [[1.0, 2.0, 3]], "history entry 1: rate must be a number from 0 to 1, got 2.0"),
        (("--opacus",), "[" * 100_000, "--opacus release.json is nested too deeply"),
        (("--opacus",), " " * 4_000_001, "--opacus release.json is larger than 4 MB"),
        (("--dp-event",), {"class_name": "MagicDpEvent"}, "--dp-event: MagicDpEvent is not known here"),
        (("--noise", 1, "--dp-event"), STEPS, "--noise does not go with --dp-event"),
        (("--sampling", "shuffled", "--dp-event"), STEPS, "--sampling does not go with --dp-event"),
        (("--sampling", "magic", "--opacus"), HISTORY, "--sampling must be one of poisson, shuffled, unknown"),
        (("--rate", 0.1, "--opacus"), HISTORY, "--rate does not go with --opacus"),
    ],
)
def test_bad_files_are_one_clear_line(
    run: Run, tmp_path: Path, options: tuple[object, ...], content: object, told: str
) -> None:
    outcome = run("explain", *options, written(tmp_path, content))
    assert outcome.code == 2
    assert told in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_file_that_is_not_there_is_one_clear_line(run: Run) -> None:
    assert run("explain", "--opacus", "/nowhere.json").err == (
        "deniable: --opacus /nowhere.json: No such file or directory\n"
    )
