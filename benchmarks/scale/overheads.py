"""What playing blocks elsewhere costs: the driver's time and memory, throughput, and points for the model.

    python benchmarks/scale/overheads.py tiny ray 100000     the driver over blocks of no work; or local, here, shared
    python benchmarks/scale/overheads.py share               blocks of 2 s on two CPUs: Ray's throughput over the pool's
    python benchmarks/scale/overheads.py points ray 0.001    sleeping blocks on 2 to 16 CPUs, beside the simulation
    python benchmarks/scale/overheads.py model 0.001         1 to 10,000 workers; the driver's seconds a block

Blocks sleep, so that CPUs that are not there can be played on, and the driver's own cost shows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from scale_model import Cluster, predict, simulate
from sleeping import same, sleeping

from deniable.engines import Engine, Local, Ray, Shared, play_missing, resume_store


def engine_of(name: str, processes: int) -> Engine:
    """local: the pool; here: this process alone; shared: this process as one of many."""
    engines = {"ray": Ray(processes=processes), "local": Local(processes), "here": Local(1), "shared": Shared()}
    return engines[name]


def megabytes() -> float:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def tiny(name: str, blocks: int) -> None:
    """CPU time and memory of the driver."""
    campaign, seen = sleeping(blocks, 0.0), list[tuple[int, float, float, float]]()

    def tell(done: int) -> None:
        if done in {blocks // 100, blocks // 10, blocks // 2, blocks}:
            seen.append((done, process_time(), perf_counter(), megabytes()))

    engine = engine_of(name, 2)
    with TemporaryDirectory() as place, resume_store(engine, place) as store:
        store.begin(campaign.settings)
        found = play_missing(campaign, engine, store, tell=tell)
        assert same(found, campaign)
    (first, cpu, wall, _), (last, cpu_end, wall_end, _) = seen[0], seen[-1]
    for done, _, _, memory in seen:
        print(f"{name}: {memory:.0f} MB after {done:,} blocks")
    played = last - first
    spent, passed = (1e3 * time / played for time in (cpu_end - cpu, wall_end - wall))
    print(f"{name}: {spent:.2f} ms of the driver's CPU and {passed:.2f} ms a block")


def seconds(name: str, cpus: int, blocks: int, length: float) -> float:
    """From the first result to the last: workers have started by then."""
    campaign, times = sleeping(blocks, length), list[float]()
    engine = engine_of(name, cpus)
    with TemporaryDirectory() as place, resume_store(engine, place) as store:
        store.begin(campaign.settings)
        play_missing(campaign, engine, store, tell=lambda done: times.append(perf_counter()))
    return times[-1] - times[1]


def share() -> None:
    """Throughput of Ray over that of the pool, for blocks of 2 s."""
    found = {name: 40 / seconds(name, 2, 42, 2.0) for name in ("local", "ray")}
    print({name: f"{value:.3f} blocks/s" for name, value in found.items()}, f"{found['ray'] / found['local']:.3f}")


def model(cost: float) -> None:
    """The table of docs/scale.md: 100,000 blocks of an audit."""
    for workers in (1, 10, 100, 1000, 10_000):
        cells = []
        for length in (2.0, 30.0):
            cluster = Cluster(workers, cost, start_seconds=5, data_bytes=1e8, result_bytes=7e4)
            bounds, found = predict(10**5, length, 0.3, cluster), simulate(10**5, length, 0.3, cluster)
            cells.append(f"{bounds.low:,.0f} to {bounds.high:,.0f} | {found:,.0f} | {bounds.limit}")
        print(f"| {workers:,} | {' | '.join(cells)} |")


def points(name: str, cost: float) -> None:
    """Measured and simulated seconds; the driver's cost is that of tiny blocks."""
    for cpus in (2, 4, 8, 16):
        for length in (0.02, 0.2, 1.0):
            blocks = 10 * cpus
            taken = seconds(name, cpus, blocks + 1, length)
            expected = simulate(blocks, length, 0.0, Cluster(cpus, cost))
            print(f"{name}, {cpus} CPUs, {length} s: {taken:.2f} s measured, {expected:.2f} s simulated", flush=True)


def main(words: list[str]) -> None:
    match words:
        case ["tiny", name, blocks]:
            tiny(name, int(blocks))
        case ["share"]:
            share()
        case ["points", name, cost]:
            points(name, float(cost))
        case ["model", cost]:
            model(float(cost))
        case _:
            print(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
