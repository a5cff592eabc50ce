"""Erlingsson 2019, Tables 1 and 2 and Figures 1 and 2: by noise, from above by analysis and from below by attack."""

# ruff: noqa: PLC0415 (torch is imported where something is trained, so that listing the items is quick)

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.bounds.advantage import least_epsilon_erlingsson
from deniable.experiments.compare import Claim, Known, Ordered, Printed
from deniable.experiments.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, beside, legend, panels, table
from deniable.experiments.erlingsson.attacked import FPR, STAND_IN, TABLES, WORK, all_noises, attack_trainings
from deniable.experiments.erlingsson.noise import DELTA, MISPRINT, NOISES, PRINTED, training, upper_bounds
from deniable.experiments.item import Item, ItemRun, Scale, Values

__all__ = ["FIGURE_1", "FIGURE_2", "TABLE_1", "TABLE_2"]

TPRS = ("5", "5.3", "5.6", "7.8", "8.9")
ACCURACIES = ("1.9", "7.0", "14", "71", "92")
LOWER = ("0", "0.003", "0.006", "0.04", "0.05")
UNSTATED = (
    "Neither sampling rate nor steps are stated; 0.02 and 5000 reproduce the table. Values are held against the "
    "interval that the printed noise's two decimals leave open."
)
ROWS = "noise " + ", ".join(f"{one:g}" for one in NOISES)
NOT_EQ_1 = "Eq. 1 at Table 1's TPR gives this; the printed bound would need an advantage 0.01 larger."
UPPER = (
    Printed("naive", known=MISPRINT),
    Printed("advanced"),
    Printed("rdp"),
    Ordered("RDP is tighter than naive composition", "at_noise.rdp", "at_noise.naive", strict=True),
    Ordered("and the exact epsilon tighter still", "exact", "at_noise.rdp", strict=True),
)


def _table_1(run: ItemRun) -> Values:
    found = attack_trainings(run, list(NOISES))
    rows = [found[noise] for noise in NOISES]
    keys = ("relative_accuracy", "tpr", "tpr_error", "most_tpr", "advantage")
    return {
        **upper_bounds(run),
        **{key: [row[key] for row in rows] for key in keys},
        "percent": {key: [100 * row[key] for row in rows] for key in ("tpr", "relative_accuracy")},
        "tpr_less_3_errors": [row["tpr"] - 3 * row["tpr_error"] for row in rows],
    }


def _rises(found: Values) -> bool:
    """The noises fall along the table."""
    row = found["relative_accuracy"]
    return all(later > earlier for earlier, later in pairwise(row))


def _leaks_at_last(found: Values) -> bool:
    return bool(found["tpr_less_3_errors"][-1] > FPR and found["tpr"][-1] > found["tpr"][0])


def _draw_table_1(found: Values) -> Figure:
    rows = []
    for place, noise in enumerate(found["noise"]):
        measured = (
            f"{found['relative_accuracy'][place]:.1%}  [{ACCURACIES[place]}%]",
            f"{found['tpr'][place]:.1%}  [{TPRS[place]}%]",
        )
        shown = (beside(found["at_noise"][name][place], PRINTED[name][place]) for name in PRINTED)
        rows.append((f"{noise:g}x", *measured, *shown, f"{found['exact'][place]:.4g}"))
    headings = (
        "noise",
        "accuracy  [paper]",
        "attack TPR  [paper]",
        "naïve ε  [paper]",
        "advanced ε  [paper]",
        "RDP ε  [paper]",
        "exact ε (ours)",
    )
    return table(headings, rows, "One row a noise; epsilon at δ = 1e-5")


TABLE_1 = Item(
    name="table-1",
    title="accuracy, attack and epsilon of three analyses, by noise",
    caption=f"Table 1: training accuracy relative to the baseline, TPR at 5 % FPR, epsilons. {STAND_IN}",
    compute=_table_1,
    draw=_draw_table_1,
    comparisons=(
        *UPPER,
        Claim("less noise, better training", _rises, smallest="hours"),
        Ordered("no TPR is above what the noise admits, but for 3 standard errors", "tpr_less_3_errors", "most_tpr"),
        Claim("at the least noise the attack shows (3 standard errors)", _leaks_at_last, smallest="hours"),
    ),
    seconds={Scale.SMOKE: 2.0, Scale.FULL: 2.0},
    shared={TABLES: WORK[TABLES]},
    printed={**PRINTED, "percent": {"tpr": TPRS, "relative_accuracy": ACCURACIES}},
    order=ROWS,
    notes=(
        UNSTATED,
        "Accuracy and TPR are the paper's for Purchase-100 and are shown beside ours, not held against them.",
    ),
)


def _table_2(run: ItemRun) -> Values:
    lower = [least_epsilon_erlingsson(float(text) / 100 - FPR, DELTA) for text in TPRS]
    return {**upper_bounds(run), "lower": lower}


def _draw_table_2(found: Values) -> Figure:
    rows = []
    for place, noise in enumerate(found["noise"]):
        shown = (beside(found["at_noise"][name][place], PRINTED[name][place]) for name in ("rdp", "advanced", "naive"))
        lower = beside(found["lower"][place], LOWER[place], ".3f")
        rows.append((f"{noise:g}x", lower, f"{found['exact'][place]:.4g}", *shown))
    headings = ("noise", "ε at least  [paper]", "exact (ours)", "RDP  [paper]", "advanced  [paper]", "naïve  [paper]")
    return table(headings, rows, "Bounds on epsilon at δ = 1e-5, from below by attack and from above by analysis")


