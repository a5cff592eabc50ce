"""Data sets and their random split."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.data import Dataset, split


def numbered(records: int) -> Dataset:
    return Dataset(
        "numbered", np.arange(records, dtype=np.float32)[:, None], np.arange(records) % 3, classes=3, kind="table"
    )


@given(records=st.integers(1, 30), seed=st.integers(0, 2**32), data=st.data())
def test_split_divides_the_records(records: int, seed: int, data: st.DataObject) -> None:
    chosen = data.draw(st.integers(1, records))
    inside, outside = split(numbered(records), chosen, seed)
    assert len(inside) == chosen
    together = np.concatenate([inside.features[:, 0], outside.features[:, 0]])
    assert sorted(together) == list(range(records))
    np.testing.assert_array_equal(inside.labels, inside.features[:, 0] % 3)


def test_split_is_seeded_and_every_record_is_as_likely() -> None:
    first, again, other = (split(numbered(50), 10, seed)[0].features.tolist() for seed in (1, 1, 2))
    assert first == again != other
    counts = np.zeros(10)
    for seed in range(2000):
        counts[split(numbered(10), 3, seed)[0].features[:, 0].astype(int)] += 1
    assert np.all(np.abs(counts - 600) < 5 * np.sqrt(2000 * 0.3 * 0.7))


@pytest.mark.parametrize("records", [0, -1, 11, 2.5])
def test_split_refuses_a_size_that_is_not_there(records: int) -> None:
    with pytest.raises(ValueError, match=r"records must be .* got"):
        split(numbered(10), records, 0)


def test_checksum_tells_contents_apart() -> None:
    data = numbered(6)
    assert data.sha256 == numbered(6).sha256
    other = Dataset("renamed", data.features.copy(), data.labels.copy(), 3, "table")
    assert other.sha256 == data.sha256
    other = Dataset("numbered", data.features, data.labels[::-1].copy(), 3, "table")
    assert other.sha256 != data.sha256
    assert Dataset("numbered", data.features.reshape(3, 2), data.labels[:3], 3, "table").sha256 != data.sha256


def test_most_common_classes_are_relabelled_by_size() -> None:
    labels = np.array([4, 4, 4, 0, 0, 2, 2, 1])
    data = Dataset("few", np.arange(8, dtype=np.float32)[:, None], labels, 5, "table")
    common = data.most_common(2)
    assert common.classes == 2
    assert common.labels.tolist() == [0, 0, 0, 1, 1]
    assert common.features[:, 0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="classes must be at most 4, all that few has, got 5"):
        data.most_common(5)


@pytest.mark.parametrize(
    ("features", "labels", "kind"),
    [
        (np.zeros((3, 2)), np.zeros(3, dtype=np.int64), "table"),
        (np.zeros((3, 2), dtype=np.float32), np.zeros(2, dtype=np.int64), "table"),
        (np.zeros((3, 2), dtype=np.float32), np.zeros(3), "table"),
        (np.zeros((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), "image"),
        (np.zeros((3, 2, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), "table"),
        (np.zeros((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), "sound"),
    ],
)
def test_wrong_arrays_are_refused(features: np.ndarray, labels: np.ndarray, kind: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        Dataset("wrong", features, labels, 2, kind)  # type: ignore[arg-type]


def test_import_is_light() -> None:
    heavy = (
        "[m for m in ('sklearn', 'torch', 'pooch', 'scipy.stats', 'threadpoolctl', 'matplotlib') if m in sys.modules]"
    )
    code = f"import sys, deniable.data; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
