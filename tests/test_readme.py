"""Every block of README.md and of the tour runs, from an installed wheel, in an empty folder, and prints what it says.

Renew the outputs after a change of words with: python tests/test_readme.py
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLLOWED = (ROOT / "README.md", ROOT / "docs" / "tour.md")
TINY = "--trials 20 --steps 2 --records 20 --processes 1"
TINY_COMPARISON = (
    "--records 40 --classes 10 --central 16 --local 0.5 --repeats 1 --epochs 2 --attack threshold --processes 1"
)
KEPT = ("local", "global")
"""What `make audit` leaves behind."""
NOT_RUN = {
    "python3 -m venv .venv && . .venv/bin/activate": "the fixture makes a folder for it",
    "pip install .": "the fixture installs the wheel",
    "deniable serve": "does not end; tests/web runs it",
    "deniable serve --runs audit-out": "does not end; tests/web runs it",
    "deniable audit mnist --epsilon 2 --records 60000 --trials 0 --exposure --out exposed": "minutes",
}
"""Commands that are not run here, and why."""
SMALLER = {
    "deniable audit mnist": ("deniable audit digits", TINY),  # no download
    "deniable audit --data mine.csv": ("deniable audit --data mine.csv", TINY),
    "deniable report": ("deniable report", ""),
    "deniable compare purchases": ("deniable compare purchases", TINY_COMPARISON),
    "deniable compare location30": ("deniable compare purchases", TINY_COMPARISON),
}
"""Commands that are run with smaller sizes: how they begin, what stands there instead, and what is added."""
NETWORK = (
    "from torch import nn\ndef network():\n    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))\n"
)
OWN_FILES = """
import numpy as np, torch
from safetensors.torch import save_file
from mine import network
generator = np.random.default_rng(0)
features = generator.normal(size=(60, 4)).astype(np.float32)
labels = (features[:, 0] > 0).astype(np.int64)
np.savetxt("mine.csv", np.c_[features, labels], delimiter=",", header="a,b,c,d,y", comments="",
           fmt=["%.4f"] * 4 + ["%d"])
for name, part in (("members", slice(30)), ("others", slice(30, 60))):
    np.savez(f"{name}.npz", features=features[part], labels=labels[part])
save_file(network().state_dict(), "model.safetensors")
"""
"""What README takes for granted: data, a network and weights of one's own."""
CUT = "\n..."
BLOCK = re.compile(r"(?:^    .*\n(?:\n(?=    ))?)+", re.MULTILINE)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHECKED = re.compile(
    r"^(?P<call>[a-z](?:(?! = )[^#\n])*?)  # (?P<value>-?\d+(?:\.\d+)?|'[a-z ]+')(?P<more>\.\.\.)?.*$", re.MULTILINE
)


@dataclass(frozen=True)
class Command:
    """One line of README; `output` is None where README shows none, and ends with CUT where it shows the beginning."""

    line: str
    output: str | None


def commands(text: str) -> Iterator[Command]:
    """All of README's commands, in order."""
    for block in BLOCK.findall(CODE.sub("", text)):
        lines = [line[4:] for line in block.rstrip("\n").split("\n")]
        if lines[0].startswith("$ "):
            yield Command(lines[0][2:], "\n".join(lines[1:]))
        else:
            yield from (Command(line.split("  #")[0].strip(), None) for line in lines)


def installed(place: Path) -> Path:
    """A folder with the package as its wheel holds it; the sources are not used."""
    source = place / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "setup.py"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    quick = {**os.environ, "CC": "false"}  # the kernels are optional, and take longest
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *offline, "-w", str(place), str(source)], check=True, env=quick, capture_output=True)
    (wheel,) = place.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(place / "site"), str(wheel)], check=True)
    return place / "site"


DRIVER = """
import contextlib, io, json, sys
sys.path.insert(0, ".")  # as for a script that lies in the folder
from deniable.cli import main
outputs = []
for kind, text in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = 0
        if kind == "code":
            exec(compile(text, "README.md", "exec"), {"__name__": "__main__"})
        else:
            try:
                main(text)
            except SystemExit as left:
                code = left.code
    assert not code, (text, errors.getvalue())
    outputs.append(out.getvalue())
import deniable
print(json.dumps({"outputs": outputs, "from": deniable.__file__}))
"""
"""Runs code and commands one after another, in one process: torch is imported once."""


