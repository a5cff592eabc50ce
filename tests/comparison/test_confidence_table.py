"""Confidences from elsewhere: a table is read and judged as a model of one's own is, or refused with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

from deniable.adversaries.shadow_scores import RULES, lira
from deniable.cli import main
from deniable.comparison.confidence_table import read_confidence_table
from deniable.comparison.own_model import UNSEEN, attack_confidences


def write(place: Path, lead: float = 1.5, records: int = 400, shadows: int = 8) -> dict[str, Any]:
    """A table of Gaussian confidences, `lead` higher for members and inside shadows, rows in no order."""
    generator = np.random.default_rng(0)
    centre = generator.normal(0, 2, records)
    member = generator.random(records) < 0.5
    inside = np.argsort(generator.random((shadows, records)), axis=0) < shadows // 2
    columns: dict[str, Any] = {"target": centre + lead * member + generator.normal(size=records), "member": member * 1}
    for number, row in enumerate(inside, 1):
        columns[f"shadow_{number}"] = centre + lead * row + generator.normal(size=records)
        columns[f"inside_{number}"] = row * 1
    rows = np.column_stack(list(columns.values()))
    np.savetxt(place, rows, "%.9g", ",", header=",".join(columns), comments="")
    return columns


def test_a_table_is_scored_as_arrays_are(tmp_path: Path) -> None:
    columns = write(tmp_path / "c.csv")
    table = read_confidence_table(tmp_path / "c.csv")
    order = np.argsort(1 - columns["member"], kind="stable")
    shadows, inside = (
        np.stack([columns[f"{kind}_{number}"] for number in range(1, 9)])[:, order] for kind in ("shadow", "inside")
    )
    expected = lira(columns["target"][order], shadows, inside)
    assert table.scores(["lira"])["lira"] == pytest.approx(expected, abs=1e-4)
    assert len(table.members) == columns["member"].sum()


def test_the_strongest_rule_is_judged_and_the_unseen_records_are_named(tmp_path: Path) -> None:
    write(tmp_path / "c.csv")
    found = attack_confidences(read_confidence_table(tmp_path / "c.csv"), repeats=2)
    assert {row.name for row in found.attacks} == set(RULES)
    assert found.judged[0] != "threshold"
    assert found.average_precision_interval.low > 0.5
    assert found.warning == UNSEEN
    assert "8 shadow models' confidences were given" in found.summary()
    write(tmp_path / "n.csv", lead=0.0)
    nothing = attack_confidences(read_confidence_table(tmp_path / "n.csv"), repeats=1)
    assert nothing.average_precision_interval.low < 0.5


def test_shadows_without_the_records_are_scored_offline(tmp_path: Path) -> None:
    """Whoever has shadows of other people's records alone is not told to name an attack."""
    write(tmp_path / "c.csv")
    given = read_confidence_table(tmp_path / "c.csv")
    found = attack_confidences(replace(given, inside=np.zeros_like(given.inside)), repeats=1)
    assert {row.name for row in found.attacks} == {"lira-offline", "rmia-offline", "bayes-offline", "threshold"}
    assert "each record is in some of them" not in found.summary()


def test_the_command_line_judges_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "c.csv")
    with pytest.raises(SystemExit) as left:
        main(["attack", str(tmp_path / "c.csv"), "--repeats", "1", "--out", str(tmp_path / "out"), "--json"])
    assert left.value.code in (0, None)
    document = json.loads(capsys.readouterr().out)
    assert document["input"]["members"] > 150
    assert "accuracy" not in document or document["accuracy"] is None
    assert "were not given" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("member,target,shadow_1\n1,2,3\n0,1,2\n", "lacks inside_1"),
        ("member,target\n1,2\n0,1\n", "lacks shadow_1"),
        ("target,shadow_1,inside_1\n1,2,1\n", "lacks member"),
        ("member,target,shadow_1,inside_1,shaddow_2,inside_2\n1,2,3,1,2,0\n0,1,2,0,1,1\n", "lacks shadow_2"),
        ("member,target,shadow_1,inside_1,shadow_1,inside_2\n1,2,3,1,2,0\n0,1,2,0,1,1\n", "has 2 columns shadow_1"),
        ("member,target,shadow_1,inside_1\n1,2,3,2\n0,1,2,0\n", "must be 0 or 1"),
        ("member,target,shadow_1,inside_1\n1,2,3,1\n0,1,2,0\n", "at least 4 shadows, it holds 1"),
        (
            "member,target,shadow_1,inside_1,shadow_2,inside_2,shadow_3,inside_3,shadow_4,inside_4\n"
            "1,.9,.8,1,.7,0,.8,1,.5,0\n0,.4,.3,0,.4,1,.3,0,.6,1\n",
            "holds probabilities",
        ),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_confidence_table(tmp_path / "c.csv")
