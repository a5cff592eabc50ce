"""Differentially private pixelization of grey images (Fan 2018; Bernau 2021b, Section 2.2; erratum 17)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.checks import positive, whole
from deniable.local.coins import entropy
from deniable.local.laplace_noise import rounded_laplace
from deniable.local.randomizer import LocalCost, Randomizer
from deniable.mechanisms import Laplace, Mechanism, Pixelization, compose

WHITE_STEPS = 255 * 16
"""Steps of the grid from black to white: sixteen a grey level."""


@dataclass(frozen=True)
class ImagePixelization(Randomizer):
    """Replaces each cell of `cell` x `cell` pixels by its mean plus Laplace noise of scale 255 m / (cell^2 epsilon).

    `pixels` is the neighbourhood m: how many pixels two images may differ in. The noisy image is clipped back to the
    pixel range. Images are grey, (images, height, width), from 0 to 1; the scale above is in grey levels 0..255.
    Cells cut by the border average the pixels they have, with the noise of a whole cell on their sum.

    Guarantee: pure epsilon-local DP for images that differ in at most m pixels (`neighbourhood`), hence
    epsilon height width / m for any two images (`cost`); to 2^-65 in total variation a cell (`rounded_laplace`). Bernau
    2021b (Table 1) counts height x width x epsilon instead, m times more than the mechanism can lose.
    """

    epsilon: float
    pixels: int
    cell: int = 1

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        whole("pixels", self.pixels)
        whole("cell", self.cell)

    @property
    def neighbourhood(self) -> Mechanism:
        """The release as seen between images that differ in at most `pixels` pixels."""
        return Pixelization(self.epsilon, self.pixels, self.cell)

    def perturb(self, records: NDArray[Any], seed: int | None = None) -> NDArray[Any]:
        """See `Randomizer.perturb`."""
        if records.dtype.kind != "f" or records.ndim != 3 or records.size == 0:
            raise ValueError(
                f"records must be grey images (images, height, width) of floats from 0 to 1, got {records.dtype} of "
                f"shape {records.shape}: make colours grey first"
            )
        if not np.all((records >= 0) & (records <= 1)):
            raise ValueError("the pixels of records must be numbers from 0 to 1: divide 8-bit pixels by 255")
        # pixels are put on the grid one by one: sums over cells are whole, and m pixels move them by m WHITE_STEPS
        sums = _cell_sums(np.rint(records * WHITE_STEPS).astype(np.int64), self.cell)
        room = _cell_sums(np.full((1, *records.shape[1:]), WHITE_STEPS), self.cell)
        scale = Fraction(WHITE_STEPS * self.pixels) / Fraction(self.epsilon)
        noise = rounded_laplace(scale, int(room.max()), sums.size, entropy(seed))
        means = (np.clip(sums + noise.reshape(sums.shape), 0, room) / room).astype(records.dtype)
        wide = means.repeat(self.cell, axis=1).repeat(self.cell, axis=2)
        return np.ascontiguousarray(wide[:, : records.shape[1], : records.shape[2]])

    def cost(self, record: tuple[int, ...]) -> LocalCost:
        """Any image against any other: each cell's sum may move by all its pixels."""
        if len(record) != 2:
            raise ValueError(f"records must be grey images (images, height, width), got records of {record}")
        height, width = record
        cells = ceil(height / self.cell) * ceil(width / self.cell)
        total = self.epsilon * height * width / self.pixels
        return LocalCost(cells, total, _whole_image(self, height, width))


def _whole_image(randomizer: ImagePixelization, height: int, width: int) -> Mechanism:
    """One Laplace release a cell, by the number of pixels the cell has."""
    edges = [np.diff(np.append(np.arange(0, side, randomizer.cell), side)) for side in (height, width)]
    sizes, counts = np.unique(np.outer(*edges), return_counts=True)
    loss_of_a_pixel = randomizer.epsilon / randomizer.pixels
    parts = [Laplace(1 / (int(size) * loss_of_a_pixel)).composed(int(n)) for size, n in zip(sizes, counts, strict=True)]
    return compose(*parts)


def _cell_sums(images: NDArray[np.int64], cell: int) -> NDArray[np.int64]:
    """Sums over cells of cell x cell pixels; the last cells of a row and a column may have fewer."""
    rows = np.add.reduceat(images, np.arange(0, images.shape[1], cell), axis=1)
    return np.add.reduceat(rows, np.arange(0, images.shape[2], cell), axis=2)
