"""Jia 2023, Figures 5 to 7: advantage, ROC and positive predictive value at each false positive rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.bounds.advantage import advantage_at_fpr, advantage_at_fpr_from_tvd, least_fnr
from deniable.bounds.predictive import ppv_from_dp, ppv_from_tvd
from deniable.bounds.variation import gaussian_tvd
from deniable.experiments.compare import Claim, Ordered
from deniable.experiments.drawing import BLACK, BLUE, GREEN, ORANGE, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale, Values
from deniable.mechanisms import Gaussian
from deniable.scores import PrivacyLoss, privacy_loss

__all__ = ["FIGURE_5", "FIGURE_6", "FIGURE_7"]

NOISES = (8.0, 4.0, 2.0, 1.0)
PRIORS = (0.5, 0.2, 0.1, 0.01)
DELTA = 1e-5
SECONDS = {Scale.SMOKE: 3.0, Scale.FULL: 8.0}
LINES = {"dp": ("DP", BLUE, "--"), "tvd": ("TVD privacy", ORANGE, "-."), "exact": ("exact (ours)", GREEN, "-")}
UNSTATED = "The paper states no delta; 1e-5 and the exact epsilon of the Gaussian mechanism are ours."
Rows = Mapping[str, list[list[float]]]


def _rates(run: ItemRun) -> list[float]:
    points = run.size(11, 25, 33)
    found = {
        *np.geomspace(1e-4, 0.02, points // 3),
        *np.linspace(0.02, 0.98, points),
        *(1 - np.geomspace(1e-3, 0.02, 9)),
    }
    return sorted(map(float, found))


class _Release:
    """The Gaussian mechanism of one noise, as DP, TVD and the loss itself know it."""

    def __init__(self, noise: float) -> None:
        self.loss: PrivacyLoss = privacy_loss(Gaussian(noise))
        self.epsilon, self.alpha = float(self.loss.epsilon(DELTA)), gaussian_tvd(noise)


def _over_rates(run: ItemRun, curves: Mapping[str, Callable[[_Release, float], float]]) -> Values:
    rates, releases = _rates(run), [_Release(noise) for noise in NOISES]
    found = {name: [[curve(one, rate) for rate in rates] for one in releases] for name, curve in curves.items()}
    return {"fpr": rates, "noise": list(NOISES), "epsilon": [one.epsilon for one in releases], **found}


def _advantage(run: ItemRun) -> Values:
    return _over_rates(
        run,
        {
            "dp": lambda release, rate: advantage_at_fpr(release.epsilon, DELTA, rate),
            "tvd": lambda release, rate: advantage_at_fpr_from_tvd(release.alpha, rate),
            "exact": lambda release, rate: float(release.loss.tpr(rate)) - rate,
        },
    )


def _roc(run: ItemRun) -> Values:
    return _over_rates(
        run,
        {
            "dp": lambda release, rate: 1 - least_fnr(release.epsilon, DELTA, rate),
            "tvd": lambda release, rate: rate + advantage_at_fpr_from_tvd(release.alpha, rate),
            "exact": lambda release, rate: float(release.loss.tpr(rate)),
        },
    )


def _ppv(run: ItemRun) -> Values:
    found = {}
    for prior in PRIORS:
        curves: dict[str, Callable[[_Release, float], float]] = {
            "dp": lambda release, rate, p=prior: ppv_from_dp(release.epsilon, DELTA, rate, p),  # type: ignore[misc]
            "tvd": lambda release, rate, p=prior: ppv_from_tvd(release.alpha, rate, p),  # type: ignore[misc]
            "exact": lambda release, rate, p=prior: float(release.loss.ppv(rate, p)),  # type: ignore[misc]
        }
        found[f"{prior:g}"] = _over_rates(run, curves)
    shared = {name: found["0.5"][name] for name in ("fpr", "noise", "epsilon")}
    return {**shared, **{name: {share: part[name] for share, part in found.items()} for name in LINES}}


def _each_has_its_place(found: Values) -> bool:
    """In every panel DP is smaller at the ends and TVD in the middle, where the attack is at its best."""
    gaps = np.array(found["dp"]) - np.array(found["tvd"])
    middle = int(np.argmin(np.abs(np.array(found["fpr"]) - 0.5)))
    return bool((gaps[:, 0] < 0).all() and (gaps[:, -1] < 1e-12).all() and (gaps[:, middle] > 0).all())


def _almost_identical(found: Values) -> bool:
    """At 1 % members and from a false positive rate of 10 % on, the two bounds differ by at most 0.1."""
    rates = np.array(found["fpr"])
    gaps = np.abs(np.array(found["dp"]["0.01"]) - np.array(found["tvd"]["0.01"]))
    return bool(gaps[:, rates >= 0.1].max() <= 0.1)


def _lines(axes: Axes, fpr: list[float], rows: Rows, place: int) -> None:
    for name, (label, colour, style) in LINES.items():
        axes.plot(fpr, rows[name][place], style, color=colour, label=label)
    axes.set_xlim(0, 1)


def _titles(found: Values) -> list[str]:
    return [
        f"({letter}) σ = {noise:g} (ε = {epsilon:.2f})"
        for letter, noise, epsilon in zip("abcd", found["noise"], found["epsilon"], strict=True)
    ]


def _draw_advantage(found: Values) -> Figure:
    figure, axes = panels(_titles(found), x="false positive rate", y="membership advantage", size=2.9)
    for place, part in enumerate(axes):
        _lines(part, found["fpr"], found, place)
        part.set_ylim(0, None)
        legend(part)
    return figure


def _draw_roc(found: Values) -> Figure:
    figure, axes = panels(_titles(found), x="false positive rate", y="true positive rate", size=2.9)
    for place, part in enumerate(axes):
        _lines(part, found["fpr"], found, place)
        part.plot([0, 1], [0, 1], ":", color=BLACK, linewidth=1)
        part.set_ylim(0, 1.02)
        legend(part, loc="lower right")
    return figure


def _draw_ppv(found: Values) -> Figure:
    figure, axes = panels(_titles(found), x="false positive rate", y="positive predictive value", size=2.9)
    for place, part in enumerate(axes):
        for share, exact in found["exact"].items():
            _lines(part, found["fpr"], {name: found[name][share] for name in LINES}, place)
            part.annotate(f"{float(share):.0%}", (0.995, exact[place][-3] + 0.015), ha="right", fontsize=7)
        part.set_ylim(0, 1.02)
        legend(part, loc="upper right", first=3)
    return figure


_BELOW = (
    Ordered("the exact curve is below DP's", "exact", "dp", slack=1e-9),
    Ordered("and below TVD's", "exact", "tvd", slack=1e-9),
)
_PLACES = Claim("DP is tighter at both ends, TVD in the middle", _each_has_its_place)

FIGURE_5 = Item(
    name="figure-5",
    title="membership advantage at each false positive rate, sigma 8, 4, 2, 1",
    caption="Figure 5: bounds on the advantage by DP (Theorem 14), TVD (Theorem 15) and exactly (ours).",
    compute=_advantage,
    draw=_draw_advantage,
    comparisons=(*_BELOW, _PLACES),
    seconds=SECONDS,
    printed={},
    notes=(UNSTATED,),
)
FIGURE_6 = Item(
    name="figure-6",
    title="ROC curves, sigma 8, 4, 2, 1",
    caption="Figure 6: bounds on the true positive rate by DP, TVD and exactly (ours).",
    compute=_roc,
    draw=_draw_roc,
    comparisons=(*_BELOW, _PLACES),
    seconds=SECONDS,
    printed={},
    notes=(UNSTATED,),
)
FIGURE_7 = Item(
    name="figure-7",
    title="positive predictive value, sigma 8, 4, 2, 1 and shares of members",
    caption="Figure 7: bounds on the positive predictive value by DP (Theorem 16), TVD (Theorem 17) and exactly "
    "(ours), where 50, 20, 10 and 1 % of the tested are members.",
    compute=_ppv,
    draw=_draw_ppv,
    comparisons=(
        *_BELOW,
        Claim(
            "at a low share of members DP and TVD are almost identical (within 0.1 from FPR 0.1 on)",
            _almost_identical,
            hindsight=True,
        ),
    ),
    seconds={Scale.SMOKE: 8.0, Scale.FULL: 20.0},
    printed={},
    notes=(
        UNSTATED,
        "The caption has sigma 8, 4, 2, 1 as panels, the text sigma 2 with shares 0.5, 0.2, 0.1, 0.01: both are drawn.",
        "Theorem 17's sum FPR + alpha is kept to at most 1.",
    ),
)
