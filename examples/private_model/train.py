"""A private classifier of handwritten digits, from the promise to the papers that go with the model.

python train.py: chooses the noise for a promise, trains once with Opacus, watches that run, and writes model.pt,
run.html (the verdict), card.md (a privacy card) and assessment.md (an impact assessment to be completed).
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn

RECORDS, BATCH, EPOCHS, CLIP = 1500, 100, 20, 1.0
RATE, STEPS = BATCH / RECORDS, EPOCHS * RECORDS // BATCH
PROMISE = dn.Belief(bound=0.9, delta=1 / RECORDS)
"""Nobody who starts at 50 % becomes more than 90 % sure that a person is in the data, but for a chance of 1/1500."""


def choose_noise() -> float:
    chosen = dn.choose(lambda noise: dn.Gaussian(noise).subsampled(RATE).composed(STEPS), PROMISE, "add-remove")
    Path("answer.json").write_text(chosen.to_json())
    return chosen.noise


def train(noise: float) -> tuple[nn.Module, dn.examination.RunWatcher]:
    pixels, digits = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    pixels, digits = pixels.float() / 16, digits.long()
    known, unseen = TensorDataset(pixels[:RECORDS], digits[:RECORDS]), (pixels[RECORDS:], digits[RECORDS:])
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    private, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=DataLoader(known, batch_size=BATCH),
        noise_multiplier=noise,
        max_grad_norm=CLIP,
    )
    with dn.watch_run(private, optimizer, loader, budget=0.5, path="run.jsonl") as run:
        for _ in range(EPOCHS):
            for features, labels in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(private(features), labels).backward()
                optimizer.step()
    right = (model(unseen[0]).argmax(1) == unseen[1]).float().mean()
    print(f"accuracy on unseen digits: {right:.0%}")
    return model, run


def main() -> None:
    warnings.simplefilter("ignore")  # Opacus speaks of its random numbers and hooks
    noise = choose_noise()
    print(f"noise multiplier: {noise:.4f}")
    model, run = train(noise)
    claimed = dn.Training(noise=noise, rate=RATE, steps=STEPS, adjacency="add-remove", clip=CLIP)
    found = dn.examine(run, claimed=claimed, confidence=0.999)
    print(found.summary())
    found.report("run.html")
    if found.verdict != "consistent":
        sys.exit("the model is not saved: see run.html")
    torch.save(model.state_dict(), "model.pt")
    deniable = [sys.executable, "-m", "deniable"]
    card = subprocess.run([*deniable, "card", "answer.json"], check=True, capture_output=True, text=True)
    Path("card.md").write_text(card.stdout)
    subprocess.run([*deniable, "assess", "answer.json", "--out", "assessment.md"], check=True, capture_output=True)


if __name__ == "__main__":
    main()
