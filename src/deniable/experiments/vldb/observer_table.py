"""Bernau 2021, Table 2: what A_DI achieves at belief target 0.9, for local and global sensitivity."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from matplotlib.figure import Figure

from deniable.experiments.drawing import beside, table
from deniable.experiments.four_ways import (
    ALL_WORK,
    CASE_NAMES,
    LOCAL_CASES,
    STAND_IN_NOTE,
    TRAINED_BOTH,
    AgainstPaper,
    Columns,
    four_ways,
)
from deniable.experiments.game_summary import GameSummary
from deniable.experiments.games import ADULT, MNIST, STAND_IN, three_sets, title_of
from deniable.experiments.item import Item, ItemRun
from deniable.experiments.statements import Claim, Ordered, Within
from deniable.results.base import Part

PRINTED_ADVANTAGE = {"MNIST": ("0.24", "0.23", "0.18", "0.27"), "Adult": ("0.17", "0.22", "0.13", "0.18")}
ELSEWHERE = ("0.25", "0.23", "0.1", "0.24")
PRINTED_VIOLATIONS = {
    "MNIST": ("2e-3", "2e-3", "0", "4e-3"),
    "Purchase-100": ("0", "0", "0", "1e-3"),
    "Adult": ("0",) * 4,
}


class Violations(Part, frozen=True, kw_only=True):
    """How often beliefs exceed the target, by data set."""

    trials: int
    violations: Columns
    delta: dict[str, float]


class ObserverTable(Part, frozen=True, kw_only=True):
    """Table 2."""

    data: dict[str, str]
    records: dict[str, int]
    trials: int
    advantage: Columns
    advantage_error: Columns
    expected_advantage: Columns
    exact_advantage: Columns
    violations: Columns
    delta: dict[str, float]
    local: dict[str, Columns]
    bounded: dict[str, dict[str, float]]
    unbounded: dict[str, dict[str, float]]
    paper: AgainstPaper


def _table(run: ItemRun) -> ObserverTable:
    sets = three_sets()
    rows = {name: four_ways(run, data) for name, data in sets.items()}

    def column(value: Callable[[GameSummary], float], cases: int | None = None) -> Columns:
        return {name: [value(one) for one in row[:cases]] for name, row in rows.items()}

    expected = column(lambda one: one.expected_advantage)
    return ObserverTable(
        data={name: title_of(name, data) for name, data in sets.items()},
        records={name: row[0].records for name, row in rows.items()},
        trials=next(iter(rows.values()))[0].trials,
        advantage=column(lambda one: one.advantage),
        advantage_error=column(lambda one: one.advantage_error),
        expected_advantage=expected,
        exact_advantage=column(lambda one: one.exact_advantage),
        violations=column(lambda one: one.violations),
        delta={name: row[0].delta for name, row in rows.items()},
        local={
            "advantage": column(lambda one: one.advantage, LOCAL_CASES),
            "exact_advantage": column(lambda one: one.exact_advantage, LOCAL_CASES),
            "error": column(lambda one: one.binomial_error, LOCAL_CASES),
        },
        bounded={kind: {name: row[i] for name, row in expected.items()} for kind, i in (("local", 0), ("global", 2))},
        unbounded={
            "global": {name: row[3] for name, row in expected.items()},
            "most": {name: _most(row[1], row[3]) for name, row in rows.items()},
        },
        paper=_against_paper(rows),
    )


def _most(local: GameSummary, other: GameSummary) -> float:
    """The local advantage (by beliefs), plus 3 standard errors of the difference to the other's."""
    return local.expected_advantage + 3 * sqrt(local.expected_advantage_error**2 + other.expected_advantage_error**2)


def _against_paper(rows: dict[str, list[GameSummary]]) -> AgainstPaper:
    """Ours and the printed advantages with local sensitivity, whose noise does not depend on network or data."""
    pairs = [
        (one, float(text))
        for name, texts in PRINTED_ADVANTAGE.items()
        for one, text in zip(rows[name][:LOCAL_CASES], texts, strict=False)
    ]
    return AgainstPaper(
        ours=[one.advantage for one, _ in pairs],
        printed=[printed for _, printed in pairs],
        error=[sqrt(one.binomial_error**2 + (1 - one.exact_advantage**2) / 1000) for one, _ in pairs],
    )


