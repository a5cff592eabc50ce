"""The planner's API: the command line's own numbers, refusals that name the field, and nothing beyond its bounds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from deniable.report import Found, find_runs
from deniable.web import create_app, listed_runs, work
from deniable.web.answer_pool import Answers
from deniable.web.listed_runs import HERE, list_runs, report
from deniable.web.request_forms import expected_text

FUZZED = int(os.environ.get("DENIABLE_FUZZ", "12"))  # examples of each operation
TRAINING = {"records": 60000, "batch": 300, "epochs": 30}
EXPLAINED: list[dict[str, Any]] = [
    {"epsilon": 2.2, "delta": 1e-5},
    {"epsilon": 1.0, "delta": 0.0},
    {"tvd": 0.25, "prior": 0.1},
    {"gdp": 0.5, "fpr": [0.001, 0.05, 0.5]},
    {"noise": 1.1, **TRAINING},
    {"noise": 2.0, "rate": 0.01, "steps": 500, "adjacency": "replace"},
    {"laplace": 0.7, "baseline": [0.001, 0.1]},
    {"gdp": 1.2, "candidates": 582328},
    {"randomized_response": 1.5, "categories": 12, "features": 20},
]
CHOSEN: list[dict[str, Any]] = [
    {"belief": 0.75, **TRAINING},
    {"advantage": 0.1, "rate": 0.02, "steps": 300, "adjacency": "zero-out"},
    {"accuracy": 0.93, "prior": 0.1, **TRAINING},
    {"tpr": 0.05, "fpr": [0.01], "steps": 10},
    {"ppv": 0.2, "fpr": [0.01], "prior": 1 / 11, "steps": 10},
    {"success": 0.05, "baseline": [0.001], "steps": 10},
    {"epsilon": 3.0, **TRAINING},
    {"belief": 0.8, "mechanism": "laplace"},
    {"advantage": 0.1, "sampling": "allocation", "steps_per_epoch": 100, "epochs": 10},
    {"advantage": 0.3, "mechanism": "randomized-response", "categories": 5, "features": 3},
]


HISTORY = [[1.0, 0.01, 500], [1.3, 0.01, 100]]


def test_a_document_of_another_tool_is_explained(api: httpx.Client) -> None:
    document = _json(api.post("/api/explain", json={"opacus": HISTORY}))
    assert document["scores"]["epsilon"] == pytest.approx(1.37005, abs=1e-4)
    shown = _json(api.post("/api/plan/explain", json={"opacus": {"history": HISTORY}, "sampling": "shuffled"}))
    assert "the value for Poisson batches is not theirs" in shown["caution"]
    assert shown["command"] == "deniable explain --opacus opacus.json --sampling shuffled"
    refused = api.post("/api/explain", json={"dp_event": {"class_name": "MagicDpEvent"}})
    assert refused.status_code == 422
    assert "MagicDpEvent is not known here" in refused.json()["error"]["message"]


def asked(what: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"what": what, "values": values}


PLANS = [asked("explain", values) for values in EXPLAINED] + [asked("choose", values) for values in CHOSEN]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan['what']}-{next(iter(plan['values']))}")
def test_every_way_gives_the_same_numbers(
    api: httpx.Client, by_command: Callable[[str], dict[str, Any]], plan: dict[str, Any]
) -> None:
    """GET, POST, the page's plan, its command line and its Python lines."""
    what, values = plan["what"], plan["values"]
    document = _json(api.post(f"/api/{what}", json=values))
    assert document == _json(api.get(f"/api/{what}", params=values))
    shown = _json(api.get(f"/api/plan/{what}", params=values))
    assert shown["document"] == document
    assert by_command(shown["command"]) == document
    assert _by_python(shown["python"], document["scores"]) == document["scores"]
    assert not set("<>&") & set(shown["headline"] + shown["meaning"])


def _json(response: httpx.Response) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    assert response.status_code == 200, response.text
    found: dict[str, Any] = json.loads(response.text, parse_constant=refuse)
    return found


def _by_python(lines: str, scores: dict[str, Any]) -> dict[str, Any]:
    """The document's scores, with the numbers that the exported lines give."""
    given: dict[str, Any] = {}
    exec(lines, given)
    found = given["scores"]
    flat = {
        name: float(found[name]) if isfinite(found[name]) else None
        for name in ("epsilon", "belief", "advantage", "accuracy")
    }
    lists = {
        name: [{**row, name: float(value)} for row, value in zip(scores[name], found[name], strict=True)]
        for name in ("tpr", "ppv", "success")
        if name in scores
    }
    return {**scores, **flat, **lists}


def test_the_figures_on_the_page_are_rounded_up_as_on_the_terminal(api: httpx.Client) -> None:
    shown = _json(api.get("/api/plan/choose", params={"belief": 0.75, **TRAINING}))
    assert shown["figures"] == {
        "noise": "1.6811",
        "belief": "75 %",
        "advantage": "10.1 %",
        "accuracy": "55.1 %",
        "epsilon": "0.919",
    }
    assert shown["demands"][0] == {"name": "exact", "label": "exact", "noise": "1.6811", "ratio": "1"}
    assert "60,000 records" in shown["assessment"]
    assert "1/60,000" in shown["assessment"]


