"""Sentences that were false once, swept over the figures on which they depend."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from msgspec import UNSET

import deniable as dn
from deniable.answers import rows, sentences
from deniable.answers.choose import choose_input
from deniable.answers.explain import explain_input
from deniable.answers.glossary import GLOSSARY
from deniable.answers.parse import parse_choice, parse_release
from deniable.evidence.attack_scores import Scores
from deniable.evidence.examined_claim import Asked
from deniable.evidence.score_audit import judge_scores
from deniable.formatting import rounded_percent
from deniable.promises import Epsilon
from deniable.report.law_table import law_of_answer
from deniable.report.pictures.epsilon_pictures import region_picture
from deniable.report.privacy_card import write_card
from deniable.report.report_tables import least_proven
from deniable.report.words import verdict_words
from deniable.report.words.amount_text import allowed_figure, figure
from deniable.results import read_result
from deniable.results.compare_result import NamedEpsilons, RegionRow

RELEASES: dict[str, dict[str, Any]] = {
    "strict": {"epsilon": 0.01, "delta": 1e-12},
    "large delta": {"epsilon": 0.5, "delta": 0.1},
    "certain": {"epsilon": 50.0, "delta": 0.1, "prior": 0.01},
    "pure": {"epsilon": 20.0, "delta": 0.0, "prior": 0.99},
    "variation": {"tvd": 0.95},
    "no noise": {"noise": 0.01},
    "much noise": {"noise": 1000.0},
    "blank": {"noise": 0.8, "rate": 0.99999, "steps": 1, "adjacency": "zero-out"},
    "answers": {"randomized_response": 2.0, "features": 5, "categories": 3},
    "fixed": {"noise": 1.2, "sampling": "fixed", "records": 100, "batch": 10, "steps": 1},
    "shuffled": {"noise": 1.2, "sampling": "shuffled", "steps_per_epoch": 1, "epochs": 1},
    "several": {"noise": 1.0, "rate": 0.01, "steps": 100, "records_per_person": 3},
}


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def answer(request: pytest.FixtureRequest) -> Any:
    given = dict(RELEASES[request.param])
    adjacency = given.pop("adjacency", None)
    return explain_input(*parse_release({"delta": 1e-5, **given}, adjacency))


def test_no_chance_of_more_than_certainty(answer: Any) -> None:
    told = dict(rows.score_rows(answer))
    label = next(label for label in told if label.startswith("Belief"))
    assert ("chance of more" in label) == (answer.scores.belief < 1 and answer.scores.belief_delta > 0)
    card = write_card(answer)
    assert ("possibly certain" in card) == (answer.scores.belief >= 1)
    assert "at most 100 % from" not in card
    assert "at most just under" not in card.partition("Advantage")[0]
    assert "probability 0 " not in card


def test_what_is_weak_is_said_on_the_card(answer: Any) -> None:
    weak = sentences.protection(answer)
    assert (f"this is {weak} protection" in write_card(answer)) == (weak is not None)


def test_a_bound_is_not_called_exact(answer: Any) -> None:
    """Of samplings of which only bounds are known."""
    bounds = answer.scores.epsilon_at_least is not UNSET
    assert (next(rows.analysis_rows(answer))["label"] != "exact") == bounds
    assert rows.has_analyses(answer) == (len(list(rows.analysis_rows(answer))) > 1 and rows.is_mechanism(answer))


def test_a_difference_of_shares_is_in_points(answer: Any) -> None:
    table = law_of_answer(answer).tables[0]
    gains = [row[2] for row in table.rows if "more than" in row[2]]
    assert len(gains) == 3
    assert all("percentage points more" in text or "(as a share) more" in text for text in gains)


def test_documents_can_be_read_again(answer: Any) -> None:
    """Also where no finite mu of Gaussian DP holds."""
    assert read_result(json.loads(answer.to_json())).to_json() == answer.to_json()


def test_what_is_protected_promises_nothing(answer: Any) -> None:
    said = sentences.setting(answer)
    assert "cannot be told" not in said
    assert "at least 0 for" not in " ".join(answer.notes)
    assert not any(words in said for words in ("1 step, each", "1 steps", "1 epochs", "probability 100 %"))
    local = answer.input.is_response
    assert ("answers of one person" in write_card(answer)) == local


def test_no_word_of_the_glossary_comforts() -> None:
    assert not any("hardly" in text for text in GLOSSARY.values())


def test_a_rate_below_one_is_not_all() -> None:
    for rate in (0.5, 0.999, 0.99999, 1 - 1e-9):
        assert rounded_percent(rate) != "100 %"
    assert rounded_percent(1.0) == "100 %"


@pytest.mark.parametrize("delta", [1e-6, 0.005, 0.05, 0.2])
def test_a_large_delta_is_not_strong(delta: float) -> None:
    """Of a bare guarantee: with probability delta everything may come out."""
    found = dn.explain(dn.ApproximateDP(0.01, delta), "add-remove").strength
    assert found is not None
    assert (found.name in ("weak", "hardly any")) == (2 * delta > 0.01 or found.belief >= 0.99)
    assert (found.name == "strong") <= (delta < 0.01)


@pytest.mark.parametrize("delta", [0.02, 0.2])
def test_strong_noise_stays_strong_at_a_large_delta(delta: float) -> None:
    found = dn.explain(dn.Gaussian(30.0), "add-remove", delta=delta).strength
    assert found is not None
    assert found.name == "strong"


@pytest.mark.parametrize(
    "training", [{"sampling": "shuffled", "steps_per_epoch": 10, "epochs": 2}, {"rate": 0.1, "steps": 20}]
)
def test_less_than_a_proven_bound_is_not_called_too_little(training: dict[str, Any]) -> None:
    found = choose_input(*parse_choice({"belief": 0.9, "delta": 1e-3, **training}, None, None))
    assert ("Less is not proved to be enough." in sentences.engineering(found)) == bool(sentences.caution(found))


def test_where_the_search_began_nothing_is_compared() -> None:
    found = choose_input(*parse_choice({"advantage": 0.99, "rate": 0.5, "steps": 1, "delta": 1e-5}, None, None))
    told = list(rows.demand_rows(found))
    assert told[0]["noise"].startswith("<= ")
    assert {row["ratio"] for row in told} == {"-"}


@pytest.mark.parametrize("value", [0.5003, 0.49997, 0.500001])
def test_what_is_not_one_half_is_not_told_as_it(value: float) -> None:
    assert float(figure(value)) != 0.5


@pytest.mark.parametrize("claimed", [0.5, 1.0, 4.38])
@pytest.mark.parametrize("excess", [1e-6, 1e-3, 0.5])
def test_a_bound_that_refutes_stands_above_the_claim(claimed: float, excess: float) -> None:
    shown = float(least_proven(claimed * (1 + excess), claimed))
    assert claimed < shown <= claimed * (1 + excess)


@pytest.mark.parametrize("claimed", [2.0, 20.0, 50.0])
@pytest.mark.parametrize("values", ["tied", "spread"])
def test_no_more_is_proven_than_could_be(claimed: float, values: str) -> None:
    """A perfect attack of 0 and 1 needs fewer thresholds, and proves more, than one of 1,000 values."""
    spread = np.arange(200) * (values == "spread")
    asked = Asked(Epsilon(claimed, 1e-5), rows_from="trainings")
    found = judge_scores(Scores(1.0 + spread, -spread.astype(float)), asked)
    if "of a perfect attack" in found.verdict_text:
        words = found.verdict_text.replace("(", " ").split()
        proven, most = float(words[words.index("least") + 1]), float(words[words.index("prove", 8) + 1])
        assert proven <= most
    else:
        assert found.verdict == "violated"


@pytest.mark.parametrize(("lower", "exact"), [(0.0, 1.7), (0.5, 1.7), (1.7001, 1.7), (5.0, 1.7)])
def test_the_truth_lies_between_unless_more_is_shown(lower: float, exact: float) -> None:
    row = RegionRow(noise=1.0, exact=exact, named=NamedEpsilons(naive=None, advanced=None, rdp=None), lower=lower)
    told = region_picture([row], 1e-5, "audit").told
    assert ("the truth lies between" in told) == (lower <= exact)
    assert ("not those of this training" in told) == (lower > exact)
    assert "Test mode" in region_picture([row], 1e-5, "audit", "Test mode: no bound.").told


def test_a_claim_that_its_own_noise_refutes_is_not_consistent() -> None:
    generator = np.random.default_rng(0)
    scores = Scores(generator.normal(1, 1, 500), generator.normal(0, 1, 500))
    for epsilon, noise in ((4.38, 1.0), (1.5, 0.5), (0.5, 0.1)):
        training = dn.Training(noise, 1.0, 1, "add-remove")
        asked = Asked(Epsilon(epsilon, 1e-5), rows_from="trainings", training=training, method="region")
        found = judge_scores(scores, asked)
        exact = found.exact.epsilon if found.exact else None
        assert exact is not None
        assert exact <= epsilon * 1.01 or found.verdict != "consistent"
        advantage = verdict_words._claimed_scores(found)[0]
        assert advantage == found.exact.advantage  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [0.3126, 1.7312, 0.50028, 0.99999, 25_366.7, 1.0])
def test_what_noise_allows_is_never_told_lower(value: float) -> None:
    shown = allowed_figure(value)
    assert shown == "just under 1" or float(shown.replace(",", "")) >= value or value > 0.9995
    assert (shown == "1") == (value == 1)
