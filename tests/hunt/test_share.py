"""The share of the hunt that every `make test` runs: new cases for each commit, the same for whoever checks it out."""

from __future__ import annotations

import subprocess
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from hunt.__main__ import GROUNDS

CASES = {"theory": 60, "statistics": 12, "inputs": 40, "trainings": 2}
"""A ground's cases in a share: half a minute of CPU for theory, and another for the others; `make hunt` draws more."""
PART = 20
"""Cases of one test, so that no core waits for another that has them all."""
WITHOUT_GIT = "no commit"


def commit() -> str:
    """The commit that is checked out; a fixed word where there is no repository."""
    try:
        asked = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return WITHOUT_GIT
    return asked.stdout.strip()


def seeds(ground: str, at: str) -> list[int]:
    """A ground's seeds at a commit."""
    draw = Random(f"{ground} at {at}")
    return [draw.getrandbits(48) for _ in range(CASES[ground])]


def test_every_ground_has_a_share() -> None:
    assert set(CASES) == set(GROUNDS)


def test_seeds_follow_from_the_commit() -> None:
    assert seeds("theory", "a") == seeds("theory", "a")
    assert not set(seeds("theory", "a")) & set(seeds("theory", "b"))


@pytest.mark.parametrize(
    ("ground", "start"), [(ground, at) for ground in CASES for at in range(0, CASES[ground], PART)]
)
def test_nothing_is_found(ground: str, start: int) -> None:
    if find_spec(f"hunt.{ground}") is None:
        pytest.skip(f"hunt/{ground}.py is not there yet")
    module = import_module(f"hunt.{ground}")
    look = getattr(module, "look_patiently", module.look)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        part = seeds(ground, commit())[start : start + PART]
        finds = [(seed, found) for seed in part if (found := look(seed)) is not None]
    shown = "\n".join(f"python -m hunt {ground} --seed {seed}\n{found}" for seed, found in finds)
    assert not finds, f"{len(finds)} finds; each becomes a test:\n{shown}"
