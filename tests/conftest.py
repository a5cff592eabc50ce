"""What every test shares: repeatable property tests, and the real data if this machine has it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

import draws
from deniable.store import FILE, Store
from slow import is_slow

TESTS = Path(__file__).parent

# The test command gives the same verdict every time; `pytest --hypothesis-profile=search` looks for new failures.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("repeatable")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m 'not slow'` does not even import whole files and folders that are slow: that alone takes seconds."""
    place = collection_path.relative_to(TESTS).as_posix() if collection_path.is_relative_to(TESTS) else ""
    asked = config.getoption("markexpr") == "not slow"
    return True if asked and is_slow(f"{place}/" if collection_path.is_dir() else place) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make quick` leaves out; see slow.py."""
    for item in items:
        if is_slow(item.nodeid.removeprefix("tests/")):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Python looks for memory to clear a hundredth as often, and not through what was imported: 7 % of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(70_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Every property is checked on a floor of draws; see draws.py."""
    test = getattr(item, "obj", None)
    if not is_hypothesis_test(test):
        return (yield)
    asked = test._hypothesis_internal_use_settings.max_examples
    with draws.counted(test, draws.floor(item, asked)):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def quick_seeds() -> Iterator[None]:
    """`torch.manual_seed` seeds processors that are not there, and writes the whole stack down for each: 3 ms a call.

    Trainings under test call it a hundred times in one examination. Where no other processor is at hand, only the
    CPU's generator is seeded.
    """
    torch = sys.modules.get("torch")
    absent = [] if torch is None else [kind for kind in (torch.cuda, torch.xpu, torch.mtia) if not kind.is_available()]
    with pytest.MonkeyPatch.context() as patch:
        for kind in absent:
            patch.setattr(kind, "manual_seed_all", lambda seed: None)
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The directory of real data sets; the test is skipped where there is none."""
    place = os.environ.get("DENIABLE_DATA")
    if not place:
        pytest.skip("real data is not on this machine: set DENIABLE_DATA to its directory")
    if not Path(place).is_dir():
        pytest.fail(f"DENIABLE_DATA must be a directory, got {place!r}")
    return Path(place)


@pytest.fixture(scope="session")
def damage_block() -> Callable[[Path, int], None]:
    """`damage_block(place, 3)` flips one bit in the middle of block 3 of the campaign in `place`."""

    def damage(place: Path, number: int) -> None:
        with Store(place, resume=True) as store:
            record = store._file.record(number)
        content = bytearray((place / FILE).read_bytes())
        content[record.start + record.length // 2] ^= 1
        (place / FILE).write_bytes(content)

    return damage
