"""Where published files come from: the folder DENIABLE_DATA, else a checked download.

Nothing is ever unpickled and no archive is unpacked to disk: members are read straight from it, and only such as the
safe filter (`tarfile.data_filter`) would let pass.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

FOLDER = "DENIABLE_DATA"
MOST_UNPACKED_BYTES = 256 * 2**20
MOST_UNPACKED_TIMES = 100
"""A file may unpack to so many bytes, or to so many times its size if that is more."""
_LONGEST_MESSAGE_CHARACTERS = 200


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
def damage_named(path: Path) -> Iterator[None]:
    """Whatever a broken archive raises becomes one error that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is truncated or damaged, or it is not a text file ({_short(error)})") from error
    except (EOFError, BadZipFile, zlib.error, tarfile.ReadError, gzip.BadGzipFile) as error:
        raise damage_error(path, error) from error
    except csv.Error as error:
        raise ValueError(f"{path} is not a table of numbers: {_short(error)}") from error


def damage_error(path: Path, error: Exception) -> ValueError:
    """The refusal of a file that cannot be read to its end."""
    return ValueError(f"{path} is truncated or damaged ({_short(error)}); fetch or write it again")


def _short(error: Exception) -> str:
    """What an error says, without a whole cell of megabytes."""
    text = str(error)
    return text if len(text) <= _LONGEST_MESSAGE_CHARACTERS else f"{text[:_LONGEST_MESSAGE_CHARACTERS]}..."


def refuse_unpacking(path: Path, unpacked: int) -> None:
    """Refuse a small file that unpacks to a very large one, before it fills the memory."""
    packed = path.stat().st_size
    if unpacked > max(MOST_UNPACKED_BYTES, MOST_UNPACKED_TIMES * packed):
        raise ValueError(
            f"{path} has {packed:,} bytes and unpacks to {unpacked:,} or more, over {MOST_UNPACKED_BYTES:,} and "
            f"{MOST_UNPACKED_TIMES} times its size: write it uncompressed, as with numpy.savez"
        )


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file; Python objects (pickles) are refused."""
    with damage_named(path):
        try:
            refuse_unpacking(path, _claimed_size(path))
        except NotImplementedError as error:  # a zip file of the future
            raise _not_plain(path, error) from error
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return {name: np.asarray(array) for name, array in archive.items()}
        except (ValueError, AttributeError, TypeError, MemoryError, OverflowError, NotImplementedError) as error:
            raise _not_plain(path, error) from error
        except RuntimeError as error:  # an encrypted member
            raise _not_plain(path, error) from error


def _claimed_size(path: Path) -> int:
    """What a zip file's members unpack to, as it says; no more of them is ever read."""
    if not is_zipfile(path):
        return 0
    with ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def _not_plain(path: Path, error: Exception) -> ValueError:
    said = "an array's header names more than there is" if isinstance(error, MemoryError) else _short(error)
    return ValueError(
        f"{path} is not an .npz of plain arrays ({said}); pickled Python objects are never loaded: "
        "write numbers with numpy.savez(path, X=..., y=...)"
    )


@contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedIOBase]:
    """A file, gzipped or not; damage met while reading is named, and what is unpacked is bounded."""
    with damage_named(path), _Bounded(path) if path.suffix == ".gz" else path.open("rb") as raw:
        yield raw


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """A text file, as `open_bytes` opens it; a mark of the byte order at its beginning is left out."""
    with open_bytes(path) as raw:
        yield io.TextIOWrapper(raw, encoding="utf-8-sig")  # type: ignore[type-var]


class _Bounded(gzip.GzipFile):
    """A gzipped file of which no more is unpacked than `refuse_unpacking` allows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._path = path

    def read1(self, size: int | None = -1) -> bytes:
        """What a text reader asks for, piece by piece."""
        return self._within(super().read1(size if size is not None else -1))

    def read(self, size: int | None = -1) -> bytes:
        """What Arrow asks for, piece by piece."""
        return self._within(super().read(size))

    def _within(self, piece: bytes) -> bytes:
        refuse_unpacking(self._path, self.tell())
        return piece


def tar_stream(path: Path, archive: tarfile.TarFile, member: str) -> IO[bytes]:
    """One member of an archive that was opened from `path`, refused where the safe filter refuses it."""
    try:
        info = tarfile.data_filter(archive.getmember(member), str(Path.cwd()))
        stream = archive.extractfile(member)
    except KeyError as error:
        raise ValueError(f"{path} has no member {member!r}, only {archive.getnames()[:5]}") from error
    except tarfile.FilterError as error:
        raise ValueError(f"member {member!r} of {path} is not safe to unpack: {error}") from error
    if stream is None or not info.size:
        raise ValueError(f"member {member!r} of {path} is empty or no file")
    return stream


def read_tar_table(path: Path, member: str, dtype: type[np.unsignedinteger[Any]] = np.uint8) -> NDArray[Any]:
    """The comma-separated small whole numbers of one member of a .tgz, quoted or not."""
    with damage_named(path), tarfile.open(path) as archive:
        text = io.TextIOWrapper(tar_stream(path, archive, member), encoding="ascii")
        return _small_numbers(f"{member} in {path}", text, dtype)


def read_table(path: Path, dtype: type[np.unsignedinteger[Any]] = np.uint8, semicolons: bool = False) -> NDArray[Any]:
    """The comma-separated small whole numbers of a text file, gzipped or not; semicolons may count as commas."""
    with open_text(path) as stream:
        lines = (line.replace(";", ",") for line in stream) if semicolons else stream
        return _small_numbers(str(path), lines, dtype)


def _small_numbers(name: str, lines: Iterable[str], dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    try:
        return np.loadtxt(lines, dtype=dtype, delimiter=",", quotechar='"', comments=None, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{name} is truncated, or not a table of small whole numbers: {error}") from error
