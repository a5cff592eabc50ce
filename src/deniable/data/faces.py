"""Labeled Faces in the Wild: the people with the most images, grey and cut to the face."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
from numpy.typing import NDArray

from deniable.checks import whole
from deniable.data.dataset import Dataset
from deniable.data.files import PublishedFile, damage_named, extra, locate, read_npz, tar_stream

PREPARED = PublishedFile(
    "lfw_min20_gray_62x47.npz",
    ("0a88e816ad9ca737acebcaa71831460ac6f646ac79a79b66dd31996408d628d7",),
    origin="a repacked form: faces of the 62 people with at least 20 pictures",
)
FUNNELED = PublishedFile(
    "lfw-funneled.tgz",
    ("b47c8422c8cded889dc5a13418c4bc2abbda121092b3533a83306f90d900100a",),
    "https://ndownloader.figshare.com/files/5976015",
)
ORIGINAL = PublishedFile(
    "lfw.tgz",
    ("055f7d9c632d7370e6fb4afc7468d40f970c34a80d4c6f50ffec63f5a8d536c0",),
    "https://ndownloader.figshare.com/files/5976018",
)
PREPARED_PEOPLE = 62
FACE_PIXELS = (78, 70, 172, 195)
"""Left, top, right and bottom of the face in an image of 250 x 250 pixels."""
SIZE_PIXELS = (47, 62)


def lfw(people: int | None = None) -> Dataset:
    """Labeled Faces in the Wild: grey images of 62 x 47 pixels, the `people` with the most images.

    Without a number: the 62 people with 20 images or more, 3023 images. Bernau 2021b (Section 4) has 20, 50 and 100
    people with 1906, 2773 and 3651 images; 100 need the archive, from which faces are cut out and halved.
    """
    files = (PREPARED, FUNNELED, ORIGINAL) if (people or 0) <= PREPARED_PEOPLE else (FUNNELED, ORIGINAL)
    return read_lfw(locate(f"lfw{people or ''}", *files), people)


def read_lfw(path: Path, people: int | None = None) -> Dataset:
    """The people with the most images, from either file; a prepared one in its own order if no number is given."""
    if path.suffix != ".npz":
        return _from_archive(path, PREPARED_PEOPLE if people is None else whole("people", people))
    arrays = read_npz(path)
    missing = [name for name in ("images", "target", "names") if name not in arrays]
    if missing:
        raise ValueError(f"{path} lacks the array {missing[0]!r}; it holds {', '.join(arrays) or 'nothing'}")
    pixels = np.divide(arrays["images"], 255, dtype=np.float32)
    found = Dataset("lfw", pixels, arrays["target"].astype(np.int64), len(arrays["names"]), "image")
    return found if people is None else found.most_common(people)


def _from_archive(path: Path, people: int) -> Dataset:
    """Images are read straight from the archive; nothing is unpacked to disk."""
    with damage_named(path), tarfile.open(path) as archive:
        names = [m.name for m in archive.getmembers() if m.isfile() and m.name.endswith(".jpg")]
        persons = [PurePosixPath(name).parent.name for name in names]
        # as `most_common` does: the more images first, then by name
        ranked = sorted(Counter(persons).items(), key=lambda item: (-item[1], item[0]))[:people]
        if len(ranked) < people:
            raise ValueError(f"people must be at most {len(ranked)}, all that {path} has, got {people}")
        rank = {person: number for number, (person, _) in enumerate(ranked)}
        chosen = [(name, rank[person]) for name, person in zip(names, persons, strict=True) if person in rank]
        faces = np.stack([_face(path, name, tar_stream(path, archive, name)) for name, _ in chosen])
    return Dataset("lfw", faces, np.array([label for _, label in chosen], dtype=np.int64), people, "image")


def _face(path: Path, member: str, stream: IO[bytes]) -> NDArray[np.float32]:
    image = extra("PIL.Image")
    try:
        with image.open(stream, formats=["JPEG"]) as picture:
            grey = picture.convert("L").crop(FACE_PIXELS).resize(SIZE_PIXELS, image.Resampling.LANCZOS)
            face: NDArray[np.float32] = np.divide(np.asarray(grey), 255, dtype=np.float32)
            return face
    except (OSError, SyntaxError) as error:
        raise ValueError(f"{member} in {path} is truncated or no image ({error}); fetch the archive again") from error
