"""The table of scores: every entry is whole, and everything that people read or write is made from it."""

from __future__ import annotations

import pickle
from dataclasses import fields
from inspect import signature

import pytest

import deniable as dn
from deniable.answers.describe import describe_choice
from deniable.answers.parse import parse_promise
from deniable.checks import RefusedError
from deniable.promises import AUDITED, PARAMETERS, SCORES, Question, audited_promise, claimed_scores, promise_in
from deniable.results.explain_result import AnswerInput
from deniable.results.shared import ReleaseScores

EXAMPLES = {
    "belief": dn.Belief(0.75, 1e-5, 0.3),
    "advantage": dn.Advantage(0.1),
    "accuracy": dn.Accuracy(0.8, 0.3),
    "tpr": dn.TruePositiveRate(0.2, 0.01),
    "ppv": dn.PositivePredictiveValue(0.7, 0.01, 0.3),
    "success": dn.Success(0.05, 1e-3),
    "epsilon": dn.Epsilon(1.5, 1e-5),
}
LOSS = dn.privacy_loss(dn.Gaussian(2.0))


def test_every_score_has_an_example_here() -> None:
    assert list(EXAMPLES) == list(SCORES)
    assert all(type(EXAMPLES[name]) is entry for name, entry in SCORES.items())


@pytest.mark.parametrize("name", SCORES)
def test_an_entry_is_whole(name: str) -> None:
    """The loss answers it at its parameters, the question asks at them, and all words can be said."""
    entry, promise = SCORES[name], EXAMPLES[name]
    assert entry.field.name == name
    assert entry.field.slider is not None
    assert entry.__name__ in dn.__all__
    assert tuple(signature(getattr(dn.PrivacyLoss, name)).parameters)[1:] == entry.parameter_names()
    assert set(entry.parameter_names()) <= PARAMETERS.keys() <= {attribute.name for attribute in fields(Question)}
    assert promise.score(LOSS) == getattr(LOSS, name)(**promise.parameters)
    for text in (promise.say("of it", "1e-5"), entry.row(promise.parameters, "1e-5"), entry.field.help_text(str)):
        assert text
        assert "{" not in text


@pytest.mark.parametrize("name", SCORES)
def test_the_risk_is_at_most_the_level_exactly_where_the_promise_holds(name: str) -> None:
    promise = EXAMPLES[name]
    for noise in (0.05, 0.5, 2.0, 8.0, 1000.0):
        loss = dn.privacy_loss(dn.Gaussian(noise))
        assert (promise.risk(loss) <= promise.level) == (promise.score(loss) <= promise.bound)
        assert promise.least_risk(loss) <= promise.risk(loss)


@pytest.mark.parametrize("name", SCORES)
def test_a_promise_is_read_back_from_what_people_gave_and_from_json(name: str) -> None:
    promise = EXAMPLES[name]
    at = {key: (value,) if PARAMETERS[key].repeatable else value for key, value in promise.parameters.items()}
    question = Question.of(at, dn.Adjacency.ADD_REMOVE)
    assert parse_promise({name: promise.bound, **at}, question) == promise
    assert promise_in(describe_choice(dn.Gaussian, promise, question)) == promise


def test_typed_results_have_every_score() -> None:
    """The one other place that spells the scores, since its readers are typed: what is found, and what is given."""
    assert {*SCORES, *PARAMETERS, "adjacency"} <= set(AnswerInput.__struct_fields__)
    beside = {"delta", "prior", "belief_delta", "epsilon_at_least", "singling_out", "gaussian"}
    assert set(ReleaseScores.__struct_fields__) == {*SCORES, *beside}


def test_what_an_audit_holds_a_training_to() -> None:
    for name in AUDITED:
        promise = audited_promise({name: 0.9}, 0.01)
        assert (type(promise), promise.bound) == (AUDITED[name], 0.9)
        assert claimed_scores(promise, 0.01).delta == 0.01
    assert claimed_scores(dn.Noise(2.0), 0.1) == claimed_scores(None, 0.1)
    noisy = dn.calibrate(dn.Gaussian, dn.Noise(2.0))
    assert (noisy.value, noisy.error, noisy.achieved) == (2.0, 0.0, 2.0)


def test_a_refusal_carries_its_parts_and_is_spelled_by_whoever_tells_it() -> None:
    with pytest.raises(RefusedError) as caught:
        dn.Belief(75, 1e-5)
    refused = pickle.loads(pickle.dumps(caught.value))
    assert (refused.field, refused.value) == ("belief", 75)
    assert (refused.expected, refused.hint) == ("a number strictly between 0 and 1", "did you mean 0.75?")
    assert str(refused) == "belief must be a number strictly between 0 and 1, got 75: did you mean 0.75?"
    assert refused.phrase(lambda name: f"--{name}").startswith("--belief must be")


def test_neighbours_must_be_named_where_they_matter_and_only_there() -> None:
    sampled = dn.Gaussian(1.0).subsampled(0.1)
    for mechanism in (sampled, sampled.composed(3), dn.compose(dn.Laplace(1.0), sampled)):
        with pytest.raises(RefusedError, match="adjacency must be one of add-remove, replace, zero-out, got None"):
            dn.privacy_loss(mechanism)
    for mechanism in (dn.Gaussian(1.0), dn.Gaussian(1.0).subsampled(1.0), dn.ApproximateDP(1.0).composed(3)):
        assert dn.privacy_loss(mechanism).advantage() == dn.privacy_loss(mechanism, "replace").advantage()
    with pytest.raises(RefusedError, match="got 'both'"):
        dn.Training(1.0, 0.1, 10, "both")  # type: ignore[arg-type]


def test_a_training_describes_its_release_and_its_noise() -> None:
    training = dn.Training(1.5, 0.1, 10, dn.Adjacency.REPLACE, clip=3.0)
    assert training.mechanism == dn.Gaussian(1.5).subsampled(0.1).composed(10)
    assert (training.sensitivity, training.sigma) == (6.0, 9.0)
    assert dn.Training(1.5, 1.0, 1, dn.Adjacency.ADD_REMOVE, clip=3.0).mechanism == dn.Gaussian(1.5)
    assert dn.Training.of({"noise": 1.5, "rate": 0.1, "steps": 10, "adjacency": "replace", "clip": 3.0}) == training
    assert dn.Training.of(training) == training
