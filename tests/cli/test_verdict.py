"""`deniable verdict`: the four verdicts in words, JSON, bad files on one line, many rows, no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.data.scores_file import read_scores
from deniable.evidence.bound import epsilon_of_mu
from deniable.evidence.examined_claim import Asked
from deniable.evidence.row_origin import settle_origin
from deniable.promises import Epsilon

from .conftest import Run

CLAIM = ("--claimed-epsilon", 4.377, "--delta", "1e-5")  # of noise 1, a shift of 1


def write(place: Path, mu: float, trials: int = 1000, seed: int = 0) -> Path:
    generator = np.random.default_rng(seed)
    member = generator.random(trials) < 0.5
    score = generator.normal(np.where(member, mu, -mu) * mu / 2, max(mu, 0.5))
    lines = [f"{i},{int(b)},{s!r}" for i, (s, b) in enumerate(zip(score.tolist(), member, strict=True))]
    file = place / "scores.csv"
    file.write_text("\n".join(["id,member,score", *lines]))
    return file


@pytest.mark.parametrize(
    ("mu", "trials", "options", "verdict", "closeness", "said"),
    [
        (2.0, 1000, ["--noise", 1, "--threshold", 0], "violated", None, "leaks more than is claimed"),
        (2.0, 1000, ["--noise", 1], "violated", None, "at least"),
        (2.0, 1000, ["--method", "separation"], "violated", None, "at least"),
        (1.0, 1000, ["--noise", 1, "--threshold", 0], "consistent", None, "proves an epsilon of at least"),
        (1.0, 1000, ["--method", "likelihood"], "consistent", None, "4.377 is claimed"),
        (0.3, 4000, ["--noise", 1, "--threshold", 0], "consistent", None, "Do not reduce the noise"),
        (0.0, 60, ["--noise", 1], "cannot judge", None, "for an observer as strong as the claim allows"),
        (0.0, 900, ["--method", "likelihood"], "cannot judge", None, "assumes what does not hold here"),
    ],
)
def test_verdicts(  # noqa: PLR0917 (a table of cases)
    run: Run, tmp_path: Path, mu: float, trials: int, options: list[object], verdict: str, closeness: str, said: str
) -> None:
    file = write(tmp_path, mu, trials)
    document = run("verdict", file, *CLAIM, *options, "--json").document
    assert (document["verdict"], document["closeness"]) == (verdict, closeness)
    assert said in document["verdict_text"]
    words = " ".join(run("verdict", file, *CLAIM, *options).out.split())
    weak = ", but weak protection" if verdict == "consistent" and "--noise" in options else ""
    weak = ", but hardly any protection" if verdict == "consistent" and not weak else weak  # a bare epsilon of 4.377
    assert words.startswith(f"{verdict.capitalize()}{weak}. ")
    names = [bound["name"] for bound in document["measured"]["epsilon"]["estimators"]]
    assert len(set(names)) == len(names)
    assert names[0] == document["input"]["method"]


@pytest.mark.parametrize("rule", ["fixed", "bonferroni", "split", "multi-split"])
@pytest.mark.parametrize("method", ["region", "gaussian", "advantage", "one-run", "one-run-gaussian"])
def test_every_method_and_rule_answers(run: Run, tmp_path: Path, rule: str, method: str) -> None:
    document = run("verdict", write(tmp_path, 1.0, 200), *CLAIM, "--rule", rule, "--method", method, "--json").document
    assert document["verdict"] in ("consistent", "cannot judge")
    assert document["measured"]["epsilon"]["lower_bound"]["value"] <= epsilon_of_mu(1.0, 1e-5)


def test_claims_that_the_noise_alone_refutes_and_scores_upside_down(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path, 1.0)
    options = ("--claimed-epsilon", 1, "--delta", "1e-5", "--noise", 1)
    assert any(
        "exact epsilon of this noise is 4.38" in note
        for note in run("verdict", file, *options, "--json").document["notes"]
    )
    text = file.read_text().splitlines()
    swapped = [line.replace(",1,", ",x,").replace(",0,", ",1,").replace(",x,", ",0,") for line in text]
    file.write_text("\n".join(swapped))
    assert any("negate" in note for note in run("verdict", file, *options, "--json").document["notes"])


def test_kinds_of_files(tmp_path: Path) -> None:
    file = tmp_path / "any.csv"
    kinds = [
        "score,member\n0.5,1\n-0.25,0\n",
        "\ufeffscore, member\r\n0.5,TRUE\r\n\r\n-0.25,False\r\n",
        '"member","score","why"\n1,"0.5","a, b"\n0,-0.25,\n',
        "x,Score,MEMBER,y\na,5e-1,1.0,b\nc,-2.5E-1,0.0,d",
        "score,member\n 0.5 , 1 \n-.25,0\n\n",
    ]
    for text in kinds:
        file.write_bytes(text.encode())
        scores = read_scores(file)
        assert (scores.members.tolist(), scores.others.tolist()) == ([0.5], [-0.25]), text


def test_numbers_are_read_as_python_reads_them(tmp_path: Path) -> None:
    generator, file = np.random.default_rng(1), tmp_path / "many.csv"
    values = generator.normal(size=3000) * 10.0 ** generator.integers(-30, 30, 3000)
    for form in ("{!r}", "{:.18e}", "{:.6f}", "{:.3g}", "{:+.2f}"):
        texts = [form.format(value) for value in values.tolist()] + ["0", "-7", "12345678901234567890", "+.5", "5."]
        file.write_text("score,member\n" + "\n".join(f"{text},{i % 2}" for i, text in enumerate(texts)))
        expected = [float(text) for text in texts]
        scores = read_scores(file)
        np.testing.assert_allclose(scores.others, expected[::2], rtol=1e-15)
        np.testing.assert_allclose(scores.members, expected[1::2], rtol=1e-15)


BAD = {
    "": "is empty",
    "score,member\n": "has no rows",
    "score,label\n1,0\n": "no column 'member'",
    "score,score,member\n1,1,0\n": "more than one column 'score'",
    "score,member,run,run\n1,1,0,0\n": "more than one column 'run'",
    "score,member,run\n1,1,a\n2,0,\n": "line 3: run must name the row's training",
    "score,member\n1,1\n2,1\n": "has member 1 in all 2 rows",
    "score,member\n1,1\nnan,0\n": "line 3: score must be a finite number, got 'nan'",
    "score,member\n1,1\ninf,0\n": "line 3: score must be a finite number",
    "score,member\n1,1\n1e999,0\n": "line 3: score must be a finite number",
    "score,member\n1,1\nbig,0\n": "line 3: score must be a finite number, got 'big'",
    "score,member\n1,1\n,0\n": "line 3: score must be a finite number, got ''",
    "score,member\n1,1\n2,2\n": "line 3: member must be 0, 1, true or false, got '2'",
    "score,member\n1,1\n2\n": "line 3 has 1 columns, the heading 2",
    "score,member\n1,1\n2,0,4\n": "line 3 has 3 columns",
    'score,member\n1,1\n"2,0\n': "near line 2",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_get_one_line(run: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    outcome = run("verdict", file, *CLAIM)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert BAD[text] in outcome.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("verdict nowhere.csv --claimed-epsilon 1 --delta 1e-5", "nowhere.csv"),
        ("verdict . --claimed-epsilon 1 --delta 1e-5", "there is no file"),
        ("verdict x.csv --delta 1e-5", "--claimed-epsilon is missing"),
        ("verdict x.csv --claimed-epsilon 1", "--delta is missing"),
        ("verdict x.csv --claimed-epsilon 1 --delta 0", "--delta must be"),
        ("verdict x.csv --claimed-epsilon -1 --delta 1e-5", "--claimed-epsilon must be"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --rate .1", "--rate goes with --noise"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --noise 0", "--noise must be"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --method best", "method must be one of region"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --method credible", "method must be one of region"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --method mechanism", "needs the claimed noise"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --rule best", "rule must be one of fixed"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --rule split --threshold 1", "goes with rule 'fixed'"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --confidence 1", "--confidence"),
        ("verdict x.csv --claimed-epsilon 1 --delta 1e-5 --adjacency near", "--adjacency must be one of"),
    ],
)
def test_bad_options_get_one_line(run: Run, line: str, said: str) -> None:
    outcome = run(*line.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err


def test_a_binary_file_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bytes.csv"
    file.write_bytes(bytes(range(256)) * 100)
    assert run("verdict", file, *CLAIM).code == 2
    file.write_bytes(b"score,member\n1,1\n\xff\xfe,0\n")
    assert "is not a text file" in run("verdict", file, *CLAIM).err


def test_no_torch_is_needed(tmp_path: Path) -> None:
    file = write(tmp_path, 1.0, 100)
    program = "import sys; sys.modules['torch'] = None; from deniable.cli import main; main()"
    command = [sys.executable, "-c", program, "verdict", str(file), "--claimed-epsilon", "5", "--delta", "1e-5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("score", ["1e308", "-1e308", "1e151"])
def test_scores_too_large_to_be_squared_get_a_verdict(run: Run, tmp_path: Path, score: str) -> None:
    (tmp_path / "s.csv").write_text(f"score,member\n{score},1\n0,0\n1,1\n0,0\n")
    outcome = run("verdict", tmp_path / "s.csv", "--claimed-epsilon", 1, "--delta", 1e-5, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out)["verdict"] == "cannot judge"


def write_runs(place: Path, runs: list[int], *, head: str = "score,member,run", quoted: bool = False) -> Path:
    generator, file = np.random.default_rng(2), place / "runs.csv"
    name = '"training {}"' if quoted else "{}"
    lines = [f"{generator.normal(i % 2):.6f},{i % 2},{name.format(run)}" for i, run in enumerate(runs)]
    file.write_text("\n".join([head, *lines]))
    return file


def test_the_claim_may_be_named_as_by_other_commands(run: Run, tmp_path: Path) -> None:
    file = write_runs(tmp_path, list(range(40)))
    today = run("verdict", file, "--claimed-epsilon", 1, "--delta", 1e-5, "--rows-from", "trainings", "--json")
    other = run("verdict", file, "--epsilon=1", "--delta", 1e-5, "--from", "trainings", "--json")
    assert other.document == today.document


@pytest.mark.parametrize("quoted", [False, True])
def test_a_column_run_tells_how_the_rows_arose(run: Run, tmp_path: Path, quoted: bool) -> None:
    def judged(runs: list[int], *options: object) -> dict[str, Any]:
        return run("verdict", write_runs(tmp_path, runs, quoted=quoted), *CLAIM, *options, "--json").document

    document = judged([7] * 200)
    assert (document["input"]["rows_from"], document["input"]["method"]) == ("one-run", "one-run")
    assert document["notes"][0].startswith("By column run all 200 rows are of one training")
    assert judged([7] * 200, "--noise", 1)["input"]["method"] == "one-run-gaussian"
    document = judged(list(range(200)))
    assert (document["input"]["rows_from"], document["measured"]["trials"]) == ("trainings", 200)
    assert "each of the 200 rows is of a training of its own" in document["notes"][0]
    assert "was not stated" not in document["verdict_text"]
    document = judged([row // 4 for row in range(800)])
    assert (document["input"]["rows_from"], document["measured"]["trials"]) == ("trainings", 200)
    assert "are of 200 trainings" in document["notes"][0]
    assert document == judged([row // 4 for row in range(800)])


@pytest.mark.parametrize(
    ("runs", "options", "said"),
    [
        ([1] * 20, ["--rows-from", "trainings"], "all 20 rows are of one training"),
        ([1] * 20, ["--method", "region"], "takes rows of independent trainings"),
        ([1] * 10 + [2] * 10, ["--rows-from", "one-run"], "there are 2"),
        (list(range(20)), ["--method", "one-run"], "there are 20"),
    ],
)
def test_an_origin_that_the_file_contradicts_is_refused(
    run: Run, tmp_path: Path, runs: list[int], options: list[str], said: str
) -> None:
    outcome = run("verdict", write_runs(tmp_path, runs), *CLAIM, *options)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err


def test_the_row_of_a_training_is_drawn_whatever_its_score() -> None:
    """A file sorted by score must not offer the highest of each training: that alone would look like a leak."""
    generator = np.random.default_rng(3)
    score = np.sort(generator.normal(size=(400, 50)), axis=1)[:, ::-1].ravel()
    member, trainings = generator.random(score.size) < 0.5, np.repeat(np.arange(400), 50)
    found = settle_origin(score, member, trainings, Asked(Epsilon(1.0, 1e-5))).scores
    drawn = np.concatenate([found.members, found.others])
    assert drawn.size == 400
    assert abs(drawn.mean()) < 4 / np.sqrt(400)
    assert (
        len(
            {
                settle_origin(score + i, member, trainings, Asked(Epsilon(1.0, 1e-5))).scores.members.size
                for i in range(5)
            }
        )
        > 1
    )


def test_a_file_that_grows_may_be_judged_again_and_again(run: Run, tmp_path: Path) -> None:
    """Once refuted, a claim stays refuted: the rows of the longer file begin with those of the shorter."""
    file, refuted = write(tmp_path, 2.0, 400), None
    lines = file.read_text().splitlines()
    for rows in (30, 100, 200, 400):
        file.write_text("\n".join(lines[: rows + 1]))
        shown = json.loads(
            run("verdict", file, *CLAIM, "--noise", 1, "--rows-from", "trainings", "--watch", "--json").out
        )
        watched = shown["watched"]
        assert (shown["verdict"] == "violated") == (watched["refuted_after"] is not None)
        assert refuted in (None, watched["refuted_after"])
        refuted = watched["refuted_after"]
        assert "--method=watch" in shown["provenance"]["command"]
        assert "--rule" not in shown["provenance"]["command"]
    assert refuted is not None
    told = " ".join(run("verdict", file, *CLAIM, "--noise", 1, "--rows-from", "trainings", "--watch").out.split())
    assert f"After {refuted} rows the claim was refuted" in told


@pytest.mark.parametrize(
    "other", [("--method", "region"), ("--rule", "fixed"), ("--threshold", 0), ("--rows-from", "one-run")]
)
def test_a_watch_is_an_estimator_of_its_own(run: Run, tmp_path: Path, other: tuple[object, ...]) -> None:
    outcome = run("verdict", write(tmp_path, 1.0, 50), *CLAIM, "--watch", *other)
    assert outcome.code == 2
    assert "watch" in outcome.err


def test_a_watch_takes_one_row_a_training(run: Run, tmp_path: Path) -> None:
    outcome = run("verdict", write_runs(tmp_path, [0, 0, 1, 1, 2, 3]), *CLAIM, "--watch")
    assert outcome.code == 2
    assert "one row a training" in outcome.err
