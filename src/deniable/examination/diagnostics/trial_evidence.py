"""What the diagnostics look at: the statistics of all trials, and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.examination.alternatives import LookedTrial
from deniable.examination.claim import RecipeTraining
from deniable.examination.residuals import STEPWISE, TrialStatistics
from deniable.mechanisms import Adjacency

if TYPE_CHECKING:
    from deniable.examination.twins.twins import Twins

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
    weakens: bool | None = True
    """None: it cannot be told."""
    checked: bool = True


@dataclass(frozen=True)
class Evidence:
    """All trials; every field of `TrialStatistics` gets the trials as its first axis."""

    claim: RecipeTraining
    layers: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    sketched: tuple[int, ...]
    members: Array
    """(trials, columns) which records were trained on."""
    level: float
    """The p-value below which a diagnostic fails."""
    trials: TrialStatistics
    taken: NDArray[np.int64]
    """(trials,) steps that each training took; all statistics are of the first ones, which all of them took."""
    examined: tuple[TrialStatistics, ...]
    """Every trial by itself, with all the steps it took."""
    twins: Twins | None = None
    alone: Callable[[], Evidence | None] | None = None
    """Trains on single records; None where that fails."""
    torn: Callable[[], Evidence | None] | None = None
    """Trains on one record with every label, which leave nothing to learn; None where that fails."""
    looking: Callable[[], list[LookedTrial]] | None = None
    """Plays some trials again and looks for other explanations; it is called where these are asked for."""

    @classmethod
    def of(
        cls,
        claim: RecipeTraining,
        parameters: dict[str, tuple[int, ...]],
        sketched: list[int],
        members: Array,
        examined: list[TrialStatistics],
        *,
        level: float,
        twins: Twins | None = None,
        alone: Callable[[], Evidence | None] | None = None,
        torn: Callable[[], Evidence | None] | None = None,
        looking: Callable[[], list[LookedTrial]] | None = None,
    ) -> Evidence:
        """Stack the trials; of trainings that took more steps than others, the first ones."""
        steps = min(int(one.taken) for one in examined)
        names = [field.name for field in fields(TrialStatistics)]
        raw = min(len(one.raw) for one in examined)
        stacked = {name: np.stack([_first(one, name, steps, raw) for one in examined]) for name in names}
        trials = TrialStatistics(**stacked)
        shapes = tuple(parameters.values())
        taken = np.array([int(one.taken) for one in examined])
        layers, kept = tuple(parameters), tuple(sketched)
        stacked_all = claim, layers, shapes, kept, members, level, trials, taken, tuple(examined)
        return cls(*stacked_all, twins, alone, torn, looking)

    @cached_property
    def _looked_at(self) -> list[LookedTrial]:
        return [] if self.looking is None else self.looking()

    @cached_property
    def trial_products(self) -> Array:
        """(trials looked at, steps, vectors, vectors), see `deniable.examination.alternatives`."""
        fewest = min((len(one.products) for one in self._looked_at), default=0)
        found = [one.products[:fewest] for one in self._looked_at]
        return np.stack(found) if found else np.empty((0, 0, 0, 0))

    @cached_property
    def free(self) -> Array:
        """(trials looked at, steps, 2), see `deniable.examination.alternatives.free_noise`."""
        fewest = min((len(one.free) for one in self._looked_at), default=0)
        found = [one.free[:fewest] for one in self._looked_at]
        return np.stack(found) if found else np.empty((0, 0, 2))

    @cached_property
    def single(self) -> Evidence | None:
        """Of trainings on a single record each, see `deniable.examination.diagnostics.single_records`."""
        return None if self.alone is None else self.alone()

    @cached_property
    def others(self) -> list[Evidence]:
        """These trials, and those on small sets of records, on which noise outweighs what can be learned.

        There the loss goes up and down, so that choices show that are made by looking at it.
        """
        torn = None if self.torn is None else self.torn()
        return [self, *(one for one in (self.single, torn) if one is not None)]

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

    @cached_property
    def gradient_fits(self) -> bool | None:
        """Whether twins differ by what the claimed gradients differ by, to rounding; None if it is not known."""
        return None if self.twins is None else self.twins.fits

    def layer_noise(self) -> list[NDArray[np.float32]]:
        """The sketched noise of each layer, (trials, steps, coordinates)."""
        return np.split(self.trials.sketch, np.cumsum(self.sketched)[:-1], axis=2)


def _first(one: TrialStatistics, name: str, steps: int, raw: int) -> NDArray[Any]:
    values: NDArray[Any] = getattr(one, name)
    return values[:steps] if name in STEPWISE else values[:raw] if name in ("raw", "raw_moved") else values
