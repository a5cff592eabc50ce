"""What is tried: the promises from strict to weak, and the settings that are searched for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any

from scipy.special import ndtr, ndtri

from deniable.bounds.risk_bounds import belief_to_epsilon, epsilon_to_belief
from deniable.checks import one_of, positive, whole
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, Training
from deniable.promises import SCORES, Promise
from deniable.training.settings import Optimizer

USUAL_BOUNDS: dict[str, tuple[float, ...]] = {
    "belief": (0.51, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    "advantage": (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
    "accuracy": (0.505, 0.525, 0.55, 0.6, 0.65, 0.75, 0.85, 0.95),
    "tpr": (0.011, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5),
    "ppv": (0.51, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98),
    "success": (0.011, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5),
    "epsilon": (0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0),
}
"""From very strict to weak, by the promise's name, at the usual parameters."""
USUAL_PARAMETERS = {"prior": 0.5, "fpr": 0.01, "baseline": 0.01}
_DIGITS = 3
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


def list_promises(name: str, bounds: Iterable[float] | None, parameters: Mapping[str, float]) -> tuple[Promise, ...]:
    """The promises of this kind, strictest first."""
    entry = SCORES[one_of("promise", name, tuple(SCORES))]
    asked: dict[str, Any] = {at: parameters.get(at, USUAL_PARAMETERS.get(at)) for at in entry.parameter_names()}
    stray = next((at for at in parameters if at not in (*asked, "delta")), None)
    if stray is not None:
        raise ValueError(f"{stray} is no parameter of a promise of {name}: leave it out")
    found = sorted(set(_usual_bounds(name, asked) if bounds is None else bounds))
    if not found:
        raise ValueError("bounds must name at least one promise")
    return tuple(entry(bound, **asked) for bound in found)


def _usual_bounds(name: str, asked: Mapping[str, float]) -> Iterator[float]:
    """The eight usual promises with the same protection at other parameters, to three digits."""
    if all(asked[at] == usual for at, usual in USUAL_PARAMETERS.items() if at in asked):
        yield from USUAL_BOUNDS[name]
        return
    for usual in USUAL_BOUNDS[name]:
        bound = _CARRIED[name](usual, asked)
        yield round(float(f"{bound:.{_DIGITS}g}") if bound < 0.5 else 1 - float(f"{1 - bound:.{_DIGITS}g}"), 15)


def _carry_belief(usual: float, asked: Mapping[str, float]) -> float:
    """The same factor between the odds before and after."""
    return epsilon_to_belief(belief_to_epsilon(usual), asked["prior"])


def _carry_accuracy(usual: float, asked: Mapping[str, float]) -> float:
    """The same share of what is left to blind guessing."""
    blind = max(asked["prior"], 1 - asked["prior"])
    return blind + (2 * usual - 1) * (1 - blind)


def _carry_rate(usual: float, at: float) -> float:
    """The rate at another false positive rate, or baseline, of the same Gaussian differential privacy."""
    return float(ndtr(ndtri(usual) - ndtri(USUAL_PARAMETERS["fpr"]) + ndtri(at)))


def _carry_ppv(usual: float, asked: Mapping[str, float]) -> float:
    """By the rate of true alarms: of the usual one at even odds, then at the odds that are asked."""
    prior, fpr = asked["prior"], asked["fpr"]
    rate = _carry_rate(usual / (1 - usual) * USUAL_PARAMETERS["fpr"], fpr)
    return prior * rate / (prior * rate + (1 - prior) * fpr)


_CARRIED: dict[str, Callable[[float, Mapping[str, float]], float]] = {
    "belief": _carry_belief,
    "accuracy": _carry_accuracy,
    "tpr": lambda usual, asked: _carry_rate(usual, asked["fpr"]),
    "success": lambda usual, asked: _carry_rate(usual, asked["baseline"]),
    "ppv": _carry_ppv,
}


def training_mechanism(noise: float, rate: float, steps: int) -> Mechanism:
    """What an observer of every step sees; add-remove neighbours."""
    return Training(noise, rate, steps, Adjacency.ADD_REMOVE).mechanism if noise else Gaussian(noise)
