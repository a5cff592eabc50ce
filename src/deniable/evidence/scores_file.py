"""Score files: comma-separated, with a heading that names the columns `score` and `member`, in any order.

A column `run`, if there is one, names the training of each row. Other columns are left alone. A member is 1 or true,
another 0 or false. Whatever cannot be read is refused with the
number of its line; nothing is skipped but empty lines. Blocks keep memory small whatever the file's size.
"""

from __future__ import annotations

import csv
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from deniable.evidence.decimals import PADDING, parsed
from deniable.evidence.scores import Floats, Places, Scores

__all__ = ["Rows", "read_rows", "read_scores"]

BLOCK = 1 << 21
LONGEST_LINE = 1 << 16
MEMBERS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}

Block = tuple[Floats, NDArray[np.bool_], list[bytes]]
"""Scores, members, and the names of runs, if there are any."""


@dataclass(frozen=True)
class Rows:
    """What a file says; `run` numbers the training of each row, from 0 on, where the file names it."""

    score: Floats
    member: NDArray[np.bool_]
    run: NDArray[np.int64] | None


def read_scores(path: Path | str) -> Scores:
    """The scores of a file; ValueError or OSError names the file, the line and what is wrong with it."""
    rows = read_rows(path)
    return Scores.of(rows.score, rows.member)


def read_rows(path: Path | str) -> Rows:
    """All rows of a file, of which there is at least one of each kind; refuses as `read_scores` does."""
    place = Path(path)
    if not place.is_file():
        raise ValueError(f"SCORES must be a file with columns score and member; there is no file {str(place)!r}")
    with place.open("rb") as file:
        heading = _Heading.of(place, file.readline(LONGEST_LINE))
        blocks = [rows for rows in _blocks(file, heading) if rows[0].size]
    if not blocks:
        raise ValueError(f"{place} has no rows below its heading")
    scores, members, runs = zip(*blocks, strict=True)
    score, member = np.concatenate(scores), np.concatenate(members)
    if member.all() or not member.any():
        raise ValueError(f"{place} has member {int(member[0])} in all {member.size:,} rows: both kinds are needed")
    return Rows(score, member, None if heading.run is None else _numbered(chain(*runs)))


def _numbered(names: Iterable[bytes]) -> NDArray[np.int64]:
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


class _Heading:
    """Where the columns are."""

    def __init__(self, place: Path, names: list[str]) -> None:
        self.place, self.columns = place, len(names)
        for name in ("score", "member"):
            if names.count(name) != 1:
                found = ", ".join(name or "(nameless)" for name in names[:8])
                how = "no column" if name not in names else "more than one column"
                raise ValueError(f"{place} has {how} {name!r} in its heading: {found}")
        self.score, self.member = names.index("score"), names.index("member")
        if names.count("run") > 1:
            raise ValueError(f"{place} has more than one column 'run' in its heading")
        self.run = names.index("run") if "run" in names else None

    @classmethod
    def of(cls, place: Path, line: bytes) -> _Heading:
        if not line.strip():
            raise ValueError(f"{place} is empty: the first line must name the columns score and member")
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{place} is not a text file: columns score and member, separated by commas") from None
        return cls(place, [name.strip().strip('"').strip().lower() for name in text.split(",")])


def _blocks(file: BinaryIO, heading: _Heading) -> Iterator[Block]:
    """Rows of some megabytes at a time, in order; NumPy lets go of the interpreter, so threads read side by side."""
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Block]] = deque()
        for block, line in _whole_lines(file, heading):
            waiting.append(pool.submit(_rows, block, heading, line))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _whole_lines(file: BinaryIO, heading: _Heading) -> Iterator[tuple[bytes, int]]:
    """(whole lines, the number of the first of them)."""
    line, rest = 2, b""
    while chunk := file.read(BLOCK):
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            rest += chunk
            if len(rest) > 2 * BLOCK:
                raise ValueError(f"{heading.place} has a line of more than {len(rest):,} bytes, line {line:,}")
            continue
        block, rest = rest + chunk[:cut], chunk[cut:]
        yield block, line
        line += block.count(b"\n")
    if rest.strip():
        yield rest + b"\n", line


