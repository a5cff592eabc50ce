"""The store: whole blocks or none, one process at a time, the same settings or a refusal that names the difference."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.store import FILE, Store, StoreError, canonical

SETTINGS = {"seed": 1, "noise": 0.1, "model": "digits", "nothing": None}
BLOCK = {
    "bits": np.array([True, False]),
    "ratio": np.array([[0.1, -np.pi], [5e-324, 1e308]]),
    "empty": np.zeros((0, 3), dtype=np.float32),
}


def test_arrays_come_back_bit_by_bit(tmp_path: Path) -> None:
    with Store(tmp_path / "new" / "place", SETTINGS) as store:
        store.save(3, BLOCK)
        store.save(0, BLOCK)
    with Store(tmp_path / "new" / "place", SETTINGS, resume=True) as store:
        assert store.finished() == [0, 3]
        loaded = store.load(3)
    assert loaded.keys() == BLOCK.keys()
    for name, array in BLOCK.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert loaded[name].tobytes() == array.tobytes()


@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False) | st.integers()))
def test_equal_settings_have_one_text(chosen: dict[str, float]) -> None:
    assert canonical(chosen) == canonical(dict(reversed(chosen.items())))


def test_a_campaign_is_not_continued_by_accident(tmp_path: Path) -> None:
    with Store(tmp_path, SETTINGS) as store:
        store.save(0, BLOCK)
    with pytest.raises(StoreError, match=r"already holds a campaign .1 blocks finished.: go on with --resume"):
        Store(tmp_path, SETTINGS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 2}, "seed was 1, now 2"),
        ({"noise": 0.1 + 2e-17 + 1e-16}, "noise was 0.1, now 0.1000000000000001"),
        ({"model": "other"}, 'model was "digits", now "other"'),
        ({"added": 5}, "added was null, now 5"),
    ],
)
def test_changed_settings_are_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    Store(tmp_path, SETTINGS).__exit__(None, None, None)
    with pytest.raises(StoreError) as refused:
        Store(tmp_path, SETTINGS | change, resume=True)
    assert said in str(refused.value)
    assert str(refused.value).count(" was ") == 2  # "was begun" and the one difference


def test_a_second_process_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    program = f"import deniable.store as s; s.Store({str(tmp_path)!r}, {SETTINGS!r}, resume=True)"
    with Store(tmp_path, SETTINGS) as store:
        second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "another process is working in" in second.stderr
        store.save(0, BLOCK)
        with pytest.raises(StoreError, match="another process"):
            Store(tmp_path, SETTINGS, resume=True)
    third = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert third.returncode == 0, third.stderr


def test_a_block_is_saved_once(tmp_path: Path) -> None:
    with Store(tmp_path, SETTINGS) as store:
        store.save(0, BLOCK)
        with pytest.raises(StoreError):
            store.save(0, BLOCK)
        store.save(1, BLOCK)
        assert store.finished() == [0, 1]


def test_pickles_are_never_written(tmp_path: Path) -> None:
    with Store(tmp_path, SETTINGS) as store:
        with pytest.raises(ValueError, match="pickle"):
            store.save(0, {"objects": np.array([{}], dtype=object)})
        assert store.finished() == []


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with Store(tmp_path, SETTINGS) as store:
        store.save(0, BLOCK)
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to run out of space
        with pytest.raises(StoreError, match=r"no space is left .* free some and resume"):
            store.save(1, {"large": np.zeros(10_000)})
        assert store.finished() == [0]
    with Store(tmp_path, SETTINGS, resume=True) as store:
        assert store.load(0)["ratio"].tobytes() == BLOCK["ratio"].tobytes()


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made or written"):
        Store(tmp_path / "file", SETTINGS)
    with pytest.raises(StoreError, match="cannot be made or written"):
        Store("/proc/nowhere", SETTINGS)
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path, SETTINGS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path, SETTINGS)


def test_a_foreign_or_altered_file(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, but long enough to look like one" * 40)
    with pytest.raises(StoreError, match="not a campaign's file"):
        Store(tmp_path, SETTINGS)
    Store(tmp_path / "altered", SETTINGS).__exit__(None, None, None)
    with sqlite3.connect(tmp_path / "altered" / FILE) as database:
        database.execute("UPDATE campaign SET settings = '{}'")
    database.close()
    with pytest.raises(StoreError, match="damaged"):
        Store(tmp_path / "altered", SETTINGS, resume=True)


def test_kill_9_in_the_middle_of_saving(tmp_path: Path) -> None:
    program = f"""
import numpy as np, itertools
from deniable.store import Store
store = Store({str(tmp_path)!r}, {SETTINGS!r})
for number in itertools.count():
    store.save(number, {{"a": np.full(20_000, number), "b": np.full(20_000, number)}})
    print(number, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(5)]
        process.send_signal(signal.SIGKILL)
        said += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    with Store(tmp_path, SETTINGS, resume=True) as store:
        kept = store.finished()
        assert kept == list(range(len(kept)))
        assert len(kept) >= len(said)
        for number in kept:
            block = store.load(number)
            assert block.keys() == {"a", "b"}
            assert all((array == number).all() for array in block.values())
