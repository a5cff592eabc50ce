"""Random releases, and their text as one line of Python."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import deniable as dn
from deniable.mechanisms import samplings_of

__all__ = ["random_adjacency", "random_mechanism", "text"]


def logarithmic(draw: Random, low: float, high: float) -> float:
    """A number between low and high, every size equally likely; often a round one."""
    value = float(low * (high / low) ** draw.random())
    return float(f"{value:.1g}") if draw.random() < 0.4 else value


_SHARE_OF_OTHER_SAMPLINGS, _SHARE_OF_OTHER_RELEASES = 0.15, 0.2


def random_adjacency(draw: Random, mechanism: dn.Mechanism | None = None) -> str:
    """Any, but for samplings that are proved for some neighbours only."""
    kinds = {type(sampling) for sampling in samplings_of(mechanism)} - {dn.Poisson} if mechanism else set()
    exchanging = kinds & {dn.Shuffled, dn.TruncatedPoisson, dn.FixedSize}
    proved = ["zero-out", "replace"] if exchanging else ["add-remove", "zero-out"]
    return draw.choice(proved if kinds else ["add-remove", "add-remove", "replace", "zero-out"])


def _base(draw: Random) -> dn.Mechanism:  # noqa: PLR0911 (a table of kinds)
    extreme = draw.random() < 0.25
    match draw.randrange(9):
        case 0 | 1 | 2:
            return dn.Gaussian(logarithmic(draw, 1e-3, 1e6) if extreme else logarithmic(draw, 0.2, 50))
        case 3:
            return dn.Laplace(logarithmic(draw, 1e-3, 1e6) if extreme else logarithmic(draw, 0.1, 50))
        case 4:
            epsilon = logarithmic(draw, 1e-12, 1e4) if extreme else logarithmic(draw, 1e-3, 10)
            return dn.RandomizedResponse(epsilon, draw.choice([2, 2, 3, 5, 10, 100, 10**4]))
        case 5:
            epsilon = logarithmic(draw, 1e-12, 1e4) if extreme else logarithmic(draw, 1e-2, 10)
            return dn.Pixelization(epsilon, draw.choice([1, 4, 16]), draw.choice([1, 4, 16]))
        case 6:
            epsilon = draw.choice([0.0, logarithmic(draw, 1e-12, 1e4)]) if extreme else logarithmic(draw, 1e-3, 10)
            return dn.ApproximateDP(epsilon, _share(draw))
        case 7:
            return dn.TotalVariation(_share(draw))
    return dn.GaussianDP(draw.choice([0.0, logarithmic(draw, 1e-6, 1e3)]) if extreme else logarithmic(draw, 1e-2, 5))


def _share(draw: Random) -> float:
    return draw.choice([0.0, logarithmic(draw, 1e-12, 1e-4), logarithmic(draw, 1e-300, 1.0), draw.random(), 1.0])


def _rate(draw: Random) -> float:
    match draw.randrange(10):
        case 0:
            return logarithmic(draw, 1e-300, 1e-6)
        case 1:
            return draw.choice([0.0, 0.5, 0.999, 1.0])
        case 2 | 3:
            return draw.random()
    return logarithmic(draw, 1e-4, 0.5)


def _other_sampling(draw: Random) -> dn.Mechanism:
    """Gaussian noise on samples that are not Poisson's."""
    noise = dn.Gaussian(logarithmic(draw, 1e-3, 1e6) if draw.random() < 0.25 else logarithmic(draw, 0.2, 50))
    records = int(logarithmic(draw, 2, 1e7))
    bands = draw.randint(1, 20)
    person = draw.choice([1, 1, 2, draw.randint(1, min(records, 6))])
    samplings = [
        dn.FixedSize(draw.choice([1, records, draw.randint(1, records)]), records),
        dn.FixedSize(draw.randint(1, min(records, 50)), records, replacement=True, records_per_person=person),
        dn.FixedSize(draw.randint(1, records), records, records_per_person=person),
        dn.Poisson(_rate(draw), records_per_person=draw.randint(2, 6)),
        dn.CyclicPoisson(_rate(draw) / bands, bands, records_per_person=person),
        dn.Shuffled(draw.randint(1, 1000), records_per_person=person),
        _truncated(draw, records),
        *[_allocation(draw)] * 3,
    ]
    sampling = draw.choice(samplings)
    if isinstance(sampling, dn.RandomAllocation):  # below, the brackets of hunt.releases lose mass
        noise = dn.Gaussian(logarithmic(draw, 0.2, 50))
    return noise.subsampled(sampling)


def _allocation(draw: Random) -> dn.RandomAllocation:
    steps = draw.choice([1, 2, 3, 7, int(logarithmic(draw, 1, 1e5))])
    return dn.RandomAllocation(steps, draw.choice([1, 1, 1, draw.randint(1, min(steps, 5))]))


