"""What a watcher keeps of a run: lines on disk that survive a kill, a sample of weights, and a stated power."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import deniable as dn
from deniable.examination.recorded import RunRecord, RunWatcher, judge_run, read_recording, watch_run
from deniable.examination.recorded.checks.sampling_checks import spread_p_value
from deniable.examination.recorded.gradients import step_products
from deniable.examination.recorded.gradients.batch_gradients import RecordLoss, recompute_sums
from deniable.examination.recorded.run_record import ExaminedStep
from deniable.mechanisms import Adjacency, Training
from deniable.results.base import UnreadableError

RECORDS, STEPS, CLIP = 200, 12, 0.5
CLAIM = Training(1.0, 1.0, STEPS, Adjacency.ADD_REMOVE)


def new_model(width: int = 40) -> nn.Module:
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3))


def train(run: RunWatcher, steps: int = STEPS, noise: float = 1.0, bare: int | None = None) -> None:
    """Full-batch DP-SGD in a loop of one's own, whose step `bare` has no noise."""
    for step in range(steps):
        run.use(range(RECORDS))
        data = run._used.data
        sums = recompute_sums(run.model, [data[i] for i in range(RECORDS)], "cross-entropy", CLIP).clean
        for p, total in zip(run.model.parameters(), sums, strict=True):
            p.grad = (total + (0.0 if step == bare else noise) * CLIP * torch.randn_like(p)) / RECORDS
        run._optimizer.inner.step()