REFUSED = {
    "/api/explain": (None, "exactly one of epsilon, tvd, gdp, noise, laplace, randomized_response"),
    "/api/explain?noise=-1": ("noise", "from 0.2 to 100000, got '-1'"),
    "/api/explain?noise=nan": ("noise", "from 0.2 to 100000, got 'nan'"),
    "/api/explain?noise=inf": ("noise", "from 0.2 to 100000"),
    "/api/explain?noise=1e400": ("noise", "from 0.2 to 100000"),
    "/api/explain?noise=x": ("noise", "a number from"),
    "/api/explain?epsilon=1&noise=1": ("noise", "contradicts epsilon 1"),
    "/api/explain?steps=1.5&noise=1": ("steps", "a whole number from 1 to 1e+07"),
    "/api/explain?steps=100000000&noise=1": ("steps", "from 1 to 1e+07"),
    "/api/explain?epsilon=1&fpr=2": ("fpr", "from 0 to 1"),
    "/api/explain?epsilon=1&" + "&".join(["fpr=.1"] * 5): ("fpr", "1 to 4 of"),
    "/api/explain?epsilon=1&adjacency=x": ("adjacency", "one of add-remove, replace, zero-out"),
    "/api/explain?noise=1&records=4&batch=5&epochs=1": ("batch", "from 1 to records (4), got 5"),
    "/api/explain?noise=1&records=1000000000&batch=1&epochs=100000": ("epochs", "at most 1e+09 steps"),
    "/api/explain?epsilon=1&typo=2": ("typo", "typo"),
    "/api/choose?belief=.4&steps=1": ("belief", "above 0.5"),
    "/api/choose?belief=.7": ("steps", "steps is missing"),
    "/api/choose?belief=.7&mechanism=laplace&steps=3": ("steps", "does not go with mechanism laplace"),
    "/api/choose?belief=.7&steps=3&features=3": ("features", "goes with mechanism randomized-response"),
    "/api/choose?tpr=.1&steps=3": ("fpr", "fpr is missing"),
    "/api/choose?belief=.7&steps=3&delta=0": ("delta", "strictly between 0 and 1"),
}


