"""Published data sets: small generated files of each format, and the real ones where DENIABLE_DATA has them."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from deniable.data import load, published

ROW = "39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,2174,0,40,Cuba,<=50K"
OLDER = "59,Private,70000,HS-grad,9,Never-married,Sales,Unmarried,Black,Female,0,10,20,Cuba,>50K"
MISSING = ROW.replace("State-gov", "?")


def real(name: str, **options: str) -> pytest.MarkDecorator:
    missing = not (Path(os.environ.get("DENIABLE_DATA", "/nowhere")) / name).is_file()
    return pytest.mark.skipif(missing, reason=f"the real {name} is not in the folder named by DENIABLE_DATA")


def archive(path: Path, **members: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def test_mnist_format(tmp_path: Path) -> None:
    images = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    path = tmp_path / "mnist.npz"
    np.savez(path, x_train=images, y_train=np.uint8([3, 9]), x_test=images[:1], y_test=np.uint8([0]))
    train, test = published.read_mnist(path)
    assert train.features.shape == (2, 28, 28)
    assert test.labels.tolist() == [0]
    np.testing.assert_array_equal(train.features, (images / 255).astype(np.float32))
    np.savez(path, x_train=images)
    with pytest.raises(ValueError, match=r"mnist.npz lacks the array 'y_train'; it holds x_train"):
        published.read_mnist(path)


def test_a_small_file_under_the_real_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros((1, 28, 28)))
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"mnist.npz is truncated or altered"):
        load("mnist")


def test_location_formats(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 2, (4, 11), dtype=np.uint8)
    labels = [0, 29, 5, 5]
    np.savez(tmp_path / "p.npz", X_packed=np.packbits(bits, axis=1), n_features=11, y=np.uint8(labels))
    lines = (f'"{label + 1}",' + ",".join(map(str, row)) for label, row in zip(labels, bits, strict=True))
    archive(tmp_path / "p.tgz", bangkok="\n".join(lines))
    for data in (published.read_location30(tmp_path / "p.npz"), published.read_location30(tmp_path / "p.tgz")):
        np.testing.assert_array_equal(data.features, bits)
        assert data.labels.tolist() == labels
        assert (data.classes, data.kind) == (30, "binary")


def test_purchase_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.random.default_rng(1).integers(0, 2, (3, 600), dtype=np.uint8)
    labels = [0, 99, 41]
    lines = (f"{label + 1}," + ",".join(map(str, row)) for label, row in zip(labels, bits, strict=True))
    archive(tmp_path / "dataset_purchase.tgz", dataset_purchase="\n".join(lines))
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))
    text = load("purchase100")
    np.savez(tmp_path / "purchase100.npz", features=bits, labels=np.eye(100)[labels])
    arrays = load("purchase100")
    np.testing.assert_array_equal(text.features, bits)
    assert text.labels.tolist() == labels
    assert text.sha256 == arrays.sha256
    assert load("purchase100", classes=2).labels.tolist() == [0, 1]


def test_texas_format(tmp_path: Path) -> None:
    path = archive(tmp_path / "t.tgz", texas__100__feats="0,1,1\n1,0,0\n", texas__100__labels="100\n1\n")
    data = published.read_texas100(path)
    assert data.features.tolist() == [[0, 1, 1], [1, 0, 0]]
    assert data.labels.tolist() == [99, 0]


@pytest.mark.parametrize(("line", "fault"), [("0,1,0", "labels"), ("101,1,0", "labels"), ("5,1,2", "zeros and ones")])
def test_wrong_published_tables_are_refused(tmp_path: Path, line: str, fault: str) -> None:
    path = archive(tmp_path / "dataset_purchase.tgz", dataset_purchase=f"1,0,0\n{line}\n")
    with pytest.raises(ValueError, match=rf"dataset_purchase.tgz is not purchase100: .*{fault}"):
        published.read_purchase100(path)


def test_adult_formats_agree(tmp_path: Path) -> None:
    header = "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex"
    header += ",capital-gain,capital-loss,hours-per-week,native-country,income"
    for name, rows in (("train", [ROW, MISSING, OLDER]), ("test", [OLDER])):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress("\n".join([header, *rows]).encode()))
        spaced = [row.replace(",", ", ") + ("." if name == "test" else "") for row in rows]
        (tmp_path / f"adult.{name}").write_text(
            "\n".join(["|1x3 Cross validator"] * (name == "test") + spaced) + "\n\n"
        )
    ours = published.read_adult(tmp_path / "train.csv.gz", tmp_path / "test.csv.gz")
    uci = published.read_adult(tmp_path / "adult.train", tmp_path / "adult.test")
    assert [part.sha256 for part in ours] == [part.sha256 for part in uci]
    train, test = ours
    assert train.features[:, :6].tolist() == [[0, 1, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]
    assert train.features.shape == (2, 6 + 2 + 2 + 1 + 2 + 2 + 2 + 2 + 1)
    assert np.all(train.features[:, 6:].sum(axis=1) == 8)
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 1], [1])
    np.testing.assert_array_equal(test.features[0], train.features[1])


def test_adult_faults_are_named(tmp_path: Path) -> None:
    train, test = tmp_path / "train", tmp_path / "test"
    train.write_text(ROW)
    test.write_text(OLDER)
    with pytest.raises(ValueError, match="categories that its training part lacks: Private"):
        published.read_adult(train, test)
    test.write_text("1,2,3")
    with pytest.raises(ValueError, match="test is not Adult: every row must have 15 columns"):
        published.read_adult(train, test)


@real("mnist.npz")
def test_real_mnist() -> None:
    train, test = published.mnist()
    assert train.features.shape == (60_000, 28, 28)
    assert test.features.shape == (10_000, 28, 28)
    assert (train.features.min(), train.features.max()) == (0, 1)
    assert np.bincount(train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@real("adult_train.csv.gz")
def test_real_adult_has_104_columns() -> None:
    train, test = load("adult", part="train"), load("adult", part="test")
    assert (train.features.shape, test.features.shape) == ((30_162, 104), (15_060, 104))
    assert np.all(train.features[:, 6:].sum(axis=1) == 8)
    assert (train.features[:, :6].min(), train.features[:, :6].max()) == (0, 1)
    assert (int(train.labels.sum()), int(test.labels.sum())) == (7508, 3700)
    everything = load("adult")
    assert everything.features.shape == (45_222, 104)
    np.testing.assert_array_equal(everything.features[30_162:], test.features)


@real("location30_packed.npz")
def test_real_location() -> None:
    data = load("location30")
    assert data.features.shape == (5010, 446)
    assert len(np.unique(data.labels)) == data.classes == 30


@real("lfw_min20_gray_62x47.npz")
def test_real_faces_match_003() -> None:
    data = load("lfw")
    assert data.features.shape == (3023, 62, 47)
    assert data.classes == 62
    # 003 Section 4: the topmost 20 and 50 people have 1906 and 2773 records
    assert [len(data.most_common(classes)) for classes in (20, 50)] == [1906, 2773]
    with pytest.raises(ValueError, match="classes must be at most 62"):
        load("lfw", classes=100)
