"""`dn.attack` with shadow models: side by side, kept and resumed, below the proven bound, honest about its shadows."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

from msgspec import structs
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from torch import nn

import deniable as dn
from deniable.adversaries import ShadowTraining
from deniable.adversaries.shadow_models import pool_of
from deniable.cli.attack_command import _side_by_side
from deniable.data import Dataset, from_arrays, import_function
from deniable.report.words import attack_words
from deniable.results import read_result
from deniable.results.attack_result import AttackResult, MemberExposure
from deniable.store import StoreError
from deniable.training.attacked.targets import TargetSettings, fit

COUNT = 400


def small() -> nn.Module:
    """Two dense layers."""
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))


def noisy_records(count: int, seed: int) -> Dataset:
    """Four classes that twenty numbers tell in part."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, 20)).astype(np.float32)
    odds = features @ np.random.default_rng(1).normal(size=(20, 4)) + generator.normal(0, 3, (count, 4))
    return from_arrays("noisy", features, odds.argmax(1))


def trained(seed: int, **changed: Any) -> tuple[nn.Module, Dataset, Dataset]:
    """A model, its members and others."""
    records = noisy_records(2 * COUNT + 50, seed)
    parts = np.split(np.arange(len(records)), [COUNT, 2 * COUNT])
    members, others, validation = (records.take(part) for part in parts)
    settings = replace(TargetSettings(small, learning_rate=0.003, batch=50, epochs=30, patience=None), **changed)
    return fit(settings, members, validation, seed).model, members, others


@pytest.fixture(scope="module")
def overfitted() -> tuple[nn.Module, Dataset, Dataset]:
    return trained(0)


@pytest.fixture(scope="module")
def found(overfitted: tuple[nn.Module, Dataset, Dataset]) -> AttackResult:
    return dn.attack(*overfitted, attack="all", shadows=16, repeats=1)


def test_all_attacks_are_shown_side_by_side(found: AttackResult) -> None:
    assert {row.name for row in found.attacks} == {
        "lira", "lira-offline", "rmia", "rmia-offline", "bayes", "bayes-offline", "threshold", "quantile", "whitebox",
    }  # fmt: skip
    rows = {row.name: row for row in found.attacks}
    judged = rows[found.judged[0]]
    assert judged.auc.value > rows["threshold"].auc.value - 0.005
    for row in found.attacks:
        assert row.auc.low <= row.auc.value <= row.auc.high
        assert [limits.fpr for limits in row.tpr] == [0.001, 0.01]
        assert all(limits.low <= limits.value <= limits.high for limits in row.tpr)
        assert row.roc.fpr[-1] == row.roc.tpr[-1] == 1
    assert read_result(json.loads(found.to_json())) == found
    told = found.summary()
    assert attack_words.judged_name(found) in told
    assert "16 shadow models were trained by the vectorised engine on 400 of these records each" in told


def test_the_most_exposed_members_are_named(found: AttackResult) -> None:
    beliefs = [one.belief for one in found.most_exposed]
    assert len(beliefs) == 10
    assert beliefs == sorted(beliefs, reverse=True)
    assert beliefs[0] > 0.8
    assert all(0 <= one.number < COUNT for one in found.most_exposed)


def test_the_report_shows_every_attack(found: AttackResult, tmp_path: Path) -> None:
    found.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    for words in (
        "Attacks side by side",
        "Members found at few false alarms",
        "offline RMIA",
        "Bayesian LiRA",
        "Who is exposed",
    ):
        assert words in page


def test_shadows_are_kept_and_reused(overfitted: tuple[nn.Module, Dataset, Dataset], tmp_path: Path) -> None:
    asked: dict[str, Any] = {"shadows": 20, "repeats": 1, "training": ShadowTraining(epochs=2)}
    done: list[tuple[int, int]] = []
    first = dn.attack(*overfitted, out=tmp_path, progress=lambda *told: done.append(told), **asked)
    assert done[-1] == (2, 2)
    again = dn.attack(*overfitted, out=tmp_path, resume=True, progress=lambda *told: done.append(told), **asked)
    assert done[3:] == [(2, 2)]
    assert again == first == dn.attack(*overfitted, **asked)


