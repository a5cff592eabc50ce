"""The store: whole blocks or none, one process at a time, the same settings or a refusal that names the difference."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.store import FILE, Store, StoreError, canonical, kept, read_document, replace_file, write_document

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
        assert store.finished_blocks() == [0, 3]
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
        assert store.finished_blocks() == [0, 1]


def test_pickles_are_never_written(tmp_path: Path) -> None:
    with Store(tmp_path, SETTINGS) as store:
        with pytest.raises(ValueError, match="pickle"):
            store.save(0, {"objects": np.array([{}], dtype=object)})
        assert store.finished_blocks() == []


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Store(tmp_path, SETTINGS) as store:
        store.save(0, BLOCK)
        before = (tmp_path / FILE).read_bytes()
        with monkeypatch.context() as disk:
            disk.setattr(os, "fsync", full)
            with pytest.raises(StoreError, match=r"no space is left .* free some and resume"):
                store.save(1, {"large": np.zeros(10_000)})
        assert store.finished_blocks() == [0]
        assert (tmp_path / FILE).read_bytes() == before
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


def test_a_foreign_or_old_file(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a campaign, but long enough to look like one" * 40)
    with pytest.raises(StoreError, match="not a campaign's file"):
        Store(tmp_path, SETTINGS, resume=True)
    (tmp_path / FILE).rename(tmp_path / "trials.sqlite")
    with pytest.raises(StoreError, match=r"written by deniable 0\.1\.0"):
        Store(tmp_path, SETTINGS, resume=True)


def campaign(place: Path, blocks: int = 4) -> bytes:
    """The file of a small campaign."""
    with Store(place, SETTINGS) as store:
        for number in range(blocks):
            store.save(number, {**BLOCK, "number": np.full(20, number)})
    return (place / FILE).read_bytes()


def test_every_flipped_bit_is_noticed_and_costs_one_block(tmp_path: Path) -> None:
    """Anywhere in the file: reading names the damage, and resuming keeps all blocks but the damaged one."""
    content = campaign(tmp_path)
    draw = random.Random(1)
    for bit in draw.sample(range(8 * len(content)), 200):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / FILE).write_bytes(flipped)
        with pytest.raises(StoreError, match=r"trials\.blocks is damaged in (block|the settings|a block whose number)"):
            kept(tmp_path)
        with Store(tmp_path, SETTINGS, resume=True) as store:
            missing = [number for number in range(4) if number not in store.finished_blocks()]
            assert len(missing) <= 1
            for number in missing:
                store.save(number, {**BLOCK, "number": np.full(20, number)})
        settings_held, blocks = kept(tmp_path)  # mended: nothing is damaged any more
        assert settings_held == SETTINGS
        assert [int(block["number"][0]) for block in blocks] == [0, 1, 2, 3]


def test_the_damaged_block_is_named(
    tmp_path: Path, damage_block: Callable[[Path, int], None], caplog: pytest.LogCaptureFixture
) -> None:
    campaign(tmp_path)
    damage_block(tmp_path, 2)
    with pytest.raises(StoreError, match=r"damaged in block 2 \(bytes [\d,]+ to [\d,]+\): go on with --resume"):
        kept(tmp_path)
    with Store(tmp_path, SETTINGS, resume=True) as store:
        assert store.finished_blocks() == [0, 1, 3]
    assert "damaged in block 2" in caplog.text
    assert "it is played again" in caplog.text


def test_a_block_damaged_while_the_file_is_open_is_not_used(
    tmp_path: Path, damage_block: Callable[[Path, int], None]
) -> None:
    campaign(tmp_path)
    with Store(tmp_path, SETTINGS, resume=True) as store:
        place = store._file.record(1).start
        with (tmp_path / FILE).open("r+b") as other:
            other.seek(place + 40)
            other.write(b"?")
        with pytest.raises(StoreError, match="damaged in block 1"):
            store.load(1)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_file_cut_short_loses_only_its_end(tmp_path: Path, share: float) -> None:
    content = campaign(tmp_path)
    (tmp_path / FILE).write_bytes(content[: int(share * len(content))])
    with Store(tmp_path, SETTINGS, resume=True) as store:
        done = store.finished_blocks()
        assert done == list(range(len(done)))
        assert len(done) < 4
        store.save(len(done), BLOCK)
    assert len(kept(tmp_path)[1]) == len(done) + 1


def test_damaged_settings_do_not_let_others_in(tmp_path: Path) -> None:
    content = bytearray(campaign(tmp_path))
    content[70] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StoreError, match="begun with other settings: block 0"):
        Store(tmp_path, {**SETTINGS, "seed": 2}, resume=True)
    with Store(tmp_path, SETTINGS, resume=True) as store:
        assert store.finished_blocks() == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["{}", "", '{"result": ', "[1]", '{"result": NaN}', "\x00", "[" * 100_000])
def test_damaged_documents_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a\.json is damaged"):
        read_document(tmp_path / "a.json", "result")


def test_no_flipped_bit_changes_what_a_document_says(tmp_path: Path) -> None:
    """A digit of audit.json could change unnoticed: every bit is either noticed or changes no value."""
    path, document = tmp_path / "a.json", {"epsilon": 1.25, "low": -3, "name": "digits", "held": [True, None], 7: {}}
    write_document(path, document)
    written, said = path.read_bytes(), json.loads(json.dumps(document))
    assert read_document(path) == said
    noticed = 0
    for bit in range(8 * len(written)):
        changed = bytearray(written)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found = read_document(path)
        except ValueError as damage:
            assert "a.json is damaged" in str(damage)  # noqa: PT017 (most bits, not all)
            noticed += 1
        else:
            assert {name: found.get(name) for name in said} == said
    assert noticed > 6 * len(written)


def test_a_document_laid_out_anew_is_the_same(tmp_path: Path) -> None:
    write_document(tmp_path / "a.json", {"b": 0.1, "a": [1e-5]})
    laid_out = json.dumps(json.loads((tmp_path / "a.json").read_text()), sort_keys=True, indent=7)
    (tmp_path / "a.json").write_text(laid_out)
    assert read_document(tmp_path / "a.json", "b") == {"a": [1e-5], "b": 0.1}


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\).*report\.html"):
        replace_file(tmp_path / "report.html", b"page")
    assert not list(tmp_path.iterdir())  # no draft takes what space is left


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
        kept = store.finished_blocks()
        assert kept == list(range(len(kept)))
        assert len(kept) >= len(said)
        for number in kept:
            block = store.load(number)
            assert block.keys() == {"a", "b"}
            assert all((array == number).all() for array in block.values())
