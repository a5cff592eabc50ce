"""The convolutional network of the tutorial that Jia 2023 (Figure 4) trains."""

from __future__ import annotations

from torch import nn


def tutorial_cnn() -> nn.Sequential:
    """TensorFlow Privacy's MNIST tutorial: 16 filters of 8x8, pool, 32 filters of 4x4, pool, 32, 10; 26,010 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
