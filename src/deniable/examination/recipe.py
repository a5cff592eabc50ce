"""What a training does beside plain DP-SGD, so that it can be claimed: how gradients are clipped, and augmentations.

Every kind of clipping here bounds each record's share of the sum by the clipping norm C, so the claimed mechanism is
the same. A noise schedule needs no word here: claim ``compose(Gaussian(a).composed(5), Gaussian(b).composed(5))``.
Gradient accumulation: either yield one step for each move of the weights, its batch being all records that were
accumulated, or every part, and claim ``Recipe(accumulated=parts)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot, inf

import torch
from torch import Tensor

from deniable.checks import positive, whole


@dataclass(frozen=True)
class Flat:
    """min(1, C / |g|), the norm over all layers: the usual one."""

    def factors(self, norms: Tensor, clip: Tensor) -> Tensor:
        """(..., layers) from the layers' norms (..., layers) and the clipping norm (...)."""
        return (clip / _whole(norms)).clamp(max=1.0).unsqueeze(-1).expand_as(norms)


@dataclass(frozen=True)
class AutoS:
    """C / (|g| + gamma) (Bu et al. 2023, doi:10.48550/arXiv.2206.07136)."""

    gamma: float = 0.01

    def __post_init__(self) -> None:
        positive("gamma", self.gamma)

    def factors(self, norms: Tensor, clip: Tensor) -> Tensor:
        """As `Flat.factors`."""
        return (clip / (_whole(norms) + self.gamma)).unsqueeze(-1).expand_as(norms)


@dataclass(frozen=True)
class Normalised:
    """C / |g|: every gradient has length C."""

    def factors(self, norms: Tensor, clip: Tensor) -> Tensor:
        """As `Flat.factors`."""
        return (clip / _whole(norms)).unsqueeze(-1).expand_as(norms)


@dataclass(frozen=True)
class PerLayer:
    """Each trainable parameter by its own norm; together they are at most C: sqrt(sum of squares) <= C."""

    norms: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "norms", tuple(positive("norms", norm) for norm in self.norms))

    def factors(self, norms: Tensor, clip: Tensor) -> Tensor:
        """As `Flat.factors`."""
        return (torch.tensor(self.norms, dtype=norms.dtype) / norms.clamp(min=1e-12)).clamp(max=1.0)


@dataclass(frozen=True)
class Adaptive:
    """A norm that follows a noisy count of the clipped gradients (Andrew et al. 2021, doi:10.48550/arXiv.1905.03871).

    `count_noise` is the standard deviation of the noise on the count (of which one record changes 1 / 2, centred). The
    claimed noise multiplier z covers sum and count together, so the sum needs more noise than z:
    ``Recipe(Adaptive(count_noise)).noise_on_sum(z)`` = (z^-2 - (2 count_noise)^-2)^(-1/2), times each step's norm.
    The training yields each step's norm, ``AppliedStep(..., clip=...)``, and may tell the count's noise:
    ``public={COUNT_NOISE: count_noise}`` (`deniable.examination.trainer.COUNT_NOISE`, the string "count noise").
    """

    count_noise: float

    def __post_init__(self) -> None:
        positive("count_noise", self.count_noise)

    def factors(self, norms: Tensor, clip: Tensor) -> Tensor:
        """As `Flat.factors`."""
        return Flat().factors(norms, clip)


Clipping = Flat | AutoS | Normalised | PerLayer | Adaptive


@dataclass(frozen=True)
class Recipe:
    """How each record's gradient is made: `clipping`; and `augmentations`, copies averaged before clipping.

    `accumulated` parts of a batch are yielded one by one, at the same weights; their sums are added, with noise once.

    Random augmentations cannot be recomputed. The audit then measures by trainings with the same seed how far one
    record changes the first sum, and tests the noise; the gradients themselves stay unexamined, which the verdict says.
    """

    clipping: Clipping = field(default_factory=Flat)
    augmentations: int = 1
    accumulated: int = 1

    def __post_init__(self) -> None:
        whole("augmentations", self.augmentations, low=1)
        whole("accumulated", self.accumulated, low=1)

    def check(self, clip: float) -> None:
        """Refuse norms of layers that together are longer than the clipping norm."""
        if isinstance(self.clipping, PerLayer) and hypot(*self.clipping.norms) > clip * (1 + 1e-6):
            length = hypot(*self.clipping.norms)
            raise ValueError(f"the norms of the layers must be at most clip together, got {length:.4g} > {clip:g}")

    def noise_on_sum(self, noise: float) -> float:
        """The multiplier of the noise on the sum, of the claimed one that covers everything."""
        if not isinstance(self.clipping, Adaptive):
            return noise
        left = noise**-2 - (2 * self.clipping.count_noise) ** -2
        return left**-0.5 if left > 0 else inf


def _whole(norms: Tensor) -> Tensor:
    length: Tensor = norms.norm(dim=-1)
    return length.clamp(min=1e-12)
