"""deniable: choose, explain and audit the privacy of machine learning by what it means for a person."""

from __future__ import annotations

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

__all__ = [
    "Adjacency",
    "ApproximateDP",
    "Composed",
    "Gaussian",
    "GaussianDP",
    "Laplace",
    "Mechanism",
    "Pixelization",
    "RandomizedResponse",
    "Subsampled",
    "TotalVariation",
    "compose",
]
__version__ = "0.1.0"
