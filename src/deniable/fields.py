"""A number that people give, described once: command line, page, Python and JSON read its entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from deniable.checks import positive, probability, real, refuse, spell_names, whole

__all__ = ["Field", "Kind", "Slider"]

Kind = Literal["real", "positive", "from zero", "share", "probability", "whole"]
"""What a number may be before its limits; a share is strictly between 0 and 1, a probability may be either."""
SliderScale = Literal["linear", "logarithmic"]
_CHECKS: dict[Kind, Callable[[str, Any], float]] = {
    "real": real,
    "positive": positive,
    "from zero": partial(positive, zero=True),
    "share": partial(probability, open_ends=True),
    "probability": probability,
}


@dataclass(frozen=True)
class Slider:
    """A field on the planner's page: its words, where the slider ends and begins, and the range that is quick."""

    label: str
    hint: str
    quick: tuple[float, float]
    """The range in which an answer takes less than a second of computing."""
    stops: tuple[float, float] | None
    """The slider's ends, in per cent for shares; None: a number without a slider."""
    usual: float | None
    """Where the page begins; None: empty."""
    scale: SliderScale
    percent: bool


@dataclass(frozen=True)
class Field:
    """One number by its one name: `name` in Python and JSON, `--name` as an option."""

    name: str
    letter: str
    """What stands for the value in help."""
    text: str
    """What it means; other fields' names are in braces."""
    kind: Kind
    limits: tuple[float, float] | None = None
    """From where to where the figures still mean something and are computed exactly."""
    slider: Slider | None = None
    repeatable: bool = False
    gives: tuple[str, Callable[[float], float]] | None = None
    """Another field that this one is only another spelling of, and how its value follows."""

    def on_page(  # noqa: PLR0917 (a line a slider, in the order of `Slider`)
        self,
        label: str,
        hint: str,
        quick: tuple[float, float] = (1e-9, 1 - 1e-9),
        stops: tuple[float, float] | None = None,
        usual: float | None = None,
        scale: SliderScale = "logarithmic",
        percent: bool = False,
    ) -> Field:
        """The field with its `Slider` on the planner's page."""
        return replace(self, slider=Slider(label, hint, quick, stops, usual, scale, percent))

    def check(self, value: Any) -> float:
        """`value`, if it is what it may be at all; `RefusedError` names the field, the value and the range."""
        if self.kind == "whole":
            return whole(self.name, value, low=int(self.limits[0]) if self.limits else 1)
        return _CHECKS[self.kind](self.name, value)

    def read(self, value: Any) -> float:
        """`value`, if it is within the limits."""
        number = self.check(value)
        if self.limits and not self.limits[0] <= number <= self.limits[1]:
            raise refuse(self.name, value, f"from {self.limits[0]:g} to {self.limits[1]:g}")
        return number

    def help_text(self, spell: Callable[[str], str]) -> str:
        """`text` with the names of other fields spelled by `spell`."""
        return spell_names(self.text, spell)
