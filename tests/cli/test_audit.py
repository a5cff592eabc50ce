"""`deniable audit`: words, table and JSON, files in --out, refusals on one line."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the audit needs the extra 'train'")

from deniable.store import FILE, Store, read_document

from .conftest import Run

TINY = ("--trials", 20, "--steps", 3, "--records", 20, "--processes", 1)


def test_words_first_then_a_table(run: Run) -> None:
    outcome = run("audit", "digits", "--belief", ".9", "--sensitivity", "local", *TINY)
    assert (outcome.code, outcome.err) == (0, "")
    text = " ".join(outcome.out.split())
    assert re.match(r"Test mode: (consistent|cannot judge)\. ", text)
    assert "20 trainings on digits (20 records, 3 steps, replace neighbours" in text
    assert text.count("A model trained this way is NOT private.") == 1
    assert text.count("Epsilon at delta 0.05") == text.count("psilon") == 1  # one line: promised, exact, proven
    assert max(map(len, outcome.out.splitlines())) <= 80
    every = run("audit", "digits", "--belief", ".9", "--sensitivity", "local", *TINY, "--estimators")
    assert "separation" in every.out


def test_out_holds_the_record_the_pictures_and_the_page(run: Run, tmp_path: Path) -> None:
    outcome = run("audit", "digits", "--noise", 5, "--json", "--out", tmp_path, *TINY)
    assert outcome.err == f"report: {tmp_path / 'report.html'}\n"
    assert read_document(tmp_path / "audit.json") == outcome.document
    for name in ("final-beliefs", "belief-over-steps", "sensitivity-over-steps"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 8  # the scale and seven figures
    assert not re.search(r'(src|href)="(?!#)', page)
    assert not list(tmp_path.glob("*.part"))
    again = run("audit", "digits", "--noise", 5, "--json", "--out", tmp_path, "--resume", *TINY)
    assert again.document["measured"] == outcome.document["measured"]
    refused = run("audit", "digits", "--noise", 5, "--out", tmp_path, *TINY)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "already holds a campaign" in refused.err


def test_bare_records_tells_who_is_exposed(run: Run, tmp_path: Path) -> None:
    tiny = ("--trials", 4, "--steps", 2, "--processes", 1, "--clip", 1)
    outcome = run("audit", "digits", "--noise", 5, "--json", *tiny, "--out", tmp_path, "--records")
    assert outcome.code == 0
    assert outcome.err.startswith(f"records: {tmp_path / 'records.csv'}, picture: {tmp_path / 'exposed-records.png'}")
    assert (tmp_path / "exposed-records.png").read_bytes().startswith(b"\x89PNG")
    rows = (tmp_path / "records.csv").read_text().splitlines()
    assert rows[0].startswith("record,")
    assert "label" not in rows[0]
    assert len(rows) == 1 + 100
    exposed = outcome.document["exposure"]
    assert (exposed["records"], len(exposed["most_exposed"])) == (100, 10)
    told = run("audit", "digits", "--noise", 5, *tiny, "--records", "--out", tmp_path / "words")
    assert "Most exposed of the 100 records" in " ".join(told.out.split())
    few = run("audit", "digits", "--noise", 5, "--json", *tiny, "--records", 12)
    assert few.document["input"]["records"] == 12
    assert "exposure" not in few.document


def test_no_trials_leave_the_exposure_alone(run: Run, tmp_path: Path) -> None:
    asked = ("audit", "digits", "--noise", 5, "--records", 50, "--steps", 2, "--clip", 1, "--trials", 0, "--exposure")
    outcome = run(*asked, "--json", "--out", tmp_path)
    assert outcome.code == 0
    assert outcome.document["schema"] == "deniable/exposure/2"
    assert read_document(tmp_path / "exposure.json") == outcome.document
    assert len((tmp_path / "records.csv").read_text().splitlines()) == 1 + 50
    assert not list(tmp_path.glob(FILE))
    again = run(*outcome.document["provenance"]["command"].split()[1:], "--json", "--out", tmp_path / "again")
    assert again.document["exposure"] == outcome.document["exposure"]
    told = " ".join(run(*asked, "--out", tmp_path).out.split())
    assert told.startswith("The strongest observer has an advantage of")
    assert "No trials were played, so there is no verdict" in told


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("audit digits --noise 1 --trials 0 --exposure --resume", ["--resume goes on with trials"]),
        ("audit digits --noise 1 --trials 0 --exposure --confidence .9", ["--confidence is about trials"]),
        ("audit digits --noise 1 --trials 0 --exposure --sensitivity local", ["sensitivity must be 'global'"]),
        ("audit --belief .9", ["DATA", "--data FILE"]),
        ("audit digits --data x.csv --belief .9", ["either DATA"]),
        ("audit digits", ["exactly one of --belief", "got none"]),
        ("audit digits --belief .9 --noise 1", ["got --belief and --noise"]),
        ("audit digits --belief 2", ["--belief", "got 2"]),
        ("audit digits --noise 1 --trials 0", ["--trials", "got 0"]),
        ("audit digits --noise 1 --trials many", ["--trials", "'many'"]),
        ("audit digits --noise 1 --learning-rate -1", ["--learning-rate", "got -1"]),
        ("audit digits --noise 1 --lr=-1", ["--learning-rate", "got -1"]),
        ("audit digits --noise 1 --clip 0", ["--clip", "got 0"]),
        ("audit digits --noise 1 --seed -1", ["--seed", "got -1"]),
        ("audit digits --noise 1 --confidence 1", ["--confidence", "got 1"]),
        ("audit digits --noise 1 --resume", ["--resume needs --out"]),
        ("audit digits --noise 1 --optimizer sdg", ["optimizer must be one of sgd, adam, got 'sdg'"]),
        ("audit digits --noise 1 --sensitivity none", ["sensitivity must be one of global, local"]),
        ("audit digits --noise 1 --rate 0", ["rate must be"]),
        ("audit digits --noise 1 --model nowhere:network", ["model names 'nowhere:network'"]),
        ("audit digitz --noise 1", ["data must be one of digits"]),
        ("audit --data nowhere.csv --noise 1", ["there is no file nowhere.csv"]),
        ("audit digits --noise 5 --out /proc/nowhere --trials 1", ["/proc/nowhere cannot be made or written"]),
    ],
)
def test_one_line_says_what_is_wrong(run: Run, line: str, said: list[str]) -> None:
    outcome = run(*line.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    for part in said:
        assert part in outcome.err


def test_without_torch_one_line_tells_what_to_install() -> None:
    program = "import sys; sys.modules['torch'] = None; from deniable.cli import main; main()"
    command = [sys.executable, "-c", program, "audit", "digits", "--noise", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "deniable: audit needs torch: pip install 'deniable[train]'\n"


PROGRAM = (sys.executable, "-c", "from deniable.cli import main; main()")
LONG = ("audit", "digits", "--belief", ".9", "--trials", "100000", "--steps", "30", "--records", "60")


def size(place: Path) -> int:
    """How far a campaign is that runs in another process, which holds the lock."""
    file = place / FILE
    return file.stat().st_size if file.exists() else 0


def test_ctrl_c_ends_a_campaign_at_once_and_keeps_its_blocks(tmp_path: Path) -> None:
    place, deadline = tmp_path / "out", time.monotonic() + 60
    # a shell that runs the tests in the background has its children ignore Ctrl-C: listen again
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + PROGRAM[-1]
    command = [*PROGRAM[:-1], listening, *LONG, "--out", str(place), "--processes", "2"]
    campaign = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while size(place) < 100_000 and time.monotonic() < deadline:
            time.sleep(0.1)
        second = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
        pressed = time.monotonic()
        os.killpg(campaign.pid, signal.SIGINT)  # as a terminal does: to every process
        _, said = campaign.communicate(timeout=20)
    finally:
        if campaign.poll() is None:
            campaign.kill()
            campaign.communicate()
    assert time.monotonic() - pressed < 5  # about two seconds on a quiet machine
    assert campaign.returncode == 130
    line = re.fullmatch(r"stopped: (\d+) trials kept; go on with --resume", said.strip())
    assert line is not None, said
    assert int(line[1]) > 0
    assert second.returncode == 2
    assert second.stderr.startswith("deniable: another process is working in")
    assert second.stderr.count("\n") == 1
    with Store(place, resume=True) as store:
        assert sum(len(store.load(number)["trained_on_d"]) for number in store.finished_blocks()) == int(line[1])


def test_a_directory_in_use_is_refused_before_torch_and_the_data_are_loaded(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from deniable.cli import main; main()"
    command = [sys.executable, "-c", program, "audit", "no-such-data", "--noise", "1", "--out", str(tmp_path)]
    with Store(tmp_path):
        second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert second.stderr.startswith(f"deniable: another process is working in {tmp_path}")


def test_sigterm_ends_with_a_sentence_and_keeps_the_blocks(tmp_path: Path) -> None:
    place, deadline = tmp_path / "out", time.monotonic() + 60
    command = [*PROGRAM, *LONG, "--out", str(place), "--processes", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as campaign:
        while size(place) < 100_000 and time.monotonic() < deadline:
            time.sleep(0.05)
        campaign.terminate()
        _, said = campaign.communicate(timeout=20)
    assert campaign.returncode == 128 + signal.SIGTERM
    assert re.fullmatch(r"stopped: [1-9]\d* trials kept; go on with --resume", said.strip()), said


def test_resuming_nothing_says_that_it_starts_anew(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run("audit", "digits", "--noise", 5, *TINY, "--out", tmp_path / "new", "--resume").code == 0
    assert "holds nothing to resume: the campaign starts anew" in caplog.text


def test_a_full_disk_at_the_report_names_the_path_after_the_verdict(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deniable.report import page  # noqa: PLC0415 (draws, which only this test needs)

    def full(path: Path, content: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    for name in ("replace_file", "write_document"):
        monkeypatch.setattr(page, name, full)
    outcome = run("audit", "digits", "--noise", 5, *TINY, "--json", "--out", tmp_path)
    assert outcome.code == 2
    assert json.loads(outcome.out)["verdict"]
    assert re.search(rf"the report is not written: {tmp_path}/\S+ No space left on device", outcome.err)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, images and a network of one's own."""
    draw = np.random.default_rng(0)
    rows = [",".join(map(str, [*draw.random(3), n % 3])) for n in range(40)]
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,c,y", *rows]))
    np.savez(tmp_path / "images.npz", X=draw.integers(0, 255, (40, 8, 9), dtype=np.uint8), y=np.arange(40) % 2)
    network = "from torch import nn\ndef network():\n    return nn.Sequential(nn.Linear(3, 3))\n"
    (tmp_path / "own_network_of_mine.py").write_text(network)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FEW = ("--trials", 4, "--steps", 2, "--processes", 1)


