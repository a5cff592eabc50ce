"""deniable: choose, explain and audit the privacy of machine learning by what it means for a person."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from deniable import promises
from deniable.calibration import Calibration, calibrate
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Composed,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    Pixelization,
    RandomizedResponse,
    Subsampled,
    TotalVariation,
    Training,
    compose,
)
from deniable.promises import *  # noqa: F403 (every score of the table)
from deniable.scores import PrivacyLoss, posterior, privacy_loss
from deniable.sweeps import Sweep, sweep

__all__ = [
    "Adjacency",
    "ApproximateDP",
    "Calibration",
    "Composed",
    "Gaussian",
    "GaussianDP",
    "Laplace",
    "Mechanism",
    "Pixelization",
    "PrivacyLoss",
    "RandomizedResponse",
    "Subsampled",
    "Sweep",
    "TotalVariation",
    "Training",
    "calibrate",
    "compose",
    "posterior",
    "privacy_loss",
    "sweep",
]
__all__ += promises.__all__
__version__ = "0.1.0"


_ROOMS = ("adversaries", "audit", "bounds", "comparison", "data", "local", "report", "store", "training")
"""Modules that are imported when they are first asked for; `audit`, which may be called, and some need torch."""


def __getattr__(name: str) -> Any:
    """`deniable.audit(...)`, `deniable.data` and the other rooms, imported when they are first asked for."""
    if name in _ROOMS:
        return import_module(f"deniable.{name}")
    raise AttributeError(f"module 'deniable' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
