"""Cards and the mapping to law: every figure is the result's own, and what is not known stays empty."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import deniable as dn
from deniable.cli import main
from deniable.report.law_table import LAW_WORDS, law_rows
from deniable.report.privacy_card import FORMATS, write_card

RESULT = dn.explain(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove", baseline=(1 / 1000,))


def test_the_registry_has_the_figures_and_leaves_the_rest_to_people() -> None:
    card = json.loads(write_card(RESULT, "registry"))
    assert card["tier_1"] == {
        "data_curator": None,
        "intended_use": None,
        "data_product": None,
        "publication_date": None,
    }
    assert card["tier_2"]["privacy_loss"]["epsilon"] == RESULT.scores.epsilon
    assert card["tier_2"]["privacy_unit"] == "presence or absence of one record"
    assert card["tier_3"]["success_at_baseline"] == [{"baseline": 0.001, "success": RESULT.scores.success[0].success}]
    assert card["tier_3"]["audit_verdict"] is None


def test_markdown_and_model_card_tell_the_same() -> None:
    markdown, block = write_card(RESULT), write_card(RESULT, "huggingface")
    assert block.endswith(markdown)
    assert block.startswith("---\ntags:\n- differential-privacy\n")
    assert "| Epsilon | at most" in markdown
    assert all(line.count(" | ") >= 1 for line in markdown.splitlines()[4:])


def test_other_figures_make_another_card() -> None:
    other = dn.explain(dn.Gaussian(5.0).subsampled(0.01).composed(1000), "add-remove")
    for form in FORMATS:
        assert write_card(other, form) != write_card(RESULT, form)


def test_law_is_a_mapping_of_the_figures() -> None:
    rows = list(law_rows(RESULT))
    assert [row[0] for row in rows] == ["WP216"] * 3 + ["EDPB opinion 28/2024", "NIST SP 800-226", "ISO/IEC 27559:2022"]
    assert "not a promise" in LAW_WORDS
    assert "from 1 in 1,000" in rows[0][2]
    asked_nothing = list(law_rows(dn.explain(dn.Gaussian(1.0))))
    assert "--baseline" in asked_nothing[0][2]
    assert rows[3][2] != asked_nothing[3][2]


def test_the_command_writes_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RESULT.save(tmp_path / "run.json")
    with pytest.raises(SystemExit) as ended:
        main(["card", str(run)])
    assert ended.value.code == 0
    assert capsys.readouterr().out == write_card(RESULT)
    with pytest.raises(SystemExit) as ended:
        main(["card", str(run), "--format", "poem"])
    assert ended.value.code == 2
    assert "format must be one of markdown, huggingface, registry" in capsys.readouterr().err
