"""Random releases, and their text as one line of Python."""

from __future__ import annotations

from random import Random

import deniable as dn
from deniable.mechanisms import samplings_of

__all__ = ["random_adjacency", "random_mechanism", "text"]


def logarithmic(draw: Random, low: float, high: float) -> float:
    """A number between low and high, every size equally likely; often a round one."""
    value = float(low * (high / low) ** draw.random())
    return float(f"{value:.1g}") if draw.random() < 0.4 else value


_SHARE_OF_OTHER_SAMPLINGS = 0.08


def random_adjacency(draw: Random, mechanism: dn.Mechanism | None = None) -> str:
    """Any, but for samplings that are proved for some neighbours only."""
    kinds = {type(sampling) for sampling in samplings_of(mechanism)} if mechanism else set()
    if dn.FixedSize in kinds:
        return "replace"
    proved = ["zero-out", "replace"] if kinds & {dn.Shuffled, dn.TruncatedPoisson} else ["add-remove", "zero-out"]
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
    samplings = [
        dn.FixedSize(draw.choice([1, records, draw.randint(1, records)]), records),
        dn.CyclicPoisson(_rate(draw) / bands, bands),
        dn.Shuffled(draw.randint(1, 1000)),
        _truncated(draw, records),
    ]
    return noise.subsampled(draw.choice(samplings))


def _truncated(draw: Random, records: int) -> dn.TruncatedPoisson:
    """Batches that are cut often, hardly ever, or always."""
    rate = logarithmic(draw, 1e-4, 0.9)
    usual = int(rate * records * draw.uniform(0.5, 1.5))
    return dn.TruncatedPoisson(rate, draw.choice([min(max(usual, 1), records), draw.randint(1, records)]), records)


def _step(draw: Random) -> dn.Mechanism:
    if draw.random() < _SHARE_OF_OTHER_SAMPLINGS:
        return _other_sampling(draw)
    step = _base(draw)
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
            fields = [
                name for name in sampling.__dataclass_fields__ if name not in ("records_per_person", "replacement")
            ]
            values = ", ".join(repr(getattr(sampling, name)) for name in fields)
            return f"{text(mechanism.mechanism)}.subsampled(dn.{type(sampling).__name__}({values}))"
        case dn.Composed():
            parts = [text(part) + (f".composed({runs})" if runs != 1 else "") for part, runs in mechanism.parts]
            if len(parts) == 1 and mechanism.parts[0][1] != 1:
                return parts[0]
            return f"dn.compose({', '.join(parts)})"
    values = [repr(getattr(mechanism, name)) for name in mechanism.__dataclass_fields__]
    if isinstance(mechanism, dn.RandomizedResponse) and mechanism.categories == 2:
        values.pop()
    return f"dn.{type(mechanism).__name__}({', '.join(values)})"
