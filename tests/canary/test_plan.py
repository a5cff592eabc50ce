"""Plans of canaries: coins before the training, insertion, scores with identifiers, one file, wrong use refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.canary import CanaryPlan, canaries, read_plan
from deniable.canary.gradient_canaries import GradientCanaries
from deniable.mechanisms import Adjacency, Training
from deniable.results.base import UnreadableError

CLAIM = Training(1.0, 0.05, 40, Adjacency.ADD_REMOVE)
SHAPES = [(40, 30), (40,)]


def play(plan: CanaryPlan, noise: float = 1.0, common: float = 0.0, seed: int = 0) -> GradientCanaries:
    """A loop of one's own, with zero gradients, noise of this size and a share of it common to all coordinates."""
    random = torch.Generator().manual_seed(seed)
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    run = plan.gradients(parameters, clip=2.0, noise=CLAIM.noise, rate=CLAIM.rate)
    for _ in range(CLAIM.steps):
        sums = [torch.ones(shape) for shape in SHAPES]
        batch = torch.nonzero(torch.rand(plan.records, generator=random) < CLAIM.rate).flatten().tolist()
        run.add(sums, batch)
        shared = torch.randn((), generator=random) * common**0.5
        run.observe([s + 2.0 * noise * (_normal(s, random) * (1 - common) ** 0.5 + shared) for s in sums])
    return run


def _normal(like: Tensor, random: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=random)


def test_coins_are_fair_fresh_and_apart_from_each_other() -> None:
    plans = [canaries(5000, 2000) for _ in range(2)]
    assert (plans[0].coins != plans[1].coins).any()
    for plan in plans:
        assert abs(plan.coins.sum() - 1000) < 160
        assert len(set(plan.carriers.tolist())) == len(set(plan.identifiers)) == 2000


@pytest.mark.parametrize("kind", ["gradient", "spread-gradient"])
def test_a_canary_adds_its_norm_where_its_carrier_is_drawn_and_nothing_else(kind: str) -> None:
    plan = canaries(100, 15, kind=kind)
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    run = plan.gradients(parameters, clip=2.0, noise=1.0, rate=0.5)
    inside = int(plan.carriers[np.flatnonzero(plan.coins)[0]])
    sums = [torch.zeros(shape) for shape in SHAPES]
    run.add(sums, [inside, *(int(c) for c in plan.carriers[~plan.coins])])
    assert torch.cat([s.flatten() for s in sums]).norm() == pytest.approx(2.0)


def test_scores_are_the_log_likelihood_ratios() -> None:
    """Against the sum of every step's ratio of densities, by hand."""
    plan, parameters = canaries(50, 5), [nn.Parameter(torch.zeros(9))]
    run = plan.gradients(parameters, clip=1.0, noise=0.7, rate=0.1)
    expected = np.zeros(5)
    for step in range(3):
        sums = [torch.full((9,), float(step))]
        run.add(sums, range(50))
        noisy = [s + torch.linspace(-1, 1, 9) for s in sums]
        place = run._place[:, 0]
        seen = run._sign[:, 0] * (noisy[0].numpy()[place] - step)
        ratio = np.exp(-((seen - 1) ** 2) / (2 * 0.7**2)) / np.exp(-(seen**2) / (2 * 0.7**2))
        expected += np.log(0.9 + 0.1 * ratio)
        run.observe(noisy)
    plan.score(run)
    np.testing.assert_allclose(plan.scores, expected, rtol=1e-5, atol=1e-9)


def test_a_right_training_is_consistent_and_a_quiet_one_violated() -> None:
    for noise, verdict in ((1.0, "consistent"), (0.1, "violated")):
        plan = canaries(2000, 1000)
        plan.score(play(plan, noise))
        assert plan.verdict(CLAIM, delta=1e-5).verdict == verdict
        assert plan.verdict(CLAIM, delta=1e-5, method="order-statistics").verdict == verdict


def test_shared_noise_is_seen_and_withdraws_order_statistics() -> None:
    plan = canaries(2000, 500)
    plan.score(play(plan, common=0.3))
    assert plan.independence is not None
    assert plan.independence < 1e-3
    bound = plan.verdict(CLAIM, delta=1e-5, method="order-statistics").measured.epsilon.lower_bound
    assert not bound.valid
    assert bound.value == 0


def test_independence_is_doubted_as_rarely_as_stated() -> None:
    found = []
    for seed in range(60):
        plan = canaries(200, 100)
        plan.score(play(plan, seed=seed))
        found.append(plan.independence)
    assert sum(p is not None and p < 0.05 for p in found) <= 8  # of 60 at 5 %: more has probability 1 %


def test_one_file_holds_all_and_is_judged_alike(tmp_path: Path) -> None:
    plan = canaries(2000, 300)
    plan.score(play(plan, 0.2))
    judged = plan.verdict(CLAIM, delta=1e-5)
    place = plan.save(tmp_path / "plan.json")
    assert read_plan(place).verdict() == judged
    place.write_text(place.read_text().replace("true", "false", 1))
    with pytest.raises(ValueError, match="checksum"):
        read_plan(place)
    place.write_text('{"format": "another"}')
    with pytest.raises(UnreadableError, match="canary plan"):
        read_plan(place)


