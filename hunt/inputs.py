"""Inputs: random command lines, request bodies, data and score files, and stores with flipped bits.

A find is a traceback, NaN or Infinity in JSON, an exit code that is not documented, a refusal without a sentence, or a
flipped bit that nobody noticed. Everything runs in this process, with sizes that take a fraction of a second.
"""

# ruff: noqa: PLC0415 (what a case needs is imported by the case; a match returns often)

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hunt.command_lines import WORDS, draw_line, options_of, ready_folder
from hunt.find import Find

__all__ = ["look"]

EXIT_CODES = {0, 1, 2}
"""That a command may end with here: nobody sends a signal, and memory is enough."""
MOST_SECONDS = 20.0
"""Of CPU, for one case: an answer of many questions takes two."""
ENDS: Counter[tuple[str, int]] = Counter()
"""How many lines of each command ended with each exit code, for whoever counts; 0 went all the way."""


@dataclass(frozen=True)
class Case:
    """Something to try: what a person would type to see it again, and the trial itself."""

    call: str
    fault: Callable[[], str | None]


def look(seed: int) -> Find | None:
    """One random input; what is wrong with its answer, if anything."""
    draw = random.Random(seed)
    make = draw.choice((_lines, _lines, _lines, _bodies, _scores, _data, _stores, _documents))
    case = make(draw)
    with tempfile.TemporaryDirectory() as place, chdir(place), _patience():
        fault = case.fault()
    if fault is None:
        return None
    return Find(f"{case.call}  (seed {seed})", fault, "an answer, or a refusal in one sentence")


@contextmanager
def _patience() -> Iterator[None]:
    """TimeoutError where a case takes more than `MOST_SECONDS` of CPU: it may never end."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"no answer after {MOST_SECONDS:g} s of CPU")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def fault_of(arguments: list[str]) -> str | None:
    """What is wrong with the way the command line ends."""
    from deniable.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = "no exit"
    try:
        with redirect_stdout(out), redirect_stderr(err), _quiet():
            main(arguments)
    except SystemExit as left:
        code = left.code or 0
    except BaseException as error:
        return "".join(traceback.format_exception(error)[-2:]).strip()
    ENDS[arguments[0] if arguments else "", code] += 1
    if code not in EXIT_CODES:
        return f"exit code {code}: {err.getvalue()[-200:]}"
    if code == 2 and not err.getvalue().startswith("deniable: ") and "deniable: " not in err.getvalue():
        return f"refused without a sentence: {err.getvalue()!r}"
    if "Traceback" in err.getvalue():
        return err.getvalue()[-400:]
    asked_for_json = "--json" in arguments and not {"-h", "--help", "--version"} & set(arguments)
    return _not_json(out.getvalue()) if code == 0 and asked_for_json else None


def _not_json(text: str) -> str | None:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return f"{error}: {text[:200]!r}"
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without a terminal's width, and with NumPy's warnings as errors, as the tests have them."""
    import warnings

    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


# --- command lines ---


def _lines(draw: random.Random) -> Case:
    line = draw_line(draw)

    def fault() -> str | None:
        shutil.copytree(ready_folder(), ".", dirs_exist_ok=True)
        with _servers_end_at_once():
            return fault_of(line)

    return Case(f"deniable {shlex.join(line)}", fault)


@contextmanager
def _servers_end_at_once() -> Iterator[None]:
    """`serve` goes as far as the server's first moment."""
    import uvicorn

    run = uvicorn.Server.run
    uvicorn.Server.run = lambda server, sockets=None: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        uvicorn.Server.run = run  # type: ignore[method-assign]


# --- bodies of requests ---


