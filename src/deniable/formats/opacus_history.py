"""Opacus's record of a training: (noise multiplier, sample rate, steps), once for every stretch of equal steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deniable.checks import RefusedError, one_of, positive, probability, whole
from deniable.mechanisms import Adjacency, ApproximateDP, Gaussian, Mechanism, Shuffled, compose

OPACUS_SAMPLINGS = "poisson", "shuffled", "unknown"
"""How batches were drawn, the weaker protection last: Poisson samples, completed passes, or nobody knows."""
_MOST_STRETCHES = 100_000
_ROUNDING = 1e-9


class Stretch(NamedTuple):
    """Steps with the same noise and rate. `noise` is standard deviation / clipping norm; 0 is none."""

    noise: float
    rate: float
    steps: int


def from_opacus(source: Any, adjacency: Adjacency | str = "add-remove", sampling: str | None = None) -> Mechanism:
    """The release that an Opacus accountant has recorded.

    Args:
        source: the accountant, its `state_dict()`, or its `history`, a list of (noise multiplier, sample rate, steps).
        adjacency: the neighbours for which scores will be asked. Opacus's noise is in clipping norms: it is halved for
            `replace`, whose sensitivity is two of them.
        sampling: how batches were drawn, of which Opacus keeps no record: "poisson" (its own loader); "shuffled" (its
            option poisson_sampling=False and a loader that passes over all records; every pass must be completed);
            or "unknown": every step then counts as one on all records. Default: the source's own word, else poisson.

    Returns:
        The release as a mechanism, to be asked by `privacy_loss` and `explain`.

    Examples:
        >>> import deniable as dn
        >>> dn.from_opacus([(1.0, 0.01, 1000)])
        Composed(parts=((Subsampled(mechanism=Gaussian(noise=1.0), rate=0.01), 1000),))
    """
    history, word = _record(source)
    stretches, drawn = check_history(history), one_of("sampling", sampling or word or "poisson", OPACUS_SAMPLINGS)
    scale = Adjacency(adjacency).sensitivity(1.0)
    return compose(*_runs(stretches, drawn, scale))


def check_history(history: Any) -> list[Stretch]:
    """The history as numbers that were looked at."""
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable):
        raise _refuse("{history}", "a list of (noise multiplier, sample rate, steps)", history)
    stretches = [_stretch(place, entry) for place, entry in enumerate(history)]
    if len(stretches) > _MOST_STRETCHES:
        raise _refuse("{history}", f"at most {_MOST_STRETCHES:,} entries", len(stretches))
    return stretches


def _record(source: Any) -> tuple[Any, str | None]:
    """The history, and how batches were drawn if the source says so."""
    if isinstance(source, Mapping):
        if "history" not in source:
            raise _refuse("a state of an Opacus accountant", "an object with the key history", list(source)[:5])
        return source["history"], source.get("sampling")
    return getattr(source, "history", source), getattr(source, "sampling", None)


def _stretch(place: int, entry: Any) -> Stretch:
    where = f"{{history}} entry {place + 1}"
    if isinstance(entry, str | bytes | Mapping) or not isinstance(entry, Iterable) or len(found := [*entry]) != 3:
        raise _refuse(where, "three numbers (noise multiplier, sample rate, steps)", entry)
    try:
        noise, rate, steps = found
        near_one = isinstance(rate, float) and 1 < rate < 1 + _ROUNDING  # a sum of rates of accumulated batches
        return Stretch(
            positive("noise", noise, zero=True),
            probability("rate", 1.0 if near_one else rate),
            whole("steps", steps, low=0),
        )
    except RefusedError as refused:
        raise RefusedError(f"{where}: {refused}", "history", entry) from refused


def _refuse(what: str, expected: str, found: Any) -> RefusedError:
    shown = repr(found) if len(repr(found)) < 80 else f"{repr(found)[:77]}..."
    return RefusedError(f"{what} must be {expected}, got {shown}", "history", found)


def _runs(stretches: list[Stretch], sampling: str, scale: float) -> Iterator[Mechanism]:
    if sampling == "shuffled":
        yield from _passes(stretches, scale)
        return
    steps: Counter[tuple[float, float]] = Counter()
    for stretch in stretches:
        steps[stretch.noise, stretch.rate if sampling == "poisson" else 1.0] += stretch.steps
    for (noise, rate), count in steps.items():
        yield _step(noise / scale, rate).composed(count)


def _step(noise: float, rate: float) -> Mechanism:
    """Without noise, whoever is in the batch is seen."""
    if noise == 0 or rate == 0:
        return ApproximateDP(0.0, rate)
    return Gaussian(noise) if rate == 1 else Gaussian(noise).subsampled(rate)


def _passes(stretches: list[Stretch], scale: float) -> Iterator[Mechanism]:
    """Every pass that a stretch has a part in counts as one of its own: a record may have its turn in that part."""
    done, before = 0, 0
    for noise, rate, steps in stretches:
        if rate == 0:
            continue
        length = max(1, round(1 / rate))
        done = done if length == before else 0  # another loader begins another pass
        passes = -(-(done + steps) // length) - done // length
        one = ApproximateDP(0.0, 1.0) if noise == 0 else Gaussian(noise / scale).subsampled(Shuffled(length))
        yield one.composed(passes if steps else 0)
        done, before = done + steps, length
