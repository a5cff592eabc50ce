"""Names for the arrays that the loss room passes around, and their round-off."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EPS", "Complexes", "Floats", "Numbers"]

EPS = 2.2e-16  # twice the relative round-off of one operation, 1.1e-16

Floats = NDArray[np.floating[Any]]
Complexes = NDArray[np.complexfloating[Any, Any]]
Numbers = Floats | Complexes
