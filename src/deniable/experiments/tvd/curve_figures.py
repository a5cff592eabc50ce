"""Jia 2023, Figures 1, 2 and 8: what DP and TVD measure on two densities, a test's errors, a logarithmic ratio."""

from __future__ import annotations

from math import expm1

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable.bounds.risk_bounds import least_fnr
from deniable.bounds.variation import gaussian_tvd
from deniable.experiments.drawing import BLACK, BLUE, ORANGE, RED, legend, panels
from deniable.experiments.item import Item, ItemRun
from deniable.experiments.statements import Claim, Close, Ordered
from deniable.experiments.tvd.three_bounds import draw_three
from deniable.mechanisms import Gaussian
from deniable.results.base import Part
from deniable.scores import privacy_loss

DELTA = 1e-5


class DensityFigure(Part, frozen=True, kw_only=True):
    """Figure 1."""

    x: list[float]
    density: list[list[float]]
    shaded: float
    event: float
    tvd: float


def _densities(run: ItemRun) -> DensityFigure:
    x = np.linspace(-4, 5, 181)
    fine = np.linspace(-12, 13, 20001)
    gap = np.abs(_normal(fine) - _normal(fine - 1)) / 2
    return DensityFigure(
        x=x.tolist(),
        density=[_normal(x).tolist(), _normal(x - 1).tolist()],
        shaded=float(np.sum((gap[1:] + gap[:-1]) / 2 * np.diff(fine))),
        event=float(ndtr(0.5) - ndtr(-0.5)),
        tvd=gaussian_tvd(1.0),
    )


def _normal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return found


def _draw_densities(found: DensityFigure) -> Figure:
    figure, (axes,) = panels((f"shaded: TVD = {found.tvd:.4f}",), 1, x="output", y="density", size=3.4)
    x, (zero, one) = np.array(found.x), np.array(found.density)
    axes.plot(x, zero, color=RED, label="N(0, 1), input 0")
    axes.plot(x, one, color=BLUE, label="N(1, 1), input 1")
    axes.fill_between(x, zero, one, where=(x <= 0.5).tolist(), color=RED, alpha=0.3, linewidth=0)
    axes.axvline(0.5, color=BLACK, linestyle=":")
    axes.set(xlim=(-4, 5), ylim=(0, 0.46))
    legend(axes)
    return figure


FIGURE_1 = Item(
    name="figure-1",
    title="densities of the Gaussian mechanism, TVD as the area between them",
    caption="Figure 1: N(0, 1) and N(1, 1); DP looks at the ratio of the densities, TVD at the shaded area.",
    compute=_densities,
    read_as=DensityFigure,
    draw=_draw_densities,
    comparisons=(
        Close("the shaded area is Theorem 12's TVD", "shaded", "tvd", 1e-6),
        Close("and P(M(0) < 1/2) - P(M(1) < 1/2)", "event", "tvd", 1e-12),
    ),
)


class FnrCurves(Part, frozen=True, kw_only=True):
    """The smallest false negative rate at each false positive rate."""

    actual: list[float]
    dp: list[float]
    tvd: list[float]


class ErrorCurves(Part, frozen=True, kw_only=True):
    """Figure 2."""

    epsilon: float
    alpha: float
    fpr: list[float]
    fnr: FnrCurves
    tvd_better_from: float
    tvd_better_to: float


def _test_curves(run: ItemRun) -> ErrorCurves:
    loss, alpha = privacy_loss(Gaussian(1.0)), gaussian_tvd(1.0)
    epsilon = float(loss.epsilon(DELTA))
    fpr = sorted({0.0, *np.geomspace(1e-4, 0.02, 40).tolist(), *np.linspace(0.02, 1, 99).tolist()})
    return ErrorCurves(
        epsilon=epsilon,
        alpha=alpha,
        fpr=fpr,
        fnr=FnrCurves(
            actual=[1 - float(loss.tpr(rate)) for rate in fpr],
            dp=[least_fnr(epsilon, DELTA, rate) for rate in fpr],
            tvd=[max(0.0, 1 - alpha - rate) for rate in fpr],
        ),
        tvd_better_from=(alpha - DELTA) / expm1(epsilon),
        tvd_better_to=(expm1(epsilon) + DELTA - alpha * (expm1(epsilon) + 1)) / expm1(epsilon),
    )


