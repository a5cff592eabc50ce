"""The pytest plugin in a pytest of its own, as users have it: installed by its entry point."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "privacy_test"
OTHER_PLUGINS = ("anyio", "benchmark", "cacheprovider", "hypothesispytest", "schemathesis")
"""Ours are not tried with these: importing them takes most of a short pytest's time."""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder from which Python believes the plugin to be installed."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    place = tmp_path / "installed" / "deniable_plugin-0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: deniable-plugin\nVersion: 0\n")
    lines = "".join(f"{name} = {module}\n" for name, module in told.items())
    (place / "entry_points.txt").write_text(f"[pytest11]\n{lines}")
    return place.parent


def run_pytest(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(one) for one in (ROOT / "src", installed))
    without = [f"-pno:{name}" for name in OTHER_PLUGINS]
    command = [sys.executable, "-m", "pytest", *without, "-q", *arguments]
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_example_tells_right_from_wrong(installed: Path, tmp_path: Path) -> None:
    junit, sarif = tmp_path / "junit.xml", tmp_path / "out" / "privacy.sarif"
    arguments = (f"--junitxml={junit}", f"--privacy-sarif={sarif}")
    done = run_pytest(installed, EXAMPLE, *arguments)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    source = (EXAMPLE / "broken" / "broken_training.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "randn_like(total)" in text)
    assert f"broken/broken_training.py:{line}: weight.grad = (total + NOISE" in done.stdout
    assert re.search(r"Violated: the noise has 0\.(2[5-9]\d*|3([0-5]\d*)?) x the claimed", done.stdout)
    assert "with probability at most 0.001" in done.stdout
    properties = [(one.get("name"), one.get("value")) for one in ElementTree.parse(junit).iter("property")]
    assert ("privacy.verdict", "consistent") in properties
    assert ("privacy.verdict", "violated") in properties
    assert ("privacy.place", f"broken/broken_training.py:{line}") in properties
    assert ("privacy.false_alarm_rate", "0.001") in properties
    (found,) = json.loads(sarif.read_text())["runs"][0]["results"]
    location = found["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "broken/broken_training.py", "uriBaseId": "%SRCROOT%"}
    assert location["region"]["startLine"] == line
    assert found["properties"]["test"].endswith("test_broken_training.py::test_private")


TESTS = """
import deniable as dn, pytest

def judged(verdict, text):
    from deniable.results import RunResult
    from deniable.results.run_result import RunCheck, RunInput
    outcome = {"violated": "less private", "cannot judge": "not shown"}.get(verdict, "as claimed")
    return RunResult(
        input=RunInput(noise=1.0, rate=1.0, steps=2, adjacency="add-remove", confidence=0.99), verdict=verdict,
        verdict_text=text, checks=(RunCheck(name="noise", outcome=outcome, observed=text, expected="1"),),
        not_shown=(), claimed_advantage=0.4, claimed_belief=0.9, steps=2, examined_steps=2, recomputed=(0, 1),
        noise_ratios=(1.0, 1.0), least_visible_noise=0.9, watcher_share=0.1)

def test_right(privacy):
    privacy.require(judged("consistent", "all is well"))

@pytest.mark.parametrize("number", range(3))
def test_wrong(privacy, number):
    privacy.require(judged("violated", f"leak {number}"), at=judged)

def test_open(privacy):
    privacy.require(judged("cannot judge", "too little was shown"))

def test_open_and_known(privacy):
    privacy.require(judged("cannot judge", "too little was shown"), unjudged="skip")

def test_without_privacy():
    pass
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_verdicts_are_outcomes_also_with_xdist(installed: Path, tmp_path: Path, workers: tuple[str, ...]) -> None:
    """*Cannot judge* is not green: it fails, or is skipped where the test says so."""
    (tmp_path / "test_some.py").write_text(TESTS)
    junit, sarif = tmp_path / "junit.xml", tmp_path / "privacy.sarif"
    arguments = ("-rs", *workers, f"--junitxml={junit}", f"--privacy-sarif={sarif}", "-W", "error")
    done = run_pytest(installed, tmp_path, *arguments)
    assert re.search(r"4 failed, 2 passed, 1 skipped", done.stdout), done.stdout + done.stderr
    assert "test_some.py:4: def judged(verdict, text):" in done.stdout
    assert "too little was shown" in done.stdout
    results = json.loads(sarif.read_text())["runs"][0]["results"]
    told = sorted((one["level"], one["message"]["text"]) for one in results)
    leaks = [("error", f"Leak {number}.") for number in range(3)]
    assert told == [*leaks, *[("warning", "Too little was shown.")] * 2]
    verdicts = [
        one.get("value") for one in ElementTree.parse(junit).iter("property") if one.get("name") == "privacy.verdict"
    ]
    assert sorted(verdicts) == ["cannot judge"] * 2 + ["consistent"] + ["violated"] * 3


def test_it_can_be_turned_off(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    done = run_pytest(installed, tmp_path, "-p", "no:deniable", "-k", "right")
    assert "fixture 'privacy' not found" in done.stdout


def test_whoever_does_not_use_it_pays_nothing(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import sys\n\ndef test_light():\n"
        "    assert 'pytest_deniable' in sys.modules\n"
        "    assert not {'deniable', 'torch', 'numpy', 'scipy'} & set(sys.modules)\n"
    )
    done = run_pytest(installed, tmp_path)
    assert done.returncode == 0, done.stdout
    assert not list(tmp_path.glob("*.sarif"))
