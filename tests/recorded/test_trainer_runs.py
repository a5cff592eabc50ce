"""The watcher as a callback of Hugging Face's Trainer, with models made from a config; LoRA by peft."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import deniable as dn
from deniable.results.run_result import RunResult

transformers = pytest.importorskip("transformers", reason="needs the extra 'transformers'")
pytest.importorskip("accelerate", reason="needs the extra 'transformers'")
opacus = pytest.importorskip("opacus", reason="needs the extra 'opacus'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus and Transformers give advice

RECORDS, BATCH, STEPS, LENGTH = 120, 12, 10, 9
CLAIM = dn.Training(noise=1.0, rate=BATCH / RECORDS, steps=STEPS, adjacency="add-remove")


class Sentences(Dataset[dict[str, Tensor]]):
    """Tokens, a mask and a label."""

    def __init__(self) -> None:
        self.tokens = torch.randint(5, 60, (RECORDS, LENGTH))

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        tokens = self.tokens[index]
        mask = (torch.arange(LENGTH) < 4 + index % 5).long()
        return {"input_ids": tokens, "attention_mask": mask, "labels": torch.tensor(index % 3)}


def classifier() -> Any:
    config = transformers.BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        num_labels=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForSequenceClassification(config)


def with_lora() -> Any:
    peft = pytest.importorskip("peft", reason="needs the package peft")
    adapted = peft.LoraConfig(r=4, target_modules=["query", "value"], lora_dropout=0.0, task_type="SEQ_CLS")
    return peft.get_peft_model(classifier(), adapted)


def make_private(model: Any, noise: float, data: Dataset[dict[str, Tensor]]) -> Any:
    model.train()
    return opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=noise,
        max_grad_norm=0.5,
    )


def train(noise: float, folder: Path) -> RunResult:
    torch.manual_seed(13)
    data, model = Sentences(), classifier()
    for p in model.bert.embeddings.position_embeddings.parameters():
        p.requires_grad = False  # Opacus has no gradient of a batch whose positions are those of one sentence
    private, optimizer, loader = make_private(model, noise, data)

    class PrivateTrainer(transformers.Trainer):  # type: ignore[misc, name-defined]
        def get_train_dataloader(self) -> Any:
            return loader

        def training_step(self, *given: Any, **named: Any) -> Tensor:
            optimizer.zero_grad()  # the Trainer clears the model's gradients alone
            return super().training_step(*given, **named)

    watch = dn.watch_trainer(budget=1.0)
    settings = transformers.TrainingArguments(
        output_dir=str(folder), num_train_epochs=1, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True
    )
    trainer = PrivateTrainer(
        model=private, args=settings, train_dataset=data, optimizers=(optimizer, None), callbacks=[watch]
    )
    trainer.train()
    found = dn.examine(watch.run, claimed=CLAIM, confidence=0.999)
    assert isinstance(found, RunResult)
    return found


@pytest.mark.parametrize(("noise", "verdict"), [(1.0, "consistent"), (0.5, "violated")])
def test_a_training_is_judged(noise: float, verdict: str, tmp_path: Path) -> None:
    found = train(noise, tmp_path)
    assert found.verdict == verdict, found.verdict_text
    assert found.examined_steps == STEPS


def test_lora_is_judged_by_its_own_weights() -> None:
    """Gradients of other weights would not explain what was applied."""
    torch.manual_seed(14)
    private, optimizer, loader = make_private(with_lora(), 1.0, Sentences())
    run = dn.watch_run(private, optimizer, loader, budget=1.0)
    for batch in loader:
        optimizer.zero_grad()
        private(**batch).loss.backward()
        optimizer.step()
    found = dn.examine(run, claimed=CLAIM, confidence=0.999)
    assert found.verdict == "consistent"
    assert run.record().weights == sum(p.numel() for p in private.parameters() if p.requires_grad)


def test_batches_that_accelerate_draws_ahead_are_those_of_their_steps() -> None:
    """The loader of an ordinary Trainer is one batch ahead; two batches make a step here."""
    torch.manual_seed(15)
    accelerate = pytest.importorskip("accelerate")
    data, model = Sentences(), classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    own = DataLoader(data, batch_size=6, shuffle=True)
    loader, stepped = accelerate.Accelerator(cpu=True).prepare(own, optimizer)
    run = dn.watch_run(model, stepped, loader, clip=0.5, divisor=12, batches_per_step=2)
    seen, used = [], []
    run._used.of_step = spy(run._used.of_step, used)  # type: ignore[method-assign]
    for number, batch in enumerate(loader):
        seen += batch["input_ids"].tolist()
        if number % 2:
            model(**batch).loss.backward()
            stepped.step()
    assert data.tokens[torch.tensor(used)].tolist() == seen


def spy(call: Any, used: list[int]) -> Any:
    def noted(optimizer: Any) -> list[list[int]]:
        (batch,) = found = call(optimizer)
        used.extend(batch)
        return found  # type: ignore[no-any-return]

    return noted