def _complementary(found: ErrorCurves) -> bool:
    """TVD is above DP exactly between the two crossings."""
    inside = [found.tvd_better_from < rate < found.tvd_better_to for rate in found.fpr]
    above = [tvd > dp for tvd, dp in zip(found.fnr.tvd, found.fnr.dp, strict=True)]
    return inside == above and any(inside) and not all(inside)


def _draw_test(found: ErrorCurves) -> Figure:
    title = f"Gaussian, σ = 1: ε = {found.epsilon:.3g} at δ = 1e-5, α = {found.alpha:.3g}"
    figure, (axes,) = panels((title,), 1, x="false positive rate", y="false negative rate", size=3.8)
    draw_three(axes, found.fpr, (found.fnr.dp, found.fnr.tvd, found.fnr.actual), "actual (exact)")
    axes.plot([0, 1], [1, 0], ":", color=BLACK, linewidth=1, label="blind guessing")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    legend(axes)
    return figure


FIGURE_2 = Item(
    name="figure-2",
    title="hypothesis-testing curves of the Gaussian mechanism, of DP and of TVD",
    caption="Figure 2: smallest false negative rate at each false positive rate: actual, by DP, by TVD privacy.",
    compute=_test_curves,
    read_as=ErrorCurves,
    draw=_draw_test,
    comparisons=(
        Ordered("DP is below the actual curve", "fnr.dp", "fnr.actual", slack=1e-9),
        Ordered("TVD is below the actual curve", "fnr.tvd", "fnr.actual", slack=1e-9),
        Claim("TVD is closer exactly inside the interval of Section 4.2, DP outside", _complementary, ErrorCurves),
    ),
    notes=(
        "The paper states neither sigma, epsilon nor delta of this figure; sigma 1 as in Figure 1, delta 1e-5 and the "
        "exact epsilon are ours. The interval's upper end is (e^eps (1 - alpha) - 1 + delta) / (e^eps - 1); the paper "
        "prints - delta.",
    ),
)


class RatioFigure(Part, frozen=True, kw_only=True):
    """Figure 8."""

    x: list[float]
    log_ratio: list[float]
    epsilon: float


def _ratio(run: ItemRun) -> RatioFigure:
    x = np.linspace(-3, 4, 141)
    return RatioFigure(x=x.tolist(), log_ratio=(np.abs(x - 1) - np.abs(x)).tolist(), epsilon=1.0)


def _flat_outside(found: RatioFigure) -> bool:
    rows = list(zip(found.x, found.log_ratio, strict=True))
    flat = all(abs(abs(ratio) - found.epsilon) < 1e-12 for x, ratio in rows if x <= 0 or x >= 1)
    return flat and all(abs(ratio) < found.epsilon for x, ratio in rows if 1e-9 < x < 1 - 1e-9)


def _draw_ratio(found: RatioFigure) -> Figure:
    figure, (axes,) = panels(("Laplace mechanism, scale 1",), 1, x="output y", y="ln p(y | 0) / p(y | 1)", size=3.2)
    axes.plot(found.x, found.log_ratio, color=BLUE)
    axes.axvspan(0, 1, color=ORANGE, alpha=0.2, linewidth=0, label="better than ε: privacy that DP wastes")
    for level in (-1, 1):
        axes.axhline(level, color=BLACK, linestyle=":", linewidth=1)
    axes.set(xlim=(-3, 4), ylim=(-1.3, 1.5))
    legend(axes, loc="upper right")
    return figure


FIGURE_8 = Item(
    name="figure-8",
    title="logarithmic ratio of the Laplace mechanism's densities",
    caption="Figure 8: privacy loss of each output of the Laplace mechanism with scale 1 and inputs 0 and 1.",
    compute=_ratio,
    read_as=RatioFigure,
    draw=_draw_ratio,
    comparisons=(
        Claim("it is epsilon or -epsilon outside (0, 1) and smaller in size inside", _flat_outside, RatioFigure),
    ),
)
