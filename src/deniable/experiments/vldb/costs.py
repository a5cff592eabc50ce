"""Bernau 2021, Table 1: what dataset sensitivity, belief and advantage cost, measured over records n and steps k."""

# ruff: noqa: PLC0415 (torch is imported when there is something to time)

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from time import process_time

from matplotlib.figure import Figure

from deniable.experiments.compare import Close
from deniable.experiments.drawing import BLUE, GREEN, ORANGE, RED, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale, Values

__all__ = ["TABLE_1"]

TIMES = 3
GROWTH = {"sensitivity": (2.0, 0.35), "belief_records": (1.0, 0.3), "belief_steps": (1.0, 0.2), "advantage": (0.0, 0.3)}
"""The paper's power of n (or k), and how far the measured one may be from it."""


def _seconds(work: Callable[[], object]) -> float:
    """Processor time, the least of some: what else the machine does adds to the others."""
    taken = []
    for _ in range(TIMES):
        started = process_time()
        work()
        taken.append(process_time() - started)
    return max(min(taken), 1e-9)


def _power(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of log(seconds) over log(size), by least squares."""
    x, y = [log(one) for one in sizes], [log(one) for one in seconds]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - middle_x) ** 2 for a in x)
    return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread


def _sensitivity(records: int) -> float:
    from deniable.data import most_dissimilar, purchases

    carts = purchases(100, records)
    return _seconds(lambda: most_dissimilar(carts, None, "add-remove", workers=1))


def _belief(records: int, steps: int) -> float:
    from deniable.data import purchases
    from deniable.mechanisms import Adjacency
    from deniable.training import Neighbours, TrainingSettings, run_block

    carts = purchases(100, records)
    neighbours = Neighbours.of(carts.inputs, carts.labels, 0)
    settings = TrainingSettings(
        "purchase100", noise=10.0, steps=steps, adjacency=Adjacency.ADD_REMOVE, trials_per_block=1
    )
    return _seconds(lambda: run_block(settings, neighbours, 0, 0))


def _advantage(steps: int) -> float:
    """Of one training: read its final belief and decide (Algorithm 1, line 14); mean over many decisions."""
    import numpy as np

    from deniable.adversaries.identifiability import beliefs

    repeats = 2000
    ratios = np.zeros((1, steps))

    def decide() -> None:
        for _ in range(repeats):
            _ = beliefs(ratios[:, -1]) > 0.5

    return _seconds(decide) / repeats


def _compute(run: ItemRun) -> Values:
    searched: tuple[int, ...] = run.size((200, 400), (1000, 2000, 4000), (2000, 4000, 8000, 16_000))
    trained: tuple[int, ...] = run.size((200, 400), (500, 1000, 2000), (1000, 2000, 4000, 8000))
    steps: tuple[int, ...] = run.size((2, 4), (10, 20, 40), (10, 20, 40, 80))
    few = trained[0]
    rows = {
        "sensitivity": (searched, [_sensitivity(n) for n in searched]),
        "belief_records": (trained, [_belief(n, steps[0]) for n in trained]),
        "belief_steps": (steps, [_belief(few, k) for k in steps]),
        "advantage": (steps, [_advantage(k) for k in steps]),
    }
    return {
        "fixed": {"steps": steps[0], "records": few},
        "power": {name: _power(*row) for name, row in rows.items()},
        **{name: {"sizes": list(sizes), "seconds": seconds} for name, (sizes, seconds) in rows.items()},
    }


def _draw(found: Values) -> Figure:
    figure, (left, right) = panels(["over the records n", "over the steps k"], 2, x="", y="seconds of processor time")
    lines = (
        (left, "sensitivity", RED, "dataset sensitivity, paper O(n²)"),
        (left, "belief_records", BLUE, f"belief, k = {found['fixed']['steps']}, paper O(nk)"),
        (right, "belief_steps", GREEN, f"belief, n = {found['fixed']['records']}, paper O(nk)"),
        (right, "advantage", ORANGE, "advantage of a training, paper O(1)"),
    )
    for axes, name, colour, label in lines:
        row = found[name]
        axes.loglog(
            row["sizes"],
            row["seconds"],
            color=colour,
            marker="o",
            label=f"{label}\nmeasured power {found['power'][name]:.2f}",
        )
    for axes, name, rows in ((left, "n", ("sensitivity", "belief_records")), (right, "k", ("belief_steps",))):
        axes.set_xlabel(name)
        sizes = sorted({size for row in rows for size in found[row]["sizes"]})
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        legend(axes)
    return figure


TABLE_1 = Item(
    name="table-1",
    title="measured cost of dataset sensitivity, belief and advantage",
    caption=(
        "Table 1: the stated time complexities, measured: processor time over records n and steps k on "
        "generated carts of 600 bits (network 600-128-100), and the power of n or k that fits it."
    ),
    compute=_compute,
    draw=_draw,
    comparisons=tuple(
        Close(
            f"{name.replace('_', ' over ')} grows with the power {power:g}",
            f"power.{name}",
            power,
            tolerance,
            smallest="hours",
            hindsight=True,
        )
        for name, (power, tolerance) in GROWTH.items()
    ),
    seconds={Scale.SMOKE: 15.0, Scale.HOURS: 120.0, Scale.FULL: 120.0},
    printed={"power": {name: f"{power:g}" for name, (power, _) in GROWTH.items()}},
    notes=(
        "The paper states complexities, no times. The limits leave room for caches and for the time a call takes "
        "whatever its size.",
    ),
)
