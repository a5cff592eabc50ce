"""Local differential privacy: every record is perturbed before anybody sees it (Bernau 2021b, Section 2.2).

    randomizer = BinaryResponse(epsilon=1.0)          # or BinaryResponse.from_retention(0.5)
    noisy = randomizer.perturb(bits)                   # entropy of the operating system; a seed is for audits only
    randomizer.cost(bits.shape[1:]).epsilon            # F x epsilon, what a whole record may lose at most
    randomizer.cost(bits.shape[1:]).loss.advantage()   # the exact loss of all F answers together
    perturbed(dataset, suited(dataset, 1.0))           # the same for a `Dataset`

Guarantee: whatever two records an observer wants to tell apart, the perturbed record's privacy loss is dominated by
`cost(...).mechanism`. Labels are not perturbed (Bernau 2021b perturbs the features only), so a label is as public as it
was.

Floating-point attacks (Mironov 2012) read the value off the low bits of noise that was computed in floating point.
Nothing here is: answers are drawn by comparing random integers with integer thresholds (`coins`), and Laplace noise is
drawn as whole steps of a fixed grid, exactly as continuous noise that is rounded to this grid (`laplace`).
"""

from __future__ import annotations

from deniable.local.choose_randomizer import perturb_dataset, suitable_randomizer
from deniable.local.laplace_noise import BoundedLaplace
from deniable.local.mixed_table import TableRandomizer
from deniable.local.pixels import ImagePixelization
from deniable.local.randomizer import LocalCost, Randomizer
from deniable.local.response import BinaryResponse, CategoricalResponse

__all__ = [
    "BinaryResponse",
    "BoundedLaplace",
    "CategoricalResponse",
    "ImagePixelization",
    "LocalCost",
    "Randomizer",
    "TableRandomizer",
    "perturb_dataset",
    "suitable_randomizer",
]
