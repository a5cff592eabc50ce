"""A classifier of handwritten digits, trained privately."""

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn

RECORDS, BATCH, EPOCHS = 1000, 50, 2
CLAIM = dn.Training(noise=1.0, rate=BATCH / RECORDS, steps=EPOCHS * RECORDS // BATCH, adjacency="add-remove")


def train() -> nn.Module:
    """Two epochs of DP-SGD on 1,000 digits."""
    digits = load_digits()
    features = torch.tensor(digits.data[:RECORDS], dtype=torch.float32) / 16
    data = TensorDataset(features, torch.tensor(digits.target[:RECORDS]))
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.5),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=CLAIM.noise,
        max_grad_norm=1.0,
    )
    for _ in range(EPOCHS):
        for batch, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
    return network
