"""Which engine a campaign was asked to run on."""

from __future__ import annotations

from deniable.checks import one_of
from deniable.engines.beside import Shared
from deniable.engines.cluster import Ray
from deniable.engines.local import Local
from deniable.engines.protocol import Engine

ENGINES = ("local", "ray", "shared")


def choose_engine(engine: Engine | str = "local", processes: int | None = None) -> Engine:
    """An engine as it is, or the one of that name; `processes` are the workers on this machine."""
    if isinstance(engine, str):
        one_of("engine", engine, ENGINES)
        if engine == "shared":
            return _share_work(processes)
        return Local(processes) if engine == "local" else Ray(processes=processes)
    if processes is not None:
        raise ValueError("processes is about an engine that is named: leave it out, or give engine=Local(processes)")
    return engine


def _share_work(processes: int | None) -> Shared:
    if processes not in (None, 1):
        raise ValueError("with engine shared, each process that is started is one worker: leave processes out")
    return Shared()
