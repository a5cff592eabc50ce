"""`deniable report`: files, one line for whatever is wrong, and the command that a run can be had again with."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.cli import main
from deniable.report import read
from deniable.results.base import plain


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


def test_a_page_is_written_where_asked(
    capsys: pytest.CaptureFixture[str], runs: dict[str, Path], tmp_path: Path
) -> None:
    code, out, err = run(capsys, "report", runs["verdict"], runs["verdict"], "--out", tmp_path / "all.html")
    assert (code, out, err) == (0, f"{tmp_path / 'all.html'}\n", "")
    assert (tmp_path / "all.html").read_text().startswith("<!doctype html>")
    code, out, _ = run(capsys, "report", runs["verdict"], "--out", tmp_path / "one.html", "--json")
    found = json.loads(out)
    assert (found["schema"], found["bytes"]) == ("deniable/report/1", (tmp_path / "one.html").stat().st_size)


def test_it_is_written_here_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str], runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "report", runs["verdict"])[:2] == (0, "report.html\n")
    assert Path("report.html").exists()


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and no program to be found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "there is no run nowhere"),
        ((), "RUN"),
        (("{audit}", "--out", "{audit}/audit.json"), "must be a file that ends in .html"),
        (("{verdict}", "--out", "/proc/nowhere/x.html"), "cannot be written"),
        (("{verdict}", "--pdf", "--out", "{place}/x.html"), "install chromium"),
    ],
)
def test_one_line_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], runs: dict[str, Path], alone: Path, arguments: tuple[str, ...], said: str
) -> None:
    filled = [argument.format(**runs, place=alone) for argument in arguments]
    code, out, err = run(capsys, "report", *filled)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def again(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    program, *arguments = shlex.split(command)
    assert program == "deniable"
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)  # type: ignore[no-any-return]


def test_the_commands_of_the_records_give_the_same_figures(
    capsys: pytest.CaptureFixture[str], runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # --exposure writes where it stands
    for kind, same in (("audit", ("input", "measured", "course", "exposure")), ("compare", ("input", "levels"))):
        document = plain(read(runs[kind]).result)
        found = again(document["provenance"]["command"], capsys)
        assert {name: found[name] for name in same} == {name: document[name] for name in same}
        assert found["provenance"] == document["provenance"]


def test_own_files_and_scores_are_named_in_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    rows = np.column_stack([generator.random((40, 64)), np.arange(40) % 10])
    names = ",".join([*(f"x{i}" for i in range(64)), "the class"])
    np.savetxt("my data; $(x).csv", rows, delimiter=",", header=names, comments="")
    settings = "--epsilon 3 --records 12 --trials 10 --steps 2 --processes 1 --model digits --adjacency add-remove"
    own = ("--data", "my data; $(x).csv", "--label", "the class", *settings.split(), "--json")
    document = json.loads(run(capsys, "audit", *own)[1])
    assert again(document["provenance"]["command"], capsys)["measured"] == document["measured"]
    assert document["provenance"]["shape"] == [40, 64]
    Path("-s.csv").write_text("score,member\n" + "\n".join(f"{i % 7},{i % 2}" for i in range(60)))
    judged = run(capsys, "verdict", "./-s.csv", "--claimed-epsilon", 2, "--delta", "1e-5", "--noise", 2, "--json")
    document = json.loads(judged[1])
    assert again(document["provenance"]["command"], capsys) == document


def test_what_the_command_line_cannot_say_is_a_python_call_or_nothing() -> None:
    tiny: dict[str, Any] = {"noise": 5.0, "trials": 4, "records": 10, "steps": 2, "processes": 1}
    unusual = dn.audit("digits", trials_per_block=2, **tiny)
    program = shlex.split(unusual.provenance.command)
    assert program[:2] == ["python", "-c"]
    call = program[2].removeprefix("import deniable as dn; print(").removesuffix(".to_json())")
    assert eval(call, {"dn": dn}).measured == unusual.measured
    nameless = dn.audit(lambda: (np.eye(20, 64), np.arange(20) % 10), model="digits", **tiny)
    assert nameless.provenance.command is None


def test_a_record_is_read_and_drawn_without_torch(runs: dict[str, Path], tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from deniable.cli import main; main()"
    command = [sys.executable, "-c", program, "report", runs["audit"], "--out", tmp_path / "x.html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
