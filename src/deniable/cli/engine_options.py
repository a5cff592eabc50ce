"""Where a command plays its blocks: --processes, --engine and what an engine is told."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from deniable.checks import one_of
from deniable.cli.options import flag, read, word_option

if TYPE_CHECKING:
    from deniable.engines import Engine

_RAY_ALONE = ("address", "task_memory", "task_gpus")


def engine_options(panel: str, processes: str = "Worker processes. Default: one a core.") -> list[Parameter]:
    """The options, under a heading of the command's help."""
    return [
        word_option("processes", "N", processes, panel),
        word_option(
            "engine",
            "E",
            "local (default): processes here. ray: a Ray cluster. shared: one of many processes that share --out.",
            panel,
        ),
        word_option("address", "A", "Of a running Ray cluster, HOST:PORT or auto. Default: one is started.", panel),
        word_option("task-memory", "GB", "Gigabytes that each block asks the cluster for.", panel),
        word_option("task-gpus", "G", "GPUs that each block asks the cluster for.", panel),
    ]


def plan_flag(panel: str) -> Any:
    """--plan, under a heading of the command's help."""
    text = "Only plan it in --out: `deniable worker` plays it, anywhere."
    return flag("plan", text, panel)


def read_engine(texts: Mapping[str, Any], usual_processes: int | None = None) -> Engine:
    """The engine that the options ask for."""
    from deniable.engines import Ray, choose_engine  # noqa: PLC0415 (help and refusals are quick)
    from deniable.engines.choice import ENGINES  # noqa: PLC0415

    name = one_of("engine", texts.get("engine") or ENGINES[0], ENGINES)
    values = read({one: texts.get(one) for one in ("processes", "task_memory", "task_gpus")})
    processes = values.get("processes", usual_processes if name == "local" else None)
    if name != "ray":
        stray = next((one for one in _RAY_ALONE if texts.get(one) is not None), None)
        if stray is not None:
            raise ValueError(f"--{stray.replace('_', '-')} is about a Ray cluster: give --engine ray, too")
        return choose_engine(name, processes)
    if texts.get("address") and processes is not None:
        raise ValueError("--processes is about a cluster of this machine alone, and --address names another")
    memory = values.get("task_memory")
    return Ray(
        texts.get("address"),
        memory=None if memory is None else 1e9 * memory,
        gpus=values.get("task_gpus", 0.0),
        processes=processes,
    )
