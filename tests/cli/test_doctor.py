"""`deniable doctor` tells what is there and what is not, and how to get it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import pytest

from deniable.cli import doctor_command

from .conftest import Run


def test_doctor_tells_versions_and_speed(run: Run) -> None:
    found = run("doctor", "--json").document
    assert found["schema"] == "deniable/doctor/1"
    assert {one["name"]: one["version"] for one in found["packages"]}["numpy"] == version("numpy")
    assert found["epsilon_milliseconds"] > 0 < found["gigaflops"]
    shown = run("doctor").out
    assert f"deniable {found['version']}, Python {found['python']}" in shown
    assert version("scipy") in shown


def test_what_is_missing_is_said_with_the_way_to_get_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str) -> str:
        if name == "ray":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor_command, "version", lacking)
    shown = " ".join(run("doctor").out.split())
    assert "ray missing campaigns on many machines: pip install 'deniable[ray]'" in shown


def test_doctor_needs_no_torch() -> None:
    """And tells whether the compiled part came with the installation."""
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from deniable.cli.doctor_command import examine_machine\n"
        "print(examine_machine().kernels)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    built = find_spec("deniable.training._kernels") is not None
    assert done.stdout.startswith("built" if built else "not built: install GCC or Clang")