@cache
def _client() -> Any:
    from fastapi.testclient import TestClient

    from deniable.web import create_app
    from deniable.web.answer_pool import Answers
    from deniable.web.work import PARTS, TooCostlyError, _spent, answer, put_together, refusal

    signal.signal(signal.SIGPROF, _spent)

    class Here(Answers):
        """Answers computed in this process."""

        async def ask(self, kind: str, text: str) -> tuple[int, bytes]:
            try:
                parts = [answer(part, text) for part in PARTS.get(kind, (kind,))]
            except TooCostlyError as refused:
                return 422, refusal(None, None, str(refused))
            refused = [part for part in parts if part[0] != 200]
            if refused or kind not in PARTS:
                return (refused or parts)[0]
            return 200, put_together(kind, text, [content for _, content in parts])

    return TestClient(create_app(answers=Here(workers=1)), raise_server_exceptions=True, base_url="http://localhost")


def _bodies(draw: random.Random) -> Case:
    path = draw.choice(("/api/explain", "/api/choose", "/api/curves", "/api/plan/explain", "/api/plan/choose"))
    names = [name.removeprefix("--").replace("-", "_") for name, _ in options_of("choose") + options_of("explain")]
    body: Any = {draw.choice(names): _json_value(draw) for _ in range(draw.randint(0, 4))}
    text = json.dumps(body)
    if draw.random() < 0.2:
        text = text[: draw.randint(0, len(text))] + draw.choice(("", "}", "NaN", "\0", "[" * 2000, "\ud800"))
    raw = text.encode("utf-8", "surrogatepass")

    def fault() -> str | None:
        found = _client().post(path, content=raw, headers={"content-type": "application/json"})
        if found.status_code >= 500:
            return f"status {found.status_code}: {found.text[:300]}"
        return _not_json(found.text)

    return Case(f"POST {path} {text[:300]!r}", fault)


def _json_value(draw: random.Random) -> Any:
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: float(draw.choice(("0", "1", "5e-324", "1e308", "-1e308", "1e-9", "0.5", "0.9"))),
        lambda: draw.uniform(0, 1) * 10.0 ** draw.randint(-6, 3),
        lambda: draw.choice((0, 1, 2, 10, 100, 10**6, 10**400, -1)),
        lambda: draw.choice(WORDS),
        lambda: draw.choice((None, True, [], {}, [0.5], [None], {"a": 1})),
    )
    return draw.choice(kinds)()


# --- files ---


def _scores(draw: random.Random) -> Case:
    rows = [f"{_score(draw)},{draw.choice('01')}" for _ in range(draw.randint(0, 40))]
    text = "\n".join([draw.choice(("score,member", "member,score", "score", "", "score,member")), *rows]) + "\n"
    content = _mangled(draw, text.encode("utf-8", "replace"))
    claim = [
        "--claimed-epsilon",
        draw.choice(("0", ".5", "2", "1e6")),
        "--delta",
        draw.choice(("1e-5", ".1", "5e-324")),
    ]
    method = draw.choice(("", "mechanism", "region", "gaussian", "separation", "likelihood", "one-run", "advantage"))
    line = ["verdict", "s.csv", *claim, *(["--method", method] if method else []), "--json"]
    if method == "mechanism" or draw.random() < 0.2:
        line += ["--noise", draw.choice((".5", "1", "30", "1e6"))]
    return _with_file(line, "s.csv", content)


def _score(draw: random.Random) -> str:
    extreme = ("1e308", "-1e308", "5e-324", "0", "-0.0", "1", "nan", "inf", '"1"', "", "1e400", "x")
    return (
        f"{draw.gauss(0, 1)!r}" if draw.random() < 0.8 else draw.choice(extreme[: 6 if draw.random() < 0.9 else None])
    )


def _data(draw: random.Random) -> Case:
    name = draw.choice(("d.csv", "d.npz"))
    content = _table(draw) if name == "d.csv" else _archive(draw)
    line = ["audit", "--data", name, "--noise", "1", "--records", "5", "--steps", "1", "--trials", "2", "--json"]
    return _with_file([*line, "--processes", "1", "--model", "logistic"], name, _mangled(draw, content))


def _table(draw: random.Random) -> bytes:
    columns = draw.randint(1, 5)
    rows = [",".join([*(_score(draw) for _ in range(columns)), draw.choice("012")]) for _ in range(draw.randint(0, 30))]
    heading = [",".join([*(f"c{n}" for n in range(columns)), "label"])] if draw.random() < 0.5 else []
    return "\n".join(heading + rows).encode("utf-8", "replace")


