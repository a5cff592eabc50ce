"""Jia 2023, Figures 9 and 10: mechanisms of the same TVD, alone and composed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log, log1p

import numpy as np
from matplotlib.figure import Figure
from scipy.special import erfinv

from deniable.bounds.variation import best_composition_tvd, worst_composition_tvd
from deniable.experiments.drawing import BLACK, BLUE, GREEN, RED, add_letters, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale
from deniable.experiments.statements import Claim, Close, Ordered
from deniable.mechanisms import Gaussian, Laplace, Mechanism, RandomizedResponse
from deniable.results.base import Part
from deniable.scores import privacy_loss

ALPHAS = (0.05, 0.1, 0.2, 0.4)
ALPHA, COUNTS = 0.1, (1, 10, 50, 100)
LINES = {"laplace": ("Laplace", BLUE, "--"), "gaussian": ("Gaussian", RED, "-."), "optimal": ("optimal", GREEN, "-")}


def _laplace(alpha: float) -> Laplace:
    """Theorem 11 inverted."""
    return Laplace(-0.5 / log1p(-alpha))


def _gaussian(alpha: float) -> Gaussian:
    """Theorem 12 inverted."""
    return Gaussian(1 / (2 * np.sqrt(2) * float(erfinv(alpha))))


def _optimal(alpha: float) -> RandomizedResponse:
    """Theorem 18's mechanism: randomized response."""
    return RandomizedResponse(log((1 + alpha) / (1 - alpha)))


def _fnr(mechanism: Mechanism, fpr: list[float]) -> list[float]:
    loss = privacy_loss(mechanism)
    return [1 - float(loss.tpr(rate)) for rate in fpr]


class AloneFigure(Part, frozen=True, kw_only=True):
    """Figure 9: false negative rates, a row for each alpha."""

    alpha: list[float]
    fpr: list[float]
    laplace: list[list[float]]
    gaussian: list[list[float]]
    epsilon: list[float]
    advantage: dict[str, list[float]]


class ComposedFigure(Part, frozen=True, kw_only=True):
    """Figure 10: false negative rates, a row for each number of releases; their TVD beside the theorems'."""

    count: list[int]
    fpr: list[float]
    laplace: list[list[float]]
    gaussian: list[list[float]]
    optimal: list[list[float]]
    tvd: dict[str, list[float]]
    theorem_18: list[float]
    theorem_6: list[float]


def _alone(run: ItemRun) -> AloneFigure:
    fpr = np.linspace(0, 1, run.size(11, 51, 101)).tolist()
    return AloneFigure(
        alpha=list(ALPHAS),
        fpr=fpr,
        laplace=[_fnr(_laplace(alpha), fpr) for alpha in ALPHAS],
        gaussian=[_fnr(_gaussian(alpha), fpr) for alpha in ALPHAS],
        epsilon=[1 / _laplace(alpha).scale for alpha in ALPHAS],
        advantage={
            "laplace": [float(privacy_loss(_laplace(alpha)).advantage()) for alpha in ALPHAS],
            "gaussian": [float(privacy_loss(_gaussian(alpha)).advantage()) for alpha in ALPHAS],
        },
    )


