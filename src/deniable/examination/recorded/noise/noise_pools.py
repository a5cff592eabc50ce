"""The same numbers of noise at other places, in another step or in the same one: slices of one pool, or tiles of it.

Residuals are compared at all shifts by FFT. Where the best shift of two shows single stretches of numbers that are
alike to a cosine of .9, these are copies: of normal numbers a stretch is so by chance less than once in 10^20.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
_NUMBERS = 2**13
"""Of each residual, from its beginning."""
_FEWEST = 512
_HELD = 2**18
"""Of all residuals that are held."""
_STRETCH, _COPIED = 64, 0.9


class ShiftedNoise:
    """Keeps the transforms of the last residuals."""

    def __init__(self) -> None:
        self._held: list[tuple[Array, NDArray[np.complex128]]] = []

    def compare(self, residual: Tensor) -> int:
        """How many of its numbers are copies of those at other places in a residual so far, or in itself."""
        values = residual[:_NUMBERS].double().cpu().numpy()
        length = float(np.linalg.norm(values))
        if len(values) < _FEWEST or length == 0:
            return 0
        unit = values / length
        size = 2 * len(unit)
        transform = np.fft.rfft(unit, size)
        self._held = [*self._held, (unit, transform)][-max(2, _HELD // size) :]
        products = np.fft.irfft(np.array([one for _, one in self._held]).conj() * transform, size, axis=1)
        products[:, 0] = 0.0  # the same places are compared elsewhere
        overlap = np.maximum(len(unit) - np.minimum(np.arange(size), size - np.arange(size)), _STRETCH)
        scores = np.abs(products) / np.sqrt(overlap)
        row, shift = np.unravel_index(int(scores.argmax()), scores.shape)
        return _copies(unit, self._held[int(row)][0], int(shift) if shift <= size // 2 else int(shift) - size)


def _copies(one: Array, other: Array, shift: int) -> int:
    """Numbers of `one` in stretches that are alike to those of `other`, `shift` places before."""
    start, end = max(0, shift), min(len(one), len(other) + shift)
    stretches = (end - start) // _STRETCH
    if stretches < 1:
        return 0
    parts = [
        rows[begin : begin + stretches * _STRETCH].reshape(stretches, _STRETCH)
        for rows, begin in ((one, start), (other, start - shift))
    ]
    lengths = np.linalg.norm(parts[0], axis=1) * np.linalg.norm(parts[1], axis=1)
    cosines = (parts[0] * parts[1]).sum(1) / np.maximum(lengths, 1e-300)
    return int((np.abs(cosines) > _COPIED).sum()) * _STRETCH