@pytest.mark.parametrize("address", REFUSED)
def test_a_refusal_names_the_field_and_its_range(api: httpx.Client, address: str) -> None:
    response = api.get(address)
    field, words = REFUSED[address]
    assert response.status_code == 422
    problem = response.json()["error"]
    assert problem["field"] == field
    assert words in problem["message"]
    assert "--" not in problem["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'"x"', b'{"epsilon": "1"}', b'{"epsilon": true}', b"\xff"])
def test_a_body_that_is_no_request_is_refused(api: httpx.Client, body: bytes) -> None:
    response = api.post("/api/explain", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert response.json()["error"]["message"]


def test_a_large_body_is_refused_before_it_is_read_whole(api: httpx.Client) -> None:
    response = api.post("/api/explain", content=b" " * 1_000_000)
    assert response.status_code == 413
    assert "262144 bytes" in response.json()["error"]["message"]


def test_a_costly_corner_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "BUDGET", 0.02)
    batches = {"sampling": "allocation", "steps_per_epoch": 999_999, "epochs": 9, "records_per_person": 4}
    before = signal.signal(signal.SIGPROF, work._spent)  # as a worker of the planner begins
    try:
        with pytest.raises(work.TooCostlyError, match=r"deniable explain --noise 0\.2 --sampling allocation"):
            work.answer("explain", json.dumps({"noise": 0.2, **batches}))
    finally:
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "127.0.0.1.evil.example"]
)
def test_a_name_that_is_not_ours_is_refused(api: httpx.Client, host: str) -> None:
    """A page elsewhere whose name leads here (DNS rebinding) gets nothing."""
    assert api.get("/api/runs", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:99", "127.0.0.1", "[::1]:8000", "[::1]", "LOCALHOST"])
def test_this_machine_is_served(api: httpx.Client, host: str) -> None:
    assert api.get("/api/runs", headers={"host": host}).status_code == 200


def test_every_response_carries_the_policy(api: httpx.Client) -> None:
    for address in ("/", "/api/runs", "/nothing", "/api/explain?x=1", "/main.js"):
        headers = api.get(address).headers
        assert "default-src 'self'" in headers["content-security-policy"], address
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert "cdn" not in api.get("/").text
    assert api.get("/docs").status_code == 404


def test_runs_are_listed_whatever_their_names(api: httpx.Client, folder: Path) -> None:
    listed = {run["name"]: run for run in _json(api.get("/api/runs"))["runs"]}
    assert set(listed) == {"local", "<img src=x onerror=alert(1)>", "ümläut & more", "broken", "half"}
    for run in find_runs(folder):
        assert listed[run.name]["verdict"] == run.verdict
        assert listed[run.name]["title"] == run.title
    assert listed["broken"]["verdict"] == "unreadable"
    assert listed["half"]["report"] is None  # its report is a link to elsewhere
    for name in ("local", "<img src=x onerror=alert(1)>"):
        page = api.get(listed[name]["report"])
        assert page.text == (folder / name / "report.html").read_text()
        assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_a_folder_that_is_a_run_is_listed(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("{}")
    (tmp_path / "report.html").write_text("here")
    assert [(run.name, run.report) for run in list_runs(tmp_path)] == [(tmp_path.name, "/runs/report")]
    assert report(tmp_path, HERE) == b"here"
    assert report(tmp_path, "..") is None
    assert list_runs(None) == list_runs(tmp_path / "nothing") == []


def test_a_document_that_leads_elsewhere_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "audit.json").symlink_to(tmp_path / "secret.json")
    assert list_runs(tmp_path / "runs") == []


def test_a_list_costs_no_more_than_its_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not read is said, and read when asked again; what was read is remembered until it changes."""
    for name in ("a", "b", "c", "huge"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.json").write_text("{}" if name != "huge" else " " * (5 * 2**20))
    read: list[str] = []
    now = [0.0]

    def slow(place: Path, name: str) -> Found:
        read.append(name)
        now[0] += 0.3
        return Found(name, "audit", name, "consistent", False)

    monkeypatch.setattr(listed_runs, "list_run", slow)
    monkeypatch.setattr(listed_runs, "monotonic", lambda: now[0])
    first = {run.name: run.verdict for run in list_runs(tmp_path)}
    assert first["a"] == first["b"] == "consistent"
    assert first["c"].startswith("not read yet")
    assert first["huge"].startswith("too large")
    assert {run.verdict for run in list_runs(tmp_path) if run.name != "huge"} == {"consistent"}
    assert read == ["a", "b", "c"]
    (tmp_path / "a" / "audit.json").write_text("{ }")
    list_runs(tmp_path)
    assert read == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "..",
            ".",
            "%2e%2e",
            "..%2fsecret",
            "%2e%2e%2fsecret",
            "linked",
            "half",
            "empty",
            "local/..",
            "%00",
            "a" * 5000,
        ),
        *("/etc", "%2fetc%2fpasswd%00", "....//secret", "..\\secret", "%ff", quote("../secret", safe=""), ""),
    ],
)
def test_no_file_outside_the_folder_is_read(api: httpx.Client, name: str) -> None:
    assert _status(api, f"/runs/{name}/report") in (404, 400)


@pytest.mark.parametrize(
    "path", ["/../app.py", "/%2e%2e/app.py", "/vendor/../../app.py", "/..%2fapp.py", "//etc/passwd"]
)
def test_no_file_outside_the_page_is_read(api: httpx.Client, path: str) -> None:
    assert _status(api, path) == 404


def _status(api: httpx.Client, path: str) -> int:
    """The status of a path that is sent as it stands: a client would tidy it up."""
    with socket.create_connection((api.base_url.host, api.base_url.port or 80), timeout=20) as plug:
        plug.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := plug.recv(65536):
            answer += part
    assert b"for nobody" not in answer
    return int(answer.split()[1])


def test_the_same_question_is_computed_once() -> None:
    """Also while it is being computed; the oldest answers are forgotten first."""

    class Counting(Answers):
        computed = 0

        def _submit(self, kind: str, text: str) -> asyncio.Future[tuple[int, bytes]]:
            self.computed += 1
            future: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(0.01, future.set_result, (200, text.encode()))
            return future

    async def play() -> list[int]:
        answers, counts = Counting(), []
        assert await asyncio.gather(*(answers.ask("explain", "a") for _ in range(9))) == [(200, b"a")] * 9
        counts.append(answers.computed)
        await answers.ask("explain", "a")
        counts.append(answers.computed)
        answers.remembered = 2
        for text in ("b", "c", "a"):
            await answers.ask("explain", text)
        counts.append(answers.computed)
        return counts

    assert asyncio.run(play()) == [1, 1, 4]


def test_what_a_field_must_be_is_told_of_every_field() -> None:
    for field in ("noise", "fpr", "adjacency", "records"):
        assert expected_text(field, choosing=False) or field == "noise"
    assert expected_text("noise", choosing=True) is None
    assert expected_text("epsilon", choosing=True) != expected_text("epsilon", choosing=False)


PROMISED = create_app().openapi()
OPERATIONS = [
    (path, method, mode)
    for path, methods in PROMISED["paths"].items()
    for method in methods
    for mode in (["POSITIVE", "NEGATIVE"] if "run" not in path else ["POSITIVE"])
]


@pytest.mark.parametrize(("path", "method", "mode"), OPERATIONS)
def test_the_api_is_as_it_documents_itself(served: str, path: str, method: str, mode: str) -> None:
    """Which settings go together no schema can tell, so that what it allows may still be refused."""
    import schemathesis  # noqa: PLC0415 (three seconds, which the processes of other tests save)
    from schemathesis.checks import positive_data_acceptance, unsupported_method  # noqa: PLC0415

    operation = schemathesis.openapi.from_dict(PROMISED)[path][method.upper()]

    @settings(max_examples=FUZZED, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode]))
    def play(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=served, excluded_checks=[positive_data_acceptance, unsupported_method])

    play()
