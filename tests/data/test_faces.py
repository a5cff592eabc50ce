"""Labeled Faces in the Wild: a small archive of generated images of the same format, and the real prepared file."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deniable.data import load, published


def jpeg(level: int) -> bytes:
    """A grey image of 250 x 250 pixels, white outside the face."""
    pixels = np.full((250, 250, 3), 255, dtype=np.uint8)
    pixels[60:205, 68:182] = level
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=95)
    return stream.getvalue()


def faces_archive(path: Path, images: dict[str, list[int]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for person, levels in images.items():
            for number, level in enumerate(levels, 1):
                content = jpeg(level)
                info = tarfile.TarInfo(f"lfw_funneled/{person}/{person}_{number:04d}.jpg")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        note = tarfile.TarInfo("lfw_funneled/pairs.txt")
        note.size = 2
        archive.addfile(note, io.BytesIO(b"10"))
    return path


def test_the_people_with_the_most_images_are_cut_from_the_archive(tmp_path: Path) -> None:
    path = faces_archive(tmp_path / "lfw-funneled.tgz", {"Ann": [10], "Bob": [50, 60, 70], "Cem": [100, 200]})
    data = published.read_lfw(path, people=2)
    assert data.features.shape == (5, 62, 47)
    assert data.labels.tolist() == [0, 0, 0, 1, 1]
    assert (data.classes, data.kind) == (2, "image")
    for face, level in zip(data.features, (50, 60, 70, 100, 200), strict=True):
        np.testing.assert_allclose(face * 255, level, atol=3)  # the face alone, without the white around it
    with pytest.raises(ValueError, match="people must be at most 3"):
        published.read_lfw(path, people=4)


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    path = faces_archive(tmp_path / "lfw.tgz", {"Ann": [10, 20], "Bob": [50]})
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(ValueError, match=r"lfw.tgz is truncated or damaged"):
        published.read_lfw(path, people=1)


def test_a_member_that_is_no_image_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lfw.tgz"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("lfw/Ann/Ann_0001.jpg")
        info.size = 9
        archive.addfile(info, io.BytesIO(b"no image!"))
    with pytest.raises(ValueError, match=r"Ann_0001.jpg in .*lfw.tgz is truncated or no image"):
        published.read_lfw(path, people=1)


def test_small_files_under_the_real_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))
    np.savez(tmp_path / "lfw_min20_gray_62x47.npz", images=np.zeros((1, 62, 47)))
    with pytest.raises(ValueError, match=r"lfw_min20_gray_62x47.npz is truncated or altered"):
        load("lfw20")
    faces_archive(tmp_path / "lfw-funneled.tgz", {"Ann": [10]})
    with pytest.raises(ValueError, match=r"lfw-funneled.tgz is truncated or altered.*fetch it again from https"):
        load("lfw100")


def test_a_prepared_file_of_other_content_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "faces.npz", images=np.zeros((1, 62, 47)))
    with pytest.raises(ValueError, match="lacks the array 'target'; it holds images"):
        published.read_lfw(tmp_path / "faces.npz")


def test_real_faces_match_003(real_data: Path) -> None:
    data = load("lfw")
    assert data.features.shape == (3023, 62, 47)
    assert data.classes == 62
    # Bernau 2021b, Section 4: the topmost 20 and 50 people have 1906 and 2773 records
    for people, images in ((20, 1906), (50, 2773)):
        assert len(load(f"lfw{people}")) == images
        assert load(f"lfw{people}").sha256 == data.most_common(people).sha256
    with pytest.raises(ValueError, match="classes must be at most 62"):
        load("lfw", classes=100)
