"""A spinner for work that takes long, and nothing at all for work that does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

__all__ = ["patience"]

_LONG = 1.0


@contextmanager
def patience(what: str = "Computing the privacy loss ...") -> Iterator[None]:
    """Show a spinner on standard error after a second; only where a person is watching."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 (only a terminal needs it)

    status = Console(stderr=True).status(what)
    timer = Timer(_LONG, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
