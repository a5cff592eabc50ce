"""SIGKILL at random moments: a node, a process and the driver of a Ray campaign, and workers on one directory.

    python benchmarks/scale/kills.py node|process|driver|workers|commands 30 1     what, how often, seed

`workers` sleep in place of training; `commands` are eight `deniable worker` on the blocks of a real audit. Every
campaign must end with the bytes of an undisturbed one, each block kept once. Minutes to an hour, by how busy the
machine is; a short share of it runs in tests/engines.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from sleeping import same, sleeping
from two_nodes import TwoNodes, kill_a_player, two_nodes

from deniable.engines import Local, Ray, play_missing
from deniable.engines.status import read_status
from deniable.engines.worker import work_in
from deniable.store import SharedBlocks, Store

BLOCKS, SECONDS = 60, 0.1


def lose(what: str, nodes: TwoNodes, times: int, draw: random.Random) -> int:
    """Lose a node or a process at `times` random moments, about ten a campaign."""
    lost = 0
    while lost < times:
        campaign = sleeping(BLOCKS, SECONDS)
        moments = sorted(draw.sample(range(1, BLOCKS - 5), min(10, times - lost)))

        def tell(done: int, moments: list[int] = moments) -> None:
            nonlocal lost
            if moments and done >= moments[0]:
                moments.pop(0)
                time.sleep(draw.uniform(0, SECONDS))
                lost += nodes.lose_the_other() is None if what == "node" else kill_a_player()

        with TemporaryDirectory() as place, Store(place, campaign.settings) as store:
            found = play_missing(campaign, Ray(nodes.address), store, tell=tell)
            assert store.finished_blocks() == list(range(BLOCKS))
        assert same(found, campaign)
        print(f"{what}: lost {lost} times, identical", flush=True)
    return lost


def kill_drivers(nodes: TwoNodes, times: int, draw: random.Random) -> int:
    """SIGKILL the driver at random moments; each time another one resumes."""
    campaign, killed = sleeping(4 * BLOCKS, SECONDS), 0
    while killed < times:
        with TemporaryDirectory() as place:
            while killed < times:
                driver = subprocess.Popen([sys.executable, __file__, "drive", place, nodes.address])
                wanted = _finished(place) + draw.randrange(1, 20)
                while _finished(place) < min(wanted, campaign.blocks) and driver.poll() is None:
                    time.sleep(0.02)
                time.sleep(draw.uniform(0, SECONDS))
                killed += driver.poll() is None
                print(f"driver: killed {killed} times", flush=True)
                driver.kill()
                driver.wait()
                if _finished(place) >= campaign.blocks:
                    break
            with Store(place, campaign.settings, resume=True) as store:
                found = play_missing(campaign, Local(8), store)
                assert store.finished_blocks() == list(range(campaign.blocks))
            assert same(found, campaign)
            print(f"driver: killed {killed} times, identical", flush=True)
    return killed


def _finished(place: str) -> int:
    from deniable.store.records import numbers_in  # noqa: PLC0415

    return len(numbers_in(Path(place) / "trials.blocks"))


def _kill_one(
    workers: list[subprocess.Popen[bytes]], begin: Callable[[], subprocess.Popen[bytes]], draw: random.Random
) -> bool:
    """End a random one of the workers and begin another; whether it was still at work."""
    victim = workers.pop(draw.randrange(len(workers)))
    at_work = victim.poll() is None
    victim.kill()
    victim.wait()
    workers.append(begin())
    return at_work


def kill_workers(times: int, draw: random.Random) -> int:
    """Eight workers on one directory, on machines whose dates jump; a random one is killed, another one begins."""
    campaign = sleeping(20 * times, SECONDS)
    with TemporaryDirectory() as place:
        begin = partial(subprocess.Popen, [sys.executable, __file__, "work", place, str(times)])
        workers = [begin() for _ in range(8)]
        shared, killed = SharedBlocks(place, b""), 0
        while killed < times and len(shared.finished_blocks()) < campaign.blocks:
            time.sleep(draw.uniform(0.2, 2.0))
            killed += _kill_one(workers, begin, draw)
            print(f"workers: killed {killed} times", flush=True)
        assert not any(worker.wait() for worker in workers)
        with Store(place, campaign.settings, resume=True) as store:
            assert store.finished_blocks() == list(range(campaign.blocks))
            found = play_missing(campaign, Local(1), store)
        assert same(found, campaign)
    print(f"workers: killed {killed} of eight at a time, identical", flush=True)
    return killed


AUDIT = ["audit", "digits", "--noise=5", "--steps=20", "--records=50", "--model=logistic"]
JUMPING_DATES = "import random, time\ntime.time = lambda: random.uniform(0, 4e9)\n"
_TIMES = ("seconds", "trials_per_second", "finished")


def kill_commands(times: int, draw: random.Random) -> int:
    """The same of eight `deniable worker` commands: the audit that they play is that of one process."""
    with TemporaryDirectory() as place, TemporaryDirectory() as clock:
        (Path(clock) / "sitecustomize.py").write_text(JUMPING_DATES)
        dates = {**os.environ, "PYTHONPATH": os.pathsep.join([clock, os.environ.get("PYTHONPATH", "")])}
        audit = [*AUDIT, f"--trials={1500 * times}"]
        _run_command(*audit, f"--out={place}", "--plan")
        line = [sys.executable, "-m", "deniable", "worker", place, "--lease=2"]
        begin = partial(subprocess.Popen, line, env=dates, stderr=subprocess.DEVNULL)
        workers, killed = [begin() for _ in range(8)], 0
        while killed < times and (before := read_status(place)).finished < (before.blocks or 0):
            wanted = before.finished + draw.randrange(1, 12)
            while read_status(place).finished < min(wanted, before.blocks or 0):
                time.sleep(0.05)
            killed += _kill_one(workers, begin, draw)
            print(f"commands: killed {killed} times after {read_status(place).finished} blocks", flush=True)
        assert not any(worker.wait() for worker in workers)
        assert read_status(place).finished == before.blocks
        both = [_run_command(*audit, *more, "--json") for more in ([f"--out={place}", "--resume"], ["--processes=1"])]
        found, alone = ({k: v for k, v in json.loads(one).items() if k not in _TIMES} for one in both)
        assert found == alone
    print(f"commands: killed {killed} of eight at a time, identical", flush=True)
    return killed


def _run_command(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "deniable", *words], check=True, stdout=subprocess.PIPE
    ).stdout.decode()


def main(words: list[str]) -> None:
    match words:
        case ["drive", place, address]:
            campaign = sleeping(4 * BLOCKS, SECONDS)
            with Store(place, campaign.settings, resume=True) as store:
                play_missing(campaign, Ray(address), store)
        case ["work", place, times]:
            jumps = random.Random()
            time.time = lambda: jumps.uniform(0, 4e9)
            work_in(place, sleeping(20 * int(times), SECONDS), lease_seconds=2.0)
        case [what, times, seed]:
            draw, number = random.Random(int(seed)), int(times)
            if what in ("workers", "commands"):
                (kill_workers if what == "workers" else kill_commands)(number, draw)
                return
            with two_nodes() as nodes:
                kill_drivers(nodes, number, draw) if what == "driver" else lose(what, nodes, number, draw)
        case _:
            print(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
