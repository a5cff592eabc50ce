"""What somebody else's training claims to be: noise, rate and steps, and the scale of noise that follows."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.checks import positive
from deniable.mechanisms import Adjacency, Composed, Gaussian, Mechanism, Subsampled

__all__ = ["Claim"]


@dataclass(frozen=True)
class Claim:
    """Noise of standard deviation `sigma` on the sum of gradients clipped to `clip`, in `steps` batches of `rate`."""

    noise: float
    rate: float
    steps: int
    clip: float
    adjacency: Adjacency

    @classmethod
    def of(cls, mechanism: Mechanism, clip: float, adjacency: Adjacency) -> Claim:
        """From ``Gaussian(noise).subsampled(rate).composed(steps)``, subsampling and composition left out at will."""
        step, steps = mechanism, 1
        if isinstance(mechanism, Composed) and len(mechanism.parts) == 1:
            step, steps = mechanism.parts[0]
        step, rate = (step.mechanism, step.rate) if isinstance(step, Subsampled) else (step, 1.0)
        if not isinstance(step, Gaussian) or steps < 1 or rate == 0:
            wanted = "Gaussian(noise).subsampled(rate).composed(steps), the same noise in every step"
            raise ValueError(f"claimed must be {wanted}, got {mechanism}")
        return cls(step.noise, rate, steps, positive("clip", clip), adjacency)

    @property
    def sensitivity(self) -> float:
        """The largest change of the clipped sum between neighbours: 2C for replace, else C."""
        return 2 * self.clip if self.adjacency is Adjacency.REPLACE else self.clip

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on the sum; a mechanism's noise is relative to the sensitivity."""
        return self.noise * self.sensitivity
