"""Cards and the mapping to law: every figure is the result's own, and what is not known stays empty."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import deniable as dn
from deniable.cli import main
from deniable.formatting import percent_at_most
from deniable.mechanisms import Adjacency
from deniable.report.chapters.chapter import Section
from deniable.report.law_table import law_of_answer, law_of_audit
from deniable.report.privacy_card import FORMATS, write_card
from deniable.results import Result
from deniable.results.audit_result import AuditInput, AuditResult, MeasuredScores
from deniable.results.shared import Claimed, VerdictName

RESULT = dn.explain(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove", baseline=(1 / 1000,))


def made_audit(verdict: VerdictName = "consistent", sensitivity: str = "global") -> AuditResult:
    """Of the same release, without a single trial."""
    given = AuditInput(
        data="digits",
        records=1000,
        seed=0,
        noise=1.0,
        rate=0.01,
        steps=1000,
        clip=1.0,
        adjacency=Adjacency.ADD_REMOVE,
        sensitivity=sensitivity,
        model="linear",
    )
    return AuditResult(
        input=given,
        claimed=Claimed(belief=None, advantage=None, epsilon=2.0, delta=1e-5),
        exact=RESULT.scores,
        measured=MeasuredScores(trials=0),
        verdict=verdict,
        closeness=None,
        verdict_text="as told.",
        notes=(),
    )


FIELDS = {
    "basic": {
        "name",
        "data_curators",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "description",
        "publication_date",
        "data_product_sector",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {
        "model_name",
        "model_name_details",
        "actors",
        "release_type",
        "release_type_details",
        "data_source_type",
        "data_source_type_details",
        "access_type",
        "access_type_details",
    },
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"sources", "notes", "registry_authors"},
}
"""All that the registry's schema admits (opendp/deployments-registry-data, schemas/deployments-schema.yaml, 2026)."""
NEEDED = FIELDS["basic"] - {"data_product_sector"}


def record(result: Result) -> dict[str, Any]:
    """The registry's record, after a look at its fields as their checker has it."""
    card = json.loads(write_card(result, "registry"))
    assert set(card) == {"url_slug", "status", "tier", "deployment"}
    assert (card["status"], card["tier"]) == ("Draft", 3)
    deployment: dict[str, Any] = card["deployment"]
    assert set(deployment) <= set(FIELDS)
    assert all(set(part) <= FIELDS[name] for name, part in deployment.items())
    assert set(deployment["basic"]) >= NEEDED
    assert len(deployment["basic"]["data_curators"]) == len(deployment["administrative"]["registry_authors"]) == 1
    assert deployment["basic"]["data_product_type"] in ("Machine learning model", "Summary statistics")
    assert deployment["dp_variant"]["variant_name"] in ("Pure DP", "Approximate DP")
    assert deployment["deployment_model"]["model_name"] in ("Local", "Central")
    date.fromisoformat(deployment["basic"]["publication_date"])
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert all(isinstance(parameters[name], float) for name in parameters)
    assert set(parameters) in ({"epsilon", "delta"}, set())
    return deployment


def test_the_registry_has_the_figures_and_leaves_the_rest_to_people() -> None:
    found = record(RESULT)
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": RESULT.scores.epsilon, "delta": 1e-5}
    assert found["privacy_loss"]["privacy_unit"] == "presence or absence of one record"
    assert "1,000 steps are composed" in found["accounting"]["composition"]
    assert "standard deviation 1 x C" in found["implementation"]["mechanisms"]
    assert percent_at_most(RESULT.scores.success[0].success) in found["administrative"]["notes"]
    assert found["basic"]["name"] == ""


def test_local_pure_and_infinite_releases_have_records_of_their_own() -> None:
    local = record(dn.explain(dn.RandomizedResponse(1.0), delta=0))
    assert local["deployment_model"]["model_name"] == "Local"
    assert local["dp_variant"]["variant_name"] == "Pure DP"
    assert local["basic"]["data_product_type"] == "Summary statistics"
    infinite = record(dn.explain(dn.TotalVariation(0.1)))
    assert infinite["privacy_loss"]["privacy_parameters"] == {}
    assert "infinite" in infinite["privacy_loss"]["privacy_parameters_details"]


def test_a_card_of_an_audit_tells_figures_only_where_they_hold() -> None:
    kept, broken = made_audit(), made_audit(verdict="violated")
    assert record(kept)["privacy_loss"]["privacy_parameters"]["epsilon"] == kept.exact.epsilon
    assert "advantage: null" not in write_card(kept, "huggingface")
    for result in (broken, made_audit(sensitivity="local")):
        assert record(result)["privacy_loss"]["privacy_parameters"] == {}
        assert "epsilon: null" in write_card(result, "huggingface")
        assert "at most" not in write_card(result)
    assert "refuted by an audit" in write_card(broken)


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


def law_rows(section: Section) -> tuple[tuple[str, ...], ...]:
    return section.tables[0].rows


def test_law_is_a_mapping_of_the_figures() -> None:
    section = law_of_answer(RESULT)
    rows = law_rows(section)
    assert [row[0] for row in rows] == ["WP216"] * 3 + ["EDPB opinion 28/2024", "NIST SP 800-226", "ISO/IEC 27559:2022"]
    assert "not a promise" in section.words[0]
    assert "from 1 in 1,000" in rows[0][2]
    asked_nothing = law_rows(law_of_answer(dn.explain(dn.Gaussian(1.0))))
    assert "--baseline" in asked_nothing[0][2]
    assert rows[3][2] != asked_nothing[3][2]


def test_law_of_an_audit_tells_its_verdict_and_no_figure_of_a_refuted_claim() -> None:
    kept = law_of_audit(made_audit())
    assert percent_at_most(made_audit().exact.advantage) in law_rows(kept)[5][2]
    assert all('the verdict of this audit is "consistent"' in law_rows(kept)[place][2] for place in (3, 5))
    assert "independently (Poisson)" in law_rows(kept)[4][2]
    broken = law_of_audit(made_audit(verdict="violated"))
    assert all(row[2].startswith("not kept: the claim is refuted") for row in law_rows(broken))
    assert "do not hold" in broken.words[0]
    words = {verdict: law_of_audit(made_audit(verdict=verdict)).words for verdict in ("cannot judge", "other recipe")}
    assert len({*words.values(), kept.words, broken.words}) == 4
    tested = law_of_audit(made_audit(sensitivity="local"))
    assert all("protects nobody" in row[2] for row in law_rows(tested))


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
