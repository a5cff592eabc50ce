"""Shadow models: who is in which, vectorised training against a loop, recipes, and the attacks that rest on them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from torch import nn

from deniable.adversaries import LossThreshold, Quantile, ShadowAttack, ShadowTraining, shadow_models, shadow_recipes
from deniable.adversaries.model_observation import losses, outputs
from deniable.adversaries.shadow_models import count_blocks, draw_halves, join_blocks, pool_of, query, train_block
from deniable.adversaries.shadow_recipes import (
    EngineRecipe,
    LoopRecipe,
    OwnRecipe,
    fresh_copy,
    match_epochs,
    refit,
    suitable_recipe,
)
from deniable.data import Dataset, from_arrays
from deniable.tradeoff import average_precision
from deniable.training import kernels
from deniable.training.attacked.targets import TargetSettings, fit
from deniable.training.ensemble import initial_weights
from deniable.training.noise_source import SeededSource
from deniable.training.release import fill_model
from deniable.training.settings import Columns, as_records
from deniable.training.subset_models import _course, _ShuffledSubsets, dense_network, train_subsets


def noisy_records(count: int) -> Dataset:
    """Four classes that twenty numbers tell in part: a network that learns them by heart is wrong on many others."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(count, 20)).astype(np.float32)
    odds = features @ generator.normal(size=(20, 4)) + generator.normal(0, 3, (count, 4))
    return from_arrays("noisy", features, odds.argmax(1))


RECORDS = noisy_records(260)
MEMBERS, OTHERS = RECORDS.take(np.arange(120)), RECORDS.take(np.arange(120, 240))


def small() -> nn.Module:
    """A network that learns a hundred records by heart."""
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))


@pytest.fixture(scope="module")
def target() -> nn.Module:
    """Trained on the members for 25 epochs."""
    settings = TargetSettings(small, learning_rate=0.003, batch=30, epochs=25, patience=None)
    return fit(settings, MEMBERS, RECORDS.take(np.arange(240, 260)), 3).model


@given(st.integers(4, 9), st.integers(4, 31), st.integers(0, 1000))
def test_every_record_is_in_half_of_the_shadows(shadows: int, records: int, seed: int) -> None:
    drawn = draw_halves(shadows, records, seed)
    assert drawn.shape == (shadows, records)
    assert (drawn.sum(1) == records // 2).all()
    assert not (drawn[0] & drawn[1]).any()
    assert drawn.any(0).all()
    assert not drawn.all(0).any()


def test_models_trained_together_equal_models_trained_in_a_loop() -> None:
    """Full batches of plain gradient descent from the same first weights, each on its own records."""
    settings = TargetSettings(small, learning_rate=0.5, batch=10**6, epochs=1, optimizer="sgd")
    inside = draw_halves(4, len(MEMBERS), 1)
    together = train_subsets(settings, MEMBERS, inside, seed=2, block=0, steps=6)
    weights = initial_weights(_course(settings, inside), 4, SeededSource(2, 0, stream=0).generator)[1]
    for number, (model, row) in enumerate(zip(together, inside, strict=True)):
        twin = fresh_twin(small, weights, number)
        optimizer = torch.optim.SGD(twin.parameters(), 0.5)
        records, labels = torch.from_numpy(MEMBERS.inputs[row]), torch.from_numpy(MEMBERS.labels[row])
        for _ in range(6):
            optimizer.zero_grad()
            nn.functional.cross_entropy(twin(records), labels).backward()
            optimizer.step()
        for found, expected in zip(model.parameters(), twin.parameters(), strict=True):
            assert torch.allclose(found, expected, atol=1e-5)


def pooled() -> nn.Module:
    """Convolutions whose kernels pool, the first with filters that are no multiple of eight."""
    first = nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*first, nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 4))


def normalised() -> nn.Module:
    """A convolution by itself, then group norm with pooling."""
    first = nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.GroupNorm(2, 8), nn.MaxPool2d(2)
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(8 * 3 * 3, 4))


def padded() -> nn.Module:
    """What only torch computes: padding and strides."""
    first = nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.GroupNorm(2, 4), nn.Tanh()
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(4 * 5 * 5, 4))


