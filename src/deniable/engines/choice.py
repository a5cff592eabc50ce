"""Which engine a campaign was asked to run on."""

from __future__ import annotations

from deniable.checks import one_of
from deniable.engines.local import Local
from deniable.engines.protocol import Engine

__all__ = ["choose_engine"]

_NAMES = ("local",)


def choose_engine(engine: Engine | str = "local", processes: int | None = None) -> Engine:
    """An engine as it is, or the one of that name; `processes` are the local one's workers."""
    if isinstance(engine, str):
        one_of("engine", engine, _NAMES)
        return Local(processes)
    if processes is not None:
        raise ValueError("processes is about the local engine: leave it out, or give engine=Local(processes)")
    return engine