@pytest.mark.parametrize(
    ("options", "network"),
    [
        ((), "dense:3,64,3"),
        (("--model", "logistic"), "dense:3,3"),
        (("--model", "mlp:6,5"), "dense:3,6,5,3"),
        (("--model", "own_network_of_mine:network"), "own_network_of_mine:network"),
    ],
)
def test_ones_own_table_needs_nothing_more_than_a_promise(
    run: Run, mine: Path, options: tuple[str, ...], network: str
) -> None:
    found = run("audit", "--data", "mine.csv", "--label", "y", "--belief", ".9", *options, *FEW, "--json").document
    assert (found["input"]["model"], found["input"]["records"], found["input"]["delta"]) == (network, 20, 1 / 20)
    assert any(f"The network is {network}" in note for note in found["notes"]) == (not options)
    again = run(*shlex.split(found["provenance"]["command"])[1:], "--processes", 1, "--json").document
    assert again["measured"] == found["measured"]


def test_images_of_ones_own_get_convolutions(run: Run, mine: Path) -> None:
    told = run("audit", "--data", "images.npz", "--belief", ".9", *FEW).out
    assert "The network is cnn:1,8,9,2" in " ".join(told.split())


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("mlp:x", "as in mlp:64,32, got 'mlp:x'"),
        ("mlp:0", "whole numbers from 1"),
        ("cnn", "needs images"),
        ("own_network_of_mine:nothing", "has no function 'nothing'"),
        ("forest", "model must be one of logistic, mlp:64,32, cnn, adult"),
    ],
)
def test_networks_that_cannot_be_made(run: Run, mine: Path, model: str, said: str) -> None:
    outcome = run("audit", "--data", "mine.csv", "--label", "y", "--belief", ".9", "--model", model, *FEW)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err


