"""What one observed step says: local sensitivity and log-likelihood ratio, in float64.

Everything the observer needs lies in the span of g(x) and g(x'), the differing records' clipped gradients: their
inner products `gram` and the noise's `projection` on them. ``gram`` is (trials, k, k) with k = 2 (replace) or 1.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

RESOLUTION_SHARE = 1e-6
"""Gradients are float32: a distance below this share of their norms is rounding, not information."""


def local_sensitivity(gram: Tensor) -> Tensor:
    """||g(x) - g(x')|| for replace (Bernau 2021, Eq. 12), ||g(x)|| for add-remove (Bernau 2021, Eq. 10; erratum 7)."""
    squares = torch.diagonal(gram, dim1=1, dim2=2)
    distance = squares.sum(1) if gram.shape[1] == 1 else squares.sum(1) - 2 * gram[:, 0, 1]
    distance = distance.clamp(min=0).sqrt()
    return torch.where(distance <= RESOLUTION_SHARE * squares.amax(1).sqrt(), 0.0, distance)


def log_likelihood_ratio(gram: Tensor, projection: Tensor, present: Tensor, sigma: Tensor, rate: float) -> Tensor:
    """ln p(observed | D) / p(observed | D') of each trial (Bernau 2021, Lemma 1 and Algorithm 1, step 9).

    The observer knows the others' batch, so it looks at y = observed - (the others' sum), which has noise of standard
    deviation `sigma` (trials,) around 0, or around g(x) or g(x') where `present` (trials, k) says so. Relative to
    noise alone the density of y under D is ``1 - rate + rate exp((y . g(x) - |g(x)|^2 / 2) / sigma^2)``, since it is
    hidden whether x was drawn; under D' likewise with x' (replace), or 1 (add-remove). At rate 1 the difference of
    the two logarithms is Algorithm 1's. Without noise (local sensitivity 0) a step says nothing.
    """
    products = torch.bmm(present.double().unsqueeze(1), gram).squeeze(1) + sigma.unsqueeze(1) * projection
    squares = torch.diagonal(gram, dim1=1, dim2=2)
    exponent = (products - squares / 2) / sigma.square().unsqueeze(1)
    absent = torch.tensor(log(1 - rate) if rate < 1 else -torch.inf, dtype=torch.float64)
    density = torch.logaddexp(absent, log(rate) + exponent)
    ratio = density[:, 0] - density[:, 1] if gram.shape[1] == 2 else density[:, 0]
    return torch.where(sigma > 0, ratio, 0.0)
