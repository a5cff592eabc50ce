"""The attacks on models whose leak is known: none, some, all; halves, gradients and seeds against naive twins."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

import torch
from torch import nn
from torch.nn import functional

from deniable.adversaries import Attack, Blind, LossThreshold, Shadow, WhiteBox, halves
from deniable.adversaries.membership import best_threshold
from deniable.adversaries.model_observation import last_layer_gradients, losses, outputs
from deniable.data import Dataset, purchases, skewed_purchases
from deniable.tradeoff import advantage, average_precision, chance_level

COUNT, CLASSES = 300, 50


def network(seed: int = 0, width: int = 600, classes: int = CLASSES) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, classes))


def fitted(records: Dataset, seed: int = 0, epochs: int = 8) -> nn.Module:
    """Plain training, for as many epochs as it takes to leak."""
    model = network(seed, records.features.shape[1], records.classes)
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    x, y = torch.from_numpy(records.features), torch.from_numpy(records.labels)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return model


Game = tuple[nn.Module, Dataset, Dataset, Dataset]


@pytest.fixture(scope="module")
def game() -> Game:
    """(a model that leaks, its members, non-members, others)."""
    carts = purchases(CLASSES, 8 * COUNT, seed=1)
    order = np.random.default_rng(0).permutation(len(carts))
    members, others, pool = (carts.take(part) for part in np.split(order, [COUNT, 2 * COUNT]))
    return fitted(members), members, others, pool


def attacks(pool: Dataset) -> list[Attack]:
    return [LossThreshold(), LossThreshold("free"), Shadow(fitted, pool, shadows=3), WhiteBox()]


def test_every_attack_finds_what_leaks(game: Game) -> None:
    model, members, others, pool = game
    found = {}
    for attack in attacks(pool):
        scored = attack(model, members, others, seed=0)
        assert len(scored.members) == len(scored.non_members) == COUNT // 2
        found[type(attack).__name__] = average_precision(scored.scores, scored.member)
        assert advantage(scored.scores, scored.member, scored.threshold) > 0.1
    assert min(found.values()) > chance_level(COUNT, confidence=0.999)
    assert found["WhiteBox"] > found["LossThreshold"] - 0.02


def test_no_attack_finds_what_does_not_leak(game: Game) -> None:
    """Members drawn after the training: all that remains is chance."""
    _, members, others, pool = game
    model = network()
    limits = chance_level(COUNT, repeats=2, confidence=0.999)
    for attack in [*attacks(pool), Blind()]:
        scored = [attack(model, members, others, seed) for seed in range(2)]
        assert np.mean([average_precision(s.scores, s.member) for s in scored]) < limits


def test_blind_sees_a_shift_and_nothing_else(game: Game) -> None:
    model, members, others, _ = game
    scored = Blind()(model, members, others, seed=0)
    assert average_precision(scored.scores, scored.member) < chance_level(COUNT, confidence=0.999)
    train, test = skewed_purchases(20, 1200)
    shifted = Blind()(None, train, test, seed=0)
    assert average_precision(shifted.scores, shifted.member) > 0.99


def test_blind_sees_a_shift_that_no_single_feature_shows() -> None:
    """Members have two equal bits, non-members two different ones: every column looks the same in both."""
    bits = np.random.default_rng(0).integers(0, 2, (1200, 3)).astype(np.float32)
    equal, different = bits[:600].copy(), bits[600:].copy()
    equal[:, 1], different[:, 1] = equal[:, 0], 1 - different[:, 0]
    labels = np.zeros(600, dtype=np.int64)
    groups = [Dataset("bits", part, labels, 2, "binary") for part in (equal, different)]
    scored = Blind()(None, *groups, seed=0)
    assert average_precision(scored.scores, scored.member) > 0.95


def test_the_same_seed_gives_the_same_scores_whatever_came_before(game: Game) -> None:
    model, members, others, _ = game
    for attack in (LossThreshold(), WhiteBox(epochs=2), Blind()):
        first = attack(model, members, others, seed=3)
        torch.rand(7)
        again = attack(model, members, others, seed=3)
        assert np.array_equal(first.scores, again.scores)
        assert first.threshold == again.threshold
        other = attack(model, members, others, seed=4)
        assert not np.array_equal(first.scores, other.scores)


def test_halves_are_disjoint_balanced_and_complete() -> None:
    def numbered(count: int, start: int) -> Dataset:
        features = np.arange(start, start + count, dtype=np.float32)[:, None]
        return Dataset("numbered", features, np.zeros(count, dtype=np.int64), 2, "table")

    known, tested = halves(numbered(11, 0), numbered(40, 100), seed=2)
    inside = [*known.members.features[:, 0], *tested.members.features[:, 0]]
    outside = [*known.non_members.features[:, 0], *tested.non_members.features[:, 0]]
    assert sorted(inside) == list(range(11))
    assert len(set(outside)) == 11
    assert min(outside) >= 100
    assert (len(known.members), len(known.non_members)) == (5, 5)
    assert (len(tested.members), len(tested.non_members)) == (6, 6)
    with pytest.raises(ValueError, match="at least 4 records each, got 3 and 40"):
        halves(numbered(3, 0), numbered(40, 100), seed=2)


def test_the_threshold_is_the_best_on_the_known_half() -> None:
    scores, member = np.array([3.0, 2, 2, 1]), np.array([True, True, False, False])
    assert best_threshold(scores, member) == 3  # of equal advantage the highest
    assert best_threshold(np.array([3.0, 2, 2, 2, 1]), np.array([False, True, True, False, False])) == 2
    assert best_threshold(np.zeros(4), member) == 0


def test_yeoms_threshold_is_the_average_training_loss(game: Game) -> None:
    model, members, others, _ = game
    known, tested = halves(members, others, seed=0)
    scored = LossThreshold()(model, members, others, seed=0)
    x, y = torch.from_numpy(known.members.features), torch.from_numpy(known.members.labels)
    assert -scored.threshold == pytest.approx(functional.cross_entropy(model(x), y).item(), rel=1e-5)
    assert -scored.scores == pytest.approx(losses(model, tested.records))


def test_losses_have_no_ties_where_float32_has(game: Game) -> None:
    model, members, _, _ = game
    sharp = nn.Sequential(*model, nn.Flatten())
    with torch.no_grad():
        sharp[2].weight.mul_(50)
    assert len(np.unique(losses(sharp, members))) > 0.98 * len(members)


def convolutional() -> tuple[nn.Module, Dataset]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4 * 36, 5))
    images = np.random.default_rng(0).random((6, 8, 8), dtype=np.float32)
    return model, Dataset("images", images, np.arange(6, dtype=np.int64) % 5, 5, "image")


def test_gradients_of_the_last_layers_are_autograds() -> None:
    model, images = convolutional()
    last, before = last_layer_gradients(model, images, 2)
    assert last.incoming is not None
    assert before.incoming is None
    for number in range(len(images)):
        model.zero_grad()
        x, y = torch.from_numpy(images.features[number])[None, None], torch.tensor([images.labels[number]])
        functional.cross_entropy(model(x), y).backward()
        dense = torch.cat([model[3].weight.grad, model[3].bias.grad[:, None]], 1)
        assert torch.allclose(torch.outer(last.backward[number], last.incoming[number]), dense, atol=1e-6)
        assert float(last.norms()[number]) == pytest.approx(float(dense.norm()), rel=1e-4)
        whole = torch.cat([model[0].weight.grad.flatten(1), model[0].bias.grad[:, None]], 1)
        assert torch.allclose(before.backward[number], whole, atol=1e-6)


def test_frozen_models_and_batch_norm_are_attacked_as_they_are() -> None:
    """Evaluation mode: no record changes what another gets, and the model is left as it was found."""
    model = nn.Sequential(nn.Linear(600, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, CLASSES))
    model.requires_grad_(False)
    model.train()
    carts = purchases(CLASSES, 100)
    whole = last_layer_gradients(model, carts, 2)
    alone = last_layer_gradients(model, carts.take(np.array([7])), 2)
    for all_records, one in zip(whole, alone, strict=True):
        assert torch.allclose(all_records.backward[7], one.backward[0], atol=1e-6)
    assert model.training
    assert model[2].training
    assert not any(parameter.requires_grad for parameter in model.parameters())


class Named(nn.Module):
    """As a Transformer's: outputs by name."""

    def forward(self, records: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": records}


def test_whatever_is_attacked_must_fit_its_data(game: Game) -> None:
    _, members, _, _ = game
    with pytest.raises(ValueError, match="layers must be at most 2"):
        last_layer_gradients(network(), members, 3)
    with pytest.raises(ValueError, match=r"one value a class.*at least 50.*got \(256, 7\)"):
        outputs(network(classes=7), members)
    broken = network()
    with torch.no_grad():
        broken[0].weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="finite outputs"):
        outputs(broken, members)
    with pytest.raises(ValueError, match="before the softmax, it gives probabilities"):
        outputs(nn.Sequential(network(), nn.Softmax(1)), members)
    assert outputs(nn.Sequential(network(), nn.LogSoftmax(1)), members).shape == (len(members), CLASSES)
    with pytest.raises(ValueError, match="must return a tensor, one row a record, got dict"):
        outputs(Named(), members)
    with pytest.raises(ValueError, match="rule must be one of average, free, got 'best'"):
        LossThreshold("best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shadows"):
        Shadow(fitted, members, shadows=1)
    with pytest.raises(ValueError, match="folds"):
        WhiteBox(folds=1)
