"""The same classifier in a loop of one's own, with a mistake: the noise was turned down to see the loss fall."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn

RECORDS, BATCH, STEPS, CLIP = 1000, 50, 40, 1.0
NOISE = 0.3  # TODO: back to 1


class PoissonBatches:
    """Each record is in a batch by its own coin."""

    def __iter__(self):
        for _ in range(STEPS):
            yield torch.nonzero(torch.rand(RECORDS) < BATCH / RECORDS).flatten().tolist()

    def __len__(self) -> int:
        return STEPS


def clipped_sums(network: nn.Module, features: Tensor, labels: Tensor) -> list[Tensor]:
    """Of every record's own gradient."""
    weights = dict(network.named_parameters())

    def loss(weights: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        return nn.functional.cross_entropy(functional_call(network, weights, (one[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, features, labels)
    norms = torch.stack([part.flatten(1).square().sum(1) for part in gradients.values()]).sum(0).sqrt()
    factors = (CLIP / norms.clamp(min=CLIP)).detach()
    return [torch.einsum("r,r...->...", factors, part.detach()) for part in gradients.values()]


def train():
    """Forty steps of DP-SGD on 1,000 digits; returns what watched them."""
    digits = load_digits()
    features = torch.tensor(digits.data[:RECORDS], dtype=torch.float32) / 16
    data = TensorDataset(features, torch.tensor(digits.target[:RECORDS]))
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    loader = DataLoader(data, batch_sampler=PoissonBatches())
    run = dn.watch_run(network, optimizer, loader, clip=CLIP, divisor=BATCH)
    for batch, labels in loader:
        for weight, total in zip(network.parameters(), clipped_sums(network, batch, labels), strict=True):
            weight.grad = (total + NOISE * CLIP * torch.randn_like(total)) / BATCH
        optimizer.step()
    return run