class Folder:
    """An empty folder in which README is followed."""

    def __init__(self, place: Path, site: Path) -> None:
        self.place, self.site = place, site
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {**kept, "PYTHONPATH": str(site), "COLUMNS": "80", "OMP_NUM_THREADS": "1"}

    def run(self, steps: list[tuple[str, str | list[str]]]) -> list[str]:
        """The outputs of code and of command lines; the package is the installed one."""
        done = subprocess.run(
            [sys.executable, "-c", DRIVER],
            input=json.dumps(steps),
            cwd=self.place,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        assert Path(found["from"]).is_relative_to(self.site)
        return ["\n".join(map(str.rstrip, output.rstrip("\n").split("\n"))) for output in found["outputs"]]


def shown_part(found: str, shown: str) -> str:
    """What was found, as far as README shows it: whole, or whole paragraphs from its beginning."""
    if not shown.endswith(CUT):
        return found
    paragraphs = shown.removesuffix(CUT).count("\n\n") + 1
    return "\n\n".join(found.split("\n\n")[:paragraphs]) + CUT


def to_run(line: str) -> str:
    """The command as it is run here."""
    for start, (instead, added) in SMALLER.items():
        if line.startswith(start):
            line = f"{instead}{line.removeprefix(start)} {added}"
    return line.replace(" --pdf", "")  # tests/report prints, where a browser is


def checked(code: str) -> str:
    """A block that fails where a value differs from the one in its comment."""

    def compared(found: re.Match[str]) -> str:
        call, value = found["call"], found["value"]
        if value.startswith("'"):
            return f"assert {call} == {value}, {call}"
        unit = f"10.0**-{len(value.partition('.')[2])}"
        low, high = (
            (f"{value} - 1e-12", f"{value} + {unit}") if found["more"] else (f"{value} - {unit}", f"{value} + {unit}")
        )
        return f"assert {low} <= float({call}) <= {high}, {call}"

    return CHECKED.sub(compared, code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    pytest.importorskip("torch", reason="README needs the extra 'train'")
    return Folder(tmp_path_factory.mktemp("empty"), installed(tmp_path_factory.mktemp("wheel")))


def follow(folder: Folder, text: str) -> dict[str, str]:
    """Run everything, in README's order but for what others need first; the outputs by command."""
    (folder.place / "mine.py").write_text(NETWORK)
    left = [f"deniable audit digits --belief .9 --sensitivity {name} {TINY} --out audit-out/{name}" for name in KEPT]
    lines = [command.line for command in commands(text) if command.line not in NOT_RUN]
    asked = [*left, *map(to_run, lines)]
    code = [("code", one) for one in (OWN_FILES, *map(checked, CODE.findall(text)))]
    outputs = folder.run([*code, *(("command", shlex.split(line)[1:]) for line in asked)])
    return dict(zip(lines, outputs[len(code) + len(left) :], strict=True))


def test_readme_does_what_it_says(folder: Folder) -> None:
    text = "\n".join(page.read_text() for page in FOLLOWED)
    found = follow(folder, text)
    assert len(found) >= 9
    for command in commands(text):
        if command.output is not None:
            assert shown_part(found[command.line], command.output) == command.output, command.line
    pages = ("audit-out/mnist", "audit-out/mine", "comparison")
    assert all((folder.place / page / "report.html").exists() for page in pages)
    assert (folder.place / "report.html").exists()


def test_an_output_may_be_cut_between_paragraphs() -> None:
    found = "One\ntwo.\n\nThree.\n\nFour."
    assert shown_part(found, "anything") == found
    assert shown_part(found, f"Old.\n\nOld.{CUT}") == f"One\ntwo.\n\nThree.{CUT}"


def test_a_wrong_value_in_a_block_is_caught() -> None:
    """The check can fail: digits that differ, and words that differ."""
    for wrong in ("x = 0.8918\nx.real  # 0.8916...", "x = 'consistent'\nx.lower()  # 'violated'"):
        with pytest.raises(AssertionError):
            exec(checked(wrong), {})
    exec(checked("x = 0.89188\nx.real  # 0.8918...\nx.imag  # 0.0"), {})


def renew() -> None:
    """Put the outputs of today into the pages."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "empty").mkdir()
        folder = Folder(Path(place) / "empty", installed(Path(place)))
        found = follow(folder, "\n".join(page.read_text() for page in FOLLOWED))

    def renewed(block: re.Match[str]) -> str:
        first = block[0].split("\n")[0]
        if not first.startswith("    $ "):
            return block[0]
        before = "\n".join(line[4:] for line in block[0].rstrip("\n").split("\n")[1:])
        output = "\n".join(f"    {line}".rstrip() for line in shown_part(found[first[6:]], before).split("\n"))
        return f"{first}\n{output}\n"

    for page in FOLLOWED:
        parts = re.split(r"(^```python\n.*?^```)", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        page.write_text("".join(part if part.startswith("```python") else BLOCK.sub(renewed, part) for part in parts))


if __name__ == "__main__":
    renew()
