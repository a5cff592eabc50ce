"""Blocks as plain tasks of a Ray cluster, for campaigns that outgrow one machine.

The campaign's data is put into the cluster once; every process that plays blocks reads it once. The driver alone keeps
results. Ray plays a task again whose process or node was lost; since a block depends on its number alone, that changes
nothing. ray is imported when it is asked for (``pip install 'deniable[train,ray]'``).
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from time import monotonic
from typing import Any, TypeVar

from deniable.checks import positive, whole
from deniable.engines.protocol import EngineError, Finished, Work, pack

T = TypeVar("T")
_TASKS_A_CPU = 2
"""Under way: one at work and one that waits."""
_LOOK_SECONDS = 1.0
"""Between looks at how many CPUs the cluster has now."""
_STARTS = 3
"""Of a cluster of this machine alone: Ray waits 30 s for itself, which a busy machine may exceed."""
_PACKAGES = ("deniable", "numpy", "torch")
"""Whose versions decide a block's bytes."""


@dataclass(frozen=True)
class Ray:
    """A Ray cluster; one CPU and one thread a block."""

    address: str | None = None
    """Of a running cluster, as HOST:PORT, or "auto" for the one that this machine belongs to; None: a cluster of this
    machine alone, for as long as the campaign runs."""
    memory: float | None = None
    """Bytes that each block asks the cluster for."""
    gpus: float = 0.0
    """That each block asks for."""
    retries: int = 20
    """How often a block is played again whose process or node was lost."""
    processes: int | None = None
    """CPUs of a cluster of this machine alone. Default: its cores."""

    def __post_init__(self) -> None:
        positive("gpus", self.gpus, zero=True)
        whole("retries", self.retries, low=0)
        if self.memory is not None:
            positive("memory", self.memory)
        if self.processes is not None:
            whole("processes", self.processes)

    def nodes(self) -> dict[str, float]:
        """The cluster, by its address: its machines come and go."""
        return {f"Ray at {self.address or platform.node()}": float(self.processes or 0)}

    def run(self, work: Work[T], blocks: Iterable[int]) -> Finished[T]:
        """(number, ``work(number)``) as the tasks finish; two a CPU are under way."""
        if self.address is None:  # on loopback alone; Ray asks this when it is imported
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        packed, ray = pack(work), _import_ray()
        with _connection(ray, self):
            _check_resources(ray, self)
            handed = [ray.put((packed, _versions()))]  # in a list, or Ray would hand over all of it with every task
            yield from _play(ray, _task(ray, self), handed, iter(blocks), self)


def _play(ray: Any, task: Any, handed: list[Any], blocks: Iterator[int], asked: Ray) -> Finished[Any]:
    running: dict[Any, int] = {}
    room = _Room(ray, asked)
    try:
        while True:
            for number in islice(blocks, max(0, room.tasks() - len(running))):
                running[task.remote(handed, number)] = number
            if not running:
                return
            for reference in _ready(ray, list(running)):
                yield running.pop(reference), _result(ray, reference)
    finally:  # an error, Ctrl-C, or a consumer that stops early: nobody waits for the work under way
        for reference in running:
            ray.cancel(reference, force=True)


def _ready(ray: Any, references: list[Any]) -> Sequence[Any]:
    """All tasks that have finished; waits for the first, but not so long that new nodes go unseen."""
    first, _ = ray.wait(references, num_returns=1, timeout=_LOOK_SECONDS)
    return ray.wait(references, num_returns=len(references), timeout=0)[0] if first else ()


class _Room:
    """How many tasks may be under way, as nodes come and go."""

    def __init__(self, ray: Any, asked: Ray) -> None:
        self._ray, self._asked = ray, asked
        self._looked, self._tasks = -_LOOK_SECONDS, 1

    def tasks(self) -> int:
        if monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = monotonic()
            self._tasks = max(1, _TASKS_A_CPU * _slots(self._ray.cluster_resources(), self._asked))
        return self._tasks


