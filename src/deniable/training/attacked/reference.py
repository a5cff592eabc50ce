"""Bernau 2021b's reference networks and hyperparameters (Tables 1 and 2), by data set."""

from __future__ import annotations

import re
from functools import partial
from math import prod

from torch import nn

from deniable.data import Dataset
from deniable.training.attacked.targets import TargetSettings
from deniable.training.networks.usual_models import MODELS, dense
from deniable.training.settings import ModelFactory

LEAST_SIDE_PIXELS = 19
"""Images of fewer pixels leave the small CNN nothing to look at."""


def faces(height: int, width: int, classes: int, channels: int = 1) -> nn.Module:
    """A small network for faces: conv 5x5 (16 filters, every second pixel), conv 3x3 (32), each with ReLU and max pool.

    It stands where Bernau 2021b has VGG-Very-Deep-16, whose weights must be fetched; for a backbone of your own see
    `head_on`.
    """
    rows, columns = ((((side - 3) // 2) // 2 - 2) // 2 for side in (height, width))
    return nn.Sequential(
        nn.Conv2d(channels, 16, 5, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * rows * columns, classes),
    )


def head_on(backbone: nn.Module, features: int, classes: int) -> nn.Module:
    """A backbone of your own, frozen, and a new dense layer on its `features` outputs, which alone is trained.

    Bernau 2021b (Section 4) keeps VGG's convolutional core in this way. Write it into a function without arguments that
    returns the model and give that function, or its ``"module:function"``, as `model`.
    """
    backbone.eval().requires_grad_(False)
    return nn.Sequential(backbone, nn.Flatten(), nn.Linear(features, classes))


def reference_network(dataset: Dataset) -> ModelFactory:
    """The network for such data (Bernau 2021b, Table 1): Texas 512-128-C, faces a small CNN; other bits, and all else,
    128-C.

    MNIST, digits and Adult have networks of their own (`MODELS`).
    """
    if dataset.kind != "binary" and dataset.name in MODELS:
        return MODELS[dataset.name]
    if dataset.kind == "image" and min(dataset.inputs.shape[2:]) >= LEAST_SIDE_PIXELS:
        channels, height, width = dataset.inputs.shape[1:]
        return partial(faces, height, width, dataset.classes, channels)
    hidden = (512, 128) if dataset.name.startswith("texas") else (128,)
    return partial(dense, prod(dataset.features.shape[1:]), *hidden, dataset.classes)


TABLE_2 = {
    # learning rate, batch, epochs without DP (and with local DP); the same with central DP; clipping norm
    # generated, not Bernau 2021b's: as few epochs as learn the training records by heart
    "purchases": ((0.001, 128, 60), (0.003, 128, 60), 4.0),
    "texas": ((0.01, 128, 200), (0.01, 128, 1000), 4.0),
    "purchase": ((0.001, 128, 200), (0.01, 128, 200), 4.0),
    "lfw": ((0.001, 32, 30), (0.001, 16, 110), 3.0),
    "skewed-purchases": ((0.001, 100, 200), (0.001, 100, 200), 4.0),
}


def reference_settings(dataset: Dataset, noise: float = 0.0) -> TargetSettings:
    """Bernau 2021b, Table 2's learning rate, batch, epochs and clipping norm; data sets it lacks take those of
    Purchases."""
    family = next((name for name in TABLE_2 if re.match(name, dataset.name)), "purchase")
    without, central, clip = TABLE_2[family]
    rate, batch, epochs = central if noise else without
    return TargetSettings(reference_network(dataset), noise, rate, batch, epochs, clip)
