"""Bernau 2021, Table 2 and Figure 6: what A_DI achieves at belief target 0.9, for local and global sensitivity."""

from __future__ import annotations

from math import sqrt
from typing import Any

from matplotlib.figure import Figure

from deniable.experiments.compare import Claim, Ordered, Within
from deniable.experiments.distributions import boxes, violins
from deniable.experiments.drawing import BLUE, GREEN, ORANGE, RED, beside, panels, table
from deniable.experiments.games import (
    ADULT,
    CASES,
    MNIST,
    STAND_IN,
    binomial_error,
    exact_belief,
    game_of_size,
    measure_games,
    shared_work,
    three_sets,
    title_of,
)
from deniable.experiments.item import Item, ItemRun, Scale, Values

__all__ = [
    "ALL_WORK",
    "CASE_NAMES",
    "COLOURS",
    "FIGURE_6",
    "STAND_IN_NOTE",
    "TABLE_2",
    "TRAINED_BOTH",
    "WORK",
    "four_ways",
]

BELIEF = 0.9
LOCAL_CASES = 2
"""The first of `CASES`."""
CASE_NAMES = [name for name, _, _ in CASES]
COLOURS = (RED, ORANGE, BLUE, GREEN)
PRINTED_ADVANTAGE = {"MNIST": ("0.24", "0.23", "0.18", "0.27"), "Adult": ("0.17", "0.22", "0.13", "0.18")}
ELSEWHERE = ("0.25", "0.23", "0.1", "0.24")
PRINTED_VIOLATIONS = {
    "MNIST": ("2e-3", "2e-3", "0", "4e-3"),
    "Purchase-100": ("0", "0", "0", "1e-3"),
    "Adult": ("0",) * 4,
}
STAND_IN_NOTE = (
    "Purchase-100 cannot be had here: Location-30 (real visits, 446 bits, 30 classes, network 446-128-30) stands in, "
    "with 300 records at scale hours (1000 at full); the paper's values for Purchase-100 are shown, not compared. "
    "Where the file of Purchase-100 is present its loader takes over."
)
TRAINED_BOTH = (
    "The paper trains on D only; here b is drawn and D or D' is trained on (erratum 10). Group norm stands where the "
    "MNIST network has batch norm (erratum 9). The learning rate 0.005, 30 steps and clipping norm 3 are the paper's."
)
WORK = {data: shared_work(data, (BELIEF,)) for data in (MNIST, STAND_IN, ADULT)}
"""The campaigns of the four ways, by data set."""
ALL_WORK = {name: taken for campaigns in WORK.values() for name, taken in campaigns.items()}


def four_ways(run: ItemRun, data: str) -> list[Values]:
    """What the campaigns of the four ways to scale noise show for one data set."""
    return measure_games(run, (game_of_size(run, data, BELIEF, case) for case in CASES))


def _table(run: ItemRun) -> Values:
    sets = three_sets()
    rows = {name: four_ways(run, data) for name, data in sets.items()}
    local, bounded = slice(LOCAL_CASES), (0, 2)

    def column(key: str, part: Any = slice(None)) -> dict[str, list[float]]:
        return {name: [one[key] for one in row][part] for name, row in rows.items()}

    expected = column("expected_advantage")
    return {
        "data": {name: title_of(name, data) for name, data in sets.items()},
        "records": {name: row[0]["records"] for name, row in rows.items()},
        "trials": rows["MNIST"][0]["trials"],
        "advantage": column("advantage"),
        "advantage_error": column("advantage_error"),
        "expected_advantage": expected,
        "exact_advantage": column("exact_advantage"),
        "violations": column("violations"),
        "delta": {name: row[0]["delta"] for name, row in rows.items()},
        "local": {
            **{key: column(key, local) for key in ("advantage", "exact_advantage")},
            "error": {name: [binomial_error(one) for one in row[local]] for name, row in rows.items()},
        },
        "bounded": {
            kind: {name: row[i] for name, row in expected.items()}
            for kind, i in zip(("local", "global"), bounded, strict=True)
        },
        "unbounded": {
            "global": {name: row[3] for name, row in expected.items()},
            "most": {name: _most(row[1], row[3]) for name, row in rows.items()},
        },
        "paper": _against_paper(rows),
    }


def _most(local: Values, other: Values) -> float:
    """The local advantage (by beliefs), plus 3 standard errors of the difference to the other's."""
    error = sqrt(local["expected_advantage_error"] ** 2 + other["expected_advantage_error"] ** 2)
    return float(local["expected_advantage"]) + 3 * error


def _against_paper(rows: dict[str, list[Values]]) -> Values:
    """Ours and the printed advantages with local sensitivity, whose noise does not depend on network or data."""
    ours, printed, error = [], [], []
    for name, texts in PRINTED_ADVANTAGE.items():
        for one, text in zip(rows[name][:2], texts[:2], strict=True):
            ours.append(one["advantage"])
            printed.append(float(text))
            error.append(sqrt(binomial_error(one) ** 2 + (1 - one["exact_advantage"] ** 2) / 1000))
    return {"ours": ours, "printed": printed, "error": error}


def _rarely(values: Values) -> bool:
    trials = values["trials"]
    return all(
        rate <= values["delta"][name] + 3 * sqrt(values["delta"][name] / trials)
        for name, rates in values["violations"].items()
        for rate in rates
    )


