"""What people see: help, paragraphs, tables; on a terminal, in a pipe, when interrupted."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import deniable
from deniable.cli import common

from .conftest import Run

HELP = Path(__file__).parent / "help"
PROGRAM = [sys.executable, "-c", "from deniable.cli import main; main()"]
ESCAPE = "\x1b"
TRAINING = ("--records", 60000, "--batch", 300, "--epochs", 30)


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, in a pipe of 80 columns."""
    clean = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
    run = subprocess.run
    return run([*PROGRAM, *arguments], capture_output=True, text=True, check=False, env=clean | environment)


# Renew with: COLUMNS=80 deniable explain --help | sed 's/ *$//' > tests/cli/help/explain.txt
@pytest.mark.parametrize(
    "name",
    [
        *(
            "deniable",
            "explain",
            "choose",
            "audit",
            "compare",
            "attack",
            "examine",
            "verdict",
            "report",
            "reproduce",
            "serve",
        ),
        *("worker", "submit", "merge", "status", "card", "assess", "doctor", "frontier"),
    ],
)
def test_help_is_locked(run: Run, name: str) -> None:
    shown = run(*([] if name == "deniable" else [name]), "--help")
    assert shown.code == 0
    assert [line.rstrip() for line in shown.out.splitlines()] == (HELP / f"{name}.txt").read_text().splitlines()


def test_help_is_the_same_in_a_process_of_its_own(run: Run) -> None:
    assert command("--help", COLUMNS="80").stdout == run("--help").out


def test_version(run: Run) -> None:
    first, kernels = run("--version").out.splitlines()
    assert first == f"deniable {deniable.__version__}"
    assert kernels.startswith("compiled kernels: ")


def test_without_a_command_help_is_shown(run: Run) -> None:
    outcome = run()
    assert outcome.code == 0
    assert "explain" in outcome.out


def test_explain_begins_with_what_it_means(run: Run) -> None:
    text = " ".join(run("explain", "--noise", 1, *TRAINING).out.split())
    assert text.startswith(
        "Someone who knows every other record, sees every training step and has no idea about a person (50:50) is "
        "afterwards at most 91.3 % sure that this person is in the data; the chance of more is at most 1 in 60,000."
    )
    assert "6,000 steps; in each, every record is drawn independently with probability 0.5 %." in text
    assert "the sensitivity is C" in text


def test_choose_begins_with_what_to_do(run: Run) -> None:
    text = " ".join(run("choose", "--belief", 0.75, *TRAINING, "--adjacency", "replace").out.split())
    assert re.match(
        r"Noise multiplier (1\.5\d+) keeps your promise: nobody who starts at 50 % becomes more than 75 %", text
    )
    assert re.search(r"For engineers: add Gaussian noise of standard deviation 1\.5\d+ x 2C to each step's sum", text)
    assert "at most 75 % sure" in text
    assert "Protects one record against being told from any other in its place" in text
    assert "classic formula - -" in text
    assert "classic formula: the formula is for Gaussian steps without sampling." in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "explain --epsilon 2.2",
            "at most 94.8 % sure that this person is in the data; the chance of more is at most 1",
        ),
        ("explain --epsilon 2.2", "Warning: this is weak protection."),
        ("explain --epsilon 2.2", "textbook reading of epsilon and delta: may be too low 90.1 %"),
        ("explain --epsilon 2.2 --delta 0", "at most 90.1 % sure that this person is in the data."),
        ("explain --epsilon 20", "Warning: this is hardly any protection."),
        ("explain --tvd .1", "possibly certain"),
        ("explain --tvd .1", "Epsilon at delta 1e-5 infinite"),
        ("explain --laplace 1", "sees the release"),
        ("explain --randomized-response 1", "sees a person's randomized answers"),
        ("explain --noise 8 --steps 30", "textbook reading of epsilon and delta: may be too low"),
        ("choose --epsilon 3 --steps 10", "the release is (3, 1e-5)-differentially private"),
        ("choose --epsilon 3 --steps 10", "classic formula (not proved)"),
        ("choose --advantage .1 --steps 10", "no attack has a membership advantage above 10 %"),
        ("choose --accuracy .6 --steps 10", "no attack guesses right more than 60 % of the time"),
        (
            "choose --tpr .01 --fpr .001 --steps 10",
            "an attack with 0.1 % false alarms finds at most 1 % of the members",
        ),
        ("choose --ppv .6 --fpr .001 --steps 10", "the chance that they really were in the data is at most 60 %"),
        ("choose --belief .75 --steps 1", "to the release"),
        ("explain --epsilon 1 --delta .3", "except in up to 60 % of cases, where it may be more"),
        ("explain --epsilon 1 --delta .3", "With a chance of 60 % the belief may be larger than stated"),
        ("explain --noise 2 --records 1000 --batch 1000 --epochs 1 --delta .01", "for up to 10 of 1,000 records"),
        ("explain --noise 2 --rate .1 --steps 1", "Assumes 1 step; in it, every record"),
        ("choose --ppv .9 --fpr .01 --prior .001 --rate .1 --steps 1", "Less noise was not tried"),
        ("choose --belief .99 --steps 1", "Warning: this is weak protection."),
        ("choose --mechanism laplace --epsilon 1", "RDP 0.99999 1 "),
    ],
)
def test_sentences(run: Run, line: str, said: str) -> None:
    outcome = run(*line.split())
    assert outcome.code == 0, outcome.err
    assert said in " ".join(outcome.out.split())


@pytest.mark.parametrize("line", ["explain --noise 1.1 --steps 7", "choose --belief .9 --steps 30", "explain --gdp 1"])
@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_and_hold_no_long_numbers(
    run: Run, line: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = run(*line.split()).out
    assert max(map(len, text.splitlines())) <= columns
    assert ESCAPE not in text
    assert not re.search(r"\d{7}", text)
    assert not re.search(r" $", text, re.MULTILINE)


def test_a_process_of_its_own_answers_in_a_pipe() -> None:
    done = command("explain", "--epsilon", "2.2")
    assert (done.returncode, done.stderr) == (0, "")
    assert ESCAPE not in done.stdout
    refused = command("explain", "--epsilon", "many")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "deniable: --epsilon must be a finite number >= 0, got 'many'\n"


def test_a_reader_that_went_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, "explain", "--gdp", "1"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_interruption_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deniable.answers.explain.explain_input", interrupted)
    outcome = run("explain", "--gdp", 1)
    assert (outcome.code, outcome.out, outcome.err.strip()) == (130, "", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("works", "said"), [(0.3, True), (0.0, False)])
def test_a_spinner_for_long_work_only(monkeypatch: pytest.MonkeyPatch, works: float, said: bool) -> None:
    monkeypatch.setattr(common, "_SPINNER_SECONDS", 0.05)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with common.patience():
        time.sleep(works)
    assert ("Computing" in sys.stderr.getvalue()) is said


def test_no_spinner_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(common, "_SPINNER_SECONDS", 0.0)
    with common.patience():
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
