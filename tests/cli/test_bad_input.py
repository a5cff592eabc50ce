"""Bad input: exit code 2 and exactly one line that names the option, the value and what is allowed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.cli.options import refusal_text
from draws import when

from .conftest import Run

TRAINING = "--rate .01 --steps 10"
CASES = {
    # one value out of its range, or no number at all
    "explain --epsilon nan": ("--epsilon", "nan", ">= 0"),
    "explain --epsilon inf": ("--epsilon", "inf", ">= 0"),
    "explain --epsilon -1": ("--epsilon", "-1", ">= 0"),
    "explain --epsilon abc": ("--epsilon", "'abc'", ">= 0"),
    "explain --epsilon 1e7": ("--epsilon", "10000000", "from 0 to 1e+06"),
    "explain --epsilon 1e400": ("--epsilon", "inf", ">= 0"),
    "explain --epsilon": ("--epsilon", "requires an argument"),
    "explain --epsilon --json": ("--epsilon", "'--json'", ">= 0"),
    "explain --tvd 1.1": ("--tvd", "1.1", "from 0 to 1"),
    "explain --tvd -0.1": ("--tvd", "-0.1", "from 0 to 1"),
    "explain --gdp -1": ("--gdp", "-1", ">= 0"),
    "explain --gdp 1e4": ("--gdp", "10000", "from 0 to 1000"),
    "explain --noise 0": ("--noise", "got 0", "> 0"),
    "explain --noise -2": ("--noise", "-2", "> 0"),
    "explain --noise nan": ("--noise", "nan", "> 0"),
    "explain --noise 1e-300": ("--noise", "1e-300", "from 0.01 to 1e+06"),
    "explain --noise one": ("--noise", "'one'", "> 0"),
    "explain --noise 1 --rate 1.5": ("--rate", "1.5", "from 0 to 1"),
    "explain --noise 1 --rate nan": ("--rate", "nan", "from 0 to 1"),
    "explain --noise 1 --steps 0": ("--steps", "got 0", ">= 1"),
    "explain --noise 1 --steps 1.5": ("--steps", "1.5", "whole number >= 1"),
    "explain --noise 1 --steps ten": ("--steps", "'ten'", "whole number >= 1"),
    "explain --noise 1 --steps 1e10": ("--steps", "10000000000", "from 1 to 1e+09"),
    "explain --noise 1 --records 1 --batch 1 --epochs 1": ("--records", "got 1", ">= 2"),
    "explain --noise 1 --records 100 --batch 101 --epochs 1": ("--batch", "101", "from 1 to --records (100)"),
    "explain --noise 1 --records 100 --batch 10 --epochs 0": ("--epochs", "got 0", ">= 1"),
    "explain --noise 1 --records 1e12 --batch 1 --epochs 1": ("--epochs", "1e+12 steps", "at most 1e+09"),
    "explain --laplace 0": ("--laplace", "got 0", "> 0"),
    "explain --randomized-response 0": ("--randomized-response", "got 0", "> 0"),
    "explain --randomized-response 1 --categories 1": ("--categories", "got 1", ">= 2"),
    "explain --randomized-response 1 --features 0": ("--features", "got 0", ">= 1"),
    "explain --epsilon 1 --delta 1": ("--delta", "got 1", "below 1"),
    "explain --epsilon 1 --delta -1e-5": ("--delta", "-1e-05", "from 0 to 1"),
    "explain --epsilon 1 --delta x": ("--delta", "'x'", "from 0 to 1"),
    "explain --epsilon 1 --prior 0": ("--prior", "got 0", "strictly between 0 and 1"),
    "explain --epsilon 1 --prior 1": ("--prior", "got 1", "strictly between 0 and 1"),
    "explain --epsilon 1 --fpr 2": ("--fpr", "got 2", "from 0 to 1"),
    "explain --epsilon 1 --fpr .1 --fpr x": ("--fpr", "'x'", "from 0 to 1"),
    "explain --epsilon 1 --adjacency both": ("--adjacency", "'both'", "add-remove, replace, zero-out"),
    # contradictions
    "explain --epsilon 1 --tvd .1": ("--epsilon 1", "--tvd 0.1", "exactly one of"),
    "explain --noise 1 --gdp 2": ("--noise 1", "--gdp 2", "exactly one of"),
    "explain --epsilon 1 --rate .1": ("--rate 0.1", "--noise", "--epsilon"),
    "explain --laplace 1 --steps 3": ("--steps 3", "--noise", "--laplace"),
    "explain --noise 1 --features 3": ("--features 3", "--randomized-response", "--noise"),
    "explain --noise 1 --records 100 --batch 10 --epochs 1 --rate .1": ("--rate 0.1", "--records 100", "not both"),
    f"choose --belief .7 --advantage .1 {TRAINING}": ("--belief 0.7", "--advantage 0.1", "exactly one of"),
    "choose --belief .7 --records 10 --batch 1 --epochs 1 --steps 3": ("--steps 3", "--records 10", "not both"),
    # something is missing
    "explain": ("--epsilon", "--tvd", "--gdp", "--noise", "--laplace", "--randomized-response", "exactly one"),
    "explain --delta 1e-5": ("--epsilon", "exactly one"),
    "explain --noise 1 --records 100 --epochs 1": ("--batch is missing", "--records, --batch, --epochs"),
    "choose": ("--belief", "--advantage", "--accuracy", "--tpr", "--ppv", "--epsilon", "exactly one"),
    f"choose {TRAINING}": ("--belief", "exactly one"),
    "choose --belief .75": ("--steps is missing", "--records --batch --epochs"),
    "choose --belief .75 --rate .1": ("--steps is missing",),
    f"choose --tpr .1 {TRAINING}": ("--fpr is missing", "--tpr"),
    f"choose --ppv .9 --prior .5 {TRAINING}": ("--fpr is missing", "--ppv"),
    # promises that no noise can keep
    f"choose --belief .5 {TRAINING}": ("--belief", "got 0.5", "above 0.5"),
    f"choose --belief .7 --prior .8 {TRAINING}": ("--belief", "got 0.7", "above 0.8"),
    f"choose --belief 1 {TRAINING}": ("--belief", "got 1", "strictly between 0 and 1"),
    f"choose --belief 75 {TRAINING}": ("--belief", "got 75", "strictly between 0 and 1", "did you mean 0.75?"),
    f"choose --advantage 0 {TRAINING}": ("--advantage", "got 0", "strictly between 0 and 1"),
    f"choose --accuracy .5 {TRAINING}": ("--accuracy", "got 0.5", "above 0.5"),
    f"choose --accuracy .8 --prior .1 {TRAINING}": ("--accuracy", "got 0.8", "above 0.9"),
    f"choose --tpr .01 --fpr .01 {TRAINING}": ("--tpr", "got 0.01", "above 0.01"),
    f"choose --tpr .5 --fpr 0 {TRAINING}": ("--fpr", "got 0", "strictly between 0 and 1"),
    f"choose --tpr .5 --fpr .1 --fpr .2 {TRAINING}": ("--fpr", "2 values", "once"),
    f"choose --ppv .5 --fpr .01 --prior .5 {TRAINING}": ("--ppv", "got 0.5", "above 0.5"),
    f"choose --success .1 {TRAINING}": ("--baseline is missing", "--success"),
    f"choose --success .1 --candidates 5 {TRAINING}": ("--success", "got 0.1", "above 0.2"),
    "explain --gdp 1 --candidates 5 --baseline .1": ("--candidates 5 contradicts --baseline",),
    "explain --gdp 1 --candidates 1": ("--candidates", "got 1", ">= 2"),
    f"choose --epsilon 1 --delta 0 {TRAINING}": ("--delta", "got 0", "strictly between 0 and 1"),
    f"choose --epsilon nan {TRAINING}": ("--epsilon", "nan", ">= 0"),
    "choose --advantage 1e-12 --steps 10": ("bound=1e-12", "no noise up to 1e+09"),
    # not ours at all
    "explain --epsilon 1 --bogus 3": ("--bogus",),
    "explain --epsilon 1 extra": ("extra",),
    f"choose --belief .75 --noise 1 {TRAINING}": ("--noise",),
    "bogus": ("bogus",),
    "--bogus": ("--bogus",),
}


@pytest.mark.parametrize("line", CASES)
def test_one_line_names_option_value_and_range(run: Run, line: str) -> None:
    outcome = run(*line.split())
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("deniable: ")
    assert outcome.err.endswith("\n")
    assert outcome.err.count("\n") == 1
    for part in CASES[line]:
        assert part in outcome.err


@pytest.mark.parametrize("text", ["", " ", "1 2", "1\n2", "\x1b[31m1", "½", "0x10", "1,5", "None", "--", "=1"])
def test_odd_text_is_refused_on_one_line(run: Run, text: str) -> None:
    outcome = run("explain", "--noise", text)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert outcome.err.isprintable() or outcome.err[:-1].isprintable()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(text=st.text(max_size=8) | st.floats().map(str) | st.integers().map(str))
def test_any_text_is_either_answered_or_refused(run: Run, text: str) -> None:
    outcome = run("explain", f"--epsilon={text}", "--json")
    assert outcome.code in (0, 2)
    if when(outcome.code == 0):
        assert outcome.document["scores"]["advantage"] <= 1
    else:
        assert outcome.err.count("\n") == 1


def test_a_library_that_finds_no_memory_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*given: object) -> None:
        raise ImportError("libparquet.so: failed to map segment from shared object")

    monkeypatch.setattr("deniable.answers.parse.parse_release", load)
    outcome = run("explain", "--epsilon", 1)
    assert outcome.code == 70
    assert outcome.err.startswith("deniable: out of memory: ask for less")


def test_what_the_disk_refuses_is_a_sentence() -> None:
    assert refusal_text(OSError(28, "No space left on device", "a/b.json")) == "a/b.json: No space left on device"
    assert refusal_text(OSError("no such run")) == "no such run"