def _other_release(draw: Random) -> dn.Mechanism:  # noqa: PLR0911 (a table of kinds)
    """Integers, choices, bare curves and pairs."""
    match draw.randrange(8):
        case 0:
            return dn.DiscreteGaussian(logarithmic(draw, 0.1, 60), draw.choice([1, 1, 2, draw.randint(1, 50)]))
        case 1:
            return dn.DiscreteLaplace(logarithmic(draw, 0.05, 100), draw.choice([1, 2, draw.randint(1, 50)]))
        case 2:
            return dn.ExponentialMechanism(logarithmic(draw, 1e-3, 30))
        case 3:
            return dn.ConcentratedDP(logarithmic(draw, 1e-5, 5))
        case 4:
            orders = sorted({1 + logarithmic(draw, 0.05, 60) for _ in range(draw.randint(1, 5))})
            slope = logarithmic(draw, 1e-4, 2)
            return dn.RenyiDP(orders, sorted(slope * order * draw.uniform(1, 1.5) for order in orders))
        case 5:
            return _selection(draw)
    return _masses(draw)


def _selection(draw: Random) -> dn.Mechanism:
    one = draw.choice([dn.Gaussian, dn.Laplace])(logarithmic(draw, 0.5, 20))
    return dn.RepeatAndSelect(one, 1 + logarithmic(draw, 0.01, 200), draw.choice([0.0, 1.0, 0.5, float("inf")]))


def _masses(draw: Random) -> dn.Mechanism:
    """Any two mass functions; at times with outputs that one of them never has."""
    size = draw.randint(1, 6)
    both = [[draw.expovariate(1.0) * (draw.random() > 0.1) + 1e-6 * (i == 0) for i in range(size)] for _ in range(2)]
    return dn.PmfPair(*([value / sum(weights) for value in weights] for weights in both))


def _truncated(draw: Random, records: int) -> dn.TruncatedPoisson:
    """Batches that are cut often, hardly ever, or always."""
    rate = logarithmic(draw, 1e-4, 0.9)
    usual = int(rate * records * draw.uniform(0.5, 1.5))
    return dn.TruncatedPoisson(rate, draw.choice([min(max(usual, 1), records), draw.randint(1, records)]), records)


def _step(draw: Random) -> dn.Mechanism:
    if draw.random() < _SHARE_OF_OTHER_SAMPLINGS:
        return _other_sampling(draw)
    step = _other_release(draw) if draw.random() < _SHARE_OF_OTHER_RELEASES else _base(draw)
    if isinstance(step, dn.RepeatAndSelect):
        return step
    while draw.random() < 0.45:
        step = step.subsampled(_rate(draw))
    return step


def _runs(draw: Random) -> int:
    match draw.randrange(8):
        case 0:
            return draw.choice([0, 1, 10**9, 10**8])
        case 1:
            return int(logarithmic(draw, 1, 1e9))
        case 2 | 3:
            return draw.randint(1, 20)
    return int(logarithmic(draw, 1, 1e4))


def random_mechanism(draw: Random) -> dn.Mechanism:
    """One step, many of one kind, or a few kinds together."""
    kind = draw.random()
    if kind < 0.2:
        return _step(draw)
    if kind < 0.65:
        return _step(draw).composed(_runs(draw))
    parts = [_step(draw) for _ in range(draw.choice([2, 2, 2, 3, 3, 4]))]
    mixed = dn.compose(*(part.composed(_runs(draw)) if draw.random() < 0.6 else part for part in parts))
    return mixed.composed(draw.randint(0, 50)) if draw.random() < 0.1 else mixed


def text(mechanism: dn.Mechanism) -> str:
    """The mechanism as somebody would write it."""
    match mechanism:
        case dn.Subsampled():
            return f"{text(mechanism.mechanism)}.subsampled({mechanism.rate!r})"
        case dn.Sampled():
            sampling = mechanism.sampling
            return f"{text(mechanism.mechanism)}.subsampled(dn.{_written(sampling)})"
        case dn.RepeatAndSelect(inner, mean, shape):
            shown = 'float("inf")' if shape == float("inf") else repr(shape)
            return f"dn.RepeatAndSelect({text(inner)}, {mean!r}, {shown})"
        case dn.Composed():
            parts = [text(part) + (f".composed({runs})" if runs != 1 else "") for part, runs in mechanism.parts]
            if len(parts) == 1 and mechanism.parts[0][1] != 1:
                return parts[0]
            return f"dn.compose({', '.join(parts)})"
    values = [repr(getattr(mechanism, name)) for name in mechanism.__dataclass_fields__]
    if isinstance(mechanism, dn.RandomizedResponse) and mechanism.categories == 2:
        values.pop()
    return f"dn.{type(mechanism).__name__}({', '.join(values)})"


def _written(sampling: dn.Sampling) -> str:
    """Without what is as usual."""
    given = {field.name: getattr(sampling, field.name) for field in fields(sampling)}
    usual = {"records_per_person": 1, "replacement": False, "times": 1}
    values = [f"{name}={value!r}" for name, value in given.items() if value != usual.get(name)]
    return f"{type(sampling).__name__}({', '.join(values)})"
