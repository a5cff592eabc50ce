"""Published data sets: small generated files of each format, and the real ones where DENIABLE_DATA has them."""

from __future__ import annotations

import gzip
import os
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
    assert [stop - start for start, stop in train.one_hot] == [2, 2, 1, 2, 2, 2, 2, 1]
    for start, stop in test.one_hot:
        assert test.features[:, start:stop].sum(axis=1).tolist() == [1]


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
    assert [stop - start for start, stop in train.one_hot] == [7, 16, 7, 14, 6, 5, 2, 41]
    assert train.one_hot[0][0] == 6
    everything = load("adult")
    assert everything.one_hot == everything.take(np.arange(3)).one_hot == train.one_hot
    assert everything.features.shape == (45_222, 104)
    np.testing.assert_array_equal(everything.features[30_162:], test.features)
