"""What a watcher costs: CPU time and peak memory of a private training with it, as a multiple of those without it.

    python benchmarks/watched_run.py [model ...]

Each training runs in a process of its own, by Opacus (per-record gradients by hooks) on random data, with and without
`dn.watch_run` in turn; memory is the process's peak resident set. Models: `resnet18` (group norm, 3 x 32 x 32, 11.2 M
weights) and `transformer` (4 layers, 3.3 M weights, 64 tokens). Batches are small so that a training takes minutes on
two cores; larger ones cost the training and a recomputed step alike.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import warnings
from time import process_time

import msgspec
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

STEPS, BATCH = 30, 12
BAR = 1.2
ROUNDS = 2


class Cost(msgspec.Struct, frozen=True):
    """Of one training: CPU seconds of its loop, peak memory in MB, and what the watcher did."""

    seconds: float
    megabytes: float
    examined: int = 0
    power: str = ""


class Block(nn.Module):
    """Two convolutions and a way around them (He et al. 2016), with group norm."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.GroupNorm(16, out) for _ in range(2))
        same = stride == 1 and channels == out
        self.around = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.GroupNorm(16, out))
        )

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(inner)) + self.around(x)).relu()


def resnet18() -> tuple[nn.Module, TensorDataset]:
    widths = (64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [
        Block(before, after, 1 if before == after else 2) for before, after in zip((64, *widths), widths, strict=False)
    ]
    stem = (nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(16, 64), nn.ReLU())
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return model, TensorDataset(torch.randn(600, 3, 32, 32), torch.randint(0, 10, (600,)))


class Attention(nn.Module):
    """A layer of a transformer (Vaswani et al. 2017), of modules that Opacus knows."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.queries(self.norms[0](x)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts.unbind(0))
        x = x + self.mixed(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norms[1](x))))


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1)


def transformer() -> tuple[nn.Module, TensorDataset]:
    layers = [Attention(256, 4) for _ in range(4)]
    model = nn.Sequential(nn.Embedding(500, 256), *layers, nn.LayerNorm(256), Mean(), nn.Linear(256, 4))
    return model, TensorDataset(torch.randint(0, 500, (600, 64)), torch.randint(0, 4, (600,)))


MODELS = {"resnet18": resnet18, "transformer": transformer}


def train(name: str, watched: bool) -> Cost:
    """One training in this process."""
    from opacus import PrivacyEngine  # noqa: PLC0415

    import deniable as dn  # noqa: PLC0415

    warnings.simplefilter("ignore")  # Opacus speaks of its random numbers and hooks
    torch.manual_seed(1)
    model, data = MODELS[name]()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    started = process_time()
    run = dn.watch_run(model, optimizer, loader) if watched else None
    steps = 0
    while steps < STEPS:
        for features, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
            steps += 1
            if steps == STEPS:
                break
    record = run.record() if run is not None else None
    seconds, megabytes = process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if record is None:
        return Cost(seconds, megabytes)
    claim = dn.Training(1.0, BATCH / len(data), STEPS, adjacency="add-remove")
    found = dn.examine(record, claimed=claim, confidence=0.9999)
    assert found.verdict == "consistent", found.verdict_text
    return Cost(seconds, megabytes, found.examined_steps, found.power_text)


def measure(name: str) -> tuple[Cost, Cost]:
    """Without the watcher and with it: the least of each over the rounds."""
    costs: dict[str, list[Cost]] = {"plain": [], "watched": []}
    for _ in range(ROUNDS):
        for kind, found in costs.items():
            command = [sys.executable, __file__, "--one", name, kind]
            done = subprocess.run(command, capture_output=True, check=True)
            found.append(msgspec.json.decode(done.stdout.splitlines()[-1], type=Cost))
    plain, watched = (
        msgspec.structs.replace(
            found[-1], seconds=min(c.seconds for c in found), megabytes=min(c.megabytes for c in found)
        )
        for found in costs.values()
    )
    return plain, watched


def main(names: list[str]) -> None:
    for name in names or MODELS:
        plain, watched = measure(name)
        print(
            f"{name}: time x {watched.seconds / plain.seconds:.3f} ({plain.seconds:.1f} s CPU without), memory x "
            f"{watched.megabytes / plain.megabytes:.3f} ({plain.megabytes:.0f} MB without), {watched.examined} of "
            f"{STEPS} steps recomputed. {watched.power}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(msgspec.json.encode(train(sys.argv[2], sys.argv[3] == "watched")).decode())
    else:
        main(sys.argv[1:])
