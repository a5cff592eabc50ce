"""Names for the arrays that the loss room passes around."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Complexes", "Floats", "Numbers"]

Floats = NDArray[np.floating[Any]]
Complexes = NDArray[np.complexfloating[Any, Any]]
Numbers = Floats | Complexes