def _slots(resources: dict[str, float], asked: Ray) -> int:
    """Blocks that run at once on so much."""
    needed = {"CPU": 1.0, "GPU": asked.gpus, "memory": asked.memory or 0.0}
    return int(min(resources.get(name, 0.0) // amount for name, amount in needed.items() if amount))


def _task(ray: Any, asked: Ray) -> Any:
    """The task: a function that is sent whole, so that a node without deniable can say so."""

    def play_block(handed: list[Any], number: int) -> bytes | str:
        try:
            from deniable.engines.cluster import play_handed as play  # noqa: PLC0415
        except ImportError as error:
            return f"it has no deniable with this engine ({error})"
        return play(handed, number)

    options = {"num_cpus": 1, "num_gpus": asked.gpus, "max_retries": asked.retries}
    return ray.remote(**options, **({} if asked.memory is None else {"memory": asked.memory}))(play_block)


_handed: tuple[str, Work[Any]] | None = None
"""The work of the campaign that this process plays blocks of, and which one that is."""


def play_handed(handed: list[Any], number: int) -> bytes | str:
    """Play one block in a process of the cluster; a text says why it cannot."""
    global _handed  # noqa: PLW0603 - what all blocks of a process share is read once
    if _handed is None or _handed[0] != handed[0].hex():
        packed, versions = _import_ray().get(handed[0])
        here = _versions()
        unlike = [f"{name} {here[name]}, not {wanted}" for name, wanted in versions.items() if here[name] != wanted]
        if unlike:
            return f"it has {', '.join(unlike)}"
        try:
            _handed = handed[0].hex(), pickle.loads(packed)
        except ImportError as error:
            return f"it cannot import what the campaign needs ({error})"
    return pickle.dumps(_handed[1](number), pickle.HIGHEST_PROTOCOL)


def _result(ray: Any, reference: Any) -> Any:
    try:
        found = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error  # the block's own error, as every engine raises it
    except ray.exceptions.RayError as lost:
        raise EngineError(
            f"the cluster lost a block for good ({type(lost).__name__}), most likely for lack of memory: ask for more "
            "memory a block, or take fewer records or a smaller model"
        ) from lost
    if isinstance(found, str):
        raise EngineError(
            f"a node of the cluster cannot play blocks: {found}. Install the same versions on every node (and the "
            "campaign's own modules, if it has any), then resume"
        )
    return pickle.loads(found)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def _version(package: str) -> str:
    if package == "deniable":
        from deniable import __version__  # noqa: PLC0415 (the house is complete only when its rooms are)

        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is ever told to anybody
    os.environ.setdefault(
        "RAY_worker_niceness", "0"
    )  # in a cluster that is started here, blocks are the work to be done
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will do; it warns unless told
    try:
        import ray  # noqa: PLC0415 (only who asks for it needs it)
    except ModuleNotFoundError as missing:
        raise ValueError("engine ray needs Ray: pip install 'deniable[train,ray]'") from missing
    return ray


@contextmanager
def _connection(ray: Any, asked: Ray) -> Iterator[None]:
    """The caller's own session, if there is one; else one that ends with the campaign."""
    if ray.is_initialized():
        yield
        return
    logging.getLogger("ray._private.authentication.authentication_token_setup").setLevel(logging.ERROR)
    _connect(ray, asked)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(ray: Any, asked: Ray, tries: int = _STARTS) -> None:
    quiet = {"log_to_driver": False, "configure_logging": False}
    alone = {"num_cpus": asked.processes, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address=asked.address or "local", **quiet, **({} if asked.address else alone))
    except ConnectionError as error:
        raise EngineError(f"there is no Ray cluster at {asked.address}: {_first_line(error)}") from error
    except Exception as error:  # other versions, a wrong token, a start that took too long: Ray has no class for them
        if asked.address is None and tries > 1 and "timed out during startup" in str(error):
            ray.shutdown()
            _connect(ray, asked, tries - 1)
            return
        which = f"the Ray cluster at {asked.address} cannot be used" if asked.address else "Ray cannot be started"
        raise EngineError(f"{which}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _check_resources(ray: Any, asked: Ray) -> None:
    """A block that fits on no node would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(_slots(node, asked) for node in nodes):
        wanted = ", ".join(f"{n:g} {what}" for n, what in ((asked.gpus, "GPU"), (asked.memory or 0, "bytes")) if n)
        raise EngineError(f"no node of the cluster has a CPU{' and ' + wanted if wanted else ''} for a block")