def _compose_bounds(run: ItemRun) -> ComposedFigure:
    points = run.size(9, 21, 51)
    fpr = sorted({*np.linspace(0, 1, points).tolist(), *np.geomspace(1e-3, 0.1, points // 4).tolist()})
    makers = {"laplace": _laplace(ALPHA), "gaussian": _gaussian(ALPHA), "optimal": _optimal(ALPHA)}
    curves: dict[str, list[list[float]]] = {name: [] for name in makers}
    tvds: dict[str, list[float]] = {name: [] for name in makers}
    for place, count in enumerate(COUNTS):
        for name, mechanism in makers.items():
            release = mechanism.composed(count)
            curves[name].append(_fnr(release, fpr))
            tvds[name].append(float(privacy_loss(release).advantage()))
        run.tell((place + 1) / len(COUNTS))
    return ComposedFigure(
        count=list(COUNTS),
        fpr=fpr,
        **curves,
        tvd=tvds,
        theorem_18=[best_composition_tvd(ALPHA, count) for count in COUNTS],
        theorem_6=[worst_composition_tvd(ALPHA, count) for count in COUNTS],
    )


def _close_to_optimal(found: ComposedFigure) -> bool:
    """The Laplace mechanism's TVD lies nearer to the optimum than to the Gaussian's."""
    laplace, gaussian, optimal = (np.array(found.tvd[name]) for name in LINES)
    return bool((laplace[1:] - optimal[1:] < gaussian[1:] - laplace[1:]).all())


def _draw(titles: Iterable[str], fpr: list[float], curves: Sequence[list[list[float]]]) -> Figure:
    figure, axes = panels(add_letters(titles), x="false positive rate", y="false negative rate", size=2.9)
    for part, *rows in zip(axes, *curves, strict=True):
        for row, (label, colour, style) in zip(rows, LINES.values(), strict=False):
            part.plot(fpr, row, style, color=colour, label=label)
        part.plot([0, 1], [1, 0], ":", color=BLACK, linewidth=1)
        part.set(xlim=(0, 1), ylim=(0, 1))
        legend(part)
    return figure


def _draw_alone(found: AloneFigure) -> Figure:
    return _draw((f"α = {alpha:g}" for alpha in found.alpha), found.fpr, (found.laplace, found.gaussian))


def _draw_composed(found: ComposedFigure) -> Figure:
    titles = (f"α = 0.1, {name}" for name in ("once", "10 times", "50 times", "100 times"))
    return _draw(titles, found.fpr, (found.laplace, found.gaussian, found.optimal))


FIGURE_9 = Item(
    name="figure-9",
    title="Laplace and Gaussian mechanism of the same TVD",
    caption="Figure 9: privacy regions of the Laplace and the Gaussian mechanism at alpha 0.05, 0.1, 0.2 and 0.4.",
    compute=_alone,
    read_as=AloneFigure,
    draw=_draw_alone,
    comparisons=(
        Ordered("the Gaussian's region contains the Laplace's", "gaussian", "laplace", slack=1e-9),
        Close("the Laplace mechanism has TVD alpha", "advantage.laplace", "alpha", 1e-9),
        Close("the Gaussian mechanism has TVD alpha", "advantage.gaussian", "alpha", 1e-9),
        Claim("epsilon is below 2.5 in all panels", lambda found: max(found.epsilon) < 2.5, AloneFigure),
    ),
    seconds={Scale.SMOKE: 2.0, Scale.FULL: 3.0},
)
FIGURE_10 = Item(
    name="figure-10",
    title="composition of Laplace, Gaussian and optimal mechanism",
    caption="Figure 10: privacy regions of 1, 10, 50 and 100 releases of TVD 0.1 each, exactly composed.",
    compute=_compose_bounds,
    read_as=ComposedFigure,
    draw=_draw_composed,
    comparisons=(
        Ordered("the Gaussian's region contains the Laplace's", "gaussian", "laplace", slack=1e-9),
        Ordered("and that contains the optimal mechanism's", "laplace", "optimal", slack=1e-9),
        Claim("the Laplace mechanism is close to optimal, the Gaussian is not", _close_to_optimal, ComposedFigure),
        Close("the optimal mechanism's TVD is Theorem 18's", "tvd.optimal", "theorem_18", 1e-9),
        Ordered("all stay below Theorem 6", "tvd.gaussian", "theorem_6", slack=1e-9),
    ),
    seconds={Scale.SMOKE: 10.0, Scale.FULL: 25.0},
    notes=("Theorem 18 with (1 + e^eps)^k where the paper prints (1 + eps)^k (erratum 12).",),
)
