"""What one table or figure of a paper is: what to compute, what the paper prints, how they must compare, how it looks.

An `Item` is declared before anything runs, so its tolerances cannot be fitted to its outcome.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from deniable.engines import Engine, Shared
from deniable.experiments.statements import Comparison
from deniable.store import canonical, read_document, write_document

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = dict[str, Any]
"""Plain JSON: numbers, texts, lists and tables of them."""
T = TypeVar("T")


def to_values(found: object) -> Values:
    """What an item found (a `Part`, or JSON values) as a later run will read it; NaN and infinity are errors."""
    values: Values = json.loads(json.dumps(found, allow_nan=False, default=msgspec.structs.asdict))
    return values


def present(value: T | None) -> T:
    """A value that not every run of its kind has, but this item's runs do."""
    assert value is not None
    return value


class Scale(StrEnum):
    """How much of the paper's work is done."""

    TEST = "test"
    """For the project's own tests: seconds for all items together."""
    SMOKE = "smoke"
    """A look: all items of all papers in under ten minutes on two cores."""
    HOURS = "hours"
    """The largest sizes that two cores finish in a few hours: what docs/results holds."""
    FULL = "full"
    """The paper's own sizes."""

    @property
    def rank(self) -> int:
        """0 for the smallest."""
        return list(Scale).index(self)


@dataclass(frozen=True)
class ItemRun:
    """What an item's computation is given: the scale, the seed, and a place where long work is kept."""

    scale: Scale
    trials: Path
    """Shared by all items of an output directory: what two items both need is measured once."""
    seed: int = 0
    tell: Callable[[float], None] = lambda done: None
    """To be called with the share of the item's work that is done."""
    engine: Engine | None = None
    """Where blocks are played; None: on the cores of this machine."""

    def size(self, test: T, smoke: T, full: T, hours: T | None = None) -> T:
        """The one of the sizes that belongs to the scale; what full takes no hours for is the same at both."""
        return (test, smoke, full if hours is None else hours, full)[self.scale.rank]

    def room(self, name: str, settings: Mapping[str, Any]) -> Path:
        """The directory of one campaign: equal settings have the same one, so a `Store` there is shared and resumed."""
        return self.trials / f"{name}-{sha256(canonical(settings).encode()).hexdigest()[:16]}"

    def once(
        self,
        name: str,
        settings: Mapping[str, Any],
        work: Callable[[], T],
        read_as: type[T],
        *,
        divided: bool = False,
    ) -> T:
        """The result of `work`, done once for these settings and kept in `trials`, also over restarts.

        Of processes that share the directory one does it for all, unless they divide it among themselves.
        """
        room = self.room(name, settings)
        kept = room.with_name(f"{room.name}.json")

        def keep() -> None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_document(kept, {"settings": dict(settings), "result": to_values(work())})

        if isinstance(self.engine, Shared) and not divided:
            self.engine.do_once(room, kept.exists, keep)
        elif not kept.exists():
            keep()
        return msgspec.convert(read_document(kept, "result")["result"], read_as)


@dataclass(frozen=True)
class Item(Generic[T]):
    """One table or figure.

    What `compute` returns is kept as JSON values; `draw` makes from them alone a picture that a reader of the paper
    recognises.
    """

    name: str
    """As in the paper: table-2, figure-6a."""
    title: str
    caption: str
    """What is shown, in our own words, with every stand-in for data that cannot be had."""
    compute: Callable[[ItemRun], T]
    read_as: type[T]
    """What the kept values are read as."""
    draw: Callable[[T], Figure]
    comparisons: tuple[Comparison, ...]
    seconds: Mapping[Scale, float] = field(default_factory=lambda: dict.fromkeys((Scale.SMOKE, Scale.FULL), 1.0))
    """About how long it takes at smoke and full scale on two cores, besides what it shares."""
    printed: Mapping[str, Any] = field(default_factory=dict)
    """The paper's values as it prints them, as texts (so that their digits are known), where it prints any.

    They stand under the same keys as ours.
    """
    order: str = ""
    """What each of the values of a list stands for, in their order."""
    shared: Mapping[str, Mapping[Scale, float]] = field(default_factory=dict)
    """Work that other items need, too, and that is done once for all: by name, about how long each piece takes."""
    needs: tuple[str, ...] = ()
    """Published data sets that must be here or be fetched."""
    notes: tuple[str, ...] = ()
    """What the paper leaves open or gets wrong, and what was done about it (docs/theory/errata.md)."""

    def draw_values(self, values: Values) -> Figure:
        """The picture of kept values."""
        return self.draw(msgspec.convert(values, self.read_as))

    def expected_seconds(self, scale: Scale, done: Container[str] = ()) -> float:
        """About how many seconds it takes where the shared work that `done` names is done.

        At hours as at full, unless said.
        """
        size = max(scale, Scale.SMOKE, key=lambda one: one.rank)
        pieces = (self.seconds, *(taken for name, taken in self.shared.items() if name not in done))
        return sum(taken.get(size, taken[Scale.FULL]) for taken in pieces)


def expected_seconds(items: Iterable[Item[Any]], scale: Scale) -> list[float]:
    """About how many seconds each takes, one after another: shared work counts for the first that needs it."""
    done: set[str] = set()
    times = []
    for item in items:
        times.append(item.expected_seconds(scale, done))
        done |= item.shared.keys()
    return times


@dataclass(frozen=True)
class Paper:
    """One of the five documents."""

    key: str
    """Of docs/theory/references.md: first author and year."""
    name: str
    title: str
    items: tuple[Item[Any], ...]