def _draw_table(found: Values) -> Figure:
    rows = []
    for name, title in found["data"].items():
        printed = {**PRINTED_ADVANTAGE, "Purchase-100": ELSEWHERE}[name]
        for place, case in enumerate(CASE_NAMES):
            ours = f"{found['advantage'][name][place]:.3f} ± {found['advantage_error'][name][place]:.3f}"
            expected = f"{found['expected_advantage'][name][place]:.3f}"
            violations = beside(found["violations"][name][place], PRINTED_VIOLATIONS[name][place], ".1g")
            exact = f"{found['exact_advantage'][name][place]:.4f}" if place < LOCAL_CASES else ""
            rows.append((title if place == 0 else "", case, f"{ours}  [{printed[place]}]", expected, exact, violations))
    headings = ("data", "noise by", "Adv  [paper]", "Adv by beliefs", "exact Adv", "δ′  [paper]")
    return table(headings, rows, f"Advantage and belief violations at ρβ = 0.9, {found['trials']} trainings each")


TABLE_2 = Item(
    name="table-2",
    needs=(MNIST, STAND_IN, ADULT),
    title="A_DI's advantage and belief violations, local and global sensitivity",
    caption=(
        "Table 2: measured advantage of A_DI (± standard error) and share of trainings whose belief exceeds "
        "0.9, for MNIST, Location-30 (in place of Purchase-100) and Adult."
    ),
    compute=_table,
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
        Claim("beliefs exceed 0.9 at most as often as delta allows, plus 3 standard errors", _rarely),
    ),
    seconds={Scale.SMOKE: 1.0, Scale.FULL: 1.0},
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


EXACT = ("mean", "mean_error", "high", "high_error")


def _beliefs(run: ItemRun) -> Values:
    sets = three_sets()
    rows = {name: four_ways(run, data) for name, data in sets.items()}
    kept = {
        name: {key: [one[key] for one in row] for key in ("beliefs", "belief", "accuracy", "expected_advantage")}
        for name, row in rows.items()
    }
    middle = {name: [one["belief"]["mean"] for one in row] for name, row in rows.items()}
    exact = {name: exact_belief(row[0]) for name, row in rows.items()}
    high = {name: [one["belief"]["quantiles"][-1] for one in row] for name, row in rows.items()}
    return {
        "data": {name: title_of(name, data) for name, data in sets.items()},
        "panels": kept,
        "mean_belief": middle,
        "local": {
            "mean": {name: row[:LOCAL_CASES] for name, row in middle.items()},
            "high": {name: row[:LOCAL_CASES] for name, row in high.items()},
        },
        "exact": {key: {name: [one[key]] * LOCAL_CASES for name, one in exact.items()} for key in EXACT},
        "global_mean_less_3_errors": {
            name: max(row[LOCAL_CASES:]) - 3 * exact[name]["mean_error"] for name, row in middle.items()
        },
        "exact_mean": {name: one["mean"] for name, one in exact.items()},
        "global_bounded": [row[2] for row in high.values()],
        "local_bounded": [row[0] for row in high.values()],
        "accuracy": {name: [one["accuracy"]["mean"] for one in row] for name, row in rows.items()},
    }


def _draw_beliefs(found: Values) -> Figure:
    titles = [f"({letter}) {name}" for letter, name in zip("abc", found["data"].values(), strict=True)]
    figure, axes = panels(
        [*titles, "(d) test accuracy, " + found["data"]["MNIST"]], 2, x="", y="belief in the data trained on"
    )
    for part, row in zip(axes, found["panels"].values(), strict=False):
        violins(part, row["beliefs"], [one["quantiles"][2] for one in row["belief"]], COLOURS)
        part.axhline(BELIEF, color=BLUE, linestyle="--", linewidth=1)
        part.set(ylim=(0, 1), xticks=range(1, 5), xticklabels=[name.replace(" ", "\n") for name in CASE_NAMES])
        part.tick_params(axis="x", labelsize="small")
    accuracy = [one["quantiles"] for one in found["panels"]["MNIST"]["accuracy"]]
    boxes(axes[3], accuracy, COLOURS, [name.replace(" ", "\n") for name in CASE_NAMES])
    axes[3].tick_params(axis="x", labelsize="small")
    axes[3].set(ylabel="test accuracy")
    return figure


FIGURE_6 = Item(
    name="figure-6",
    needs=(MNIST, STAND_IN, ADULT),
    title="beliefs after training, and test accuracy",
    caption=(
        "Figure 6: final beliefs of A_DI at target 0.9 for MNIST (a), Location-30 in place of Purchase-100 "
        "(b) and Adult (c), for local and global sensitivity, bounded and unbounded; test accuracy of the MNIST "
        "models (d; the paper does not name the data set of its example)."
    ),
    compute=_beliefs,
    draw=_draw_beliefs,
    comparisons=(
        Within(
            "with local sensitivity beliefs lie on average only slightly above 0.5, where the noise really added has "
            "them",
            "local.mean",
            "exact.mean",
            "exact.mean_error",
        ),
        Ordered(
            "with global sensitivity at most there, plus 3 standard errors",
            "global_mean_less_3_errors",
            "exact_mean",
        ),
        Ordered(
            "bounded: global sensitivity keeps the 95 % quantile of beliefs below local sensitivity's",
            "global_bounded",
            "local_bounded",
            strict=True,
            smallest="smoke",
        ),
        Within(
            "with local sensitivity bounded and unbounded beliefs have the same 95 % quantile, that of the noise",
            "local.high",
            "exact.high",
            "exact.high_error",
            smallest="hours",
        ),
    ),
    seconds={Scale.SMOKE: 1.0, Scale.FULL: 1.0},
    shared=ALL_WORK,
    printed={},
    notes=(
        STAND_IN_NOTE,
        TRAINED_BOTH,
        "30 steps of SGD with learning rate 0.005 hardly move the network, so (d) stays near guessing; the paper "
        "names no optimizer. Bernau 2020 (Figure 5.2) shows the accuracy with DP-Adam and more records.",
    ),
)
