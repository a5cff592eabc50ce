"""Where published files come from: the folder DENIABLE_DATA, else a checked download.

Nothing is ever unpickled and no archive is unpacked to disk: members are read straight from it.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

__all__ = ["PublishedFile", "extra", "locate", "open_text", "read_npz", "read_tar_table"]

FOLDER = "DENIABLE_DATA"


@dataclass(frozen=True)
class PublishedFile:
    """A file by name, the checksums it may have (none: unknown, taken as it is) and where the first of them is found.

    Only a file with a known checksum is downloaded; `origin` tells a person where to look for the others.
    """

    name: str
    sha256: tuple[str, ...] = ()
    url: str | None = None
    origin: str = ""


def extra(module: str) -> Any:
    """A module of the `train` extra, imported only when it is needed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{module} is needed here: pip install 'deniable[train]'", name=module) from error


def locate(dataset: str, *choices: PublishedFile) -> Path:
    """The first of the equivalent files that is in the folder DENIABLE_DATA, else downloaded; its checksum verified."""
    folder = os.environ.get(FOLDER)
    for file in choices if folder else ():
        path = Path(str(folder)) / file.name
        if path.is_file():
            _verify(path, file)
            return path
    for file in choices:
        if file.url and file.sha256:
            return _download(dataset, file, choices)
    raise FileNotFoundError(_where_to_put(dataset, choices))


def _verify(path: Path, file: PublishedFile) -> None:
    if not file.sha256:
        return
    with path.open("rb") as stream:
        actual = file_digest(stream, "sha256").hexdigest()
    if actual not in file.sha256:
        raise ValueError(
            f"{path} is truncated or altered: its sha256 is {actual}, expected {' or '.join(file.sha256)}; "
            f"delete it and fetch it again from {file.url or file.origin}"
        )


def _download(dataset: str, file: PublishedFile, choices: tuple[PublishedFile, ...]) -> Path:
    pooch = extra("pooch")
    try:
        known = f"sha256:{file.sha256[0]}"
        return Path(pooch.retrieve(file.url, known, fname=file.name, path=pooch.os_cache("deniable")))
    except OSError as error:
        reason = f"{file.url} cannot be fetched ({type(error).__name__}); {_where_to_put(dataset, choices)}"
        raise FileNotFoundError(reason) from error


def _where_to_put(dataset: str, choices: tuple[PublishedFile, ...]) -> str:
    folder = os.environ.get(FOLDER)
    place = f"the folder {folder} (environment variable {FOLDER})" if folder else f"a folder and name it in {FOLDER}"
    files = " or ".join(f"{file.name} ({file.origin or file.url or 'no public address known'})" for file in choices)
    return f"{dataset} needs a file that is not here: put {files} into {place}"


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Whatever a broken archive raises becomes one error that names the file."""
    try:
        yield
    except (EOFError, BadZipFile, zlib.error, tarfile.ReadError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is truncated or damaged ({error}); fetch or write it again") from error


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file; Python objects (pickles) are refused."""
    with _damage_named(path):
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return dict(archive.items())
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{path} is not an .npz of plain arrays ({error}); pickled Python objects are never loaded: "
                "write numbers with numpy.savez(path, X=..., y=...)"
            ) from error


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """A text file, gzipped or not; damage met while reading is named."""
    with _damage_named(path), (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig") as stream:
        yield stream


def read_tar_table(path: Path, member: str) -> NDArray[np.uint8]:
    """The comma-separated small whole numbers of one member of a .tgz, quoted or not."""
    with _damage_named(path), tarfile.open(path) as archive:
        try:
            stream = archive.extractfile(member)
        except KeyError as error:
            raise ValueError(f"{path} has no member {member!r}, only {archive.getnames()[:5]}") from error
        if stream is None or not archive.getmember(member).size:
            raise ValueError(f"member {member!r} of {path} is empty or no file")
        text = io.TextIOWrapper(stream, encoding="ascii")
        try:
            return np.loadtxt(text, dtype=np.uint8, delimiter=",", quotechar='"', comments=None, ndmin=2)
        except ValueError as error:
            raise ValueError(f"{member} in {path} is not a table of small whole numbers: {error}") from error
