"""dp-accounting's trees of events (`DpEvent`), as objects, as named tuples or as JSON; its package is not needed.

JSON has an object for every event with its class's name and its fields, as in
{"class_name": "SelfComposedDpEvent", "count": 10, "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 2}};
`json.dumps(event.to_named_tuple())` writes lists [module, class, field, ...], which are read, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, isinf
from typing import Any

from deniable.checks import RefusedError, positive, probability, whole
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Composed,
    ConcentratedDP,
    DiscreteLaplace,
    FixedSize,
    Gaussian,
    Laplace,
    Mechanism,
    RandomizedResponse,
    RenyiDP,
    RepeatAndSelect,
    TruncatedPoisson,
    compose,
)

_DEEPEST = 60
_MOST_EVENTS = 100_000
_ENDING = "DpEvent"
NOTHING_HIDDEN = ApproximateDP(0.0, 1.0)
"""A release without privacy."""


def from_dp_event(event: Any, adjacency: Adjacency | str = "add-remove") -> Mechanism:
    """The release that a `DpEvent` of dp-accounting describes.

    Args:
        event: a tree of events; as an object, as its `to_named_tuple()`, or as what a JSON file of it holds.
        adjacency: the neighbours for which scores will be asked. An event's noise is in norms of one record's part: it
            is halved for `replace`, whose sensitivity is two of them.

    An event that is not known here is refused by its name.

    Returns:
        The release as a mechanism, to be asked by `privacy_loss` and `explain`.

    Examples:
        >>> import deniable as dn
        >>> event = {"class_name": "GaussianDpEvent", "noise_multiplier": 2.0}
        >>> dn.from_dp_event(event)
        Gaussian(noise=2.0)
    """
    return _Reader(Adjacency(adjacency)).build(event, 0)


class _Reader:
    """One reading of a tree."""

    def __init__(self, adjacency: Adjacency) -> None:
        self.adjacency, self.scale, self.events = adjacency, adjacency.sensitivity(1.0), 0

    def build(self, event: Any, depth: int) -> Mechanism:
        """The mechanism of one event."""
        self.events += 1
        if depth > _DEEPEST or self.events > _MOST_EVENTS:
            limit = f"{_DEEPEST} levels" if depth > _DEEPEST else f"{_MOST_EVENTS:,} events"
            raise _refuse(f"a tree of events may have at most {limit}")
        name, kind, values = _recognise(event)
        try:
            return kind.build(_Fields(name, values, self, depth))
        except RefusedError as refused:
            if str(refused).startswith(_MARK):
                raise
            raise _refuse(f"{name}: {refused}") from refused


@dataclass(frozen=True)
class _Fields:
    """The fields of one event, checked when they are asked for."""

    name: str
    values: Mapping[str, Any]
    reader: _Reader
    depth: int

    def number(self, field: str) -> float:
        """A number from 0 on."""
        return positive(field, self.values[field], zero=True)

    def share(self, field: str) -> float:
        """A probability."""
        return probability(field, self.values[field])

    def count(self, field: str, low: int = 0) -> int:
        """A whole number."""
        return whole(field, self.values[field], low=low)

    def noise(self, field: str) -> float:
        """A noise in units of the sensitivity; 0 is none."""
        return self.number(field) / self.reader.scale

    def inner(self) -> Mechanism:
        """The event inside this one."""
        return self.reader.build(self.values["event"], self.depth + 1)

    def step(self) -> Mechanism:
        """The event inside, as one release on one sample: several Gaussian ones are one with less noise."""
        return _join_parts(self.inner(), self.name)


@dataclass(frozen=True)
class _Kind:
    """One class of events: its fields in order, which of them may be missing, and the mechanism."""

    fields: tuple[str, ...]
    build: Callable[[_Fields], Mechanism]
    defaults: Mapping[str, float] | None = None


def _gaussian(noise: float) -> Mechanism:
    return Gaussian(noise) if noise else NOTHING_HIDDEN


def _laplace(noise: float) -> Mechanism:
    return Laplace(noise) if noise else NOTHING_HIDDEN


def _discrete_laplace(fields: _Fields) -> Mechanism:
    parameter, sensitivity = fields.number("noise_parameter"), fields.count("sensitivity", low=1)
    return DiscreteLaplace(1 / parameter, sensitivity * int(fields.reader.scale)) if parameter else NOTHING_HIDDEN


def _response(fields: _Fields) -> Mechanism:
    lie, buckets = fields.share("noise_parameter"), fields.count("num_buckets", low=1)
    if buckets == 1 or lie == 1:
        return compose()
    return RandomizedResponse.from_retention(1 - lie, buckets) if lie else NOTHING_HIDDEN


def _several(fields: _Fields) -> Mechanism:
    events = fields.values["events"]
    if isinstance(events, str | bytes | Mapping) or not isinstance(events, Sequence):
        raise RefusedError("events must be a list")
    return compose(*(fields.reader.build(event, fields.depth + 1) for event in events))


def _poisson(fields: _Fields) -> Mechanism:
    rate, step = fields.share("sampling_probability"), fields.step()
    if rate == 0 or step == compose():
        return compose()
    if step == NOTHING_HIDDEN:
        return ApproximateDP(0.0, rate)  # seen if drawn
    return step if rate == 1 else step.subsampled(rate)


def _fixed_size(fields: _Fields, replacement: bool) -> Mechanism:
    batch, records = fields.count("sample_size", low=1), fields.count("source_dataset_size", low=1)
    step = fields.step()
    if step in (NOTHING_HIDDEN, compose()):
        return step
    return step.subsampled(FixedSize(batch, records, replacement))


def _truncated_poisson(fields: _Fields) -> Mechanism:
    rate, cap, records = (
        fields.share("sampling_probability"),
        fields.count("truncated_batch_size"),
        fields.count("dataset_size"),
    )
    noise = fields.noise("noise_multiplier")
    if not (rate and cap and records):
        return compose()
    return Gaussian(noise).subsampled(TruncatedPoisson(rate, cap, records)) if noise else NOTHING_HIDDEN


def _trees(fields: _Fields) -> Mechanism:
    """A record is in as many nodes as its tree has levels, all of them in one tree (Kairouz 2021, Appendix D)."""
    if fields.reader.adjacency is not Adjacency.ZERO_OUT:
        raise RefusedError("it is known for zero-out neighbours alone: name them as the adjacency")
    counts = fields.values["step_counts"]
    steps = [whole("step_counts", count) for count in (counts if isinstance(counts, Sequence) else [counts])]
    return _gaussian(fields.noise("noise_multiplier")).composed(max(steps, default=0).bit_length())


def _repeat_and_select(fields: _Fields) -> Mechanism:
    shape = fields.values["shape"]
    shape = inf if isinstance(shape, float) and isinf(shape) and shape > 0 else fields.number("shape")
    return RepeatAndSelect(fields.inner(), fields.number("mean"), shape)


def _concentrated_dp(fields: _Fields) -> Mechanism:
    """(xi, rho)-zCDP: divergences of order a are at most xi + rho a."""
    rho, xi = fields.number("rho"), fields.number("xi")
    if xi == 0:
        return ConcentratedDP(rho)
    orders = [1 + 10 ** (place / 10) for place in range(-20, 41)]
    return RenyiDP(orders, [xi + rho * order for order in orders])


_KINDS: dict[str, _Kind] = {
    "NoOpDpEvent": _Kind((), lambda fields: compose()),
    "NonPrivateDpEvent": _Kind((), lambda fields: NOTHING_HIDDEN),
    "GaussianDpEvent": _Kind(("noise_multiplier",), lambda fields: _gaussian(fields.noise("noise_multiplier"))),
    "LaplaceDpEvent": _Kind(("noise_multiplier",), lambda fields: _laplace(fields.noise("noise_multiplier"))),
    "DiscreteLaplaceDpEvent": _Kind(("noise_parameter", "sensitivity"), _discrete_laplace),
    "RandomizedResponseDpEvent": _Kind(("noise_parameter", "num_buckets"), _response),
    "SelfComposedDpEvent": _Kind(("event", "count"), lambda fields: fields.inner().composed(fields.count("count"))),
    "ComposedDpEvent": _Kind(("events",), _several),
    "PoissonSampledDpEvent": _Kind(("sampling_probability", "event"), _poisson),
    "SampledWithoutReplacementDpEvent": _Kind(
        ("source_dataset_size", "sample_size", "event"), lambda fields: _fixed_size(fields, replacement=False)
    ),
    "SampledWithReplacementDpEvent": _Kind(
        ("source_dataset_size", "sample_size", "event"), lambda fields: _fixed_size(fields, replacement=True)
    ),
    "TruncatedSubsampledGaussianDpEvent": _Kind(
        ("dataset_size", "sampling_probability", "truncated_batch_size", "noise_multiplier"), _truncated_poisson
    ),
    "SingleEpochTreeAggregationDpEvent": _Kind(("noise_multiplier", "step_counts"), _trees),
    "RepeatAndSelectDpEvent": _Kind(("event", "mean", "shape"), _repeat_and_select),
    "ZCDpEvent": _Kind(("rho", "xi"), _concentrated_dp, {"xi": 0.0}),
}
_MARK = "dp_event: "  # of a refusal that tells already where


def _recognise(event: Any) -> tuple[str, _Kind, Mapping[str, Any]]:
    """The event's class and its fields, whatever it is written in."""
    name, found = _name_and_fields(event)
    name = name if name.endswith(_ENDING) else name + _ENDING
    if name not in _KINDS:
        known = ", ".join(one.removesuffix(_ENDING) for one in _KINDS)
        raise _refuse(f"{name[:60]} is not known here; known events are {known}")
    kind = _KINDS[name]
    if isinstance(found, Mapping):
        values = {**(kind.defaults or {}), **found}
    elif isinstance(found, Sequence):
        values = {**(kind.defaults or {}), **dict(zip(kind.fields, found, strict=False))}
    else:
        values = {field: getattr(found, field) for field in kind.fields if hasattr(found, field)}
    for field in kind.fields:
        if field not in values:
            raise _refuse(f"{name}: {field} is missing")
    return name, kind, values


