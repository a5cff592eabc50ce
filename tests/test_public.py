"""The public names and their signatures: changed only on purpose, and explicit."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import deniable as dn

KEPT = Path(__file__).with_name("public.txt")
COMMANDS = (
    *("index_records", "log_to_mlflow", "watch_lightning", "watch_trainer"),
    *(
        "attack",
        "audit",
        "canaries",
        "check_training",
        "choose",
        "compare",
        "examine",
        "explain",
        "frontier",
        "reproduce",
        "verdict",
    ),
    "watch_run",
)


def shown() -> str:
    """One line for every public name."""
    return "".join(f"{name}{_signature(getattr(dn, name))}\n" for name in sorted(dn.__all__))


def _signature(thing: object) -> str:
    """Of functions, and of what people build: mechanisms, promises, trainings."""
    built = isinstance(thing, type) and issubclass(thing, dn.Mechanism | dn.Promise | dn.Training)
    return str(inspect.signature(thing)) if inspect.isfunction(thing) or built else ""


def test_names_and_signatures_are_as_they_were() -> None:
    """Renew with: python tests/test_public.py > tests/public.txt, and tell of it in CHANGELOG.md."""
    assert shown() == KEPT.read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_functions_with_explicit_and_documented_parameters(name: str) -> None:
    function = getattr(dn, name)
    assert inspect.isfunction(function)
    parameters = inspect.signature(function).parameters.values()
    assert not [one for one in parameters if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    assert all(one.annotation is not one.empty for one in parameters)
    told = inspect.getdoc(function) or ""
    assert [one.name for one in parameters if one.name not in told] == []


def test_public_names_are_found() -> None:
    """In a fresh process: completion sees what exists, and nothing that trains is imported for it."""
    program = (
        "import deniable as dn, sys; assert set(dn.__all__) <= set(dir(dn)); "
        "assert {'bounds', 'data', 'local', 'training', 'results'} <= set(dir(dn)); assert 'torch' not in sys.modules; "
        "dn.explain(dn.Gaussian(1.0)); dn.choose(dn.Gaussian, dn.Advantage(0.5)); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    print(shown(), end="")
