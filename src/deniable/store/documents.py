"""JSON documents on disk: whole or not at all, with a checksum of their values."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

_LARGEST_DOCUMENT_BYTES = 256 * 2**20
_CHECKSUM = "checksum"
"""The last member of a document on disk: the SHA-256 of all others in their canonical text."""


def canonical(settings: Mapping[str, Any]) -> str:
    """Settings as the one JSON text that equal settings have."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: after a crash it is the old or the new one, and on return it is on the disk.

    OSError names the path; nothing unfinished is left behind.
    """
    draft = path.with_name(f"{path.name}.{uuid4().hex[:8]}.part")  # others may be writing the same file
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)  # noqa: PTH105 (named for what it does)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise type(error)(error.errno, f"cannot be written ({error.strerror})", str(path)) from error


def write_document(path: Path, document: Mapping[str, Any], indent: int = 2) -> None:
    """Write a JSON document for people and machines, whole or not at all, with its checksum as the last member."""
    plain = json.loads(json.dumps(document, allow_nan=False))  # as it will be read
    sealed = {**plain, _CHECKSUM: _checksum(plain)}
    replace_file(path, (json.dumps(sealed, indent=indent) + "\n").encode())


def verify_document(document: dict[str, Any]) -> dict[str, Any]:
    """A document that was read, without its checksum; ValueError where it is not as it was written.

    One without a checksum (printed with --json, or of version 0.1.0) is taken as it is. Its text may be laid out anew:
    the checksum is of the values.
    """
    plain = {name: value for name, value in document.items() if name != _CHECKSUM}
    if _CHECKSUM in document and document[_CHECKSUM] != _checksum(plain):
        raise ValueError("a value was changed since it was written: its checksum differs")
    return plain


def _checksum(document: Mapping[str, Any]) -> str:
    return sha256(canonical(document).encode()).hexdigest()


def read_document(path: Path, *needed: str) -> dict[str, Any]:
    """A JSON object from a file; ValueError says what is wrong with one that is damaged or lacks a `needed` key."""
    if path.stat().st_size > _LARGEST_DOCUMENT_BYTES:
        raise ValueError(f"{path} is too large for a document: {path.stat().st_size:,} bytes")
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, it is not JSON ({error}): delete it, or write it again") from error
    lacking = [key for key in needed if not isinstance(document, dict) or key not in document]
    if lacking or not isinstance(document, dict):
        what = f"it has no {lacking[0]!r}" if lacking else "it is no JSON object"
        raise ValueError(f"{path} is damaged or of another kind, {what}: delete it, or write it again")
    try:
        return verify_document(document)
    except ValueError as error:
        raise ValueError(f"{path} is damaged, {error}: delete it, or write it again") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