def _rarely(found: Violations) -> bool:
    return all(
        rate <= found.delta[name] + 3 * sqrt(found.delta[name] / found.trials)
        for name, rates in found.violations.items()
        for rate in rates
    )


def _draw_table(found: ObserverTable) -> Figure:
    rows = []
    for name, title in found.data.items():
        printed = {**PRINTED_ADVANTAGE, "Purchase-100": ELSEWHERE}[name]
        for place, case in enumerate(CASE_NAMES):
            ours = f"{found.advantage[name][place]:.3f} ± {found.advantage_error[name][place]:.3f}"
            expected = f"{found.expected_advantage[name][place]:.3f}"
            violations = beside(found.violations[name][place], PRINTED_VIOLATIONS[name][place], ".1g")
            exact = f"{found.exact_advantage[name][place]:.4f}" if place < LOCAL_CASES else ""
            rows.append((title if place == 0 else "", case, f"{ours}  [{printed[place]}]", expected, exact, violations))
    headings = ("data", "noise by", "Adv  [paper]", "Adv by beliefs", "exact Adv", "δ′  [paper]")
    return table(headings, rows, f"Advantage and belief violations at ρβ = 0.9, {found.trials} trainings each")


TABLE_2 = Item(
    name="table-2",
    needs=(MNIST, STAND_IN, ADULT),
    title="A_DI's advantage and belief violations, local and global sensitivity",
    caption=(
        "Table 2: measured advantage of A_DI (± standard error) and share of trainings whose belief exceeds "
        "0.9, for MNIST, Location-30 (in place of Purchase-100) and Adult."
    ),
    compute=_table,
    read_as=ObserverTable,
    draw=_draw_table,
    comparisons=(
        Within(
            "with local sensitivity the measured advantage is that of the noise really added",
            "local.advantage",
            "local.exact_advantage",
            "local.error",
        ),
        Within(
            "MNIST and Adult with local sensitivity meet the paper, both with their binomial errors",
            "paper.ours",
            "paper.printed",
            "paper.error",
        ),
        Ordered(
            "global sensitivity, bounded: less advantage than local (by A_DI's beliefs)",
            "bounded.global",
            "bounded.local",
            strict=True,
            smallest="smoke",
        ),
        Ordered(
            "global sensitivity, unbounded: at most the advantage of local (by A_DI's beliefs) plus 3 standard errors",
            "unbounded.global",
            "unbounded.most",
            smallest="smoke",
        ),
        Claim("beliefs exceed 0.9 at most as often as delta allows, plus 3 standard errors", _rarely, Violations),
    ),
    shared=ALL_WORK,
    printed={"advantage": {**PRINTED_ADVANTAGE, "Purchase-100": ELSEWHERE}, "violations": PRINTED_VIOLATIONS},
    order=", ".join(CASE_NAMES) + " (LS: local, GS: global sensitivity); ours for Purchase-100 are Location-30's",
    notes=(
        STAND_IN_NOTE,
        TRAINED_BOTH,
        (
            "The noise is the RDP calibration's, whose exact advantage is 0.2562 (delta 0.01) or 0.2168 (delta "
            "0.001), not Theorem 3's 0.28 or 0.23 (erratum 6)."
        ),
        (
            "With global sensitivity the advantage depends on how long the network's gradients are, which differs"
            " from the paper's where the networks do; Adult's are shorter here, so that its advantage is smaller."
        ),
        "Noise scaled to local sensitivity is an instrument, not differentially private (erratum 8).",
        (
            "In a first run all of Adult's campaigns shared one seed, hence one piece of luck (unbounded, local: "
            "0.290, 2.4 standard errors high); it was replaced by this one, with a seed for each campaign."
        ),
    ),
)
