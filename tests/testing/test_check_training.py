"""One run of a training as a test: the cause, the line, the budget, wrong use."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.examination.recorded import RunWatcher
from deniable.examination.recorded.gradients.batch_gradients import recompute_sums
from deniable.results import read_result
from deniable.results.run_result import CodePlace
from deniable.testing import false_alarm_rate, findings_of, message_of, read_seconds, sarif_document
from deniable.testing.cause_lines import BudgetSpentError, watch_code
from deniable.testing.check_training import check_training, spell_seconds
from deniable.testing.findings import sarif_result

RECORDS, RATE, STEPS = 200, 0.1, 12
CLAIM = dn.Training(noise=1.0, rate=RATE, steps=STEPS, adjacency="add-remove")
pytestmark = pytest.mark.filterwarnings("ignore:Secure RNG", "ignore:Full backward hook", "ignore:Optimal order")


class Poisson:
    def __iter__(self):
        for _ in range(STEPS):
            yield torch.nonzero(torch.rand(RECORDS) < RATE).flatten().tolist()

    def __len__(self) -> int:
        return STEPS


def train_own(noise: float = 1.0, shuffled: bool = False) -> RunWatcher:
    """A loop of one's own."""
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(RECORDS, 8), torch.randint(0, 3, (RECORDS,)))
    loader = DataLoader(data, batch_size=20, shuffle=True) if shuffled else DataLoader(data, batch_sampler=Poisson())
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = dn.watch_run(model, optimizer, loader, clip=1.0, divisor=20, budget=1.0)
    for features, labels in loader:  # the draw
        sums = recompute_sums(model, list(zip(features, labels, strict=True)), "cross-entropy", 1.0).clean
        for p, total in zip(model.parameters(), sums, strict=True):
            p.grad = (total + noise * torch.randn(p.shape)) / 20  # the draw of noise
        optimizer.step()  # the step
    return run


def train_opacus(noise: float = 1.0, poisson: bool = True) -> None:
    """A training that knows nothing of its test."""
    torch.manual_seed(4)
    data = TensorDataset(torch.randn(RECORDS, 8), torch.randint(0, 3, (RECORDS,)))
    network = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 3))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=20),
        noise_multiplier=noise,  # the noise
        max_grad_norm=1.0,
        poisson_sampling=poisson,  # the sampler
    )
    for _ in range(2):
        for features, labels in loader:  # Opacus' draw
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()  # Opacus' step


def line_with(comment: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.rstrip().endswith(f"  # {comment}"))


def blamed(found: dn.results.RunResult) -> list[tuple[str, int]]:
    return [(one.part, one.place.line) for one in findings_of(found) if one.place is not None]


def test_a_right_loop_is_consistent_and_has_no_findings() -> None:
    found = check_training(train_own, claimed=CLAIM)
    assert (found.verdict, findings_of(found)) == ("consistent", ())
    assert false_alarm_rate(found) == pytest.approx(0.001)


def test_too_little_noise_in_a_loop_of_ones_own_is_traced_to_where_it_is_drawn() -> None:
    found = check_training(lambda: train_own(0.4), claimed=CLAIM)
    assert found.verdict == "violated"
    assert blamed(found) == [("noise", line_with("the draw of noise"))]
    text = message_of(found)
    assert f"test_check_training.py:{line_with('the draw of noise')}: p.grad = (total + noise" in text
    assert re.search(r"the noise has 0\.(39|4)\d* x", text)
    assert "with probability at most 0.001" in text


def test_a_sampler_is_traced_to_where_the_loader_is_gone_through() -> None:
    claim = dn.Training(noise=1.0, rate=RATE, steps=10, adjacency="add-remove")
    found = check_training(lambda: train_own(shuffled=True), claimed=claim)
    assert blamed(found) == [("sampling", line_with("the draw"))]


def test_opacus_is_watched_by_itself_and_its_settings_are_blamed() -> None:
    claim = dn.Training(noise=1.0, rate=RATE, steps=20, adjacency="add-remove")
    assert check_training(train_opacus, claimed=claim).verdict == "consistent"
    assert blamed(check_training(lambda: train_opacus(0.5), claimed=claim)) == [("noise", line_with("the noise"))]
    shuffled = check_training(lambda: train_opacus(poisson=False), claimed=claim)
    assert blamed(shuffled) == [("sampling", line_with("the sampler"))]


