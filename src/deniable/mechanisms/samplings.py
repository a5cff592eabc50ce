"""Who takes part in which step: a release on random samples of the records."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nextafter

from deniable.checks import RefusedError, of_kind, probability, refuse, whole
from deniable.mechanisms.mechanism import Composed, Mechanism, check_mechanism


@dataclass(frozen=True)
class Sampling:
    """How the records of a run are drawn; a run is one step, or as many as belong together.

    Neighbours differ in all of a person's `records_per_person` records, which is what *a record* means elsewhere.

    Examples:
        >>> import deniable as dn
        >>> dn.Poisson(0.01), dn.RandomAllocation(steps_per_epoch=100)
        (Poisson(records_per_person=1, rate=0.01), RandomAllocation(records_per_person=1, steps_per_epoch=100, times=1))
    """

    records_per_person: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        whole("records_per_person", self.records_per_person)

    @property
    def steps_of_run(self) -> int:
        """How many steps one run covers."""
        return 1


@dataclass(frozen=True)
class Poisson(Sampling):
    """Every record takes part in a step with probability `rate`, independently of all else.

    Examples:
        >>> import deniable as dn
        >>> dn.Gaussian(1.0).subsampled(dn.Poisson(0.01, records_per_person=3))
        Sampled(mechanism=Gaussian(noise=1.0), sampling=Poisson(records_per_person=3, rate=0.01))
    """

    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        probability("rate", self.rate)


@dataclass(frozen=True)
class RandomAllocation(Sampling):
    """Every record takes part in `times` of the `steps_per_epoch` steps, drawn uniformly; a run is one epoch.

    With `times` = 1, also known as balls in bins, it is exact. More are bounded by so many epochs of
    floor(steps_per_epoch / times) steps with one turn each (Feldman 2025). Shuffling is something else: there the
    batches have a fixed size, and who else is in the person's batch tells something.

    Examples:
        >>> import deniable as dn
        >>> release = dn.Gaussian(1.0).subsampled(dn.RandomAllocation(steps_per_epoch=100)).composed(10)
        >>> round(dn.privacy_loss(release, "zero-out").epsilon(1e-5), 3)
        1.701
    """

    steps_per_epoch: int
    times: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("steps_per_epoch", self.steps_per_epoch)
        whole("times", self.times)
        if self.times > self.steps_per_epoch:
            raise refuse("times", self.times, f"at most the {self.steps_per_epoch} steps of an epoch")

    @property
    def steps_of_run(self) -> int:
        return self.steps_per_epoch


@dataclass(frozen=True)
class FixedSize(Sampling):
    """Every step has `batch` of the `records` records, drawn anew; with `replacement` a record may be drawn again.

    Examples:
        >>> import deniable as dn
        >>> release = dn.Gaussian(1.0).subsampled(dn.FixedSize(batch=50, records=5000)).composed(100)
        >>> round(dn.privacy_loss(release, "replace").advantage(), 4)
        0.0656
    """

    batch: int
    records: int
    replacement: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("records", self.records)
        whole("batch", self.batch)
        if self.batch > self.records and not self.replacement:
            raise refuse("batch", self.batch, f"at most the {self.records} records")
        if self.records_per_person > self.records:
            raise refuse("records_per_person", self.records_per_person, f"at most the {self.records} records")


@dataclass(frozen=True)
class TruncatedPoisson(Sampling):
    """A Poisson sample, at `rate`, of the `records` records; of one larger than `cap`, so many at random (Ganesh 2025).

    Examples:
        >>> import deniable as dn
        >>> release = dn.Gaussian(1.0).subsampled(dn.TruncatedPoisson(0.01, cap=80, records=5000)).composed(100)
        >>> round(dn.privacy_loss(release, "zero-out").advantage(), 4)
        0.0507
    """

    rate: float
    cap: int
    records: int

    def __post_init__(self) -> None:
        super().__post_init__()
        probability("rate", self.rate)
        whole("cap", self.cap)
        whole("records", self.records, low=2)


@dataclass(frozen=True)
class CyclicPoisson(Sampling):
    """Noise that is correlated over `bands` steps (banded matrix mechanisms); a run is one round of so many steps.

    Records are split into as many groups in advance. Step by step the groups take turns, and every record of the group
    takes part with probability bands * rate, so that `rate` is a record's share of all steps.

    Examples:
        >>> import deniable as dn
        >>> release = dn.Gaussian(2.0).subsampled(dn.CyclicPoisson(0.01, bands=4)).composed(10)
        >>> round(dn.privacy_loss(release, "zero-out").epsilon(1e-5), 3)
        0.303
    """

    rate: float
    bands: int

    def __post_init__(self) -> None:
        super().__post_init__()
        probability("rate", self.rate)
        whole("bands", self.bands)
        if self.bands * self.rate > 1:
            raise refuse("rate", self.rate, f"at most 1 / {self.bands} with {self.bands} bands")

    @property
    def steps_of_run(self) -> int:
        return self.bands


@dataclass(frozen=True)
class Shuffled(Sampling):
    """The records are shuffled and cut into `steps_per_epoch` batches of one size; a run is one pass over all of them.

    Nothing better than no sampling is proved for it: its loss is that of one release on all records.

    Examples:
        >>> import deniable as dn
        >>> release = dn.Gaussian(1.0).subsampled(dn.Shuffled(steps_per_epoch=100)).composed(2)
        >>> round(dn.privacy_loss(release, "zero-out").epsilon(1e-5), 3)
        6.573
    """

    steps_per_epoch: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("steps_per_epoch", self.steps_per_epoch)

    @property
    def steps_of_run(self) -> int:
        return self.steps_per_epoch


@dataclass(frozen=True)
class Subsampled(Mechanism):
    """`mechanism` run on a Poisson sample of the records, each of which joins with probability `rate`.

    Examples:
        >>> import deniable as dn
        >>> dn.Gaussian(1.0).subsampled(0.01)
        Subsampled(mechanism=Gaussian(noise=1.0), rate=0.01)
    """

    mechanism: Mechanism
    rate: float

    def __post_init__(self) -> None:
        probability("rate", self.rate)
        _refuse_composed(self.mechanism)

    @property
    def samples(self) -> bool:
        return self.rate > 0 and (self.rate < 1 or self.mechanism.samples)


@dataclass(frozen=True)
class Sampled(Mechanism):
    """One run of `mechanism` in every step of `sampling`, all of them observed.

    Examples:
        >>> import deniable as dn
        >>> dn.Gaussian(1.0).subsampled(dn.RandomAllocation(steps_per_epoch=10)).sampling.steps_per_epoch
        10
    """

    mechanism: Mechanism
    sampling: Sampling

    def __post_init__(self) -> None:
        _refuse_composed(self.mechanism)
        of_kind("sampling", self.sampling, Sampling, "a description of batches", "for example deniable.Poisson(0.01)")

    @property
    def samples(self) -> bool:
        return True


def sample_by(mechanism: Mechanism, sampling: Sampling | float) -> Mechanism:
    """The mechanism on samples; a rate is that of a Poisson sample, and a Poisson sample of Poisson samples is one."""
    drawn = sampling if isinstance(sampling, Sampling) else Poisson(sampling)
    if isinstance(drawn, Poisson) and (inner := _poisson_of(mechanism)) and _has_several(drawn, inner):
        return sample_by(mechanism.mechanism, _draw_twice(drawn, inner))  # type: ignore[attr-defined]
    if isinstance(drawn, Poisson) and drawn.records_per_person == 1:
        return Subsampled(mechanism, drawn.rate)
    return Sampled(mechanism, drawn)


def _poisson_of(mechanism: Mechanism) -> Poisson | None:
    """The Poisson sample on which it runs."""
    if isinstance(mechanism, Subsampled):
        return Poisson(mechanism.rate)
    return mechanism.sampling if isinstance(mechanism, Sampled) and isinstance(mechanism.sampling, Poisson) else None


def _has_several(outer: Poisson, inner: Poisson) -> bool:
    return max(outer.records_per_person, inner.records_per_person) > 1


def _draw_twice(outer: Poisson, inner: Poisson) -> Poisson:
    """Every record passes both samples; neighbours differ in all of a person's records, which one of them names."""
    named = {outer.records_per_person, inner.records_per_person} - {1}
    if len(named) > 1:
        expected = f"{inner.records_per_person} as in the sample within"
        raise refuse("records_per_person", outer.records_per_person, expected)
    rate = outer.rate * inner.rate
    both = nextafter(rate, 1.0) if min(outer.rate, inner.rate) > 0 and max(outer.rate, inner.rate) < 1 else rate
    return Poisson(both, records_per_person=max(named))


def samplings_of(mechanism: Mechanism) -> list[Sampling]:
    """The samplings of all parts of a release, but for Poisson's of one record a person."""
    parts = mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),)
    return [part.sampling for part, steps in parts if steps and isinstance(part, Sampled)]


def _refuse_composed(mechanism: Mechanism) -> None:
    check_mechanism(mechanism)
    if isinstance(mechanism, Composed):
        raise ValueError(
            "subsample each step, then compose: write mechanism.subsampled(rate).composed(steps); "
            "a composition run on one single sample has no exact loss here"
        )
    if isinstance(mechanism, Sampled):
        raise RefusedError(
            f"a sample of a release on {type(mechanism.sampling).__name__} samples is not proved: write "
            "mechanism.subsampled(sampling), which joins Poisson samples, or sample once"
        )
