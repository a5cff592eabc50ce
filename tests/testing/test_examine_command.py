"""`deniable examine`: exit codes, JSON, SARIF, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from deniable.cli import main

ROOT = Path(__file__).parents[2]
SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn

CLAIM = dn.Training(noise=1.0, rate=1.0, steps=6, adjacency="add-remove")
NUMBER = 3


def train(noise=1.0):
    print("a word on standard output")
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(20, 30), torch.randint(0, 3, (20,)))
    model = nn.Linear(30, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=20)
    run = dn.watch_run(model, optimizer, loader, clip=1.0, divisor=20, budget=1.0)
    for _ in range(6):
        for features, labels in loader:
            total = [torch.zeros_like(p) for p in model.parameters()]
            for one, label in zip(features, labels):
                loss = nn.functional.cross_entropy(model(one[None]), label[None])
                parts = torch.autograd.grad(loss, list(model.parameters()))
                norm = sum(part.square().sum() for part in parts) ** 0.5
                total = [t + part * min(1.0, 1.0 / float(norm)) for t, part in zip(total, parts)]
            for p, t in zip(model.parameters(), total):
                p.grad = (t + noise * torch.randn(t.shape)) / 20
            optimizer.step()
    return run


def quiet():
    return train(0.2)


def loud():
    return train(3.0)


def fails():
    raise KeyError("mine")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    place = tmp_path / "training.py"
    place.write_text(SCRIPT)
    return place


def examine(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own; most tests stay in this one, which has imported torch."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    command = [sys.executable, "-m", "deniable", "examine", *arguments]
    return subprocess.run(
        command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


Here = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def examine_here(script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        with chdir(script.parent), pytest.raises(SystemExit) as left:
            main(["examine", *arguments])
        shown = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(left.value.code or 0), shown.out, shown.err)

    return run


NUMBERS = ("--noise", "1", "--rate", "1", "--steps", "6")


def test_a_right_script_exits_with_0(script: Path) -> None:
    done = examine(script, "training.py:train", *NUMBERS, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "consistent"
    assert "a word on standard output" in done.stderr


def test_a_violated_claim_exits_with_1_and_names_the_line(script: Path, examine_here: Here) -> None:
    done = examine_here("training.py:quiet", "--claimed", "CLAIM", "--sarif", "found.sarif")
    line = next(n for n, text in enumerate(SCRIPT.splitlines(), 1) if "torch.randn(t.shape)" in text)
    assert done.returncode == 1, done.stderr
    assert f"training.py:{line}: p.grad = (t + noise" in done.stdout
    assert done.stdout.startswith("Violated: the noise has 0.2")
    (found,) = json.loads((script.parent / "found.sarif").read_text())["runs"][0]["results"]
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == line


def test_another_recipe_exits_with_3(examine_here: Here) -> None:
    assert examine_here("training.py:loud", *NUMBERS).returncode == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("training.py:fails", *NUMBERS), "training.py:fails raised KeyError: 'mine'"),
        (("training.py:missing", *NUMBERS), "has nothing named 'missing'"),
        (("training.py:NUMBER", *NUMBERS), "must be a function that trains"),
        (("absent.py:train", *NUMBERS), "there is no file 'absent.py'"),
        (("no_such_module:train", *NUMBERS), "no module 'no_such_module'"),
        (("training.py", *NUMBERS), "must name a script and a function"),
        (("training.py:train", "--noise", "1"), "--rate is missing"),
        (("training.py:train", "--claimed", "NUMBER"), "dn.Training(noise"),
        (("training.py:train", *NUMBERS, "--budget", "soon"), "budget must be a time such as '30 s'"),
        (("training.py:train", *NUMBERS, "--adjacency", "next"), "add-remove"),
    ],
)
def test_a_refusal_exits_with_2_and_one_line(examine_here: Here, arguments: tuple[str, ...], said: str) -> None:
    refused = examine_here(*arguments)
    assert refused.returncode == 2
    assert said in refused.stderr.splitlines()[-1]
    assert refused.stdout == ""
