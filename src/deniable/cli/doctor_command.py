"""`deniable doctor`: what is installed, what is missing, and how fast this machine is."""

# ruff: noqa: PLC0415 (imports inside the command, so that help is quick)

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from functools import partial
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import typer

from deniable.cli.common import print_parts
from deniable.cli.options import Json

if TYPE_CHECKING:
    from deniable.results.doctor_result import DoctorResult, Package

EXAMPLES = "Examples:\n\ndeniable doctor\n\ndeniable doctor --json"
_USES = (
    ("numpy", "every number", "deniable"),
    ("scipy", "every number", "deniable"),
    ("pyarrow", "tables: CSV and Parquet", "deniable"),
    ("torch", "audits, comparisons, attacks", "deniable[train]"),
    ("scikit-learn", "data and metrics of trainings", "deniable[train]"),
    ("matplotlib", "pictures", "deniable[report]"),
    ("jinja2", "reports", "deniable[report]"),
    ("fastapi", "the planner in the browser", "deniable[web]"),
    ("uvicorn", "the planner in the browser", "deniable[web]"),
    ("opacus", "an exact accountant and a watcher for Opacus", "deniable[opacus]"),
    ("ray", "campaigns on many machines", "deniable[ray]"),
)
"""Name, what it gives, and the requirement that brings it."""
_SIDE, _REPEATS = 1024, 5


def doctor(json: Json = False) -> None:
    """Say what is installed, what is missing and how to get it, and how fast this machine is."""
    found = examine_machine()
    if json:
        typer.echo(found.to_json())
    else:
        print_parts(list(_parts(found)))


def examine_machine() -> DoctorResult:
    """Installed packages, compiled kernels and speed, measured now: it takes about a second."""
    from deniable import __version__
    from deniable.data.neighbours import cores
    from deniable.results.doctor_result import DoctorResult

    return DoctorResult(
        version=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cores=cores(),
        packages=tuple(_package(*use) for use in _USES),
        kernels=kernel_state(),
        epsilon_milliseconds=_epsilon_milliseconds(),
        gigaflops=_gigaflops(),
    )


def _package(name: str, gives: str, requirement: str) -> Package:
    from deniable.results.doctor_result import Package

    try:
        found = version(name)
    except PackageNotFoundError:
        found = None
    return Package(name=name, version=found, gives=gives, install=f"pip install '{requirement}'")


def kernel_state() -> str:
    """The state of the compiled kernels, also where torch is missing, so that nothing is trained yet."""
    try:
        from deniable.training.kernels import STATE
    except ModuleNotFoundError:  # torch
        place = str(Path(__file__).parents[1] / "training")
        found = PathFinder.find_spec("_kernels", [place])
        return "built, for trainings with torch" if found else "not built: install GCC or Clang and deniable again"
    return STATE


def _epsilon_milliseconds() -> float:
    from deniable.mechanisms import Adjacency, Gaussian
    from deniable.scores import privacy_loss

    def ask(noise: float) -> None:
        privacy_loss(Gaussian(noise).subsampled(0.01).composed(10_000), Adjacency.ADD_REMOVE).epsilon(1e-5)

    ask(1.0)  # tables that are made once
    return 1000 * median(_seconds(partial(ask, 1 + place / 100)) for place in range(1, 1 + _REPEATS))


def _gigaflops() -> float:
    import numpy as np

    left = np.ones((_SIDE, _SIDE), np.float32)
    return 2 * _SIDE**3 / 1e9 / min(_seconds(lambda: left @ left) for _ in range(_REPEATS))


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _parts(found: DoctorResult) -> Iterator[object]:
    from rich.markup import escape
    from rich.table import Table

    yield f"deniable {found.version}, Python {found.python}, {found.system}, {found.cores} cores."
    table = Table(box=None, pad_edge=False)
    for title in ("package", "version", "gives"):
        table.add_column(title)
    for one in found.packages:
        gives = one.gives if one.version else escape(f"{one.gives}: {one.install}")  # brackets are no markup
        table.add_row(one.name, one.version or "missing", gives)
    yield table
    yield f"Compiled kernels of the training engine: {found.kernels}."
    yield (
        f"An exact epsilon of 10,000 sampled steps takes {found.epsilon_milliseconds:.1f} ms; "
        f"matrix products run at {found.gigaflops:.0f} GFLOP/s in single precision."
    )