PICTURES = Dataset(
    "pictures", np.random.default_rng(1).random((120, 10, 10), np.float32), MEMBERS.labels, MEMBERS.classes, "image"
)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(
    ("network", "members"), [(small, MEMBERS), (pooled, PICTURES), (normalised, PICTURES), (padded, PICTURES)]
)
def test_small_batches_are_trained_as_in_a_loop(network: Any, members: Dataset, optimizer: str) -> None:
    """One model, the very batches that were drawn, by torch's own optimizer."""
    settings = TargetSettings(network, learning_rate=0.01, batch=16, epochs=1, optimizer=optimizer)  # type: ignore[arg-type]
    inside = draw_halves(4, len(members), 1)
    models = shuffled(settings, members, inside)
    twin = fresh_twin(network, models.weights, 2)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    learner = kind(twin.parameters(), 0.01)
    drawn: list[Any] = []
    draw = models._draw_places
    models._draw_places = lambda: drawn.append(draw()) or drawn[-1]  # type: ignore[method-assign,func-returns-value]
    for _ in range(7):
        models.draw_batch(torch.empty(4, 0))
        models.sum_gradients()
        models.apply()
        batch = drawn[-1][2]
        learner.zero_grad()
        records, labels = torch.from_numpy(members.inputs)[batch], torch.from_numpy(members.labels)[batch]
        # the engine divides by the expected size of a batch
        loss = nn.functional.cross_entropy(twin(records), labels, reduction="sum") / models._count
        loss.backward()
        learner.step()
    for found, expected in zip(models.weights, twin.parameters(), strict=True):
        assert torch.allclose(found[2], expected, atol=2e-5)


DENSE = {
    "one layer": lambda: nn.Linear(20, 4),
    "wide": lambda: nn.Sequential(nn.Linear(20, 136), nn.ReLU(), nn.Linear(136, 4)),
    "odd widths": lambda: nn.Sequential(nn.Linear(20, 13), nn.ReLU(), nn.Linear(13, 5), nn.ReLU(), nn.Linear(5, 4)),
    "no bias": lambda: nn.Sequential(nn.Linear(20, 9, bias=False), nn.ReLU(), nn.Linear(9, 4)),
}


def mostly_zero() -> Dataset:
    there = np.random.default_rng(2).random(MEMBERS.inputs.shape) < 0.2
    return replace(MEMBERS, features=(MEMBERS.inputs * there).astype(np.float32))


