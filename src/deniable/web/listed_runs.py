"""The runs in one folder: listed, and their reports read; nothing outside of it is ever opened."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from time import monotonic
from urllib.parse import quote

from deniable.campaigns.look import look
from deniable.engines.planned import PLAN
from deniable.report.stored_runs import DOCUMENTS, PAGE, Found, list_run, places
from deniable.report.under_way import sentences
from deniable.store import FILE, SETTINGS_FILE
from deniable.web.request_forms import ListedRun

HERE = "."
"""The name of the run that the folder itself holds."""
_MOST_RUNS = 200
_LARGEST = 4 * 2**20  # bytes that a document may have to be read for a list: about a tenth of a second
_PATIENCE = 0.5  # seconds of reading in one request


def list_runs(folder: Path | None) -> list[ListedRun]:
    """The runs in the folder, with the addresses of their reports.

    What has been read is remembered; what there was no time to read says so, and is read when asked again.
    """
    if folder is None or not folder.is_dir():
        return []
    end = monotonic() + _PATIENCE
    judged = islice(places(folder).items(), _MOST_RUNS)
    runs = [_list_entry(folder, _seen(name, place, end)) for name, place in judged]
    return [*(_list_entry(folder, run) for run in _under_way(folder, end)), *runs]


def _under_way(folder: Path, end: float) -> Iterator[Found]:
    """Campaigns that are not judged yet: how far they are, as `deniable status` tells it."""
    inside = (place for place in sorted(folder.iterdir()) if place.is_dir() and not place.is_symlink())
    for place in islice((one for one in (folder, *inside) if _is_under_way(one)), _MOST_RUNS):
        name = place.relative_to(folder).as_posix()
        if monotonic() > end:
            yield Found(name, "campaign", place.name, "not read yet: load the page again", False)
            continue
        try:
            told = " ".join(sentences(look(place, _LARGEST)))
        except (OSError, ValueError) as problem:
            told = str(problem)
        yield Found(name, "campaign", told, "under way", False)


def _is_under_way(place: Path) -> bool:
    begun = any((place / name).is_file() and not (place / name).is_symlink() for name in (FILE, SETTINGS_FILE, PLAN))
    return begun and not any((place / name).exists() for name in DOCUMENTS)


def report(folder: Path | None, name: str) -> bytes | None:
    """The report of the run called `name`; None unless it is a real file in a real directory of the folder."""
    if folder is None or not folder.is_dir() or name not in places(folder):
        return None
    page = folder / name / PAGE
    return page.read_bytes() if _is_inside(page, folder) else None


def _seen(name: str, place: Path, end: float) -> Found:
    files = [place / file for file in DOCUMENTS]
    states = [file.stat() for file in files if file.is_file()]
    if sum(state.st_size for state in states) > _LARGEST:
        return Found(name, "unknown", place.name, "too large to be listed: run deniable report", False)
    if monotonic() > end:
        return Found(name, "unknown", place.name, "not read yet: load the page again", False)
    return _remembered_run(name, place, tuple((state.st_mtime_ns, state.st_size) for state in states))


@lru_cache(maxsize=2 * _MOST_RUNS)
def _remembered_run(name: str, place: Path, states: tuple[tuple[int, int], ...]) -> Found:
    """Read once for each state of the files."""
    return list_run(place, name)


def _list_entry(folder: Path, run: Found) -> ListedRun:
    name = run.name.encode("utf-8", "replace").decode()  # bytes that are no text cannot be told in JSON, nor asked for
    address = f"/runs/{quote(name, safe='')}/report" if name != HERE else "/runs/report"
    there = name == run.name and _is_inside(folder / run.name / PAGE, folder)
    return ListedRun(
        name=folder.name if name == HERE else name,
        kind=run.kind,
        title=run.title.encode("utf-8", "replace").decode(),
        verdict=run.verdict,
        report=address if there else None,
    )


def _is_inside(file: Path, folder: Path) -> bool:
    return file.is_file() and not file.is_symlink() and file.resolve().is_relative_to(folder.resolve())
