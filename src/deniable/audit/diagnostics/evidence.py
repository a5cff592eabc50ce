"""What the diagnostics look at: the statistics of all trials, and what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.audit.claim import Claim
from deniable.audit.residuals import Examined
from deniable.mechanisms import Adjacency

__all__ = ["Diagnosis", "Evidence"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Diagnosis:
    """One diagnostic: `p_value` is its chance to look like this, or worse, in a training that is as claimed.

    `sentence` names the cause and what to do, were it to fail; `weakens` says whether that harms privacy, or only
    differs from the claim. `checked` is False where the training gave nothing to look at.
    """

    name: str
    p_value: float
    observed: str
    expected: str
    sentence: str = ""
    weakens: bool = True
    checked: bool = True


@dataclass(frozen=True)
class Evidence:
    """All trials; every field of `Examined` gets the trials as its first axis."""

    claim: Claim
    layers: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    sketched: tuple[int, ...]
    members: Array
    """(trials, columns) which records were trained on."""
    level: float
    """The p-value below which a diagnostic fails."""
    trials: Examined
    looked: Array
    """(trials looked at, steps, vectors, vectors), see `deniable.audit.alternatives`."""

    @classmethod
    def of(
        cls,
        claim: Claim,
        parameters: dict[str, tuple[int, ...]],
        sketched: list[int],
        members: Array,
        examined: list[Examined],
        *,
        level: float,
    ) -> Evidence:
        """Stack the trials."""
        names = [field.name for field in fields(Examined) if field.name != "alternatives"]
        stacked = {name: np.stack([getattr(one, name) for one in examined]) for name in names}
        looked = [one.alternatives for one in examined if len(one.alternatives)]
        alternatives = np.stack(looked) if looked else np.empty((0, 0, 0, 0))
        trials = Examined(**stacked, alternatives=alternatives)
        shapes = tuple(parameters.values())
        return cls(claim, tuple(parameters), shapes, tuple(sketched), members, level, trials, alternatives)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of weights in each layer."""
        return np.array([int(np.prod(shape)) for shape in self.shapes])

    @property
    def differing(self) -> int:
        """How many records are in one of the data sets only: x and, for replace, x'; they are the last columns."""
        return 2 if self.claim.adjacency is Adjacency.REPLACE else 1

    @property
    def steps(self) -> int:
        """Steps that were taken."""
        return int(self.trials.ratio.shape[1])

    @cached_property
    def components(self) -> Array:
        """(trials, steps, directions) standard normal under the claim; nan where there is no direction."""
        length = np.where(self.trials.length > 0, self.trials.length, np.nan)
        return np.asarray(self.trials.inner / length)

    def layer_noise(self) -> list[NDArray[np.float32]]:
        """The sketched noise of each layer, (trials, steps, coordinates)."""
        return np.split(self.trials.sketch, np.cumsum(self.sketched)[:-1], axis=2)
