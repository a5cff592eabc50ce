"""Two real nodes of a Ray cluster on loopback: the same bytes as on this machine alone, also when they are killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from campaigns import CAMPAIGNS, play_alone
from games import neighbours
from work import refuse_three, slow_square, square, squares

import deniable as dn
from deniable.engines import EngineError, Local, Ray, cluster, play_missing
from deniable.store import Store
from deniable.training.engine import run_block
from deniable.training.settings import TrainingSettings

SETTINGS = TrainingSettings("digits", noise=2.0, steps=3, trials_per_block=4, adjacency="replace")


class TwoNodes:
    """A head and another node, each with one CPU."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster  # noqa: PLC0415 (what it is asked stands in the environment first)

        head = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
        seen_soon = {"health_check_period_ms": 1000}
        self.cluster = Cluster(initialize_head=True, head_node_args={**head, "_system_config": seen_soon})
        self.other = self._another()
        self.address = self.cluster.address

    def _another(self) -> Any:
        return self.cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")

    def lose_the_other(self) -> None:
        """SIGKILL a node with all its processes; another one joins, at the second try on a machine that is busy."""
        self.cluster.remove_node(self.other, allow_graceful=False)
        try:
            self.other = self._another()
        except Exception:
            self.other = self._another()


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'deniable[ray]'")
    asked = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex, "RAY_USAGE_STATS_ENABLED": "0"}
    asked |= {"RAY_worker_niceness": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # the second: loopback alone
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own
        for name, value in asked.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", os.pathsep.join([*map(str, _places()), os.environ.get("PYTHONPATH", "")]))
        try:
            two = TwoNodes()
        except Exception:  # a machine so busy that Ray gives up waiting for itself
            two = TwoNodes()
        try:
            yield two
        finally:
            two.cluster.shutdown()


def _places() -> list[Path]:
    here = Path(__file__).parent
    return [here, here.parent / "training", here.parent / "audit", Path(dn.__file__).parents[1]]


@pytest.fixture(scope="module")
def engine(nodes: TwoNodes) -> Ray:
    """Connects for each campaign: Ray then starts new processes, which import torch."""
    return Ray(nodes.address)


@pytest.fixture(scope="module")
def session(engine: Ray) -> Iterator[Ray]:
    """The caller's own session: its processes play the campaigns of several tests."""
    import ray  # noqa: PLC0415 (what it is asked stands in the environment first)

    cluster._connect(ray, engine)
    yield engine
    ray.shutdown()


def test_trainings_have_the_same_bytes(engine: Ray) -> None:
    work = partial(run_block, SETTINGS, neighbours(), 5)
    here, there = dict(Local(1).run(work, range(6))), dict(engine.run(work, range(6)))
    assert sorted(there) == list(range(6))
    for number, result in here.items():
        assert result.log_likelihood_ratio.tobytes() == there[number].log_likelihood_ratio.tobytes()
        assert result.gradient_norm.tobytes() == there[number].gradient_norm.tobytes()


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_campaign_gives_the_same_answer(name: str, session: Ray, tmp_path: Path) -> None:
    assert json.loads(json.dumps(CAMPAIGNS[name](session, tmp_path))) == play_alone(name)


def test_a_block_s_error_is_the_caller_s(session: Ray) -> None:
    with pytest.raises(FloatingPointError, match="learning_rate"):
        list(session.run(refuse_three, range(6)))


def test_a_consumer_may_stop_early_and_little_is_under_way(session: Ray) -> None:
    drawn: list[int] = []
    blocks = session.run(square, (drawn.append(n) or n for n in range(1000)))
    next(blocks)
    blocks.close()
    assert len(drawn) <= 4


def test_what_the_cluster_lacks_is_said(nodes: TwoNodes) -> None:
    with pytest.raises(EngineError, match="no node of the cluster has a CPU and 1 GPU"):
        list(Ray(nodes.address, gpus=1).run(square, range(3)))


class _HereAlone:
    """As much of Ray as hands a task to a process without deniable."""

    exceptions = SimpleNamespace(RayTaskError=KeyError, RayError=LookupError)

    @staticmethod
    def remote(**options: Any) -> Callable[[Any], Any]:
        return lambda task: task

    @staticmethod
    def get(found: Any) -> Any:
        return found


def test_a_node_without_the_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    task = cluster._task(_HereAlone, Ray())
    monkeypatch.setitem(sys.modules, "deniable.engines.cluster", None)
    with pytest.raises(EngineError, match=r"cannot play blocks: it has no deniable .*Install the same versions"):
        cluster._result(_HereAlone, task([], 0))


class _SlowStart:
    """A Ray that gives up waiting for itself some times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.said = failures, list[str]()

    def init(self, **options: Any) -> None:
        self.said.append(options["address"])
        if len(self.said) <= self.failures:
            raise Exception("The current node timed out during startup. This could happen")

    def shutdown(self) -> None:
        self.said.append("shutdown")


def test_a_busy_machine_gets_another_try() -> None:
    slow = _SlowStart(1)
    cluster._connect(slow, Ray())
    assert slow.said == ["local", "shutdown", "local"]
    with pytest.raises(EngineError, match="Ray cannot be started: The current node timed out"):
        cluster._connect(dead := _SlowStart(99), Ray())
    assert dead.said.count("local") == 3
    with pytest.raises(EngineError, match="cluster at there:1 cannot be used"):
        cluster._connect(other := _SlowStart(99), Ray("there:1"))
    assert other.said == ["there:1"]


def test_another_version_is_refused(session: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dn, "__version__", "9.9.9")
    with pytest.raises(EngineError, match=r"deniable .*, not 9\.9\.9.*Install the same versions"):
        list(session.run(square, range(3)))


def test_a_lost_node_and_a_lost_process_change_nothing(nodes: TwoNodes, engine: Ray, tmp_path: Path) -> None:
    campaign, lost = squares(30, partial(slow_square, 0.1)), []

    def tell(done: int) -> None:
        if done >= 4 and not any(lost):  # at the first moment at which one is at work
            lost.append(_kill_a_worker())
        if done == 10:
            nodes.lose_the_other()

    with Store(tmp_path, campaign.settings) as store:
        found = play_missing(campaign, engine, store, tell=tell)
        assert store.finished_blocks() == list(range(30))
    assert any(lost)
    assert [result.square.tolist() for result in found] == [[n, n**2] for n in range(30)]


def _kill_a_worker() -> int:
    """SIGKILL a process of ours that plays a block."""
    ours = os.environ["RAY_AUTH_TOKEN"].encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and b"play_block" in _read(entry / "cmdline") and ours in _read(entry / "environ"):
            os.kill(int(entry.name), signal.SIGKILL)
            return int(entry.name)
    return 0


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
