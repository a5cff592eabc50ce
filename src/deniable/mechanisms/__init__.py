"""What a release does, as frozen data without mathematics.

A mechanism is a description that every analysis (exact loss, named bound, training engine) can read:

    Gaussian(noise=1.0).subsampled(0.01).composed(1000)
    compose(phase_one, phase_two, Laplace(scale=2.0))

Noise is always relative to the sensitivity: ``noise = sigma / sensitivity`` and ``scale = b / sensitivity``.
With clipping norm C the sensitivity is C for `add-remove` and `zero-out` neighbours and 2C for `replace`
(see `Adjacency`), so the same description serves all of them.
"""

from __future__ import annotations

from deniable.mechanisms.dp_sgd import Training
from deniable.mechanisms.mechanism import Adjacency, Composed, Mechanism, compose, named_adjacency
from deniable.mechanisms.releases import (
    ApproximateDP,
    ConcentratedDP,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GaussianDP,
    Laplace,
    Pixelization,
    PmfPair,
    RandomizedResponse,
    RenyiDP,
    RepeatAndSelect,
    TotalVariation,
)
from deniable.mechanisms.samplings import (
    CyclicPoisson,
    FixedSize,
    Poisson,
    RandomAllocation,
    Sampled,
    Sampling,
    Shuffled,
    Subsampled,
    TruncatedPoisson,
    samplings_of,
)

__all__ = [
    "Adjacency",
    "ApproximateDP",
    "Composed",
    "ConcentratedDP",
    "CyclicPoisson",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FixedSize",
    "Gaussian",
    "GaussianDP",
    "Laplace",
    "Mechanism",
    "Pixelization",
    "PmfPair",
    "Poisson",
    "RandomAllocation",
    "RandomizedResponse",
    "RenyiDP",
    "RepeatAndSelect",
    "Sampled",
    "Sampling",
    "Shuffled",
    "Subsampled",
    "TotalVariation",
    "Training",
    "TruncatedPoisson",
    "compose",
    "named_adjacency",
    "samplings_of",
]