def test_more_steps_than_claimed_are_traced_to_the_step() -> None:
    claim = dn.Training(noise=1.0, rate=RATE, steps=STEPS - 2, adjacency="add-remove")
    found = check_training(train_own, claimed=claim)
    assert found.verdict == "violated"
    assert blamed(found) == [("number of steps", line_with("the step"))]


def test_another_recipe_is_a_finding_too() -> None:
    found = check_training(lambda: train_own(2.0), claimed=CLAIM)
    assert found.verdict == "other recipe"
    assert [one.weight for one in findings_of(found)] == ["error"]


@pytest.fixture
def second_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by one second with every look at it: at the start, and before each step."""
    clock = count()
    monkeypatch.setattr("deniable.testing.cause_lines.perf_counter", lambda: float(next(clock)))


@pytest.mark.usefixtures("second_a_step")
def test_a_budget_ends_the_run_which_is_then_never_consistent() -> None:
    found = check_training(train_own, claimed=CLAIM, budget="5 s")
    assert (found.verdict, found.steps, found.input.steps) == ("cannot judge", 5, STEPS)
    assert found.unfinished.startswith(f"the budget of 5 s ended the run after 5 of {STEPS} steps")
    assert found.unfinished.endswith("all of them take about 12 s")
    assert "so far" in message_of(found)
    assert [one.weight for one in findings_of(found)] == ["warning"]


@pytest.mark.usefixtures("second_a_step")
def test_a_violation_within_the_budget_stays_one() -> None:
    found = check_training(lambda: train_own(0.3), claimed=CLAIM, budget=5)
    assert found.verdict == "violated"
    assert "ended the run" in message_of(found)


@pytest.mark.usefixtures("second_a_step")
def test_a_budget_that_is_spent_before_anything_is_seen_is_refused() -> None:
    with pytest.raises(ValueError, match="budget must be longer"):
        check_training(train_own, claimed=CLAIM, budget=0.5)


def test_wrong_use_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"dn\.watch_run"):
        check_training(lambda: None, claimed=CLAIM)
    with pytest.raises(ValueError, match="records, seed: give lambda"):
        check_training(lambda records, seed: None, claimed=CLAIM)  # type: ignore[misc]
    with pytest.raises(ValueError, match=r"dn\.Training\(noise"):
        check_training(train_own, claimed=dn.Epsilon(1.0, 1e-5))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a function that trains"):
        check_training(3, claimed=CLAIM)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="made 2 runs"):
        check_training(lambda: (train_own(), train_own()), claimed=CLAIM)
    with pytest.raises(ValueError, match="'5 min'"):
        check_training(train_own, claimed=CLAIM, budget="soon")


def test_everything_is_undone_also_after_a_failure() -> None:
    before = DataLoader.__iter__, PrivacyEngine.make_private

    def fail() -> None:
        raise KeyError("the training's own")

    with pytest.raises(KeyError):
        check_training(fail, claimed=CLAIM)
    assert (DataLoader.__iter__, PrivacyEngine.make_private) == before
    with pytest.raises(BudgetSpentError), watch_code(-1.0, "cross-entropy") as seen:
        torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1).step()
    assert seen.spent
    torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1).step()


def test_the_document_is_read_again_with_its_lines(tmp_path: Path) -> None:
    found = check_training(lambda: train_own(0.4), claimed=CLAIM)
    assert read_result(json.loads(found.save(tmp_path / "run.json").read_text())) == found
    assert any(isinstance(check.place, CodePlace) for check in found.checks)


def test_sarif_has_what_code_hosts_need() -> None:
    found = check_training(lambda: train_own(0.4), claimed=CLAIM)
    document = sarif_document(sarif_result(one, "test_it.py::test_private") for one in findings_of(found))
    (run,) = document["runs"]
    (result,) = run["results"]
    assert document["version"] == "2.1.0"
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == line_with("the draw of noise")
    assert place["artifactLocation"]["uri"].endswith("tests/testing/test_check_training.py")
    assert result["properties"]["falseAlarmRate"] == pytest.approx(0.001)
    assert sarif_document([])["runs"][0]["results"] == []


@given(st.floats(0.01, 1e5), st.sampled_from(["s", "min", "h"]))
def test_budgets_are_read(amount: float, unit: str) -> None:
    seconds = {"s": 1, "min": 60, "h": 3600}[unit] * float(f"{amount:.4f}")
    assert read_seconds(f"{amount:.4f} {unit}") == pytest.approx(seconds)
    assert read_seconds(seconds) == seconds
    assert read_seconds(spell_seconds(seconds)) == pytest.approx(seconds, rel=0.06)
