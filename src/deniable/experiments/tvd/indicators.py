"""Jia 2023, Figures 5 to 7: advantage, ROC and positive predictive value at each false positive rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.bounds.risk_bounds import (
    advantage_at_fpr,
    advantage_at_fpr_from_tvd,
    least_fnr,
    ppv_from_dp,
    ppv_from_tvd,
)
from deniable.bounds.variation import gaussian_tvd
from deniable.experiments.drawing import BLACK, add_letters, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale
from deniable.experiments.statements import Claim, Ordered
from deniable.experiments.tvd.three_bounds import draw_three
from deniable.mechanisms import Gaussian
from deniable.results.base import Part
from deniable.scores import PrivacyLoss, privacy_loss

NOISES = (8.0, 4.0, 2.0, 1.0)
PRIORS = (0.5, 0.2, 0.1, 0.01)
DELTA = 1e-5
SECONDS = {Scale.SMOKE: 3.0, Scale.FULL: 8.0}
UNSTATED = "The paper states no delta; 1e-5 and the exact epsilon of the Gaussian mechanism are ours."


class RateCurves(Part, frozen=True, kw_only=True):
    """Figures 5 and 6: a row for each noise, a value for each false positive rate."""

    fpr: list[float]
    noise: list[float]
    epsilon: list[float]
    dp: list[list[float]]
    tvd: list[list[float]]
    exact: list[list[float]]


class PriorCurves(Part, frozen=True, kw_only=True):
    """Figure 7: the same for each share of members."""

    fpr: list[float]
    noise: list[float]
    epsilon: list[float]
    dp: dict[str, list[list[float]]]
    tvd: dict[str, list[list[float]]]
    exact: dict[str, list[list[float]]]


def _rates(run: ItemRun) -> list[float]:
    points = run.size(11, 25, 33)
    found = {
        *np.geomspace(1e-4, 0.02, points // 3),
        *np.linspace(0.02, 0.98, points),
        *(1 - np.geomspace(1e-3, 0.02, 9)),
    }
    return sorted(map(float, found))


class _IndicatedRelease:
    """The Gaussian mechanism of one noise, as DP, TVD and the loss itself know it."""

    def __init__(self, noise: float) -> None:
        self.loss: PrivacyLoss = privacy_loss(Gaussian(noise))
        self.epsilon, self.alpha = float(self.loss.epsilon(DELTA)), gaussian_tvd(noise)


Curve = Callable[[_IndicatedRelease, float], float]


def _over_rates(run: ItemRun, dp: Curve, tvd: Curve, exact: Curve) -> RateCurves:
    rates, releases = _rates(run), [_IndicatedRelease(noise) for noise in NOISES]
    return RateCurves(
        fpr=rates,
        noise=list(NOISES),
        epsilon=[one.epsilon for one in releases],
        dp=[[dp(one, rate) for rate in rates] for one in releases],
        tvd=[[tvd(one, rate) for rate in rates] for one in releases],
        exact=[[exact(one, rate) for rate in rates] for one in releases],
    )


def _advantage(run: ItemRun) -> RateCurves:
    return _over_rates(
        run,
        dp=lambda release, rate: advantage_at_fpr(release.epsilon, DELTA, rate),
        tvd=lambda release, rate: advantage_at_fpr_from_tvd(release.alpha, rate),
        exact=lambda release, rate: float(release.loss.tpr(rate)) - rate,
    )


def _roc(run: ItemRun) -> RateCurves:
    return _over_rates(
        run,
        dp=lambda release, rate: 1 - least_fnr(release.epsilon, DELTA, rate),
        tvd=lambda release, rate: rate + advantage_at_fpr_from_tvd(release.alpha, rate),
        exact=lambda release, rate: float(release.loss.tpr(rate)),
    )


def _ppv_of(run: ItemRun, prior: float) -> RateCurves:
    return _over_rates(
        run,
        dp=lambda release, rate: ppv_from_dp(release.epsilon, DELTA, rate, prior),
        tvd=lambda release, rate: ppv_from_tvd(release.alpha, rate, prior),
        exact=lambda release, rate: float(release.loss.ppv(rate, prior)),
    )


def _ppv(run: ItemRun) -> PriorCurves:
    found = {f"{prior:g}": _ppv_of(run, prior) for prior in PRIORS}
    first, *_ = found.values()
    return PriorCurves(
        fpr=first.fpr,
        noise=first.noise,
        epsilon=first.epsilon,
        dp={share: part.dp for share, part in found.items()},
        tvd={share: part.tvd for share, part in found.items()},
        exact={share: part.exact for share, part in found.items()},
    )


def _each_has_its_place(found: RateCurves) -> bool:
    """In every panel DP is smaller at the ends and TVD in the middle, where the attack is at its best."""
    gaps = np.array(found.dp) - np.array(found.tvd)
    middle = int(np.argmin(np.abs(np.array(found.fpr) - 0.5)))
    return bool((gaps[:, 0] < 0).all() and (gaps[:, -1] < 1e-12).all() and (gaps[:, middle] > 0).all())


def _almost_identical(found: PriorCurves) -> bool:
    """At 1 % members and from a false positive rate of 10 % on, the two bounds differ by at most 0.1."""
    least = f"{min(PRIORS):g}"
    gaps = np.abs(np.array(found.dp[least]) - np.array(found.tvd[least]))
    return bool(gaps[:, np.array(found.fpr) >= 0.1].max() <= 0.1)


def _four_panels(found: RateCurves | PriorCurves, what: str) -> tuple[Figure, list[Axes]]:
    rows = zip(found.noise, found.epsilon, strict=True)
    titles = add_letters(f"σ = {noise:g} (ε = {epsilon:.2f})" for noise, epsilon in rows)
    figure, axes = panels(titles, x="false positive rate", y=what, size=2.9)
    for part in axes:
        part.set_xlim(0, 1)
    return figure, axes


def _draw_advantage(found: RateCurves) -> Figure:
    figure, axes = _four_panels(found, "membership advantage")
    for part, *rows in zip(axes, found.dp, found.tvd, found.exact, strict=True):
        draw_three(part, found.fpr, rows)
        part.set_ylim(0, None)
        legend(part)
    return figure


def _draw_roc(found: RateCurves) -> Figure:
    figure, axes = _four_panels(found, "true positive rate")
    for part, *rows in zip(axes, found.dp, found.tvd, found.exact, strict=True):
        draw_three(part, found.fpr, rows)
        part.plot([0, 1], [0, 1], ":", color=BLACK, linewidth=1)
        part.set_ylim(0, 1.02)
        legend(part, loc="lower right")
    return figure


def _draw_ppv(found: PriorCurves) -> Figure:
    figure, axes = _four_panels(found, "positive predictive value")
    for place, part in enumerate(axes):
        for share, exact in found.exact.items():
            draw_three(part, found.fpr, (found.dp[share][place], found.tvd[share][place], exact[place]))
            part.annotate(f"{float(share):.0%}", (0.995, exact[place][-3] + 0.015), ha="right", fontsize=7)
        part.set_ylim(0, 1.02)
        legend(part, loc="upper right", first=3)
    return figure


_BELOW = (
    Ordered("the exact curve is below DP's", "exact", "dp", slack=1e-9),
    Ordered("and below TVD's", "exact", "tvd", slack=1e-9),
)
_PLACES = Claim("DP is tighter at both ends, TVD in the middle", _each_has_its_place, RateCurves)

FIGURE_5 = Item(
    name="figure-5",
    title="membership advantage at each false positive rate, sigma 8, 4, 2, 1",
    caption="Figure 5: bounds on the advantage by DP (Theorem 14), TVD (Theorem 15) and exactly (ours).",
    compute=_advantage,
    read_as=RateCurves,
    draw=_draw_advantage,
    comparisons=(*_BELOW, _PLACES),
    seconds=SECONDS,
    notes=(UNSTATED,),
)
FIGURE_6 = Item(
    name="figure-6",
    title="ROC curves, sigma 8, 4, 2, 1",
    caption="Figure 6: bounds on the true positive rate by DP, TVD and exactly (ours).",
    compute=_roc,
    read_as=RateCurves,
    draw=_draw_roc,
    comparisons=(*_BELOW, _PLACES),
    seconds=SECONDS,
    notes=(UNSTATED,),
)
FIGURE_7 = Item(
    name="figure-7",
    title="positive predictive value, sigma 8, 4, 2, 1 and shares of members",
    caption="Figure 7: bounds on the positive predictive value by DP (Theorem 16), TVD (Theorem 17) and exactly "
    "(ours), where 50, 20, 10 and 1 % of the tested are members.",
    compute=_ppv,
    read_as=PriorCurves,
    draw=_draw_ppv,
    comparisons=(
        *_BELOW,
        Claim(
            "at a low share of members DP and TVD are almost identical (within 0.1 from FPR 0.1 on)",
            _almost_identical,
            PriorCurves,
            hindsight=True,
        ),
    ),
    seconds={Scale.SMOKE: 8.0, Scale.FULL: 20.0},
    notes=(
        UNSTATED,
        "The caption has sigma 8, 4, 2, 1 as panels, the text sigma 2 with shares 0.5, 0.2, 0.1, 0.01: both are drawn.",
        "Theorem 17's sum FPR + alpha is kept to at most 1.",
    ),
)