def _archive(draw: random.Random) -> bytes:
    generator = np.random.default_rng(draw.getrandbits(32))
    shape = draw.choice(((12, 3), (12, 8, 8), (12, 3, 8, 8), (12,), (0, 3), (12, 1), (1, 3)))
    kind = draw.choice((np.float32, np.float64, np.uint8, np.int64, np.complex64, np.bool_))
    labels = generator.integers(0, draw.choice((1, 2, 3)), draw.choice((12, 12, 12, 5)))
    buffer = io.BytesIO()
    features = generator.integers(0, 255, shape) * 10.0 ** draw.choice((0, 0, -3, 30, 300))
    with np.errstate(all="ignore"):
        features = features.astype(kind)
    (np.savez if draw.random() < 0.5 else np.savez_compressed)(buffer, X=features, y=labels)
    return buffer.getvalue()


def _mangled(draw: random.Random, content: bytes) -> bytes:
    """As it is, or cut, or with some bytes changed, or something else altogether."""
    match draw.randrange(8):
        case 0:
            return content[: draw.randint(0, len(content))]
        case 1 | 2 if content:
            changed = bytearray(content)
            for _ in range(draw.randint(1, 4)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            return bytes(changed)
        case 3:
            return draw.randbytes(draw.randint(0, 300))
        case 4:
            return gzip.compress(content)
    return content


def _with_file(line: list[str], name: str, content: bytes) -> Case:
    def fault() -> str | None:
        Path(name).write_bytes(content)
        return fault_of(line)

    return Case(f"deniable {shlex.join(line)}  with {name} = {content[:120]!r}", fault)


def _documents(draw: random.Random) -> Case:
    """`report` over a run's document with one value or byte changed."""
    document = _documented(draw.choice(("verdict", "audit")))
    content = (
        json.dumps(_altered(draw, document)).encode() if draw.random() < 0.7 else _mangled(draw, document.encode())
    )
    return _with_file(["report", "r.json", "--json"], "r.json", content)


@cache
def _documented(kind: str) -> str:
    from deniable.cli import main

    out = io.StringIO()
    with tempfile.TemporaryDirectory() as place, chdir(place), redirect_stdout(out), redirect_stderr(io.StringIO()):
        Path("s.csv").write_text("score,member\n" + "".join(f"{n % 7},{n % 2}\n" for n in range(100)))
        line = {
            "verdict": "verdict s.csv --claimed-epsilon 1 --delta 1e-5 --json",
            "audit": "audit digits --noise 3 --records 10 --steps 2 --trials 20 --processes 1 --json",
        }[kind]
        with suppress(SystemExit):
            main(line.split())
    return out.getvalue()


def _altered(draw: random.Random, text: str) -> Any:
    document = json.loads(text)
    place = document
    while isinstance(place, (dict, list)) and place:
        key = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
        if not isinstance(place[key], (dict, list)) or not place[key] or draw.random() < 0.2:
            if draw.random() < 0.3:
                del place[key]
            else:
                place[key] = _json_value(draw)
            break
        place = place[key]
    return document


# --- stores ---


@cache
def _stored() -> bytes:
    from deniable.store import FILE, Store

    with tempfile.TemporaryDirectory() as place:
        with Store(place, {"seed": 1, "noise": 0.5}) as store:
            for number in range(3):
                store.save(number, {"a": np.arange(20) + number, "b": np.array([number / 3])})
        return (Path(place) / FILE).read_bytes()


def _stores(draw: random.Random) -> Case:
    content = bytearray(_stored())
    bit = draw.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8

    def fault() -> str | None:
        from deniable.store import FILE, StoreError, kept

        Path(FILE).write_bytes(content)
        try:
            kept(".")
        except StoreError as noticed:
            return None if "damaged" in str(noticed) else f"noticed, but not named: {noticed}"
        return "nobody noticed"

    return Case(f"bit {bit} of a store's file is flipped", fault)


if __name__ == "__main__":
    print(look(int(sys.argv[1])))