@pytest.mark.skipif(kernels.KERNELS is None, reason="the compiled kernels were not built")
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("batch", [16, 11, 60])
@pytest.mark.parametrize("members", [MEMBERS, mostly_zero()], ids=["dense", "mostly zero"])
@pytest.mark.parametrize("network", DENSE)
def test_epochs_in_one_call_are_trained_as_in_a_loop(
    network: str, members: Dataset, batch: int, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each model by torch's own optimizer, on the batches that a twin of the engine draws; the last epoch is cut."""
    settings = TargetSettings(DENSE[network], learning_rate=0.01, batch=batch, epochs=1, optimizer=optimizer)  # type: ignore[arg-type]
    inside = draw_halves(4, len(members), 1)
    models, drawing = (shuffled(settings, members, inside) for _ in range(2))
    monkeypatch.setattr(type(models), "sum_gradients", None)  # no step by itself
    with torch.no_grad():
        models.train(7, 0.0)
    twins = [fresh_twin(DENSE[network], drawing.weights, number) for number in range(4)]
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    learners = [kind(twin.parameters(), 0.01) for twin in twins]
    records, labels = torch.from_numpy(members.inputs), torch.from_numpy(members.labels)
    for _ in range(7):
        for places, twin, learner in zip(drawing._draw_places(), twins, learners, strict=True):
            learner.zero_grad()
            nn.functional.cross_entropy(twin(records[places]), labels[places]).backward()
            learner.step()
    for number, twin in enumerate(twins):
        for found, expected in zip(models.weights, twin.parameters(), strict=True):
            assert torch.allclose(found[number], expected, atol=2e-5)


def fresh_twin(network: Any, weights: Any, number: int) -> nn.Module:
    """A model with one model's weights."""
    twin: nn.Module = network()
    with torch.no_grad():
        for parameter, first in zip(twin.parameters(), weights, strict=True):
            parameter.copy_(first[number])
    return twin


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_that_diverged_is_refused(bad: float) -> None:
    """Even where only zeros are multiplied by the weight that is not finite."""
    members = mostly_zero()
    members.features[:, 3] = 0
    models = shuffled(TargetSettings(DENSE["wide"], batch=16, epochs=1), members, draw_halves(4, len(members), 1))
    models.weights[0][1, 7, 3] = bad
    with torch.no_grad():
        models.train(6, 0.0)
    for number in (0, 2, 3):
        fill_model(models.model, models, number)
    with pytest.raises(FloatingPointError, match="training diverged"):
        fill_model(models.model, models, 1)


def test_other_networks_are_trained_step_by_step() -> None:
    tanh = partial(nn.Sequential, nn.Linear(20, 6), nn.Tanh(), nn.Linear(6, 4))
    twice = partial(nn.Sequential, nn.Linear(20, 6), nn.Linear(6, 4))
    for network in (tanh, twice):
        models = shuffled(TargetSettings(network, batch=16, epochs=1), MEMBERS, draw_halves(4, len(MEMBERS), 1))
        assert dense_network(models._settings, models.model, models.weights, models._records) is None


def shuffled(settings: TargetSettings, records: Dataset, inside: Any) -> Any:
    """Four models before their first step."""
    course = _course(settings, inside)
    model, weights = initial_weights(course, 4, SeededSource(0, 0).generator)
    columns = Columns(*as_records(records.inputs, records.labels), 0)
    source = SeededSource(0, 0, stream=1)
    return _ShuffledSubsets(course, model, weights, columns, source=source, inside=torch.from_numpy(inside))


def test_an_epoch_visits_every_own_record_and_no_other() -> None:
    settings = TargetSettings(small, batch=16, epochs=1)
    inside = draw_halves(4, 101, 1)
    models = shuffled(settings, RECORDS.take(np.arange(101)), inside)
    for _ in range(2):
        visits = np.zeros(inside.shape)
        for _ in range(4):
            np.add.at(visits, (np.arange(4)[:, None], models._draw_places().numpy()), 1)
        assert (visits == inside).all()


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_epochs_have_as_many_steps_as_those_of_a_loop(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `DataLoader` gives 60 records in batches of 16 as 16, 16, 16 and 12; Poisson batches come 60 / 16 an epoch."""
    asked: list[int] = []
    monkeypatch.setattr(shadow_recipes, "train_subsets", lambda *_, steps, **__: asked.append(steps))
    EngineRecipe(TargetSettings(small, noise, batch=16, epochs=9)).train(MEMBERS, draw_halves(4, 120, 0), 0, 0)
    assert asked == [34 if noise else 36]


@pytest.mark.parametrize("queries", [1, 3])
def test_a_shadow_is_asked_once_for_every_query(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = EngineRecipe(TargetSettings(pooled, batch=30, epochs=1, patience=None))
    expected = query(next(iter(recipe.train(PICTURES, draw_halves(4, 120, 0), 0, 0))), PICTURES, queries)
    asked: list[Any] = []
    monkeypatch.setattr(shadow_models, "outputs", lambda *given: asked.append(given) or outputs(*given))
    block = train_block(recipe, PICTURES, shadows=4, queries=queries, seed=0, block=0)
    assert len(asked) == 4 * queries
    assert np.allclose(block.confidence[0], expected, rtol=1e-6)


def shadows_of(recipe: Any, shadows: int = 16) -> Any:
    """All shadows of the records."""
    pool = pool_of(MEMBERS, OTHERS)
    blocks = range(count_blocks(recipe, shadows))
    return join_blocks([train_block(recipe, pool, shadows=shadows, queries=1, seed=0, block=one) for one in blocks])


def test_shadow_attacks_beat_the_loss_threshold_and_find_nothing_in_an_untrained_model(target: nn.Module) -> None:
    found = match_epochs(
        target, ShadowTraining(batch=30), pool_of(MEMBERS, OTHERS), float(losses(target, MEMBERS).mean()), 0
    )
    assert isinstance(found.recipe, EngineRecipe)
    shadows = shadows_of(found.recipe)
    attacks = {rule: ShadowAttack(shadows, (rule,)) for rule in ("lira", "rmia", "bayes")}
    plain = np.mean([precision(LossThreshold(), target, seed) for seed in range(3)])
    for rule, attack in attacks.items():
        assert np.mean([precision(attack, target, seed) for seed in range(3)]) > plain + 0.03, rule
    torch.manual_seed(0)
    unlearnt = small()
    for attack in (*attacks.values(), ShadowAttack(shadows), Quantile()):
        assert precision(attack, unlearnt, 0) < 0.68


def precision(attack: Any, model: Any, seed: int) -> float:
    """Average precision on the tested half."""
    scored = attack(model, MEMBERS, OTHERS, seed)
    return average_precision(scored.scores, scored.member)


def test_the_rule_is_chosen_on_the_known_half_alone(target: nn.Module) -> None:
    """Scores of tested records may be anything: the same rule is chosen, and the same threshold."""
    from deniable.adversaries.membership import half_places  # noqa: PLC0415
    from deniable.adversaries.shadow_attacks import divide_scores, strongest_rule  # noqa: PLC0415

    known, tested = half_places(MEMBERS, OTHERS, 5)
    generator = np.random.default_rng(0)
    scores = {"a": generator.normal(size=240), "b": generator.normal(size=240)}
    scores["b"][known.members] += 2
    spoilt = {name: values.copy() for name, values in scores.items()}
    for values in spoilt.values():
        values[tested.members] = -9.0
        values[120 + tested.non_members] = 9.0
    assert strongest_rule(scores, known, 120) == strongest_rule(spoilt, known, 120) == "b"
    thresholds = [divide_scores(each["b"], known, tested, 120).threshold for each in (scores, spoilt)]
    assert thresholds[0] == thresholds[1]


def test_blocks_depend_on_their_arguments_alone(target: nn.Module) -> None:
    recipe = suitable_recipe(target, ShadowTraining(epochs=2))
    pool = pool_of(MEMBERS, OTHERS)
    twice = [train_block(recipe, pool, shadows=20, queries=1, seed=4, block=1) for _ in range(2)]
    assert twice[0].inside.shape == (4, 240)
    assert (twice[0].confidence == twice[1].confidence).all()
    other = train_block(recipe, pool, shadows=20, queries=1, seed=4, block=0)
    assert not (other.confidence[:4] == twice[0].confidence).all()


def test_shadows_of_a_private_training_are_private_too(target: nn.Module) -> None:
    """With the target's noise, shadows learn as little as it does."""
    quiet, loud = (
        shadows_of(suitable_recipe(target, ShadowTraining(epochs=15, batch=30, learning_rate=0.01, noise=noise)), 4)
        for noise in (0.0, 30.0)
    )
    assert quiet.right[:, 0].mean() > 0.95
    assert loud.right[:, 0].mean() < 0.5


def test_shadows_start_from_new_weights(target: nn.Module) -> None:
    torch.manual_seed(1)
    fresh = fresh_copy(target)
    assert not torch.equal(fresh[0].weight, target[0].weight)

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

    with pytest.raises(ValueError, match="cannot be drawn anew"):
        fresh_copy(nn.Sequential(nn.Linear(3, 3), Own()))
    frozen = nn.Sequential(nn.Linear(20, 8), nn.Linear(8, 4))
    frozen[0].requires_grad_(False)
    assert torch.equal(fresh_copy(frozen)[0].weight, frozen[0].weight)


def test_networks_that_the_engine_refuses_are_trained_in_a_loop() -> None:
    mixing = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    recipe = suitable_recipe(mixing, ShadowTraining(epochs=15, batch=30, learning_rate=0.01))
    assert isinstance(recipe, LoopRecipe)
    found = shadows_of(recipe, 4)
    assert found.right[:, 0].mean() > 0.9 > found.right[:, 1].mean()
    with pytest.raises(ValueError, match="mixes examples"):
        suitable_recipe(mixing, ShadowTraining(epochs=8, noise=1.0))


def test_estimators_are_attacked_with_their_own_training() -> None:
    forest = RandomForestClassifier(20, random_state=0).fit(MEMBERS.features, MEMBERS.labels)
    shadows = shadows_of(OwnRecipe(partial(refit, forest)), 6)
    assert shadows.right[:, 0].mean() > 0.9
    assert precision(ShadowAttack(shadows, ("rmia",)), forest, 0) > 0.8
    shown = outputs(forest, OTHERS)
    assert torch.allclose(shown.exp().sum(1), torch.ones(len(OTHERS), dtype=torch.float64), atol=1e-5)


def test_an_estimator_that_has_not_seen_a_class_knows_it_at_its_number() -> None:
    some = MEMBERS.take(np.flatnonzero(MEMBERS.labels != 3))
    forest = RandomForestClassifier(5, random_state=0).fit(some.features, some.labels)
    assert (outputs(forest, MEMBERS)[:, 3] == outputs(forest, MEMBERS)[:, 3].min()).all()
    with pytest.raises(ValueError, match="predict_proba"):
        outputs(object(), MEMBERS)


def test_queries_of_images() -> None:
    pixels = np.random.default_rng(0).random((6, 8, 8)).astype(np.float32)
    images = Dataset("images", pixels, np.arange(6) % 2, 2, "image")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    found = query(model, images, 10)
    assert found.shape == (10, 6)
    assert len({tuple(row) for row in found.round(6)}) == 10
    mirrored = replace(images, features=np.ascontiguousarray(pixels[..., ::-1]))
    assert found[1] == pytest.approx(query(model, mirrored)[0])
    with pytest.raises(ValueError, match="at most 10"):
        query(model, images, 11)
    with pytest.raises(ValueError, match="at most 1 "):
        query(small(), MEMBERS, 2)


def test_the_quantile_attack_finds_what_an_overfitted_model_shows(target: nn.Module) -> None:
    assert np.mean([precision(Quantile(trees=50), target, seed) for seed in range(3)]) > 0.6


def test_recipes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="epochs must be named with noise"):
        ShadowTraining(noise=1.0)
    for wrong in ({"epochs": 0}, {"batch": 0}, {"noise": -1.0}, {"optimizer": "lbfgs"}, {"learning_rate": 0.0}):
        with pytest.raises(ValueError):
            ShadowTraining(**wrong)
    with pytest.raises(ValueError, match="of the members and the non-members together"):
        ShadowAttack(shadows_of(suitable_recipe(small(), ShadowTraining(epochs=1)), 4))(small(), MEMBERS, RECORDS, 0)