def watched(budget: float | str = 1.0, path: Path | None = None, seed: int = 0, width: int = 40) -> RunWatcher:
    torch.manual_seed(seed)
    data = TensorDataset(torch.randn(RECORDS, 6), torch.randint(0, 3, (RECORDS,)))
    model = new_model(width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return watch_run(model, optimizer, data, clip=CLIP, divisor=RECORDS, budget=budget, path=path)


def test_a_loop_tells_its_records_and_a_block_ends_the_watch() -> None:
    with watched() as run:
        train(run)
    for p in run.model.parameters():
        p.data.add_(1.0)  # after the training: no business of the run
    found = dn.examine(run, claimed=CLAIM)
    assert (found.verdict, found.examined_steps) == ("consistent", STEPS)
    assert dn.examine(run, claimed=CLAIM) == found


def test_a_watcher_leaves_the_training_as_it_is() -> None:
    """Its own random numbers are not taken from the training's."""
    run = watched()
    train(run, steps=3)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(RECORDS, 6), torch.randint(0, 3, (RECORDS,)))
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        sums = recompute_sums(model, list(data), "cross-entropy", CLIP).clean
        for p, total in zip(model.parameters(), sums, strict=True):
            p.grad = (total + CLIP * torch.randn_like(p)) / RECORDS
        optimizer.step()
    for mine, theirs in zip(model.parameters(), run.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_killed_run_leaves_its_complete_steps(tmp_path: Path) -> None:
    place = tmp_path / "run.jsonl"
    program = (
        "import os, pathlib, sys; sys.path.insert(0, sys.argv[2]); import test_recording as t; "
        "run = t.watched(path=pathlib.Path(sys.argv[1])); t.train(run, steps=5); os.kill(os.getpid(), 9)"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", program, str(place), here], check=False)
    assert done.returncode == -9
    record = read_recording(place)
    assert (len(record.batches), len(record.steps), record.ended) == (5, 5, False)
    found = dn.examine(place, claimed=CLAIM)
    assert found.verdict == "cannot judge"
    assert "ends after step 5, before the watch was over" in found.verdict_text

    text = place.read_bytes()
    place.write_bytes(text[:-20])  # within the last line
    assert len(read_recording(place).batches) == 4
    second = text.index(b"\n") + 20
    place.write_bytes(text[:second] + b"\x00" + text[second:])
    with pytest.raises(UnreadableError, match="line 2"):
        read_recording(place)
    with pytest.raises(ValueError, match="there already"):
        watched(path=place)
    with pytest.raises(UnreadableError, match="cannot be read"):
        dn.examine(tmp_path / "none.jsonl", claimed=CLAIM)


def test_a_cut_recording_still_shows_a_fault(tmp_path: Path) -> None:
    run = watched(path=tmp_path / "run.jsonl")
    train(run, steps=4, noise=0.5)
    run.__exit__(KeyError, KeyError(), None)  # a block that ends by an error
    assert dn.examine(tmp_path / "run.jsonl", claimed=CLAIM).verdict == "violated"


def test_a_bare_step_is_seen_though_it_is_not_recomputed() -> None:
    """A model with more weights than its batch has records: noise is longer than any clipped sum."""
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(20, 6), torch.randint(0, 3, (20,)))
    model = nn.Linear(600, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = watch_run(model, optimizer, data, clip=CLIP, divisor=20, budget=0.0, batch_loss=flat_loss)
    for step in range(STEPS):
        run.use(range(20))
        for p in model.parameters():
            p.grad = (0.0 if step == 7 else 1.0) * CLIP * torch.randn_like(p) / 20
        optimizer.step()
    found = judge_run(run.record(), CLAIM)
    assert found.verdict == "violated"
    assert "in 1 of 11 steps that were not recomputed: in step 8 " in found.verdict_text


def flat_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    return 0.0 * model(torch.zeros(1, 600)).sum()


def test_a_large_model_is_looked_at_by_a_sample_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_products, "_EXAMINED_WEIGHTS", 900)
    monkeypatch.setattr(step_products, "_LEAST_EXAMINED", 3)
    good, bad = watched(width=300), watched(seed=1, width=300)
    train(good)
    train(bad, noise=0.5)
    assert judge_run(good.record(), CLAIM, confidence=0.9999).verdict == "consistent"  # the sample differs each time
    sizes = good.record().steps[0].sizes
    assert sizes[3] == 3
    assert sum(sizes) < 900
    assert judge_run(bad.record(), CLAIM).verdict == "violated"


@pytest.mark.parametrize("together", [True, False])
def test_sums_are_those_of_each_record_alone(together: bool) -> None:
    torch.manual_seed(5)
    model, loss = new_model(), RecordLoss()
    loss.together = together
    items = [(torch.randn(6), torch.tensor(i % 3)) for i in range(7)]
    places = [None, torch.tensor([0, 4]), torch.tensor([1, 5, 30]), None]
    for clip in (0.3, [0.1, 0.2, 0.3, 0.4]):
        found, expected = recompute_sums(model, items, loss, clip, places), _naive_sums(model, items, clip)
        for part, full, at in zip(found.clean, expected, places, strict=True):
            wanted = full if at is None else full.flatten()[at]
            assert torch.allclose(part, wanted, atol=1e-6)


def _naive_sums(model: nn.Module, items: list[tuple[Tensor, Tensor]], clip: float | list[float]) -> list[Tensor]:
    total = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in items:
        model.zero_grad()
        nn.functional.cross_entropy(model(x[None]), y[None]).backward()
        own = [p.grad for p in model.parameters()]
        whole = sum(float(g.square().sum()) for g in own) ** 0.5
        for k, g in enumerate(own):
            norm, most = (float(g.norm()), clip[k]) if isinstance(clip, list) else (whole, clip)
            total[k] += g * min(1.0, most / norm)
    return total


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    """Records that differ whenever they are read."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.randn(6), torch.tensor(index % 3)


def test_records_that_change_are_no_fault_of_the_training() -> None:
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Augmented(), batch_size=20)
    run = watch_run(model, optimizer, loader, clip=CLIP, divisor=20)
    for features, labels in loader:
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
    found = dn.examine(run, claimed=Training(1.0, 1.0, 1, Adjacency.ADD_REMOVE))
    assert found.verdict == "cannot judge"
    assert "differs between two looks" in found.verdict_text


def fake_record(noise: float, random: np.random.Generator, steps: int = 8, weights: int = 500) -> RunRecord:
    """Statistics as a full-batch run with this share of the claimed noise has them."""
    examined = tuple(
        ExaminedStep(
            number=k,
            batch=10,
            residual=(squares := float(noise**2 * random.chisquare(weights)),),
            sizes=(weights,),
            gram=(squares, *(float(noise * random.standard_normal()) for _ in range(2)), 1.0, 0.0, 1.0),
            clip=1.0,
            longest=1.0,
        )
        for k in range(steps)
    )
    sizes = (10,) * steps
    return RunRecord(
        records=10,
        weights=weights,
        batches=sizes,
        draws=sizes[:1] * 10,
        divisors=(10.0,) * steps,
        steps=examined,
        cosines=(),
        watched_weights=weights,
        moves=(0.0,) * (steps - 1),
        final_move=0.0,
        final_along_gradient=None,
    )


def test_the_power_is_what_is_stated() -> None:
    random, claim = np.random.default_rng(1), Training(1.0, 1.0, 8, Adjacency.ADD_REMOVE)
    visible = judge_run(fake_record(1.0, random), claim).least_visible_noise
    assert visible is not None
    assert 0.9 < visible < 1.0
    seen = [judge_run(fake_record(visible, random), claim) for _ in range(200)]
    caught = sum(found.verdict == "violated" for found in seen)
    assert caught >= 181  # of 200 at 95 % or more: fewer has probability .3 %
    assert f"below {visible:.3g} of the claimed one would be seen with probability 95 %" in seen[0].power_text


@pytest.mark.parametrize(("records", "steps", "rate"), [(600, 2, 0.02), (1000, 20, 0.05), (300, 24, 0.1)])
def test_rare_draws_are_no_passes(records: int, steps: int, rate: float) -> None:
    random = np.random.default_rng(2)
    p_values = [spread_p_value(random.binomial(steps, rate, records), steps, rate) for _ in range(1000)]
    assert np.mean(np.array(p_values) < 0.01) < 0.02
    assert spread_p_value(np.full(1000, 5), 100, 0.05) < 1e-6  # passes


class People(Dataset[dict[str, Tensor]]):
    """Each item is a person with one to three visits, of a form that no default knows."""

    def __len__(self) -> int:
        return 30

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(index)
        visits = 1 + index % 3
        return {"visits": torch.randn(visits, 6, generator=generator), "sick": torch.full((visits,), index % 3)}


def loss_of_a_person(model: nn.Module, batch: list[dict[str, Tensor]]) -> Tensor:
    (person,) = batch
    return nn.functional.cross_entropy(model(person["visits"]), person["sick"])


@pytest.mark.parametrize(("noise", "verdict"), [(1.0, "consistent"), (0.5, "violated")])
def test_the_unit_may_be_a_person_with_several_records(noise: float, verdict: str) -> None:
    torch.manual_seed(6)
    model, people = new_model(), People()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(people, batch_size=30, collate_fn=list)
    run = watch_run(model, optimizer, loader, batch_loss=loss_of_a_person, clip=CLIP, divisor=30, budget="100%")
    for _ in range(STEPS):
        for batch in loader:
            total = [torch.zeros_like(p) for p in model.parameters()]
            for person in batch:
                own = torch.autograd.grad(loss_of_a_person(model, [person]), list(model.parameters()))
                norm = torch.stack([g.norm() for g in own]).norm()
                for t, g in zip(total, own, strict=True):
                    t.add_(g * min(1.0, CLIP / float(norm)))
            for p, t in zip(model.parameters(), total, strict=True):
                p.grad = (t + noise * CLIP * torch.randn_like(p)) / 30
            optimizer.step()
    assert dn.examine(run, claimed=CLAIM, confidence=0.999).verdict == verdict


def test_a_claim_for_other_neighbours_is_told() -> None:
    run = watched()
    train(run)
    found = dn.examine(run, claimed=Training(1.0, 1.0, STEPS, Adjacency.REPLACE))
    assert found.verdict == "violated"
    assert "for add-remove neighbours: of replace neighbours it is relative to 2 C" in found.verdict_text


def test_records_carry_their_numbers() -> None:
    data = dn.index_records(TensorDataset(torch.randn(9, 6), torch.arange(9) % 3))
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=3, shuffle=True)
    run = watch_run(model, optimizer, loader, clip=CLIP, divisor=3)
    seen: list[int] = []
    for numbers, (features, labels) in loader:
        assert torch.equal(torch.stack([data.records[int(i)][0] for i in numbers]), features)
        run.use(numbers)
        seen += numbers.tolist()
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
    assert sorted(seen) == list(range(9))
    assert run.record().draws == (1,) * 9


def test_lines_that_are_missing_or_written_twice_are_named(tmp_path: Path) -> None:
    place = tmp_path / "run.jsonl"
    run = watched(path=place)
    train(run, steps=5)
    run.record()
    lines = place.read_bytes().splitlines(keepends=True)
    for kept, named in (
        ([*lines[:3], *lines[4:]], "line 4 holds step 4 where step 3 belongs"),
        ([*lines[:3], lines[2], *lines[3:]], "line 4 holds step 2 where step 3 belongs"),
        ([*lines, lines[0]], f"line {len(lines) + 1} belongs to another recording"),
    ):
        place.write_bytes(b"".join(kept))
        with pytest.raises(UnreadableError, match=named):
            read_recording(place)
