"""One watched run: right ones pass, broken ones are told with their cause, and false alarms are as rare as stated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.examination.recorded import RunWatcher, judge_run, watch_run
from deniable.examination.recorded.gradients import other_records
from deniable.examination.recorded.gradients.batch_gradients import recompute_sums
from deniable.examination.recorded.recording import read_recording
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Adjacency, Training
from deniable.results import read_result
from deniable.results.run_result import RunResult

RECORDS, RATE, CLIP, STEPS = 300, 0.1, 0.5, 24


class PoissonBatches:
    """Every record by its own coin, in every step."""

    def __init__(self, random: torch.Generator, rate: float = RATE) -> None:
        self.random, self.rate = random, rate

    def __iter__(self) -> Iterable[list[int]]:  # type: ignore[override]
        for _ in range(STEPS):
            yield torch.nonzero(torch.rand(RECORDS, generator=self.random) < self.rate).flatten().tolist()

    def __len__(self) -> int:
        return STEPS


def collate(items: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    if not items:
        return torch.empty(0, 8), torch.empty(0, dtype=torch.long)
    return torch.stack([x for x, _ in items]), torch.stack([y for _, y in items])


def train(fault: str = "", seed: int = 0, budget: float = 1.0, path: Path | None = None) -> RunWatcher:
    """DP-SGD in a loop of one's own, with one fault."""
    random, noises = (torch.Generator().manual_seed(seed + shift) for shift in (0, 10_000))
    data = TensorDataset(
        2 * torch.randn(RECORDS, 8, generator=random), torch.randint(0, 3, (RECORDS,), generator=random)
    )
    rate = 2 * RATE if fault == "rate" else RATE
    shuffled = DataLoader(data, batch_size=30, shuffle=True, generator=random, collate_fn=collate)
    loader = (
        shuffled
        if fault == "shuffled"
        else DataLoader(
            data,
            batch_sampler=PoissonBatches(random, rate),
            collate_fn=collate,  # type: ignore[arg-type]
        )
    )
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    divisor = RATE * RECORDS
    run = watch_run(model, optimizer, loader, clip=CLIP, divisor=divisor, budget=budget, path=path)
    noise = {"half": 0.5, "tiny": 0.05, "more": 1.5}.get(fault, 1.0)
    for epoch in range(1 if fault != "shuffled" else 3):
        for step, (features, labels) in enumerate(loader):
            if epoch * 10 + step >= STEPS:
                break
            clip = 1e9 if fault == "no clipping" else CLIP
            items = list(zip(features, labels, strict=True))
            sums = recompute_sums(model, items, "cross-entropy", clip).clean
            if fault == "same noise":
                noises.manual_seed(7)
            own = max(1, len(items)) if fault == "own size" else divisor
            for place, (p, total) in enumerate(zip(model.parameters(), sums, strict=True)):
                part = 0.0 if fault == "bare bias" and place == 3 else noise
                p.grad = (total + CLIP * part * torch.randn(p.shape, generator=noises)) / own
            optimizer.step()
    if fault == "clean end":
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.tensors[0]), data.tensors[1]).backward()
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(0.5 * p.grad)
    return run


def judged(run: RunWatcher, steps: int = STEPS) -> RunResult:
    found = dn.examine(run, claimed=Training(1.0, RATE, steps, Adjacency.ADD_REMOVE))
    assert isinstance(found, RunResult)
    return found


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("half", r"noise has 0\.[45]\d* x"),
        ("tiny", r"noise has 0\.0[45]\d* x"),
        ("no clipping", "not clipped"),
        ("own size", "batch's own size"),
        ("same noise", "fresh noise"),
        ("shuffled", "shuffled"),
        ("rate", r"rate 0\.[12]\d* in place"),
        ("clean end", "without noise"),
        ("bare bias", r"no noise on 2\.bias"),
    ],
)
def test_a_fault_is_told_with_its_cause(fault: str, cause: str) -> None:
    found = judged(train(fault))
    assert found.verdict == "violated"
    said = [check.observed for check in found.checks if check.outcome == "less private"]
    assert len(said) == 1
    assert re.search(cause, said[0])


def test_harmless_differences_are_another_recipe() -> None:
    assert judged(train("more")).verdict == "other recipe"
    assert judged(train(), steps=STEPS + 1).verdict == "cannot judge"  # its own records may have stopped it
    assert judged(train(), steps=STEPS - 1).verdict == "violated"


def test_false_alarms_are_as_rare_as_stated() -> None:
    found = [judged(train(seed=seed)).verdict for seed in range(20)]
    assert found.count("consistent") + found.count("cannot judge") >= 18  # all other words are false
    assert sum(verdict != "consistent" for verdict in found) <= 3  # of 20 at 5 %: more has probability 1.6 %


