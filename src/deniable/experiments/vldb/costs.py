"""Bernau 2021, Table 1: what dataset sensitivity, belief and advantage cost, measured over records n and steps k."""

# ruff: noqa: PLC0415 (torch is imported when there is something to time)

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from time import process_time

from matplotlib.figure import Figure

from deniable.experiments.drawing import BLUE, GREEN, ORANGE, RED, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale
from deniable.experiments.statements import Close
from deniable.results.base import Part

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

    from deniable.scores import beliefs

    repeats = 2000
    ratios = np.zeros((1, steps))

    def decide() -> None:
        for _ in range(repeats):
            _ = beliefs(ratios[:, -1]) > 0.5

    return _seconds(decide) / repeats


class Timing(Part, frozen=True, kw_only=True):
    """Processor time over the number of records or steps."""

    sizes: list[int]
    seconds: list[float]


class CostTable(Part, frozen=True, kw_only=True):
    """Table 1."""

    fixed: dict[str, int]
    """Steps where the records vary, and records where the steps vary."""
    power: dict[str, float]
    sensitivity: Timing
    belief_records: Timing
    belief_steps: Timing
    advantage: Timing


def _compute(run: ItemRun) -> CostTable:
    searched: tuple[int, ...] = run.size((200, 400), (1000, 2000, 4000), (2000, 4000, 8000, 16_000))
    trained: tuple[int, ...] = run.size((200, 400), (500, 1000, 2000), (1000, 2000, 4000, 8000))
    steps: tuple[int, ...] = run.size((2, 4), (10, 20, 40), (10, 20, 40, 80))
    few = trained[0]
    rows = {
        "sensitivity": Timing(sizes=list(searched), seconds=[_sensitivity(n) for n in searched]),
        "belief_records": Timing(sizes=list(trained), seconds=[_belief(n, steps[0]) for n in trained]),
        "belief_steps": Timing(sizes=list(steps), seconds=[_belief(few, k) for k in steps]),
        "advantage": Timing(sizes=list(steps), seconds=[_advantage(k) for k in steps]),
    }
    power = {name: _power(row.sizes, row.seconds) for name, row in rows.items()}
    return CostTable(fixed={"steps": steps[0], "records": few}, power=power, **rows)


def _draw(found: CostTable) -> Figure:
    figure, (left, right) = panels(["over the records n", "over the steps k"], 2, x="", y="seconds of processor time")
    steps, records = found.fixed.values()
    lines = (
        (left, found.sensitivity, RED, "dataset sensitivity, paper O(n²)"),
        (left, found.belief_records, BLUE, f"belief, k = {steps}, paper O(nk)"),
        (right, found.belief_steps, GREEN, f"belief, n = {records}, paper O(nk)"),
        (right, found.advantage, ORANGE, "advantage of a training, paper O(1)"),
    )
    for (axes, row, colour, name), power in zip(lines, found.power.values(), strict=True):
        label = f"{name}\nmeasured power {power:.2f}"
        axes.loglog(row.sizes, row.seconds, color=colour, marker="o", label=label)
    for axes, name, rows in (
        (left, "n", (found.sensitivity, found.belief_records)),
        (right, "k", (found.belief_steps,)),
    ):
        axes.set_xlabel(name)
        sizes = sorted({size for row in rows for size in row.sizes})
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
    read_as=CostTable,
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
