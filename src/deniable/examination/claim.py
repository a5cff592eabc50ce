"""What somebody else's training claims to be: noise, rate and steps, and the scale of noise that follows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from deniable.checks import positive
from deniable.examination.recipe import Recipe
from deniable.mechanisms import Adjacency, Composed, Gaussian, Mechanism, Subsampled, Training, compose


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
