"""Results: the same after JSON and back, refused with a place where they are not whole, and able to show themselves."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest

import deniable as dn
from deniable.answers import sentences
from deniable.answers.describe import describe_release, mechanism_in
from deniable.evidence.attack_scores import Scores
from deniable.evidence.examined_claim import Asked
from deniable.evidence.score_audit import judge_scores
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Epsilon, Question
from deniable.results import RESULTS, UnreadableError, VerdictResult, json_schema, read_result


@pytest.fixture(scope="module")
def verdict() -> VerdictResult:
    generator = np.random.default_rng(0)
    scores = Scores(generator.normal(2, 1, 200), generator.normal(0, 1, 200))
    return judge_scores(scores, Asked(Epsilon(2.0, 1e-5), Training(2.0, 0.5, 3, Adjacency.ADD_REMOVE)))


def test_a_result_is_the_same_after_json_and_back(verdict: VerdictResult) -> None:
    document = json.loads(verdict.to_json())
    assert document["schema"] == "deniable/verdict/1"
    assert read_result(document) == verdict
    assert read_result(document).to_json() == verdict.to_json()


def test_a_result_is_frozen(verdict: VerdictResult) -> None:
    with pytest.raises(AttributeError):
        verdict.verdict = "consistent"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found.pop("input"), "input is missing"),
        (lambda found: found["measured"].pop("auc"), "measured.auc is missing"),
        (lambda found: found["measured"].update(trials="many"), "measured.trials must be a whole number, got a text"),
        (lambda found: found["measured"].update(trials=True), "measured.trials must be a whole number, got true"),
        (lambda found: found.update(verdict="fine"), "verdict: invalid enum value 'fine'"),
        (lambda found: found.update(schema="deniable/verdict/2"), "of a newer version of deniable"),
        (lambda found: found.update(schema="deniable/verdict/0"), "of an older version of deniable"),
        (lambda found: found.update(schema="other/verdict/1"), "wanted is one of deniable/explain/2"),
    ],
)
def test_what_is_not_whole_is_refused_with_its_place(verdict: VerdictResult, change: Any, said: str) -> None:
    document = json.loads(verdict.to_json())
    change(document)
    with pytest.raises(UnreadableError) as refused:
        read_result(document)
    assert said in str(refused.value)


@pytest.mark.parametrize("kind", RESULTS)
def test_every_kind_has_a_schema_from_its_fields(kind: str) -> None:
    schema = json_schema(kind)
    (name,) = {RESULTS[kind].__name__}
    shown = schema["$defs"][name]["properties"]
    assert set(shown) == {"schema", *(field.encode_name for field in msgspec.structs.fields(RESULTS[kind]))}
    json.dumps(schema)


def test_a_result_shows_itself(verdict: VerdictResult, tmp_path: Any) -> None:
    assert verdict.verdict in verdict.summary().lower()
    assert len(repr(verdict)) < 120
    assert verdict.verdict_text in verdict.summary()
    hostile = verdict.replace(verdict_text="<script>alert(1)</script>")
    assert "<script" not in hostile._repr_html_()
    assert verdict.pictures() == ("epsilon-estimators", "rates")
    assert verdict.plot("rates").get_axes()
    with pytest.raises(ValueError, match="name must be one of epsilon-estimators, rates"):
        verdict.plot("roc")
    assert verdict.verdict_text in verdict.report(tmp_path / "page.html").read_text()
    assert read_result(json.loads(verdict.save(tmp_path / "verdict.json").read_text())) == verdict


def test_explain_and_choose_are_typed_functions() -> None:
    found = dn.explain(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove", fpr=(0.01,))
    assert (found.input.noise, found.input.rate, found.input.steps) == (1.0, 0.01, 1000)
    assert read_result(json.loads(found.to_json())) == found
    chosen = dn.choose(lambda noise: dn.Gaussian(noise).composed(30), dn.Belief(0.75, delta=1e-5))
    assert (chosen.input.belief, chosen.input.steps, chosen.input.delta) == (0.75, 30, 1e-5)
    assert chosen.scores.belief == pytest.approx(0.75, rel=1e-6)
    assert read_result(json.loads(chosen.to_json())) == chosen


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (dn.compose(dn.Gaussian(1.0), dn.Laplace(2.0)), "The release is compose(Gaussian(1.0), Laplace(2.0))."),
        (dn.ApproximateDP(1.0, 1e-6), "(1, 1e-6)-differential privacy"),
    ],
)
def test_a_release_without_options_is_explained_too(mechanism: dn.Mechanism, said: str) -> None:
    assert said in sentences.assessment(dn.explain(mechanism))


def test_noise_that_is_not_the_multiplier_is_not_called_so() -> None:
    twice = dn.choose(lambda noise: dn.Gaussian(2 * noise), dn.Advantage(0.1))
    assert "Noise multiplier" not in sentences.promise_kept(twice)
    once = dn.choose(dn.Gaussian, dn.Advantage(0.1))
    assert twice.noise == pytest.approx(once.noise / 2, rel=1e-5)
    assert "Noise multiplier" in sentences.promise_kept(once)


def test_answers_show_themselves(tmp_path: Any) -> None:
    found = dn.explain(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove")
    chosen = dn.choose(dn.Gaussian, dn.Belief(0.75, delta=1e-5))
    for result in (found, chosen):
        assert sentences.meaning(result) in result.summary()
        assert len(repr(result)) < 200
        assert result.pictures() == ("roc", "roc-log", "beliefs")
        assert result.plot("roc").get_axes()
        assert "<svg" in result._repr_html_()
        assert sentences.guess_sentence(result) in result.report(tmp_path / "page.html").read_text()
        assert read_result(json.loads(result.save(tmp_path / "answer.json").read_text())) == result
    assert "keeps your promise" in chosen.summary()
    unnamed = dn.explain(dn.compose(dn.Gaussian(1.0), dn.Laplace(2.0)))
    assert unnamed.pictures() == ()
    with pytest.raises(ValueError, match="there is no picture"):
        unnamed.plot()


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        (dn.Gaussian(1.0), 1e-5),
        (dn.Gaussian(1.0).subsampled(0.5).composed(7), 1e-5),
        (dn.Laplace(2.0), 1e-5),
        (dn.RandomizedResponse(1.0, 3).composed(4), 1e-5),
        (dn.TotalVariation(0.1), 1e-5),
        (dn.GaussianDP(0.5), 1e-5),
        (dn.ApproximateDP(1.0, 1e-3), 1e-3),
    ],
    ids=str,
)
def test_a_release_is_built_again_from_its_description(mechanism: dn.Mechanism, delta: float) -> None:
    assert mechanism_in(describe_release(mechanism, Question(Adjacency.REPLACE, delta))) == mechanism


def test_reproduced_items_show_themselves(tmp_path: Any) -> None:
    found = dn.reproduce("tvd", "section-3", out=tmp_path)
    assert found.summary().startswith("All hold")
    assert found.pictures() == ("tvd-section-3",)
    assert found.plot().get_axes()
    assert found.items[0].caption[:40] in found.report(tmp_path / "page.html").read_text()
    assert read_result(json.loads(found.to_json())) == found
