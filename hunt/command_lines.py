"""Random command lines, most of them wrong somewhere; of every command some go all the way, at tiny sizes."""

# ruff: noqa: PLC0415 (what a line needs is imported by the line)

from __future__ import annotations

import atexit
import io
import random
import shutil
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path

import numpy as np

__all__ = ["NUMBERS", "WORDS", "draw_line", "options_of", "ready_folder"]

NUMBERS = (
    *("0", "1", "-1", "2", "0.5", ".01", "1e-5", "0.9", "0.999", "1e-9", "3", "10", "100", "1000", "5e-324", "-0.0"),
    *("1e308", "-1e308", "1e-308", "nan", "inf", "-inf", "1e400", "1e6", "1e9", "1e15", "1e16", "0x10", "1_000"),
    *("2.2250738585072014e-308", "0.9999999999999999", "1.0000000000000002", "1e-16", "1e-300", "1e12", "700", "75"),
    *("", " ", "٣", "½", "1,5", "1/3", "e", "--", "-", "None", "true", "[1]", "\u202e1", "😀", "9" * 400),
    "0" * 50 + "1",
)
WORDS = ("add-remove", "replace", "zero-out", "laplace", "randomized-response", "Replace", "", "x" * 300, "ä", "a/../b")
STRAY = ("--nothing", "-h", "--help", "--version", "--json", "-", "--", "--delta", "--json=1", "\udcff", "@x", "-1")
WEIGHTS = {
    **{"explain": 30, "choose": 24, "verdict": 16, "report": 5, "status": 5, "merge": 4, "submit": 4, "serve": 4},
    **{"audit": 5, "attack": 3, "worker": 3, "card": 3, "frontier": 2, "examine": 2, "compare": 1, "reproduce": 1},
    "doctor": 0.2,
}
"""How often each command is drawn: those that train or draw take a second."""
TINY = {
    "audit": "--records 6 --steps 1 --trials 4 --processes 1",
    "compare": "--records 12 --repeats 1 --epochs 1 --central 2 --local 1 --attack threshold --processes 1",
    "attack": "--repeats 1 --attack threshold",
    "frontier": "--bounds .9 --clip 1 --learning-rate .1 --batch 8 --epochs 1 --repeats 2 --processes 1",
    "worker": "--lease 1",
    "serve": "--port 0",
}
"""What ends a line of a command that is dear: later options replace earlier ones."""
ALWAYS_WRONG = {
    **{"audit": "--steps 0", "compare": "--repeats 0", "attack": "--repeats 0", "reproduce": "--scale none"},
    **{"serve": "--port -1", "worker": "--lease -1", "frontier": "--repeats 0"},
}
LEFT_OUT = ("--out", "--resume", "--pdf", "--plan", "--engine", "--address", "--host", "--task-memory", "--task-gpus")
"""Options that write elsewhere or ask the network; those of files are drawn on their own."""
_AS_IT_SHOULD_BE, _MISTYPED, _MANY_WRONG = 0.35, 0.25, 0.3
"""Shares of lines without a random option, with a slip of the hand, and of dear ones with a wrong size."""


@cache
def options_of(command: str) -> tuple[tuple[str, bool], ...]:
    """(option, whether it is a flag) of a command."""
    import typer

    from deniable.cli import app

    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    return tuple((o.opts[0], o.is_flag) for o in found.params if o.param_type_name == "option")


def draw_line(draw: random.Random) -> list[str]:
    """The words of a command line."""
    command = draw.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
    line = [command, *_describe(draw, command)]
    if draw.random() > _AS_IT_SHOULD_BE:
        line += _random_options(draw, command)
        if draw.random() < _MISTYPED:
            _mistype(draw, line)
    if draw.random() < 0.5 and ("--json", True) in options_of(command):
        line.append("--json")
    if command in ALWAYS_WRONG and draw.random() < _MANY_WRONG:
        return line + ALWAYS_WRONG[command].split()
    return line + TINY.get(command, "").split()


def _random_options(draw: random.Random, command: str) -> list[str]:
    found = [one for one in options_of(command) if one[0] not in LEFT_OUT]
    line: list[str] = []
    for option, flag in draw.sample(found, min(draw.randint(0, 3), len(found))):
        value = draw.choice(WORDS) if draw.random() < 0.2 else draw_number(draw)
        line += [option] if flag else [f"{option}={value}"] if draw.random() < 0.2 else [option, value]
    return line


def draw_number(draw: random.Random) -> str:
    """A number as somebody might type it, in half of the cases an ordinary one."""
    if draw.random() < 0.5:
        return f"{draw.uniform(0, 1) * 10.0 ** draw.randint(-6, 3):.4g}"
    return draw.choice(NUMBERS)


def _mistype(draw: random.Random, line: list[str]) -> None:
    """A word too many, one that is missing, doubled, cut short, or two in the wrong order."""
    place = draw.randrange(len(line))
    match draw.randrange(5):
        case 0:
            line.insert(place + 1, draw.choice(NUMBERS + WORDS + STRAY))
        case 1 if len(line) > 1:
            del line[place]
        case 2:
            line.insert(place, line[place])
        case 3:
            line[place] = line[place][: draw.randint(0, len(line[place]))]
        case _:
            other = draw.randrange(len(line))
            line[place], line[other] = line[other], line[place]


