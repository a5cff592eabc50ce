"""Releases that other tools wrote down: a document in place of options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deniable.checks import RefusedError
from deniable.formats import from_dp_event, from_opacus
from deniable.mechanisms import Adjacency, Mechanism
from deniable.scores import privacy_loss

WRITTEN: dict[str, str] = {
    "opacus": "The history of an Opacus accountant, as JSON: a list of triples (noise multiplier, sample rate, steps).",
    "dp_event": "An event of dp-accounting, as JSON: objects with class_name and the event's fields.",
}
"""What a document may be, and what it holds."""
_NEIGHBOURS = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE
"""In the order in which they are tried where none are named."""


def written_by(values: Mapping[str, Any], others: Iterable[str]) -> str | None:
    """Which document was given, if any; of all else only how Opacus's batches are drawn may describe the release."""
    given = [name for name in WRITTEN if name in values]
    if not given:
        return None
    for stray in (*given[1:], *others):
        if stray in values and not (stray == "sampling" and given[0] == "opacus"):
            text = f"{{{stray}}} does not go with {{{given[0]}}}, whose file describes the release"
            raise RefusedError(text, stray, None if stray in WRITTEN else values[stray])
    return given[0]


def parse_written(name: str, values: Mapping[str, Any], adjacency: str | None) -> tuple[Mechanism, Adjacency]:
    """The release of a document; neighbours that are not named are the first for which it is proved."""
    build = _builder(name, values)
    first: RefusedError | None = None
    for neighbours in [Adjacency(adjacency)] if adjacency else _NEIGHBOURS:
        try:
            mechanism = build(neighbours)
            privacy_loss(mechanism, neighbours)  # refuses neighbours for which a sampling is not proved
        except RefusedError as refused:
            first = first or refused
        else:
            return mechanism, neighbours
    raise first or RefusedError(f"{{{name}}} describes nothing")


def _builder(name: str, values: Mapping[str, Any]) -> Callable[[Adjacency], Mechanism]:
    if name == "opacus":
        return lambda neighbours: from_opacus(values["opacus"], neighbours, values.get("sampling"))
    return lambda neighbours: from_dp_event(values["dp_event"], neighbours)
