"""What is read, what is listed, and what is refused in one line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.report import find_runs, read, render
from deniable.report.page import CHAPTERS
from deniable.results.base import plain
from deniable.store import FILE, Store, StoreError, read_document, write_document

Write = Callable[[dict[str, Any]], Path]
KINDS = ("audit", "compare", "verdict")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_read_from_its_folder_or_its_document(runs: dict[str, Path], kind: str) -> None:
    run = read(runs[kind])
    assert run.kind == kind
    if runs[kind].is_dir():
        alone = read(runs[kind] / f"{kind}.json")
        assert alone.result == run.result


def test_a_record_without_its_course_gets_it_from_the_trials(runs: dict[str, Path], tmp_path: Path) -> None:
    place = tmp_path / "old"
    shutil.copytree(runs["audit"], place)
    document = read_document(place / "audit.json")
    course = document.pop("course")
    write_document(place / "audit.json", document)
    assert plain(read(place).result)["course"] == course


def test_a_document_of_the_last_version_is_read_by_todays_names(runs: dict[str, Path], tmp_path: Path) -> None:
    text = json.dumps(read_document(runs["audit"] / "audit.json"))  # without its checksum
    old = text.replace("belief_delta", "belief_failure").replace("at_delta", "at_failure").replace("audit/2", "audit/1")
    assert old != text
    (tmp_path / "old.json").write_text(old)
    assert plain(read(tmp_path / "old.json").result) == json.loads(text)


def test_runs_in_a_folder_are_listed_with_their_verdicts(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["audit"], tmp_path / "b" / "audit")
    shutil.copytree(runs["compare"], tmp_path / "b" / "compare")
    (tmp_path / "b" / "damaged").mkdir()
    (tmp_path / "b" / "damaged" / "audit.json").write_text("{")
    (tmp_path / "b" / "empty").mkdir()
    (tmp_path / "b" / "link").symlink_to(runs["audit"])
    listed = {run.name: run for run in find_runs(tmp_path / "b")}
    assert list(listed) == ["audit", "compare", "damaged"]
    assert (listed["audit"].kind, listed["audit"].title) == ("audit", "Privacy audit of digits")
    assert listed["audit"].verdict.split(",")[0] in ("consistent", "cannot judge")
    assert listed["audit"].page
    assert listed["compare"].verdict
    assert listed["damaged"].problem is not None
    assert [run.name for run in find_runs(tmp_path / "b" / "audit")] == ["."]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        find_runs(tmp_path / "nowhere")


def refused(path: Path, said: str) -> None:
    with pytest.raises((ValueError, OSError)) as problem:
        read(path)
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "there is no run")
    refused(tmp_path, "has no audit.json, compare.json, attack.json or frontier.json: it is no run's folder")
    with Store(tmp_path, {"a": 1}):
        pass
    refused(tmp_path, "not finished: go on with --resume")
    for text, said in (
        ("", "not a whole JSON document"),
        ('{"schema": "deniable/audit/2", "inp', "not a whole JSON document"),
        ("[" * 100_000, "not a whole JSON document"),
        ('{"schema": NaN}', "it holds NaN"),
        ("[]", "schema 'None'"),
        ('{"schema": []}', "schema '[]'"),
        ('{"schema": "deniable/audit/%s"}' % ("9" * 5000), "a report is made of"),
        ('{"schema": "deniable/explain/2"}', "a report is made of deniable/audit/2"),
        ('{"schema": "other/audit/1"}', "a report is made of"),
        ('{"schema": "deniable/audit/3"}', "a newer version"),
        ('{"schema": "deniable/audit/0"}', "an older version"),
        ('{"schema": "deniable/audit/2"}', "input is missing"),
    ):
        (tmp_path / "bad.json").write_text(text)
        refused(tmp_path / "bad.json", said)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    refused(tmp_path / "bytes.json", "not a whole JSON document")


def test_a_changed_figure_of_an_answer_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    """One bit of audit.json made another number of the report, unnoticed."""
    place = copied(runs, tmp_path)
    content = (place / "audit.json").read_text()
    at = next(match.start() for match in re.finditer(r"\d", content[content.index('"measured"') :]))
    at += content.index('"measured"')
    (place / "audit.json").write_text(content[:at] + str(int(content[at]) ^ 1) + content[at + 1 :])
    refused(place, "damaged (a value was changed since it was written: its checksum differs)")


def copied(runs: dict[str, Path], tmp_path: Path) -> Path:
    shutil.copytree(runs["audit"], tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_store_is_refused(runs: dict[str, Path], tmp_path: Path, share: float) -> None:
    place = copied(runs, tmp_path)
    content = (place / FILE).read_bytes()
    (place / FILE).write_bytes(content[: int(share * len(content))])
    with pytest.raises(StoreError, match=r"trials\.blocks"):
        read(place)


def test_a_store_that_is_not_the_documents_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    place = copied(runs, tmp_path)
    (place / FILE).write_text("nothing of the kind, but long enough to be a file" * 100)
    refused(place, "not a campaign's file")
    (place / FILE).unlink()
    with Store(place, {"data": "other"}) as store:
        store.save(0, {"a": np.zeros(2)})
    refused(place, "holds another campaign")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document; of a list the first and the last."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for place in {0, len(value) - 1}:
            yield (*path, place)
            yield from leaves(value[place], (*path, place))


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(document))
    holder = copy
    for step in path[:-1]:
        holder = holder[step]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return copy  # type: ignore[no-any-return]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", KINDS)
def test_a_document_with_one_fault_is_refused_or_told(
    documents: dict[str, dict[str, Any]], written: Write, kind: str
) -> None:
    """Whatever is missing or of another type: one line, or a chapter that can do without it; never a traceback."""
    document, problems = documents[kind], []
    for path in leaves(document):
        for value in (..., "<b>"):
            try:
                run = read(written(changed(document, path, value)))
            except ValueError as problem:
                problems.append(str(problem))
                continue
            if path[0] in ("provenance", "finished", "notes"):
                CHAPTERS[kind](run)
    assert len(problems) > 50
    assert not any("\n" in problem for problem in problems)


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        render([])
