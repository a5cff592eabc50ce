"""Numbers as a person reads them: a bound is rounded up, never below its value; what was given is shown as given."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import inf

__all__ = [
    "ALMOST_ALL",
    "as_given",
    "at_least",
    "at_most",
    "begin_sentence",
    "chance",
    "count_of",
    "percent_as_given",
    "percent_at_most",
    "rounded_percent",
    "short",
    "times",
    "told_apart",
]

_NOISE_OF_FLOATS = Decimal("1e-12")  # 0.75 computed as 0.7500000000000001 is 75 %
_NEARLY_ALL, _MOST_DIGITS = Decimal("99.9999"), 6
_HALF_TOLD = Decimal("0.8")
"""So much of what a share told is above 50 %, which blind guessing reaches, must be there."""
ALMOST_ALL = "just under 100 %"
"""A share that is rounded up and is yet not all; it stands well behind "at most"."""
_OFTEN = 0.05
_SHORT_CHARACTERS = 8
_RARELY = 1e-12
_TINY = Decimal("0.0001")
_DIGITS_TOLD_APART = 11


def at_most(value: float, digits: int = 3, known: float = inf) -> str:
    """`value` rounded up to so many significant digits: 2130.1 is 2,140 and 1.71832 is 1.72.

    Where it is `known` to be at most another number, no larger one is told.
    """
    rounded = _up(Decimal(value), digits)
    if value <= known < rounded:
        return as_given(known)
    if rounded != 0 and not -5 <= rounded.adjusted() < 9:
        return _scientific(rounded)
    return f"{_plain(rounded):,}"


def at_least(value: float, digits: int = 3) -> str:
    """`value` rounded down to so many significant digits, where less is the safe side: 1.2349 is 1.23."""
    rounded = _down(Decimal(value), digits)
    if rounded != 0 and not -5 <= rounded.adjusted() < 9:
        return _scientific(rounded)
    return f"{_plain(rounded):,}"


def told_apart(low: float, limit: float, digits: int = 3) -> tuple[str, str]:
    """A lower bound, rounded down, and the limit below it, rounded up, with as many digits as it takes to tell them."""
    for more in range(digits, _DIGITS_TOLD_APART):
        rounded = _down(Decimal(low), more), _up(Decimal(limit), more + 1)
        if rounded[0] > rounded[1]:
            return at_least(low, more), at_most(limit, more + 1)
    return as_given(low), as_given(limit)


def percent_at_most(value: float, digits: int = 3, known: float = inf) -> str:
    """A probability as a percentage, rounded up; 100 % only where it is 1, and 50.01 % is not 50.1 %.

    Where it is `known` to be at most another number, no larger one is told.
    """
    percent = Decimal(value) * 100
    if value >= 1:
        return "100 %"
    rounded = _up(percent, digits)
    while digits < _MOST_DIGITS and (rounded >= 100 or 0 < percent - 50 < _HALF_TOLD * (rounded - 50)):
        digits += 1
        rounded = _up(percent, digits)
    if value <= known and 100 * known < rounded:
        return percent_as_given(known)
    if rounded > _NEARLY_ALL:
        return ALMOST_ALL
    if 0 < rounded < _TINY:
        return f"{_scientific(_up(Decimal(value), digits))}"
    return f"{_plain(rounded)} %"


def as_given(value: float) -> str:
    """The shortest text of a number that the user gave: 1e-5, 0.001, 60,000."""
    exact = Decimal(repr(value))
    if value != 0 and not -3 <= exact.adjusted() < 9:
        return _scientific(exact)
    return f"{_plain(exact):,}"


def short(value: float) -> str:
    """A number that was given or is one over a whole number, in few characters: 0.01, 1e-5, 1/300."""
    text = as_given(value)
    if len(text) <= _SHORT_CHARACTERS or value <= 0:
        return text
    parts = 1 / Decimal(value)
    whole = parts.to_integral_value()
    return f"1/{whole:,}" if abs(parts - whole) <= parts * _NOISE_OF_FLOATS else at_most(value)


def begin_sentence(text: str) -> str:
    """With a large first letter, and all others as they are: TPR and names keep theirs."""
    return text[:1].upper() + text[1:]


def count_of(number: int, noun: str) -> str:
    """So many of something: 1 training, 1,000 trainings."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    """How often: once, 2 times."""
    return "once" if number == 1 else f"{number:,} times"


def percent_as_given(value: float) -> str:
    """A probability that the user gave, as a percentage: 0.001 is 0.1 %."""
    percent = Decimal(repr(value)) * 100
    return f"{_plain(percent)} %" if value == 0 or percent >= _TINY else as_given(value)


def rounded_percent(rate: float) -> str:
    """A rate, as a percentage of four digits, or as many as it takes not to be told as all."""
    shown = float(f"{rate:.4g}")
    return percent_as_given(rate if rate < 1 <= shown else shown)


def chance(probability: float) -> str:
    """A small probability in people, rounded up: 1 in 60,000; large ones in per cent, minute ones as numbers."""
    if probability >= _OFTEN or probability == 0:
        return percent_at_most(probability)
    if probability < _RARELY:
        return at_most(probability)
    exact = 1 / Decimal(probability)
    people = exact.to_integral_value()
    if abs(exact - people) > exact * _NOISE_OF_FLOATS:  # not one in a whole number: fewer people are the safe side
        people = Context(prec=3, rounding=ROUND_FLOOR).create_decimal(exact).to_integral_value(ROUND_FLOOR)
    return f"1 in {_plain(people):,}"


def _up(value: Decimal, digits: int) -> Decimal:
    return Context(prec=digits, rounding=ROUND_CEILING).create_decimal(value * (1 - _NOISE_OF_FLOATS))


def _down(value: Decimal, digits: int) -> Decimal:
    return Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(value * (1 + _NOISE_OF_FLOATS))


def _plain(value: Decimal) -> Decimal:
    """Without trailing zeros, and without an exponent for whole numbers."""
    trimmed = value.normalize()
    return trimmed.quantize(Decimal(1)) if trimmed == trimmed.to_integral_value() else trimmed


def _scientific(value: Decimal) -> str:
    mantissa, _, exponent = f"{value.normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
