"""deniable: choose, explain and audit the privacy of machine learning by what it means for a person."""

from __future__ import annotations

from deniable.calibration import (
    Accuracy,
    Advantage,
    Belief,
    Calibration,
    Epsilon,
    PositivePredictiveValue,
    TruePositiveRate,
    calibrate,
)
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
    compose,
)
from deniable.scores import PrivacyLoss, posterior, privacy_loss

__all__ = [
    "Accuracy",
    "Adjacency",
    "Advantage",
    "ApproximateDP",
    "Belief",
    "Calibration",
    "Composed",
    "Epsilon",
    "Gaussian",
    "GaussianDP",
    "Laplace",
    "Mechanism",
    "Pixelization",
    "PositivePredictiveValue",
    "PrivacyLoss",
    "RandomizedResponse",
    "Subsampled",
    "TotalVariation",
    "TruePositiveRate",
    "calibrate",
    "compose",
    "posterior",
    "privacy_loss",
]
__version__ = "0.1.0"