def test_shadows_are_reused_between_attacks(overfitted: tuple[nn.Module, Dataset, Dataset], tmp_path: Path) -> None:
    """Another attack, or more repeats, train no shadow again, and find what they would in a folder of their own."""
    asked: dict[str, Any] = {"shadows": 4, "training": ShadowTraining(epochs=2)}
    dn.attack(*overfitted, attack="lira", repeats=1, out=tmp_path, **asked)
    for attack, repeats, known, blocks in (("rmia", 2, 1, 1), ("all", 1, 1, 3), ("strongest", 2, 1, 1)):
        done: list[tuple[int, int]] = []
        change: dict[str, Any] = {"attack": attack, "repeats": repeats} | asked
        reused = dn.attack(*overfitted, out=tmp_path, resume=True, progress=lambda *told: done.append(told), **change)  # noqa: B023
        assert (done[0], done[-1]) == ((known, blocks), (blocks, blocks))
        assert reused == dn.attack(*overfitted, **change)
    with pytest.raises(StoreError, match="begun with other settings"):
        dn.attack(*overfitted, out=tmp_path, resume=True, shadows=4, training=ShadowTraining(epochs=3))


def test_members_among_the_non_members_are_named(overfitted: tuple[nn.Module, Dataset, Dataset]) -> None:
    """Whoever gives one file twice, or files that overlap, must not hear that nothing was found."""
    model, members, others = overfitted
    with pytest.raises(ValueError, match="all of them are among the members"):
        dn.attack(model, members, members.take(np.arange(20)), attack="threshold")
    mixed = pool_of(others, members.take(np.arange(7)))
    warned = dn.attack(model, members, mixed, attack="threshold", repeats=1).warning
    assert warned is not None
    assert f"7 of {len(mixed)} non-members have exactly the values of a member" in warned
    assert dn.attack(model, members, others, attack="threshold", repeats=1).warning is None


@pytest.mark.parametrize("seed", range(3))
def test_an_attack_on_a_private_model_stays_below_the_proven_bound(seed: int) -> None:
    """A real DP-SGD training, attacked with shadows of the same noise; limits of 99.9 % for all rows together."""
    noise, epochs = 0.6, 20
    model, members, others = trained(seed, noise=noise, clip=1.0, epochs=epochs, learning_rate=0.01)
    recipe = ShadowTraining(epochs=epochs, batch=50, learning_rate=0.01, noise=noise, clip=1.0)
    result = dn.attack(model, members, others, training=recipe, shadows=16, repeats=1, confidence=0.999)
    assert result.proven is not None
    assert result.proven.epsilon is not None
    for row in result.attacks:
        for limits, bound in zip(row.tpr, result.proven.tpr, strict=True):
            assert limits.low <= bound.tpr
        assert row.advantage.low <= result.proven.advantage
        assert (row.epsilon_lower_bound.value or 0) <= result.proven.epsilon
    assert "The gap is no reserve" in attack_words.proven_sentence(result)


def test_a_model_without_the_noise_it_claims_exceeds_the_bound(overfitted: tuple[nn.Module, Dataset, Dataset]) -> None:
    claimed = ShadowTraining(epochs=1, batch=50, noise=8.0)
    own = dn.attack(*overfitted, shadows=16, repeats=1)
    judged = next(row for row in own.attacks if row.name == own.judged[0])
    told = dn.attack(*overfitted, training=claimed, shadows=4, repeats=1)
    assert told.proven is not None
    assert judged.advantage.low > told.proven.advantage
    beyond = structs.replace(told.attacks[0], advantage=judged.advantage, name=told.judged[0])
    exceeded = told.replace(attacks=(beyond,))
    said = attack_words.proven_sentence(exceeded)
    assert re.search("More than is proven (is|are) the advantage.*: the model was not trained as stated", said)
    people = MemberExposure(method="exact", delta=0.01, lira=(0.9,), observer=(0.6,), rank_correlation=None, surer=1)
    assert "overstates" in attack_words.exposure_sentence(told.replace(attacks=(), exposure=people))
    assert "overstates" not in attack_words.exposure_sentence(exceeded.replace(exposure=people))


def test_shadows_that_do_not_match_are_named(
    overfitted: tuple[nn.Module, Dataset, Dataset], found: AttackResult
) -> None:
    assert attack_words.shadow_caution(found) is None
    unlike = dn.attack(*overfitted, training=ShadowTraining(epochs=1), shadows=4, repeats=1)
    said = attack_words.shadow_caution(unlike)
    assert said is not None
    assert "do not match" in said
    model, members, others = overfitted
    few = dn.attack(model, members, others.take(np.arange(40)), training=ShadowTraining(epochs=1), shadows=4, repeats=1)
    assert "they were trained on 220 records, the target on 400" in str(attack_words.shadow_caution(few))


