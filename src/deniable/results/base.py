"""The family of results: frozen records with typed fields, compared by value, written as JSON."""

from __future__ import annotations

from html import escape
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar, Self

import msgspec

_SHORT_CHARACTERS = 140
"""Of a sentence in `repr`."""


class UnreadableError(ValueError):
    """A document that is no result of ours, or of another version; the text says where and why."""


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a result. A field without default is always written; one with a default only where it differs."""


def plain(value: Any) -> Any:
    """The JSON values (dicts, lists, texts, numbers, null) of a result or a part of it."""
    return msgspec.json.decode(encode(value))


def encode(value: Any) -> bytes:
    """Results, parts of them and JSON values as JSON in one line, in full precision."""
    return msgspec.json.encode(value, enc_hook=_number)


def _number(value: Any) -> float | int:
    """NumPy's numbers, and those of ours that know their error."""
    if hasattr(value, "item"):
        return value.item()  # type: ignore[no-any-return]
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


class Result(Part, frozen=True, kw_only=True, tag_field="schema"):
    """What a command found; `schema` in JSON names the kind of result and its version."""

    kind: ClassVar[str]

    def to_json(self, indent: int = 2) -> str:
        """One JSON document, in full precision, without NaN or Infinity (null stands for them)."""
        return msgspec.json.format(encode(self), indent=indent).decode()

    def save(self, path: Path | str) -> Path:
        """Write the JSON document; `deniable.results.read_result` reads it again."""
        place = Path(path)
        place.write_text(self.to_json() + "\n", encoding="utf-8")
        return place

    def replace(self, **changes: Any) -> Self:
        """The same with other values of some fields."""
        return msgspec.structs.replace(self, **changes)

    def summary(self) -> str:
        """What a person should know of it, in a few sentences."""
        return str(_room().summary(self))

    def plot(self, name: str | None = None) -> Any:
        """The picture of this name (`pictures()` lists them), or the first, as a matplotlib Figure."""
        return _room().plot(self, name)

    def pictures(self) -> tuple[str, ...]:
        """The names of all pictures that can be drawn."""
        return tuple(_room().pictures(self))

    def report(self, path: Path | str) -> Path:
        """Write the page for the people who decide, as one HTML file."""
        place = Path(path)
        place.write_text(_room().page(self, place.stem), encoding="utf-8")
        return place

    def __repr__(self) -> str:
        first = self.summary().partition("\n")[0].partition(". ")[0].removesuffix(".")
        return f"<{type(self).__name__}: {shorten(first, _SHORT_CHARACTERS, placeholder=' ...')}>"

    def _repr_html_(self) -> str:
        """For notebooks: the summary, and the first picture where there is one."""
        words = "".join(f"<p>{escape(line)}</p>" for line in self.summary().splitlines() if line)
        return f"<div>{words}{_room().draw_svg(self)}</div>"


def _room() -> Any:
    """The room that words and draws results. It lies above this one, so it is asked for by name when needed."""
    return import_module("deniable.report.show_result")