def labelled(records: int = 120) -> TensorDataset:
    random = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(records, 6, generator=random), torch.randint(0, 3, (records,), generator=random))


@pytest.mark.parametrize("kind", ["mislabelled", "out-of-distribution"])
def test_records_stand_in_the_place_of_records(kind: str) -> None:
    base = labelled()
    plan = canaries(base, 40, kind=kind, classes=3)
    assert plan.dataset is not None
    assert len(plan.dataset) == len(base)
    for i in range(len(base)):
        same = torch.equal(plan.dataset[i][0], base[i][0]) and int(plan.dataset[i][1]) == int(base[i][1])
        place = np.flatnonzero(plan.carriers == i)
        assert same == (not (len(place) and plan.coins[place[0]]))
    assert next(iter(DataLoader(plan.dataset, batch_size=120)))[0].shape == (120, 6)


def test_a_model_that_knows_its_records_by_heart_is_violated() -> None:
    base = labelled(4000)
    plan = canaries(base, 1000, kind="out-of-distribution", classes=3)
    assert plan.dataset is not None
    known = {plan.dataset[i][0].numpy().tobytes() for i in range(4000)}

    class Lookup(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            return torch.tensor([[float(row.numpy().tobytes() in known)] for row in features])

    def loss(model: nn.Module, items: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        return 1 - model(torch.stack([features for features, _ in items]))[:, 0]

    plan.score(Lookup(), loss=loss)
    assert plan.verdict(dn.Epsilon(0.5, 1e-5)).verdict == "violated"


def test_new_tokens_keep_the_form_of_an_item() -> None:
    items = [{"input_ids": torch.arange(8), "labels": torch.arange(8), "attention_mask": torch.ones(8)}] * 6
    plan = canaries(items, 4, kind="new-token", vocabulary=50)
    assert plan.dataset is not None
    for made in plan.dataset.items:
        assert made["input_ids"].shape == (8,)
        assert torch.equal(made["input_ids"], made["labels"])
        assert int(made["input_ids"].max()) < 50


def test_wrong_use_is_refused_with_what_to_do() -> None:
    plan, parameters = canaries(50, 10), [nn.Parameter(torch.zeros(9))]
    with pytest.raises(ValueError, match="room for 9 canaries"):
        plan.gradients(parameters, clip=1.0, noise=1.0, rate=0.1)
    for scores in ([0.0] * 10, np.zeros(10), torch.zeros(10)):
        with pytest.raises(ValueError, match="identifiers"):
            plan.score(scores)
    with pytest.raises(ValueError, match="canary-000000"):
        plan.score({})
    with pytest.raises(ValueError, match=r"plan\.attach"):
        plan.score(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="no scores yet"):
        plan.verdict(CLAIM, delta=1e-5)
    plan.score(dict.fromkeys(plan.identifiers, 0.5))
    with pytest.raises(ValueError, match="scored already"):
        plan.score(dict.fromkeys(plan.identifiers, 0.7))
    late = canaries(labelled(), 20, kind="mislabelled", classes=3)
    with pytest.raises(ValueError, match=r"train on plan\.dataset"):
        late.score(nn.Linear(6, 3))
    with pytest.raises(ValueError, match="one canary for each"):
        canaries(10, 11)
    with pytest.raises(ValueError, match="classes is missing"):
        canaries(labelled(), 20, kind="mislabelled")


def test_another_plans_run_and_a_run_without_steps_are_refused() -> None:
    plan, other = canaries(50, 5), canaries(50, 5)
    parameters = [nn.Parameter(torch.zeros(9))]
    run = plan.gradients(parameters, clip=1.0, noise=1.0, rate=0.1)
    with pytest.raises(ValueError, match="no step"):
        plan.score(run)
    with pytest.raises(ValueError, match="another plan"):
        other.score(run)
    with pytest.raises(ValueError, match="add"):
        run.observe([torch.zeros(9)])


def test_coins_between_two_trainings_of_a_model_are_refused() -> None:
    model = nn.Linear(9, 2)
    model(torch.ones(1, 9)).sum().backward()  # the first training
    with pytest.raises(ValueError, match="trained before the canaries"):
        canaries(50, 5).gradients(model.parameters(), clip=1.0, noise=1.0, rate=0.1)
    model.zero_grad()
    assert canaries(50, 5).gradients(model.parameters(), clip=1.0, noise=1.0, rate=0.1).steps == 0


def test_claimed_steps_without_canaries_are_refused_also_from_a_file(tmp_path: Path) -> None:
    plan = canaries(300, 100)
    plan.score(play(plan))
    longer = Training(CLAIM.noise, CLAIM.rate, CLAIM.steps + 1, CLAIM.adjacency)
    for kept in (plan, read_plan(plan.save(tmp_path / "plan.json"))):
        with pytest.raises(ValueError, match=r"in 40 of the 41 claimed steps.*claim steps=40"):
            kept.verdict(longer, delta=1e-5)


def test_a_model_that_may_have_been_trained_before_is_named() -> None:
    plan = canaries(50, 20)
    plan.score(dict.fromkeys(plan.identifiers, 0.5))
    bound = plan.verdict(CLAIM, delta=1e-5).measured.epsilon.lower_bound
    assert any("new when the coins were tossed" in assumed.text for assumed in bound.assumptions)