def test_shadows_that_learnt_nothing_are_named_though_their_gap_is_the_targets(found: AttackResult) -> None:
    assert found.shadows is not None
    assert found.shadows.accuracy_inside is not None
    assert found.shadows.accuracy_outside is not None
    inside, outside = found.shadows.accuracy_inside - 0.3, found.shadows.accuracy_outside - 0.3
    worse = structs.replace(found.shadows, accuracy_inside=inside, accuracy_outside=outside)
    said = str(attack_words.shadow_caution(found.replace(shadows=worse)))
    assert f"are right {100 * inside:.1f} % of the time on their own records" in said


def test_no_figure_side_by_side_is_broken_over_two_lines(found: AttackResult) -> None:
    """On 80 columns, with limits as long as they get."""
    rows = tuple(
        structs.replace(row, advantage=structs.replace(row.advantage, low=-0.111, high=0.222)) for row in found.attacks
    )
    printed = Console(width=80, file=StringIO(), record=True)
    printed.print(_side_by_side(found.replace(attacks=rows)))
    assert printed.export_text().count("-0.111..0.222") == len(rows)


def test_an_estimator_is_attacked_with_shadows_of_its_own_kind(
    overfitted: tuple[nn.Module, Dataset, Dataset],
) -> None:
    _, members, others = overfitted
    model = LogisticRegression(max_iter=500).fit(members.features, members.labels)
    result = dn.attack(model, members, others, shadows=8, repeats=1)
    assert result.shadows is not None
    assert result.shadows.trained_by == "own"
    assert result.accuracy.members > result.accuracy.non_members
    with pytest.raises(ValueError, match="sees gradients"):
        dn.attack(model, members, others, attack="whitebox")
    with pytest.raises(ValueError, match="training is about networks"):
        dn.attack(model, members, others, training=ShadowTraining(epochs=2, noise=1.0))


def own_training(records: Dataset, seed: int) -> nn.Module:
    """As a user writes it."""
    settings = TargetSettings(small, learning_rate=0.003, batch=50, epochs=10, patience=None)
    return fit(settings, records, records, seed).model


def test_a_training_of_ones_own_makes_the_shadows(overfitted: tuple[nn.Module, Dataset, Dataset]) -> None:
    result = dn.attack(*overfitted, attack="rmia", train=own_training, shadows=4, repeats=1)
    assert result.shadows is not None
    assert (result.shadows.trained_by, result.judged) == ("own", ("rmia",))
    with pytest.raises(ValueError, match="give one of them"):
        dn.attack(*overfitted, train=own_training, training=ShadowTraining())
    with pytest.raises(ValueError, match="shadows"):
        dn.attack(*overfitted, shadows=2)


def no_training(records: Dataset, seed: int) -> nn.Module:
    """As it fails on a machine that lacks something."""
    raise RuntimeError("no such device")


def test_what_a_users_code_raises_is_one_sentence(overfitted: tuple[nn.Module, Dataset, Dataset]) -> None:
    model, members, others = overfitted
    with pytest.raises(ValueError, match="training of a shadow model raised RuntimeError: no such device"):
        dn.attack(*overfitted, train=no_training, shadows=4, repeats=1)
    narrow = [from_arrays("narrow", one.features[:, 1:], one.labels) for one in (members, others)]
    with pytest.raises(ValueError, match=r"model cannot take records of shape \(19,\)"):
        dn.attack(model, *narrow, attack="threshold", repeats=1)
    with pytest.raises(ValueError, match="records of one shape"):
        dn.attack(model, members, narrow[1], repeats=1)


def test_worker_processes_find_modules_of_the_current_folder(
    overfitted: tuple[nn.Module, Dataset, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own training, named as module:function, over two processes."""
    (tmp_path / "own_shadows.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "def train(records, seed):\n"
        "    return LogisticRegression(max_iter=200).fit(records.features, records.labels)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    _, members, others = overfitted
    train = import_function("own_shadows:train")
    result = dn.attack(train(members, 0), members, others, train=train, shadows=4, repeats=1, processes=2)
    assert result.shadows is not None
    assert result.shadows.accuracy_inside is not None