LOWER_PRINTED = Printed(
    "lower",
    known={"lower.3": Known("0.028", NOT_EQ_1), "lower.4": Known("0.040", NOT_EQ_1)},
    what="lower bounds (Eq. 1)",
)
POINT = (
    "The lower bounds are Eq. 1 at the paper's rates, without confidence limits, so they bound nothing; with limits "
    "and a better threshold see Figure 2 (erratum 15)."
)
TABLE_2 = Item(
    name="table-2",
    title="lower and upper bounds on epsilon, by noise",
    caption="Table 2: epsilon from below (Eq. 1 at the paper's attack rates) and from above by three analyses.",
    compute=_table_2,
    draw=_draw_table_2,
    comparisons=(LOWER_PRINTED, *UPPER, Ordered("attack below analysis", "lower", "exact")),
    seconds={Scale.SMOKE: 2.0, Scale.FULL: 2.0},
    printed={**PRINTED, "lower": LOWER},
    order=ROWS,
    notes=(UNSTATED, POINT),
)


def _logarithmic(axes: Axes) -> None:
    axes.set(xscale="log", yscale="log")
    axes.grid(visible=True, which="major", alpha=0.3)


def _draw_figure_1(found: Values) -> Figure:
    figure, (axes,) = panels(("",), 1, x="noise multiplier", y="ε at δ = 1e-5", size=4)
    for name, colour, label in (("naive", GREY, "naïve"), ("advanced", PURPLE, "advanced"), ("rdp", ORANGE, "RDP")):
        axes.plot(found["noise"], found["at_noise"][name], "o-", color=colour, label=f"upper: {label}")
    axes.plot(found["noise"], found["exact"], "o-", color=GREEN, label="exact (ours)")
    shown = [(noise, lower) for noise, lower in zip(found["noise"], found["lower"], strict=True) if lower > 1e-4]
    axes.plot(*zip(*shown, strict=True), "s--", color=RED, label="lower: attack (Eq. 1)")
    _logarithmic(axes)
    legend(axes)
    return figure


FIGURE_1 = replace(
    TABLE_2,
    name="figure-1",
    title="the gap between lower and upper bounds",
    caption="Figure 1: the values of Table 2 on logarithmic axes; a lower bound of 0 has no place there.",
    draw=_draw_figure_1,
)


def _region(run: ItemRun) -> Values:
    from deniable.campaigns.region import region

    noises = all_noises()
    found = attack_trainings(run, noises)
    rows = [found[noise] for noise in noises]
    limits = region(((noise, training(noise), found[noise]["least_epsilon"]) for noise in noises), DELTA)
    keys = ("advantage", "advantage_error", "most_advantage", "least_epsilon")
    columns = {key: [row[key] for row in rows] for key in keys}
    by_advantage = [max(0.0, least_epsilon_erlingsson(value, DELTA)) for value in columns["advantage"]]
    less = [value - 3 * error for value, error in zip(columns["advantage"], columns["advantage_error"], strict=True)]
    return {
        "noise": noises,
        **columns,
        "exact_epsilon": [limit.exact for limit in limits],
        "rdp_epsilon": [limit.named.rdp for limit in limits],
        "by_advantage": by_advantage,
        "advantage_less_3_errors": less,
    }


def _narrows(found: Values) -> bool:
    """At the least noise the attack proves an epsilon above 0.1; at the most noise nothing."""
    return bool(found["least_epsilon"][0] > 0.1 and found["least_epsilon"][-1] == 0)


def _draw_region(found: Values) -> Figure:
    figure, (axes,) = panels(("",), 1, x="noise multiplier", y="ε at δ = 1e-5", size=4)
    floor = 3e-3
    lower = [max(floor, value) for value in found["least_epsilon"]]
    axes.plot(found["noise"], found["rdp_epsilon"], "o-", color=ORANGE, label="upper: RDP")
    axes.plot(found["noise"], found["exact_epsilon"], "o-", color=GREEN, label="exact (ours)")
    axes.plot(
        found["noise"],
        [max(floor, one) for one in found["by_advantage"]],
        "^:",
        color=BLUE,
        label="attack, Eq. 1 (no limits)",
    )
    axes.plot(found["noise"], lower, "s--", color=RED, label="lower: attack, 95 % confidence")
    axes.fill_between(found["noise"], lower, found["exact_epsilon"], color=GREEN, alpha=0.12, label="region of privacy")
    _logarithmic(axes)
    axes.set_ylim(floor, None)
    axes.annotate("on this line: nothing shown", (found["noise"][0], floor * 1.15), ha="left", fontsize=7, color=BLACK)
    legend(axes)
    return figure


FIGURE_2 = Item(
    name="figure-2",
    title="the region of privacy over noise",
    caption=f"Figure 2: epsilon lies between what the best threshold shows and what analysis proves. {STAND_IN}",
    compute=_region,
    draw=_draw_region,
    comparisons=(
        Ordered("what the attack shows (95 % confidence) is below the exact epsilon", "least_epsilon", "exact_epsilon"),
        Ordered("and the exact epsilon below RDP's", "exact_epsilon", "rdp_epsilon", strict=True),
        Ordered("no advantage is above the exact one, but for 3 errors", "advantage_less_3_errors", "most_advantage"),
        Claim(
            "less noise, more is shown: over 0.1 at the least, 0 at the most noise",
            _narrows,
            smallest="hours",
            hindsight=True,
        ),
    ),
    seconds={Scale.SMOKE: 1.0, Scale.FULL: 5.0},
    shared=WORK,
    printed={},
    notes=(
        "The threshold is chosen on records that are not tested, and counts have confidence limits; the paper takes "
        "the best threshold on the tested ones and no limits (erratum 15). Advantages lie far below the exact ones "
        "since the attacker sees the final model only.",
    ),
)
