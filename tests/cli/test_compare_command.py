"""`deniable compare` and `deniable attack`: words, tables, JSON, pictures, refusals on one line."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

pytest.importorskip("torch", reason="comparisons need the extra 'train'")

import torch
from torch import nn

from deniable.comparison.own_model import read_records
from deniable.data import purchases

from .conftest import Run

TINY = "--records 80 --classes 10 --central 16 --local 0.5 --repeats 2 --epochs 4 --attack threshold --processes 1"
PICTURES = (
    "accuracy-over-epsilon",
    "precision-over-epsilon",
    "phi-over-epsilon",
    "precision-recall",
    "accuracy-against-precision",
    "region-of-privacy",
)


def test_words_table_pictures_and_json(run: Run, tmp_path: Path) -> None:
    outcome = run("compare", *TINY.split(), "--out", tmp_path)
    assert (outcome.code, outcome.err) == (0, f"report: {tmp_path / 'report.html'}\n")
    text = " ".join(outcome.out.split())
    assert "Every level was trained 2 times on 80 records of purchases (10 classes)" in text
    assert "central, noise 16" in text
    assert "local, 0.5 a value 300" in text
    assert "region of privacy" in text
    assert max(map(len, outcome.out.splitlines())) <= 80
    for name in PICTURES:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
    again = run("compare", *TINY.split(), "--out", tmp_path, "--resume", "--json")
    assert again.document["levels"] == json.loads((tmp_path / "compare.json").read_text())["levels"]
    refused = run("compare", *TINY.split(), "--out", tmp_path)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "already holds a campaign" in refused.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("compare --central 1,x", ["--central", "'1,x'", "0.5,2,4"]),
        ("compare --central 0", ["central", "> 0", "got 0.0"]),
        ("compare --local nan", ["local", "got nan"]),
        ("compare --central , --local ,", ["at least one level"]),
        ("compare --attack guess", ["bayes, whitebox, shadow, threshold", "'guess'"]),
        ("compare --repeats 0", ["--repeats", "got 0"]),
        ("compare --classes 1", ["--classes", "got 1"]),
        ("compare --patience -1", ["--patience", "got -1"]),
        ("compare --resume", ["--resume needs --out"]),
        ("compare digits --records 900", ["records must be at most 599"]),
        ("compare nowhere.csv", ["there is no file nowhere.csv"]),
        ("compare digitz", ["data must be one of"]),
        ("attack", ["MODEL"]),
        ("attack nowhere:network x.npz", ["there is no file x.npz"]),
        ("attack nowhere:network a.npz b.npz c.npz", ["one file with a column 'member', or two", "got 3"]),
    ],
)
def test_one_line_says_what_is_wrong(run: Run, line: str, said: list[str]) -> None:
    outcome = run(*line.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    for part in said:
        assert part in outcome.err


@pytest.fixture
def own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working in that folder."""
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained model of one's own, its weights in all forms, and its records."""
    place = tmp_path_factory.mktemp("own")
    (place / "own_model_of_this_test.py").write_text(
        "from torch import nn\n\n\ndef network():\n"
        "    return nn.Sequential(nn.Linear(600, 32), nn.ReLU(), nn.Linear(32, 20))\n\n\ndef nothing():\n    return 1\n"
    )
    carts = purchases(20, 240)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(600, 32), nn.ReLU(), nn.Linear(32, 20))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(30):
        optimizer.zero_grad()
        outputs = model(torch.from_numpy(carts.features[:120]))
        nn.functional.cross_entropy(outputs, torch.from_numpy(carts.labels[:120])).backward()
        optimizer.step()
    torch.save(model.state_dict(), place / "weights.pt")
    torch.save({"epoch": 3, "state_dict": model.state_dict()}, place / "checkpoint.pt")
    torch.save(model, place / "pickled.pt")
    np.savez(place / "members.npz", X=carts.features[:120], y=carts.labels[:120])
    np.savez(place / "others.npz", X=carts.features[120:], y=carts.labels[120:])
    np.savez(place / "one.npz", X=carts.features, y=carts.labels, member=np.arange(240) < 120)
    names = ",".join(f"bit{number}" for number in range(600))
    rows = np.column_stack([carts.features, np.arange(240) < 120, carts.labels]).astype(int)
    np.savetxt(place / "one.csv", rows, "%d", ",", header=f"{names},member,group", comments="")
    return place


def test_members_are_told_alike_in_every_kind_of_table(own: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(own / "one.csv"), own / "one.parquet")
    (own / "one.csv.gz").write_bytes(gzip.compress((own / "one.csv").read_bytes()))
    plain, *others = (read_records([own / f"one.{kind}"], "group") for kind in ("csv", "csv.gz", "parquet"))
    for other in others:
        assert [part.sha256 for part in other] == [part.sha256 for part in plain]


MODEL = ("attack", "own_model_of_this_test:network")
QUICK = ("--attack", "threshold", "--repeats", 2)


def test_a_model_of_ones_own_is_attacked_the_same_way_from_every_file(run: Run, own: Path) -> None:
    two = run(*MODEL, "members.npz", "others.npz", "--weights", "weights.pt", *QUICK, "--json").document
    assert two["schema"] == "deniable/attack/1"
    assert two["average_precision"]["mean"] > 0.6
    assert two["accuracy"]["members"] == 1
    assert two["epsilon_lower_bound"]["value"] >= 0
    for files, weights in ((["one.npz"], "checkpoint.pt"), (["one.csv", "--label", "group"], "weights.pt")):
        one = run(*MODEL, *files, "--weights", weights, *QUICK, "--json").document
        assert one["average_precision"] == two["average_precision"]


