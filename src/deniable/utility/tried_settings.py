"""What is tried: the promises from strict to weak, and the settings that are searched for each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any

from deniable.checks import one_of, positive, whole
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, Training
from deniable.promises import SCORES, Promise
from deniable.training.settings import Optimizer

__all__ = ["USUAL_BOUNDS", "Setting", "choose_settings", "list_promises", "training_mechanism"]

USUAL_BOUNDS: dict[str, tuple[float, ...]] = {
    "belief": (0.51, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    "advantage": (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
    "accuracy": (0.505, 0.525, 0.55, 0.6, 0.65, 0.75, 0.85, 0.95),
    "tpr": (0.011, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5),
    "ppv": (0.51, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98),
    "success": (0.011, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5),
    "epsilon": (0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0),
}
"""From very strict to weak, by the promise's name; rates and successes at 1 %."""
USUAL_PARAMETERS = {"prior": 0.5, "fpr": 0.01, "baseline": 0.01}
USUAL_BATCHES, USUAL_EPOCHS = (256, 1024), (4, 16)
USUAL_RATES: dict[str, tuple[tuple[float, float], ...]] = {
    "adam": ((0.1, 0.003), (0.1, 0.01), (0.1, 0.03), (1.0, 0.01), (1.0, 0.03)),
    "sgd": ((0.1, 3.0), (0.1, 10.0), (1.0, 0.3), (1.0, 1.0), (1.0, 3.0)),
}
"""(clipping norm, learning rate) by the optimizer."""
LEAST_BATCHES_AN_EPOCH = 4


@dataclass(frozen=True)
class Setting:
    """How a training is set, but for its noise; `batch` is the expected one of the whole training part."""

    clip: float
    learning_rate: float
    batch: int
    epochs: int

    def rate(self, records: int) -> float:
        """The probability of each of `records` records to be in a batch."""
        return min(1.0, self.batch / records)

    def steps(self, records: int) -> int:
        """Steps that give every record `epochs` expected visits."""
        return ceil(self.epochs / self.rate(records))


def choose_settings(
    records: int,
    optimizer: Optimizer,
    *,
    clip: Iterable[float] | None = None,
    learning_rate: Iterable[float] | None = None,
    batch: Iterable[int] | None = None,
    epochs: Iterable[int] | None = None,
) -> tuple[Setting, ...]:
    """Every combination of what is given; the usual 20, scaled to the number of records, where nothing is."""
    one_of("optimizer", optimizer, tuple(USUAL_RATES))
    if clip is None and learning_rate is None:
        moves = list(USUAL_RATES[optimizer])
    else:
        norms = sorted({positive("clip", norm) for norm in clip}) if clip is not None else [1.0]
        usual_rates = sorted({rate for _, rate in USUAL_RATES[optimizer]})
        rates = (
            sorted({positive("learning_rate", rate) for rate in learning_rate})
            if learning_rate is not None
            else usual_rates
        )
        moves = list(product(norms, rates))
    most = max(1, records // LEAST_BATCHES_AN_EPOCH)
    usual = {
        max(1, min(size, most * size // USUAL_BATCHES[-1])) for size in USUAL_BATCHES
    }  # fewer records: the same ratio
    batches = sorted({whole("batch", size) for size in batch} if batch is not None else usual)
    if batches and batches[-1] > records:
        raise ValueError(f"batch must be at most {records:,}, all training records, got {batches[-1]:,}")
    lengths = sorted({whole("epochs", length) for length in (USUAL_EPOCHS if epochs is None else epochs)})
    found = tuple(Setting(*move, size, length) for size, length, move in product(batches, lengths, moves))
    if not found:
        raise ValueError("clip, learning_rate, batch and epochs must each name at least one value")
    return found


def list_promises(name: str, bounds: Iterable[float] | None, parameters: dict[str, Any]) -> tuple[Promise, ...]:
    """The promises of this kind, strictest first."""
    entry = SCORES[one_of("promise", name, tuple(SCORES))]
    asked = {at: parameters.get(at, USUAL_PARAMETERS.get(at)) for at in entry.parameter_names()}
    stray = next((at for at in parameters if at not in (*asked, "delta")), None)
    if stray is not None:
        raise ValueError(f"{stray} is no parameter of a promise of {name}: leave it out")
    found = sorted(set(USUAL_BOUNDS[name] if bounds is None else bounds))
    if not found:
        raise ValueError("bounds must name at least one promise")
    return tuple(entry(bound, **asked) for bound in found)


def training_mechanism(noise: float, rate: float, steps: int) -> Mechanism:
    """What an observer of every step sees; add-remove neighbours."""
    return Training(noise, rate, steps, Adjacency.ADD_REMOVE).mechanism if noise else Gaussian(noise)
