"""The `race` fixture and the table of ratios at the end of `make bench`; see README.md beside this file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console

from ratios import ROUNDS, Ratio, Result, fastest, table

RATIOS = pytest.StashKey[list[Ratio]]()


class Race(Protocol):
    def __call__(
        self,
        title: str,
        ours: Callable[[], Result],
        peers: Mapping[str, Callable[[], Result]],
        error: Callable[[Result], float] | None = None,
    ) -> list[Ratio]: ...


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RATIOS] = []


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[Ratio], None]:
    """Puts a line into the table, for a benchmark that takes its times itself."""
    return request.config.stash[RATIOS].append


@pytest.fixture
def race(benchmark: BenchmarkFixture, record: Callable[[Ratio], None]) -> Race:
    """Times ours by pytest-benchmark, then every peer; `error` says how far a result is from the truth."""

    def run(
        title: str,
        ours: Callable[[], Result],
        peers: Mapping[str, Callable[[], Result]],
        error: Callable[[Result], float] | None = None,
    ) -> list[Ratio]:
        our_result = benchmark.pedantic(ours, rounds=ROUNDS)
        our_error = error(our_result) if error else None
        ratios = []
        for peer, theirs in peers.items():
            seconds, result = fastest(theirs)
            ratios.append(
                Ratio(title, peer, benchmark.stats["min"], seconds, our_error, error(result) if error else None)
            )
            record(ratios[-1])
        return ratios

    return run


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if ratios := config.stash[RATIOS]:
        console = Console(width=150, color_system=None)
        with console.capture() as text:
            console.print(table(ratios))
        terminalreporter.section("ratios in this run")
        terminalreporter.write(text.get())