def _name_and_fields(event: Any) -> tuple[str, Any]:
    if hasattr(event, "_asdict"):  # a named tuple
        event = event._asdict()
    match event:
        case {"class_name": str(name)} | {"type": str(name)}:
            return name, event
        case [str(), str(name), *values]:
            return name, values
        case str() | bytes() | int() | float() | None | Mapping() | list() | tuple():
            raise _refuse(f"an event must be an object with its class_name, got {_short(event)}")
    return type(event).__name__, event


def _join_parts(mechanism: Mechanism, sampled_by: str) -> Mechanism:
    """A composition that is run on one sample, as a single release: known of Gaussian noise, and of nothing at all."""
    parts = mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),)
    parts = tuple((part, runs) for part, runs in parts if runs)
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    if any(part == NOTHING_HIDDEN for part, _ in parts):
        return NOTHING_HIDDEN
    if not all(isinstance(part, Gaussian) for part, _ in parts):
        raise _refuse(f"{sampled_by}: several releases on one sample are known for Gaussian noise alone")
    strengths = [runs / part.noise**2 for part, runs in parts if isinstance(part, Gaussian)]
    return Gaussian(fsum(strengths) ** -0.5) if strengths else compose()


def _refuse(text: str) -> RefusedError:
    return RefusedError(f"{{dp_event}}: {text}", "dp_event")


def _short(value: Any) -> str:
    return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:57]}..."
