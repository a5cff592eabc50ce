"""Score files: a table (.csv, .csv.gz or .parquet) whose heading names the columns `score` and `member`, in any order.

A column `run`, if there is one, names the training of each row. Other columns are left alone. A member is 1 or true,
another 0 or false. Whatever cannot be read is refused with the number of its line; nothing is skipped but empty lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.checks import as_path, refuse
from deniable.data.table_reader import Kind, first_row, read_columns, rows, words
from deniable.evidence.attack_scores import Floats, Scores

MEMBERS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


@dataclass(frozen=True)
class ScoreRows:
    """What a file says; `run` numbers the training of each row, from 0 on, where the file names it."""

    score: Floats
    member: NDArray[np.bool_]
    run: NDArray[np.int64] | None


def read_scores(path: Path | str) -> Scores:
    """The scores of a file; ValueError or OSError names the file, the line and what is wrong with it."""
    found = read_rows(path)
    return Scores.of(found.score, found.member)


def read_rows(path: Path | str) -> ScoreRows:
    """All rows of a file, of which there is at least one of each kind; refuses as `read_scores` does."""
    place = as_path("scores", path)
    if not place.is_file():
        raise refuse("scores", str(place), "a file with columns score and member", "there is no file of that name")
    heading = _Heading(place, [name.strip().lower() for name in first_row(place)])
    found = _quickly(place, heading) or _carefully(place, heading)
    if not found.score.size:
        raise ValueError(f"{place} has no rows below its heading")
    if found.member.all() or not found.member.any():
        kind, count = int(found.member[0]), found.member.size
        raise ValueError(f"{place} has member {kind} in all {count:,} rows: both kinds are needed")
    return found


class _Heading:
    """Where the columns are."""

    def __init__(self, place: Path, names: list[str]) -> None:
        if not any(names):
            raise ValueError(f"{place} is empty: the first line must name the columns score and member")
        self.columns = len(names)
        for name in ("score", "member"):
            if names.count(name) != 1:
                found = ", ".join(name[:40] or "(nameless)" for name in names[:8])
                how = "no column" if name not in names else "more than one column"
                raise ValueError(f"{place} has {how} {name!r} in its heading: {found}")
        self.score, self.member = names.index("score"), names.index("member")
        if names.count("run") > 1:
            raise ValueError(f"{place} has more than one column 'run' in its heading")
        self.run = names.index("run") if "run" in names else None

    @property
    def kinds(self) -> dict[int, Kind]:
        runs: dict[int, Kind] = {} if self.run is None else {self.run: "word"}
        return {self.score: "number", self.member: "word", **runs}


def _quickly(place: Path, heading: _Heading) -> ScoreRows | None:
    """All columns at once; None where a row is not of the plain kind, for `_carefully` to read or to refuse."""
    columns = read_columns(place, heading.columns, heading.kinds, skip=True, quotes=False)
    if columns is None:
        return None
    score = columns[0].to_numpy()
    kinds, kind = words(columns[1])
    names, run = words(columns[2]) if heading.run is not None else ([], None)
    if not np.isfinite(score).all() or not all(names) or any(word.lower() not in MEMBERS for word in kinds):
        return None
    return ScoreRows(score, np.array([MEMBERS[word.lower()] for word in kinds], dtype=bool)[kind], run)


def _carefully(place: Path, heading: _Heading) -> ScoreRows:
    """Row by row: quotes, blanks and empty lines; the first fault is named with its line."""
    score: list[float] = []
    member: list[bool] = []
    run: list[int] = []
    numbers: dict[str, int] = {}
    for line, row in rows(place, skip=True):
        if any(cell.strip() for cell in row):
            value, belongs = _row(row, heading, f"{place}, {line}")
            score.append(value)
            member.append(belongs)
            if heading.run is not None:
                run.append(numbers.setdefault(_run(row[heading.run], f"{place}, {line}"), len(numbers)))
    return ScoreRows(
        np.array(score, dtype=np.float64),
        np.array(member, dtype=bool),
        None if heading.run is None else np.array(run, dtype=np.int64),
    )


def _run(cell: str, where: str) -> str:
    if not cell.strip():
        raise ValueError(f"{where}: run must name the row's training, got ''")
    return cell.strip()


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
