"""The watcher as a Lightning callback, with the real trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.examination.recorded import read_recording
from deniable.results.run_result import RunResult

lightning = pytest.importorskip("pytorch_lightning", reason="needs the extra 'lightning'")
opacus = pytest.importorskip("opacus", reason="needs the extra 'opacus'")
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


def fit(module: Classifier, watch: Any, folder: Path) -> None:
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


def test_a_fit_that_fails_leaves_its_steps(tmp_path: Path) -> None:
    module = Classifier(1.0, fails=True)
    watch = dn.watch_lightning(module.loader, budget=0.0, path=tmp_path / "run.jsonl")
    with pytest.raises(RuntimeError, match="the training fails"):
        fit(module, watch, tmp_path)
    record = read_recording(tmp_path / "run.jsonl")
    assert (len(record.batches), record.ended) == (4, False)