def test_safetensors_are_read_too(run: Run, own: Path) -> None:
    save_file = pytest.importorskip("safetensors.torch", reason="needs safetensors").save_file
    save_file(torch.load("weights.pt", weights_only=True), "weights.safetensors")
    found = [
        run(*MODEL, "one.npz", "--weights", name, *QUICK, "--json").document
        for name in ("weights.pt", "weights.safetensors")
    ]
    assert [
        one.pop("provenance")["command"].count(name) for one, name in zip(found, (".pt", ".safe"), strict=True)
    ] == [1, 1]
    assert found[0] == found[1]
    Path("weights.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00notjson!")
    refused = run(*MODEL, "one.npz", "--weights", "weights.safetensors")
    assert refused.code == 2
    assert "not a readable .safetensors file" in refused.err


def test_words_for_a_person_and_a_picture(run: Run, own: Path) -> None:
    outcome = run(*MODEL, "one.npz", "--weights", "weights.pt", "--repeats", 1, "--out", "out")
    assert outcome.code == 0
    text = " ".join(outcome.out.split())
    assert text.startswith("The model gives away who was in its training data")
    assert "Members found (TPR) at 0.1 % FPR" in text
    assert "Blind average precision, without the model" in text
    assert Path("out/precision-recall.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(Path("out/attack.json").read_text())["input"]["tested"] == 120
    assert "The model gives away who was in its training data" in Path("out/report.html").read_text()
    assert run("report", "out", "--out", "again.html").code == 0
    assert Path("again.html").read_text() == Path("out/report.html").read_text()


def test_the_command_in_the_record_gives_it_again(run: Run, own: Path) -> None:
    asked = (*MODEL, "one.csv", "--label", "group", "--weights", "weights.pt", *QUICK, "--seed", 3, "--confidence", 0.9)
    found = run(*asked, "--json").document
    program, *again = shlex.split(found["provenance"]["command"])
    assert program == "deniable"
    assert run(*again, "--json").document == found


def test_a_damaged_attack_is_resumed_and_equals_an_uninterrupted_one(
    run: Run, own: Path, damage_block: Callable[[Path, int], None]
) -> None:
    asked = (*MODEL, "one.npz", "--weights", "weights.pt", "--attack", "threshold", "--repeats", 3, "--json")
    whole = run(*asked, "--out", "kept").document
    damage_block(Path("kept"), 1)
    assert "go on with --resume" in run(*asked, "--out", "kept").err
    assert run(*asked, "--out", "kept", "--resume").document == whole
    assert run(*asked).document == whole
    other = run(*MODEL, "one.npz", "--attack", "threshold", "--repeats", 3, "--out", "kept", "--resume")
    assert other.code == 2
    assert "model_sha256" in other.err
    assert "needs out" in run(*asked, "--resume").err


def test_shifted_records_are_named_as_such(run: Run, own: Path) -> None:
    others = np.random.default_rng(0).integers(0, 2, (120, 600))
    np.savez("shifted.npz", X=others, y=np.arange(120) % 20)
    found = run(*MODEL, "members.npz", "shifted.npz", "--weights", "weights.pt", *QUICK, "--json").document
    assert found["blind"]["differs"]
    assert "measures this shift" in found["warning"]
    assert found["epsilon_lower_bound"]["value"] is None
    words = run(*MODEL, "members.npz", "shifted.npz", "--weights", "weights.pt", *QUICK).out
    assert "cannot be told from these records" in " ".join(words.split())


def test_a_planned_attack_is_played_by_workers(run: Run, own: Path) -> None:
    asked = (*MODEL, "members.npz", "others.npz", "--weights", "weights.pt", *QUICK, "--seed", 3)
    planned = run(*asked, "--out", "shared", "--plan")
    assert "2 blocks" in planned.err
    assert "2 blocks played" in run("worker", "shared").err
    finish = run("merge", "shared").out.splitlines()[1].split()
    assert run(*finish[1:], "--json").document == run(*asked, "--json").document


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("one.npz --weights pickled.pt", "never loaded, since it could run code"),
        ("one.npz --weights one.csv", "one.csv is not a checkpoint"),
        ("one.npz --weights members.npz", "members.npz is not a readable checkpoint"),
        ("one.npz --weights nowhere.pt", "there is no file nowhere.pt"),
        ("members.npz", "must hold an array 'member'"),
        ("one.csv --label colour", "no column 'colour'"),
        ("one.npz --attack shadow", "whitebox, threshold"),
        ("one.npz --repeats 0", "--repeats"),
        ("one.npz --delta 2", "--delta"),
    ],
)
def test_bad_models_and_records_are_refused(run: Run, own: Path, arguments: str, said: str) -> None:
    outcome = run(*MODEL, *arguments.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err


def test_weights_and_models_that_do_not_fit_are_refused(run: Run, own: Path) -> None:
    torch.save({"0.weight": torch.zeros(3, 3)}, "other.pt")
    torch.save([1, 2], "list.pt")
    for arguments, said in (
        (("attack", "own_model_of_this_test:network", "one.npz", "--weights", "other.pt"), "does not fit the model"),
        (("attack", "own_model_of_this_test:network", "one.npz", "--weights", "list.pt"), "weights by name"),
        (
            ("attack", "own_model_of_this_test:nothing", "one.npz"),
            "must return an nn.Module, or an estimator with predict_proba, got int",
        ),
        (("attack", "own_model_of_this_test:missing", "one.npz"), "has no function 'missing'"),
    ):
        outcome = run(*arguments)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert said in outcome.err