def test_dropout_cannot_be_judged() -> None:
    data = TensorDataset(torch.randn(20, 8), torch.randint(0, 3, (20,)))
    model = nn.Sequential(nn.Linear(8, 3), nn.Dropout(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=20)
    run = watch_run(model, optimizer, loader, clip=1.0, divisor=20)
    for features, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
    found = dn.examine(run, claimed=Training(1.0, 1.0, 1, Adjacency.ADD_REMOVE))
    assert found.verdict == "cannot judge"
    assert "Dropout" in str(found.verdict_text)


def test_what_is_kept_is_small_streams_to_disk_and_comes_back(tmp_path: Path) -> None:
    lines = tmp_path / "steps.jsonl"
    record = train(path=lines).record()
    assert len(lines.read_bytes().splitlines()) - 2 == len(record.steps) == STEPS
    again = read_recording(lines)
    assert again == record
    claim = Training(1.0, RATE, STEPS, Adjacency.ADD_REMOVE)
    found = judge_run(again, claim)
    assert found == judge_run(record, claim) == dn.examine(lines, claimed=claim)
    assert lines.stat().st_size < 2_500 * STEPS
    assert read_result(msgspec.json.decode(found.to_json())) == found


def test_the_budget_limits_what_is_recomputed() -> None:
    found = judged(train(budget=0.0))
    assert found.examined_steps == 1
    assert any("23 of 24" in what for what in found.not_shown)


def test_records_that_were_not_compared_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large model few records are looked at beside the batch, or none: a hidden one would not be seen."""
    assert not any("did not draw" in told for told in judged(train()).not_shown)
    monkeypatch.setattr(other_records, "_NUMBERS", 291 * 5)  # weights x records
    few = f"whether a step uses records that it did not draw ({RECORDS - 5:,} of {RECORDS:,} were not compared with it)"
    assert few in judged(train()).not_shown
    monkeypatch.setattr(other_records, "_NUMBERS", 290)
    none = judged(train())
    what = "whether a step uses records that it did not draw (none was compared with it)"
    assert what in none.not_shown
    assert none.verdict != "consistent" or what in none.verdict_text


def test_a_result_shows_itself(tmp_path: Path) -> None:
    found = judged(train("half"))
    assert found.summary().startswith("Violated.")
    assert found.pictures() == ("noise",)
    page = found.report(tmp_path / "run.html").read_text()
    assert "claimed standard deviation" in page


def test_wrong_use_is_refused() -> None:
    data = TensorDataset(torch.randn(20, 8), torch.randint(0, 3, (20,)))
    model = nn.Linear(8, 3)
    optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=5)
    with pytest.raises(ValueError, match="clip and divisor"):
        watch_run(model, optimizer, loader)
    run = watch_run(model, optimizer, loader, clip=1.0, divisor=5)
    with pytest.raises(ValueError, match="no step was watched"):
        run.record()
    model.weight.grad = torch.zeros_like(model.weight)
    with pytest.raises(ValueError, match=r"without a batch .* called before the loop"):
        optimizer.step()
    with pytest.raises(ValueError, match=r'such as \.1 or "10%"'):
        watch_run(model, optimizer, loader, clip=1.0, divisor=5, budget="ten %")
    with pytest.raises(ValueError, match="come from its loader"):
        run.use([1])
    told = watch_run(model, optimizer, data, clip=1.0, divisor=5)
    with pytest.raises(ValueError, match="from 0 to 19"):
        told.use([20])
    with pytest.raises(ValueError, match="nonzero"):
        told.use(torch.rand(20) < 0.5)
    with pytest.raises(ValueError, match="numbers of records"):
        told.use([0.5])
    with pytest.raises(ValueError, match="none of the model's trainable weights"):
        watch_run(nn.Linear(8, 3), optimizer, data, clip=1.0, divisor=5)
    with pytest.raises(ValueError, match="none of the model's trainable weights"):
        watch_run(nn.Linear(8, 3).requires_grad_(False), optimizer, data, clip=1.0, divisor=5)
    with pytest.raises(ValueError, match="stream"):
        watch_run(model, optimizer, iter(loader), clip=1.0, divisor=5)
    with pytest.raises(ValueError, match="watch has ended"):
        _ended(model, data).use([1])
    with pytest.raises(ValueError, match="trainer="):
        dn.examine("digits", claimed=dn.Gaussian(1.0))


class Signs(torch.optim.Optimizer):
    """Asks for more than parameters and a rate."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float, share: float) -> None:
        super().__init__(params, {"lr": lr, "share": share})

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                p.data.sub_(group["lr"] * (group["share"] * p.grad + p.grad.sign()))


class Forgetful(Signs):
    def __init__(self, params: Iterable[nn.Parameter], lr: float, amount: float) -> None:
        super().__init__(params, lr, amount)


def test_an_optimizer_of_ones_own_is_followed() -> None:
    found = _with_noise_alone(nn.Linear(8, 30), lambda p: Signs(p, lr=0.01, share=0.5))
    assert all(move == 0 for move in found.moves)
    with pytest.raises(ValueError, match="Forgetful asks for amount, which it does not keep"):
        _with_noise_alone(nn.Linear(8, 3), lambda p: Forgetful(p, lr=0.01, amount=0.5))


def test_a_model_of_few_digits_is_watched() -> None:
    found = _with_noise_alone(nn.Linear(8, 30).to(torch.bfloat16), lambda p: torch.optim.SGD(p, lr=0.1))
    assert len(found.steps) == 3
    assert max(found.moves) <= 1e-3


class Dictionary(nn.Linear):
    """Its own loss, in a plain dict."""

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        outputs = super().forward(x)
        return {"loss": nn.functional.cross_entropy(outputs, labels), "logits": outputs}


def test_a_model_may_say_its_loss_in_a_dictionary() -> None:
    sums = recompute_sums(Dictionary(8, 3), [{"x": torch.randn(8), "labels": torch.tensor(1)}], "cross-entropy", 1.0)
    assert sums.loss > 0
    assert sums.right in (0, 1)


def _with_noise_alone(
    model: nn.Linear, optimizer_of: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
) -> RunRecord:
    data = TensorDataset(torch.randn(20, 8).to(model.weight), torch.randint(0, 3, (20,)))
    optimizer = optimizer_of(model.parameters())
    with watch_run(model, optimizer, data, clip=1.0, divisor=5) as run:
        for _ in range(3):
            run.use([1, 2])
            for p in model.parameters():
                p.grad = torch.randn_like(p)
            optimizer.step()
    return run.record()


def _ended(model: nn.Module, data: TensorDataset) -> RunWatcher:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch_run(model, optimizer, data, clip=1.0, divisor=5) as run:
        run.use([1])
        optimizer.step()
    return run
