"""How large the records' gradient is beside the noise in what was applied, whatever was done to both after the noise.

Scaling, cutting off or leaving out numbers of a noisy sum shortens gradient and noise alike, and costs no privacy. What
was applied contains f x the clipped sum, where f is the least-squares factor, and noise of r x the claimed standard
deviation. The error of f is r / s, where s^2 is the sum of squared lengths of the clipped sums in claimed variances.
Where all that was applied was shortened, f is below 1 and not above r, within that error; or many steps have exactly
the same length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

_ERRORS = 2.5
"""Standard errors: one-sided, less than one in 150 by chance."""
_TIED, _FEWEST = 1e-5, 3
"""Squared lengths that differ by less, relatively, are the same; so many, and a tenth of all, are no accident."""
_SURE = 0.2
"""An error of less than this share leaves no doubt that both were scaled."""
_ROUNDING = 0.03
"""Ratios that differ by less are equal, within what float32 and the estimate of r allow."""


@dataclass(frozen=True)
class SignalToNoise:
    """Of all examined steps of a run together."""

    factor: float
    """f."""
    noise: float
    """r."""
    strength: float
    """s: the clipped sums' length, in claimed standard deviations."""

    equally_long: bool = False
    """Whether several applied gradients have the same, largest length: clipped once more after the noise."""

    @classmethod
    def of(cls, along: float, squares: float, noise: float, lengths: NDArray[np.float64]) -> SignalToNoise:
        """From the residuals' products with the clipped sums, the latter's squares, and squared applied lengths.

        All in claimed variances, but for the lengths, of which only equal ones are told.
        """
        factor = 1 + along / squares if squares > 0 else 1.0
        finite = lengths[np.isfinite(lengths)]
        tied = int((finite >= (1 - _TIED) * finite.max(initial=0.0)).sum())
        return cls(factor, noise, sqrt(max(squares, 0.0)), tied >= max(_FEWEST, len(finite) // 10))

    def exceeds(self, noise: float) -> bool:
        """Whether the gradient is surely larger than the claimed one beside noise of this ratio."""
        error = max(self.noise, noise) / max(self.strength, 1e-12)
        return self.factor > max(noise * (1 + _ROUNDING), noise + _ERRORS * error)

    def explains(self, noise: float) -> bool:
        """Whether noise of this ratio, below one, is little because all that was applied was shortened after it."""
        return not self.exceeds(noise) and (self.equally_long or self.factor < 1 - _ERRORS * self._error)

    def is_scaled(self, noise: float) -> bool:
        """Whether gradient and noise are both this ratio of the claimed ones, not one, within a small error."""
        near, other = max(_ERRORS * self._error, _ROUNDING * noise), abs(self.factor - 1) > _ERRORS * self._error
        return other and not self.exceeds(noise) and abs(self.factor - noise) <= near <= _SURE * noise

    def tell_error(self) -> str:
        """Within how many per cent."""
        return f" (within {100 * max(_ERRORS * self._error / max(self.factor, 1e-12), _ROUNDING):.0f} %)"

    @property
    def _error(self) -> float:
        """Of the factor."""
        return self.noise / max(self.strength, 1e-12)
