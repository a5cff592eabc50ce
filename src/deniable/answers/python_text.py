"""A release as the line of Python that builds it."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from deniable.mechanisms import Composed, Mechanism, Sampled, Sampling, Subsampled

_MOST_PARTS = 12


def write_python(mechanism: Mechanism, prefix: str = "") -> str:
    """`Gaussian(1.0).subsampled(0.01).composed(1000)`, with `prefix` before names; of many parts some are left out."""
    match mechanism:
        case Composed(((part, runs),)):
            return f"{write_python(part, prefix)}.composed({runs})"
        case Composed(parts):
            shown = [_run(part, runs, prefix) for part, runs in parts[:_MOST_PARTS]]
            left = [f"... {len(parts) - _MOST_PARTS} more"] if len(parts) > _MOST_PARTS else []
            return f"{prefix}compose({', '.join(shown + left)})"
        case Subsampled(inner, rate):
            return f"{write_python(inner, prefix)}.subsampled({rate!r})"
        case Sampled(inner, sampling):
            return f"{write_python(inner, prefix)}.subsampled({_call(sampling, prefix)})"
    return _call(mechanism, prefix)


def _run(part: Mechanism, runs: int, prefix: str) -> str:
    return write_python(part if runs == 1 else part.composed(runs), prefix)


def _call(described: Mechanism | Sampling, prefix: str) -> str:
    """The call of a description's class; what has its default is left out."""
    arguments = []
    for field in fields(described):
        value = getattr(described, field.name)
        if field.default is MISSING or value != field.default:
            arguments.append(
                f"{field.name}={_value(value, prefix)}" if field.default is not MISSING else _value(value, prefix)
            )
    return f"{prefix}{type(described).__name__}({', '.join(arguments)})"


def _value(value: Any, prefix: str) -> str:
    if isinstance(value, Mechanism):
        return write_python(value, prefix)
    if isinstance(value, float) and value == float("inf"):
        return 'float("inf")'
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
