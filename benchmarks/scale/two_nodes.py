"""Two real nodes of a Ray cluster on this machine's loopback, each with some CPUs, and how to lose them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

HERE = Path(__file__).parent


class TwoNodes:
    def __init__(self, cpus: int = 1) -> None:
        from ray.cluster_utils import Cluster  # noqa: PLC0415 (what it is asked stands in the environment first)

        self.cpus = cpus
        head = {"num_cpus": cpus, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
        seen_soon = {"health_check_period_ms": 1000}
        self.cluster = Cluster(initialize_head=True, head_node_args={**head, "_system_config": seen_soon})
        self.other = self._another()
        self.address = self.cluster.address

    def _another(self) -> Any:
        return self.cluster.add_node(num_cpus=self.cpus, node_ip_address="127.0.0.1")

    def lose_the_other(self) -> None:
        """SIGKILL a node with all its processes; another one joins, at the fifth try where the machine is busy."""
        self.cluster.remove_node(self.other, allow_graceful=False)
        for _ in range(5):
            with suppress(Exception):  # Ray waits 30 s for itself, and raises no narrower class
                self.other = self._another()
                return
        raise RuntimeError("no node could be started: the machine is too busy")


@contextmanager
def two_nodes(cpus: int = 1) -> Iterator[TwoNodes]:
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex, "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= {"RAY_worker_niceness": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # the second: loopback alone
    paths = [HERE, HERE.parents[1] / "src"]
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    nodes = _start(cpus)
    try:
        yield nodes
    finally:
        nodes.cluster.shutdown()


def _start(cpus: int, tries: int = 5) -> TwoNodes:
    """Ray waits 30 s for itself, and raises no narrower class; a machine that is busy needs more than one try."""
    try:
        return TwoNodes(cpus)
    except Exception:
        if tries == 1:
            raise
        return _start(cpus, tries - 1)


def kill_a_player() -> bool:
    """SIGKILL a process of our cluster that plays a block."""
    ours = os.environ["RAY_AUTH_TOKEN"].encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and b"play_block" in _read(entry / "cmdline") and ours in _read(entry / "environ"):
            os.kill(int(entry.name), signal.SIGKILL)
            return True
    return False


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
