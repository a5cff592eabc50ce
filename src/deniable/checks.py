"""One validator, one wording: every refused argument names itself, its value, its range and perhaps what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

__all__ = [
    "LEAST_NOISE",
    "MOST_NOISE",
    "MOST_STEPS",
    "RefusedError",
    "amount_of_noise",
    "as_path",
    "family_of_releases",
    "loss_size",
    "of_kind",
    "one_of",
    "positive",
    "probability",
    "real",
    "refuse",
    "spell_names",
    "whole",
]

Kind = TypeVar("Kind")
MOST_STEPS = 10**9
"""Of a composition: beyond it the round-off of a single step's moment would show."""
LEAST_NOISE, MOST_NOISE = 1e-6, 1e15
"""Of a mechanism: less protects nobody, more cannot be told from infinitely much."""


class RefusedError(ValueError):
    """What was refused, and why: `text` has the names of fields in braces, as in "{batch} is missing".

    `field` is the one that is to blame, `value` what it was, `expected` its range in words, `hint` what to do. Whoever
    tells it spells the names: Python and the page as they are, the command line as options.
    """

    def __init__(
        self, text: str, field: str | None = None, value: Any = None, expected: str | None = None, hint: str = ""
    ) -> None:
        super().__init__(text, field, value, expected, hint)  # all of them, so that it can be sent between processes
        self.text, self.field, self.value, self.expected, self.hint = text, field, value, expected, hint

    def phrase(self, spell: Callable[[str], str]) -> str:
        """The sentence, with every field's name spelled by `spell`."""
        return spell_names(f"{self.text}: {self.hint}" if self.hint else self.text, spell)

    def __str__(self) -> str:
        return self.phrase(str)


def spell_names(text: str, spell: Callable[[str], str]) -> str:
    """`text` with every name in braces spelled by `spell`."""
    return re.sub(r"\{([a-z_]+)\}", lambda found: spell(found[1]), text)


def refuse(field: str, value: object, expected: str, hint: str = "") -> RefusedError:
    """The usual refusal: `field` must be `expected`, got `value`."""
    return RefusedError(f"{{{field}}} must be {expected}, got {value!r}", field, value, expected, hint)


def _is_real(value: object) -> bool:
    # the first test is for speed: asking an abstract base class takes longer than many a formula behind it
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def real(name: str, value: float) -> float:
    """A finite number."""
    if not _is_real(value) or not isfinite(value):
        raise refuse(name, value, "a finite number")
    return float(value)


def positive(name: str, value: float, zero: bool = False) -> float:
    """A finite number above 0 (or from 0 on)."""
    if not _is_real(value) or not isfinite(value) or value < 0 or (value == 0 and not zero):
        raise refuse(name, value, "a finite number >= 0" if zero else "a finite number > 0")
    return float(value)


def amount_of_noise(name: str, value: float) -> float:
    """Relative to the sensitivity; the losses, at most 1 / noise^2, can be squared and multiplied by any steps."""
    return _within(name, positive(name, value), LEAST_NOISE, MOST_NOISE)


def loss_size(name: str, value: float, zero: bool = False) -> float:
    """The inverse of such an amount, as epsilon or mu (or 0)."""
    return 0.0 if positive(name, value, zero) == 0 else _within(name, value, 1 / MOST_NOISE, 1 / LEAST_NOISE)


def _within(name: str, value: float, low: float, high: float) -> float:
    if not low * (1 - 1e-15) <= value <= high * (1 + 1e-15):
        raise refuse(name, value, f"between {low:g} and {high:g}")
    return float(value)


def probability(name: str, value: float, open_ends: bool = False) -> float:
    """A number from 0 to 1, or strictly between them."""
    if not _is_real(value) or not 0 <= value <= 1 or (open_ends and not 0 < value < 1):
        expected = "a number strictly between 0 and 1" if open_ends else "a number from 0 to 1"
        raise refuse(name, value, expected, _percent_hint(value))
    return float(value)


def _percent_hint(value: float) -> str:
    """75 is most likely meant as 75 per cent."""
    return f"did you mean {value / 100:g}?" if _is_real(value) and 1 < value < 100 else ""


def whole(name: str, value: int, low: int = 1) -> int:
    """A whole number from `low` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise refuse(name, value, f"a whole number >= {low}")
    return int(value)


def of_kind(name: str, value: object, kind: type[Kind], expected: str, hint: str = "") -> Kind:
    """A value of a type, in words `expected`."""
    if not isinstance(value, kind):
        raise refuse(name, value, expected, hint)
    return value


def as_path(name: str, value: object) -> Path:
    """A file or folder by its name."""
    return Path(of_kind(name, value, str | Path, "the name of a file"))  # type: ignore[arg-type]


def family_of_releases(name: str, value: Any) -> Any:
    """A function from a number to a release."""
    if not callable(value):
        example = "lambda noise: deniable.Gaussian(noise).subsampled(0.01).composed(1000)"
        raise refuse(name, value, "a function from a number to a release", f"for example {example}")
    return value


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """One of a few words."""
    if value not in allowed:
        raise refuse(name, value, f"one of {', '.join(map(str, allowed))}")
    return value
