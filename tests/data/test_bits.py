"""Purchase, Texas and Location in every layout, on small files of the same format; the real Location-30."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.data import NAMES, load, published

BITS = np.random.default_rng(1).integers(0, 2, (6, 600), dtype=np.uint8)
LABELS = [0, 99, 41, 41, 99, 41]


def packed(path: Path, **members: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def lines(table: NDArray[np.uint8]) -> list[str]:
    return [",".join(map(str, row)) for row in table]


def label_first(quote: str = "") -> str:
    return "\n".join(f"{quote}{label + 1}{quote},{row}" for label, row in zip(LABELS, lines(BITS), strict=True))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))
    return tmp_path


PURCHASE: dict[str, Callable[[Path], object]] = {
    "one-hot npz": lambda f: np.savez(f / "purchase100.npz", features=BITS, labels=np.eye(100)[LABELS]),
    "numbered npz": lambda f: np.savez(f / "purchase100.npz", X=BITS.astype(float), y=np.array(LABELS)),
    "one-column npz": lambda f: np.savez(f / "purchase100.npz", features=BITS, labels=np.array(LABELS)[:, None]),
    "archive": lambda f: packed(f / "dataset_purchase.tgz", dataset_purchase=label_first()),
    "quoted archive": lambda f: packed(f / "dataset_purchase.tgz", dataset_purchase=label_first('"')),
    "unpacked": lambda f: (f / "dataset_purchase").write_text(label_first()),
    "label first": lambda f: (f / "purchase100.csv").write_text(label_first()),
    "label last": lambda f: (f / "purchase100.txt").write_text(
        "\n".join(f"{row};{label}" for label, row in zip(LABELS, lines(BITS), strict=True))
    ),
}


@pytest.mark.parametrize("layout", PURCHASE)
def test_every_layout_of_purchase_reads_the_same(folder: Path, layout: str) -> None:
    PURCHASE[layout](folder)
    data = load("purchase100")
    np.testing.assert_array_equal(data.features, BITS)
    assert data.labels.tolist() == LABELS
    assert (data.classes, data.kind, data.name) == (100, "binary", "purchase100")


def test_variants_keep_the_most_common_classes(folder: Path) -> None:
    labels = np.repeat(np.arange(100), np.arange(100, 0, -1))[::-1].copy()
    np.savez(folder / "purchase100.npz", features=np.tile(BITS[:1], (len(labels), 1)), labels=labels)
    for classes in (10, 20, 50, 100):
        data = load(f"purchase{classes}")
        sizes = np.bincount(data.labels)
        assert data.classes == len(sizes) == classes
        assert sorted(sizes.tolist(), reverse=True) == list(range(100, 100 - classes, -1))


@pytest.mark.parametrize("classes", [100, 150, 200, 300])
def test_texas_formats(folder: Path, classes: int) -> None:
    name, features, labels = f"texas{classes}", "0,1,1\n1,0,0\n", f"{classes}\n1\n"
    packed(folder / "dataset_texas.tgz", **{f"texas__{classes}__feats": features, f"texas__{classes}__labels": labels})
    archived = load(name)
    (folder / "dataset_texas.tgz").unlink()
    pair = folder / "texas" / str(classes)
    pair.mkdir(parents=True)
    (pair / "feats").write_text(features)
    (pair / "labels").write_text(labels)
    unpacked = load(name)
    np.savez(folder / f"{name}.npz", features=[[0, 1, 1], [1, 0, 0]], labels=np.eye(classes)[[classes - 1, 0]])
    for data in (archived, unpacked, load(name)):
        assert data.features.tolist() == [[0, 1, 1], [1, 0, 0]]
        assert (data.labels.tolist(), data.classes, data.name) == ([classes - 1, 0], classes, name)


def test_an_archive_without_the_procedures_says_what_it_has(folder: Path) -> None:
    packed(folder / "dataset_texas.tgz", texas__100__feats="0,1\n", texas__100__labels="1\n")
    assert len(load("texas100")) == 1
    with pytest.raises(ValueError, match=r"has no member 'texas/300/labels', only \['texas/100/feats'"):
        load("texas300")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("purchase1", "purchase5", "texas"))])
def test_a_missing_file_names_every_layout_and_place(folder: Path, name: str) -> None:
    base = "purchase100" if name.startswith("purchase") else name
    with pytest.raises(FileNotFoundError) as failure:
        load(name)
    message = str(failure.value)
    assert f"{base}.npz" in message
    assert f"{base}.csv (a line a record: the label from 1 on, then the bits" in message
    assert f"{base}.txt (a line a record: the bits with commas, a semicolon, the label from 0 on" in message
    assert "https://github.com/privacytrustlab/datasets" in message
    assert str(folder) in message


@pytest.mark.parametrize(("line", "fault"), [("0,1,0", "labels"), ("101,1,0", "labels"), ("5,1,2", "zeros and ones")])
def test_wrong_tables_are_refused(tmp_path: Path, line: str, fault: str) -> None:
    path = packed(tmp_path / "dataset_purchase.tgz", dataset_purchase=f"1,0,0\n{line}\n")
    with pytest.raises(ValueError, match=rf"dataset_purchase.tgz is not purchase100: .*{fault}"):
        published.read_purchase(path)


def test_truncation_is_named(tmp_path: Path) -> None:
    text = tmp_path / "dataset_purchase"
    text.write_text(label_first()[:-7])
    with pytest.raises(ValueError, match="dataset_purchase is truncated"):
        published.read_purchase(text)
    many = packed(tmp_path / "dataset_purchase.tgz", dataset_purchase=(label_first() + "\n") * 50)
    many.write_bytes(many.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"dataset_purchase.tgz is truncated"):
        published.read_purchase(many)
    (tmp_path / "feats").write_text("0,1\n1,1\n")
    (tmp_path / "labels").write_text("3\n")
    with pytest.raises(ValueError, match="truncated: 2 records have 1 labels"):
        published.read_texas(tmp_path / "feats")


def test_unsafe_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "dataset_texas.tgz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("texas/100/labels")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(ValueError, match="not safe to unpack"):
        published.read_texas(path)


def test_location_formats(tmp_path: Path) -> None:
    table = np.random.default_rng(0).integers(0, 2, (4, 11), dtype=np.uint8)
    labels = [0, 29, 5, 5]
    np.savez(tmp_path / "p.npz", X_packed=np.packbits(table, axis=1), n_features=11, y=np.uint8(labels))
    text = "\n".join(f'"{label + 1}",{row}' for label, row in zip(labels, lines(table), strict=True))
    packed(tmp_path / "p.tgz", bangkok=text)
    (tmp_path / "bangkok").write_text(text)
    for name in ("p.npz", "p.tgz", "bangkok"):
        data = published.read_location30(tmp_path / name)
        np.testing.assert_array_equal(data.features, table)
        assert (data.labels.tolist(), data.classes, data.kind) == (labels, 30, "binary")


def test_real_location(real_data: Path) -> None:
    data = load("location30")
    assert data.features.shape == (5010, 446)
    assert len(np.unique(data.labels)) == data.classes == 30
