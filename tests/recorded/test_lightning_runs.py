"""The watcher as a Lightning callback, with the real trainer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.examination.recorded import read_recording
from deniable.results.run_result import RunResult

lightning = pytest.importorskip("pytorch_lightning", reason="needs the extra 'lightning'")
opacus = pytest.importorskip("opacus", reason="needs the extra 'opacus'")
UniformWithReplacementSampler = opacus.utils.uniform_sampler.UniformWithReplacementSampler
pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus and Lightning give advice

RECORDS, BATCH, STEPS = 200, 20, 20


class Classifier(lightning.LightningModule):  # type: ignore[misc, name-defined]
    """A module whose loss is logged, trained privately."""

    def __init__(self, noise: float, fails: bool = False) -> None:
        super().__init__()
        torch.manual_seed(12)
        data = TensorDataset(torch.randn(RECORDS, 6), torch.randint(0, 3, (RECORDS,)))
        model = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 3))
        self.model, self.private_optimizer, self.loader = opacus.PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=BATCH),
            noise_multiplier=noise,
            max_grad_norm=0.5,
        )
        self.fails, self.logged = fails, 0

    def training_step(self, batch: list[Tensor], number: int) -> Tensor:
        if self.fails and number == 4:
            raise RuntimeError("the training fails")
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return self.private_optimizer


class ByHand(lightning.LightningModule):  # type: ignore[misc, name-defined]
    """DP-SGD of its own around a plain optimizer, whose step calls backward (Lightning's closure)."""

    def __init__(self, clips_records: bool) -> None:
        super().__init__()
        torch.manual_seed(12)
        self.clips_records = clips_records
        data = TensorDataset(torch.randn(RECORDS, 6), torch.randint(0, 3, (RECORDS,)))
        self.model = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 3))
        batches = UniformWithReplacementSampler(num_samples=RECORDS, sample_rate=BATCH / RECORDS)
        self.loader = DataLoader(data, batch_sampler=batches)

    def training_step(self, batch: list[Tensor], number: int) -> Tensor:
        self.batch = batch
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=0.01)

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        if self.clips_records:
            each = vmap(grad(self.loss_of_one), in_dims=(None, 0, 0))(dict(self.model.named_parameters()), *self.batch)
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
            for weight, g in zip(self.model.parameters(), each.values(), strict=True):
                weight.grad = torch.einsum("r,r...->...", (0.5 / norms).clamp(max=1.0), g.detach()) / BATCH
        else:
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        for weight in self.model.parameters():
            weight.grad = weight.grad + 0.5 / BATCH * torch.randn_like(weight)

    def loss_of_one(self, weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(functional_call(self.model, weights, (x[None],)), y[None])


def fit(module: Any, watch: Any, folder: Path) -> None:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=2, callbacks=[watch], default_root_dir=folder, **quiet)
    trainer.fit(module, module.loader)


@pytest.mark.parametrize(("noise", "verdict"), [(1.0, "consistent"), (0.5, "violated")])
def test_a_fit_is_judged(noise: float, verdict: str, tmp_path: Path) -> None:
    module = Classifier(noise)
    watch = dn.watch_lightning(module.loader, budget=1.0)
    with pytest.raises(ValueError, match="no training has begun"):
        watch.run.record()
    fit(module, watch, tmp_path)
    found = dn.examine(watch.run, claimed=dn.Training(1.0, BATCH / RECORDS, STEPS, "add-remove"), confidence=0.999)
    assert isinstance(found, RunResult)
    assert (found.verdict, found.examined_steps) == (verdict, STEPS)
    assert "log" not in module.__dict__
    with pytest.raises(ValueError, match="make a new one"):
        fit(module, watch, tmp_path)


@pytest.mark.parametrize(
    ("clips_records", "verdict", "words"),
    [(True, "consistent", "Nothing speaks against"), (False, "violated", "not clipped|batch's summed or mean gradi")],
)
def test_gradients_that_a_step_makes_itself_are_those_that_are_judged(
    clips_records: bool, verdict: str, words: str, tmp_path: Path
) -> None:
    module = ByHand(clips_records)
    watch = dn.watch_lightning(module.loader, clip=0.5, divisor=BATCH, budget=1.0)
    fit(module, watch, tmp_path)
    found = dn.examine(watch.run, claimed=dn.Training(1.0, BATCH / RECORDS, STEPS, "add-remove"))
    assert isinstance(found, RunResult)
    assert found.verdict == verdict, found.verdict_text
    assert re.search(words, found.verdict_text), found.verdict_text


def test_a_fit_that_fails_leaves_its_steps(tmp_path: Path) -> None:
    module = Classifier(1.0, fails=True)
    watch = dn.watch_lightning(module.loader, budget=0.0, path=tmp_path / "run.jsonl")
    with pytest.raises(RuntimeError, match="the training fails"):
        fit(module, watch, tmp_path)
    record = read_recording(tmp_path / "run.jsonl")
    assert (len(record.batches), record.ended) == (4, False)
