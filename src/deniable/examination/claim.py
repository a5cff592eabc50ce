"""What somebody else's training claims to be: noise, rate, steps, and what it does beside plain DP-SGD (`Recipe`).

Every kind of clipping here bounds each record's share of the sum by the clipping norm C, so the claimed mechanism is
the same. A noise schedule needs no word here: claim ``compose(Gaussian(a).composed(5), Gaussian(b).composed(5))``.
Gradient accumulation: either yield one step for each move of the weights, its batch being all records that were
accumulated, or every part, and claim ``Recipe(accumulated=parts)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import hypot, inf, isfinite

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.checks import positive, whole
from deniable.mechanisms import Adjacency, Composed, Gaussian, Mechanism, Subsampled, Training, compose


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


@dataclass(frozen=True)
class RecipeTraining(Training):
    """A training with another clipping, or other noise in each step: `noise` is then the least multiplier."""

    recipe: Recipe = field(default_factory=Recipe)
    schedule: tuple[float, ...] = ()
    """The multiplier of each step, where they differ."""

    @classmethod
    def from_mechanism(
        cls, mechanism: Mechanism, clip: float, adjacency: Adjacency | str, recipe: Recipe | None = None
    ) -> RecipeTraining:
        """From ``Gaussian(noise).subsampled(rate).composed(steps)``, subsampling and composition left out at will.

        A noise schedule is a composition of several such parts, all of one rate.
        """
        parts = mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),)
        steps = [(*_gaussian(part, mechanism), count) for part, count in parts]
        rates, recipe = {rate for _, rate, _ in steps}, recipe or Recipe()
        if len(rates) != 1:
            raise ValueError(f"claimed must have one sampling rate in all steps, got {sorted(rates)}")
        recipe.check(positive("clip", clip))
        noises = [noise for noise, _, count in steps for _ in range(count)]
        schedule = tuple(noises) if len(set(noises)) > 1 else ()
        found = cls(min(noises), rates.pop(), len(noises), Adjacency(adjacency), clip, recipe, schedule)
        if not isfinite(recipe.noise_on_sum(found.noise)):
            raise ValueError(f"count_noise must be above noise / 2 = {found.noise / 2:g}, got {recipe.clipping}")
        return found

    @property
    def mechanism(self) -> Mechanism:
        """All that an observer of every step sees."""
        steps = (replace(Training.of(self), noise=noise, steps=1).mechanism for noise in self.schedule)
        return compose(*steps) if self.schedule else super().mechanism

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on the sum; a mechanism's noise is relative to the sensitivity."""
        return self.recipe.noise_on_sum(self.noise) * self.sensitivity

    def noises(self, steps: int) -> NDArray[np.float64]:
        """The claimed noise multiplier of each of the first steps; those beyond the schedule have its last one."""
        each = np.array(self.schedule or (self.noise,))
        return np.asarray(each[np.minimum(np.arange(steps), len(each) - 1)])

    def sigmas(self, clips: NDArray[np.float64]) -> NDArray[np.float64]:
        """The standard deviation of the noise on every step's sum, given its clipping norm."""
        sums = np.array([self.recipe.noise_on_sum(float(noise)) for noise in self.noises(len(clips))])
        return np.asarray(sums * np.array([self.adjacency.sensitivity(float(clip)) for clip in clips]))

    @property
    def text(self) -> str:
        """The mechanism as a call."""

        def part(noise: float, count: int) -> str:
            return f"dn.Gaussian({noise!r}).subsampled({self.rate!r}).composed({count})"

        if not self.schedule:
            return part(self.noise, self.steps)
        cuts = [0, *(i for i in range(1, self.steps) if self.schedule[i] != self.schedule[i - 1]), self.steps]
        parts = [part(self.schedule[a], b - a) for a, b in pairwise(cuts)]
        return f"dn.compose({', '.join(parts)})"


def _gaussian(step: Mechanism, mechanism: Mechanism) -> tuple[float, float]:
    """Noise and rate of one step."""
    inner, rate = (step.mechanism, step.rate) if isinstance(step, Subsampled) else (step, 1.0)
    if not isinstance(inner, Gaussian) or rate == 0:
        wanted = "Gaussian(noise).subsampled(rate).composed(steps), or a composition of such parts"
        raise ValueError(f"claimed must be {wanted}, got {mechanism}")
    return inner.noise, rate