PARTS = {
    "release": (
        *("--epsilon {likely}", "--gdp {likely}", "--tvd {likely}", "--laplace {likely}"),
        *("--randomized-response {likely}", *3 * ("--noise {likely} {training}",)),
    ),
    "promise": (
        *("--belief {sure}", "--advantage {likely}", "--accuracy {sure}", "--tpr {likely} --fpr .01"),
        *("--ppv {sure} --fpr .01", "--epsilon {likely} --delta 1e-6", "--success {likely} --baseline .001"),
    ),
    "training": (
        *("", "--records 6000 --batch 100 --epochs 3", "--steps 100", "--rate .01 --steps 1000"),
        "--sampling allocation --steps-per-epoch 50 --epochs 4",
        "--sampling shuffled --steps-per-epoch 9 --epochs 2",
        "--sampling fixed --records 600 --batch 20 --steps 30 --adjacency replace",
        "--sampling fixed --records 600 --batch 20 --steps 30 --with-replacement",
        "--sampling truncated --rate .01 --cap 20 --records 600 --steps 30",
        "--rate .01 --steps 100 --records-per-person 3",
    ),
    "scores": ("s.csv", "s.csv", "s.csv", "nowhere.csv", "d.csv"),
    "origin": ("--rows-from trainings", "--rows-from one-run", "", "--watch"),
    "delta": ("1e-5", ".01", "{number}"),
    "data": ("digits", "--data d.csv --label y", "nowhere.csv", "--data m.npz"),
    "claim": ("--belief", "--advantage", "--epsilon", "--noise"),
    "table": ("d.csv --label y", "d.csv --group a", "nowhere.csv", "m.npz"),
    "kind": ("", "--promise belief", "--promise tpr", "--promise epsilon", "--promise nothing"),
    "pair": ("m.npz o.npz", "m.npz o.npz", "m.npz", "nowhere.npz"),
    "folder": ("planned", "done", "done", "nowhere", ".", "done/audit.json"),
    "document": ("done", "planned", "v.json", "e.json", "nowhere", ".", "/dev/null", "\0", "x" * 5000),
    "function": ("mine.py:network", "mine.py:nothing", "mine:network", "nowhere.py:f", "mine.py", ":"),
    "item": ("tvd figure-1", "vldb table-3", "all x", "nothing", ""),
    "out": ("", "", "--out o", "--out done", "--out done --resume", "--out o --plan"),
    "format": ("", "--format registry", "--format huggingface"),
    "runs": ("", "--runs .", "--runs nowhere"),
    "other": ("", "planned", "done"),
}
"""What may stand in a place of a line below; `sure`, `likely` and `number` are drawn."""
LINES = {
    "explain": "{release}",
    "choose": "{promise} {training}",
    "verdict": "{scores} --claimed-epsilon {likely} --delta {delta} {origin}",
    "audit": "{data} {claim} {likely} {out}",
    "compare": "digits {out}",
    "frontier": "{table} {kind} {out}",
    "attack": "mine:network {pair} {out}",
    "examine": "{function} --noise {likely} --rate .1 --steps 10",
    "report": "{document} --out r.html",
    "card": "{document} {format}",
    "reproduce": "{item} --out o",
    "serve": "{runs}",
    "submit": "{folder} --slurm",
    "merge": "{folder} {other}",
    "doctor": "",
}
"""What most lines of a command need to get further than the first check; of a command not named, a folder."""


def _describe(draw: random.Random, command: str) -> list[str]:
    line = LINES.get(command, "{folder}")
    for name, words in PARTS.items():
        line = line.replace(f"{{{name}}}", draw.choice(words))
    likely = f"{draw.uniform(0.05, 0.99):.3g}" if draw.random() < 0.7 else "{number}"
    words = line.replace("{sure}", f"{draw.uniform(0.55, 0.999):.3g}").replace("{likely}", likely).split()
    return [word.replace("{number}", draw_number(draw)) for word in words]


@cache
def ready_folder() -> Path:
    """A folder with everything that lines name: scores, records, a network, a campaign planned and one played."""
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    generator = np.random.default_rng(0)
    rows = [f"{generator.normal(member):.3f},{member}" for member in [0, 1] * 40]
    (place / "s.csv").write_text("\n".join(["score,member", *rows]))
    table = [",".join([*(f"{value:.2f}" for value in generator.normal(size=3)), str(n % 2)]) for n in range(24)]
    (place / "d.csv").write_text("\n".join(["a,b,c,y", *table]))
    for name in "mo":
        features = generator.normal(size=(16, 4)).astype(np.float32)
        np.savez(place / f"{name}.npz", X=features, y=np.arange(16) % 2)
    (place / "mine.py").write_text("from torch import nn\n\n\ndef network():\n    return nn.Linear(4, 2)\n")
    audit = "audit digits --noise 3 --records 6 --steps 1 --trials 4 --processes 1"
    _play(place, f"{audit} --out planned --plan")
    _play(place, f"{audit} --out done")
    (place / "v.json").write_text(
        _play(place, "verdict s.csv --claimed-epsilon 1 --delta 1e-5 --rows-from trainings --json")
    )
    (place / "e.json").write_text(_play(place, "explain --noise 1 --rate .01 --steps 100 --json"))
    return place


def _play(place: Path, line: str) -> str:
    from deniable.cli import main

    out = io.StringIO()
    with chdir(place), redirect_stdout(out), redirect_stderr(io.StringIO()), suppress(SystemExit):
        main(line.split())
    return out.getvalue()