def _rows(block: bytes, heading: _Heading, line: int) -> Block:
    """The rows of a block whose first line has this number."""
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    rows = _quickly(block, heading)
    return _carefully(block, heading, line) if rows is None else rows


def _quickly(block: bytes, heading: _Heading) -> Block | None:
    """All rows at once; None where a row is not of the plain kind, for `_carefully` to read or to refuse."""
    raw = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero((raw == ord(",")) | (raw == ord("\n")))
    if ends.size % heading.columns or b'"' in block:
        return None
    fields = ends.reshape(-1, heading.columns)
    at_end = raw[fields] == ord("\n")
    if not at_end[:, -1].all() or at_end[:, :-1].any():
        return None
    starts = np.concatenate([[0], ends[:-1] + 1]).reshape(fields.shape)
    member = _members(raw, starts[:, heading.member], fields[:, heading.member])
    if member is None:
        return None
    span = starts[:, heading.score], fields[:, heading.score]
    score, fine = parsed(block + b"\n" * PADDING, *span)
    for row in np.flatnonzero(~fine):
        try:
            score[row] = float(block[span[0][row] : span[1][row]])
        except ValueError:
            return None
    runs = _runs(block, starts, fields, heading)
    return (score, member, runs) if np.isfinite(score).all() and all(runs) else None


def _runs(block: bytes, starts: Places, ends: Places, heading: _Heading) -> list[bytes]:
    if heading.run is None:
        return []
    spans = zip(starts[:, heading.run].tolist(), ends[:, heading.run].tolist(), strict=True)
    return [block[start:end].strip() for start, end in spans]


def _members(raw: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    member, known = np.zeros(start.size, bool), np.zeros(start.size, bool)
    for word, value in MEMBERS.items():
        same = end - start == len(word)
        for place, letter in enumerate(word):
            if not same.any():
                break
            found = raw[np.minimum(start + place, raw.size - 1)]
            same &= (found | 0x20 if letter.isalpha() else found) == ord(letter)
        known |= same
        if value:
            member |= same
        if known.all():
            return member
    return None


def _carefully(block: bytes, heading: _Heading, line: int) -> Block:
    """Row by row: quotes, blanks and empty lines; the first fault is named with its line."""
    score, member, runs = [], [], []
    try:
        rows = csv.reader(StringIO(block.decode()), strict=True)
        for row in rows:
            if row and any(field.strip() for field in row):
                where = f"{heading.place}, line {line + rows.line_num - 1:,}"
                value, belongs = _row(row, heading, where)
                score.append(value)
                member.append(belongs)
                runs += _run(row, heading, where)
    except UnicodeDecodeError:
        raise ValueError(f"{heading.place} is not a text file, near line {line:,}") from None
    except csv.Error as fault:
        raise ValueError(f"{heading.place}, near line {line:,}: {fault}") from None
    return np.array(score, dtype=np.float64), np.array(member, dtype=bool), runs


def _run(row: list[str], heading: _Heading, where: str) -> list[bytes]:
    if heading.run is None:
        return []
    if not row[heading.run].strip():
        raise ValueError(f"{where}: run must name the row's training, got ''")
    return [row[heading.run].strip().encode()]


def _row(row: list[str], heading: _Heading, where: str) -> tuple[float, bool]:
    if len(row) != heading.columns:
        raise ValueError(f"{where} has {len(row)} columns, the heading {heading.columns}")
    score, member = row[heading.score].strip(), row[heading.member].strip().lower()
    try:
        value = float(score)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise ValueError(f"{where}: score must be a finite number, got {score[:40]!r}")
    if member not in MEMBERS:
        raise ValueError(f"{where}: member must be 0, 1, true or false, got {member[:40]!r}")
    return value, MEMBERS[member]