def test_records_and_labels_are_shown_only_when_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes  # noqa: PLC0415 (only this test draws)

    drawn: list[object] = []
    monkeypatch.setattr(Axes, "imshow", lambda axes, image, **options: drawn.append(image))
    asked = ("audit", "digits", "--noise", 5, "--records", 12, "--steps", 2, "--trials", 0, "--exposure", "--json")
    hidden = run(*asked, "--out", tmp_path / "hidden").document
    assert not drawn
    assert "label" not in (tmp_path / "hidden" / "records.csv").read_text()
    assert all("label" not in one for one in hidden["exposure"]["most_exposed"])
    shown = run(*asked, "--show-records", "--out", tmp_path / "shown").document
    assert len(drawn) == 10
    assert (tmp_path / "shown" / "records.csv").read_text().startswith("record,label,")
    assert all("label" in one for one in shown["exposure"]["most_exposed"])
    assert run("audit", "digits", "--noise", 5, "--show-records").err.count("--exposure, which is missing") == 1


def test_a_watched_campaign_tells_its_forecast_first(run: Run) -> None:
    outcome = run("audit", "digits", "--noise", 5, *TINY, "--stop", "certain", "--json")
    watched = outcome.document["watched"]
    assert outcome.err.count("\n") == 1
    assert f"with {watched['trials_at_half_noise']:,} trials. 20 are planned." in outcome.err
    assert watched["refuted_after"] is None
    assert watched["text"] in outcome.document["notes"]
    assert "--stop=certain" in outcome.document["provenance"]["command"]
    refused = run("audit", "digits", "--noise", 5, *TINY, "--stop", "soon")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "stop must be" in refused.err
