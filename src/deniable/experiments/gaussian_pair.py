"""Figures that Bernau 2020 and Bernau 2021 share: the observer before two normal densities, and its two scores over
epsilon.

f(D) = 0 and f(D') = 1 are released with the classic Gaussian mechanism (Bernau 2020, Figures 3.2, 4.1, 4.2; Bernau
2021, Figures 1-3).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import brentq

from deniable.bounds import epsilon_to_belief
from deniable.bounds.textbook import advantage_to_epsilon, classic_noise, epsilon_to_advantage
from deniable.experiments.drawing import BLACK, BLUE, GREY, RED, add_letters, legend, panels
from deniable.experiments.item import Item, ItemRun, Scale
from deniable.experiments.statements import Claim, Close, Comparison
from deniable.mechanisms import Gaussian
from deniable.results.base import Part
from deniable.scores import posterior, privacy_loss

EPSILONS, DELTA = (6.0, 3.0), 1e-6
DELTAS = (1e-2, 1e-3, 1e-6)
Curve = NDArray[np.float64]


class DecisionFigure(Part, frozen=True, kw_only=True):
    """Densities on D and D' and the belief in D over the output r, and where the densities meet, for each epsilon."""

    r: list[float]
    epsilon: list[float]
    noise: list[float]
    density: list[list[list[float]]]
    belief: list[list[float]]
    boundary: list[float]


class ErrorFigure(Part, frozen=True, kw_only=True):
    """The advantage by the areas of error, by Theorem 3 and exactly, for each epsilon."""

    epsilon: list[float]
    noise: list[float]
    from_areas: list[float]
    theorem_3: list[float]
    exact: list[float]


class TwoScores(Part, frozen=True, kw_only=True):
    """Both bounds at one guarantee."""

    belief: float
    advantage: float


class ScoreFigure(Part, frozen=True, kw_only=True):
    """Both bounds over epsilon: belief without delta and for each delta, advantage for each delta."""

    epsilon: list[float]
    delta: list[float]
    belief: list[list[float]]
    advantage: list[list[float]]
    round_trip: list[float]
    exact_belief: list[float]
    at_2: TwoScores


def decision(name: str, source: str) -> Item[DecisionFigure]:
    """Where the observer decides for D, and how sure it is: the boundary does not move with epsilon."""
    return Item(
        name=name,
        title="decision boundary and posterior belief of the observer",
        caption=f"{source}: densities of the release on D (0) and D' (1) for two guarantees, and the belief in D.",
        compute=_decision,
        read_as=DecisionFigure,
        draw=_draw_decision,
        comparisons=(
            Close("the boundary is halfway, whatever epsilon", "boundary", 0.5, 1e-9),
            Claim("less epsilon, less belief on the side of D", _less_sure, DecisionFigure),
        ),
        notes=(
            "Epsilons 6 and 3 at delta 1e-6 are those of the next figure; the paper does not print them for this one.",
            "The classic formula is used as the paper does, though it is proved up to epsilon 1 only (erratum 3).",
        ),
    )


def errors(name: str, source: str) -> Item[ErrorFigure]:
    """The areas on the wrong side of the boundary, which are what the advantage lacks to 1."""
    comparisons: tuple[Comparison, ...] = (
        Close("1 minus both error areas is Theorem 3's advantage", "from_areas", "theorem_3", 1e-6),
        Close("and the exact advantage of the noise", "exact", "theorem_3", 1e-12),
        Claim("a stronger guarantee reduces the advantage", lambda found: found.exact[1] < found.exact[0], ErrorFigure),
    )
    return Item(
        name=name,
        title="error regions at epsilon 6 and 3",
        caption=f"{source}: error regions of the observer under (6, 1e-6)- and (3, 1e-6)-DP.",
        compute=_errors,
        read_as=ErrorFigure,
        draw=_draw_errors,
        comparisons=comparisons,
        notes=("The classic formula is used as the paper does, though it is proved up to epsilon 1 only (erratum 3).",),
    )


def scores(name: str, source: str) -> Item[ScoreFigure]:
    """Belief and advantage bounds over epsilon."""
    return Item(
        name=name,
        title="bounds on belief and advantage over epsilon",
        caption=f"{source}: Theorem 2's belief bound and Theorem 3's advantage bound over epsilon, for several delta.",
        compute=_scores,
        read_as=ScoreFigure,
        draw=_draw_scores,
        comparisons=(
            Claim("the belief bound hardly depends on delta (by at most delta)", _hardly_differs, ScoreFigure),
            Claim("the advantage bound falls with delta", _falls_with_delta, ScoreFigure),
            Claim(
                "at (2, 1e-6) the advantage is low (below 0.2), the belief high (above 0.85)",
                _low_and_high,
                ScoreFigure,
                hindsight=True,
            ),
            Close("Theorem 3 and its inverse meet", "round_trip", "epsilon", 1e-9),
            Claim(
                "where the classic formula is proved (epsilon up to 1), Theorem 2's belief is kept",
                _promise_kept,
                ScoreFigure,
            ),
        ),
        seconds={Scale.SMOKE: 2.0, Scale.FULL: 2.0},
        notes=(
            "The inverse of Theorem 3 has the factor 2 that the paper's lacks (erratum 1).",
            "Grey: the belief that the classic noise allows, except with probability delta; above epsilon 5.8 it "
            "is above Theorem 2's bound, since the classic formula is proved up to 1 only (errata 3, 4).",
        ),
    )


def _densities(noise: float, r: Curve) -> tuple[Curve, Curve]:
    on_d, on_other = (np.exp(-(((r - mean) / noise) ** 2) / 2) / (noise * np.sqrt(2 * np.pi)) for mean in (0.0, 1.0))
    return on_d, on_other


def _belief(noise: float, r: float) -> float:
    """In D after the output r: the loss is (1 - 2 r) / (2 noise^2)."""
    return posterior((1 - 2 * r) / (2 * noise**2))


def _decision(run: ItemRun) -> DecisionFigure:
    r = np.linspace(-3, 4, 141)
    noises = [classic_noise(epsilon, DELTA) for epsilon in EPSILONS]

    def surplus(x: float, noise: float) -> float:
        on_d, on_other = _densities(noise, np.array([x]))
        return float(on_d[0] - on_other[0])

    return DecisionFigure(
        r=r.tolist(),
        epsilon=list(EPSILONS),
        noise=noises,
        density=[[part.tolist() for part in _densities(noise, r)] for noise in noises],
        belief=[[_belief(noise, x) for x in r.tolist()] for noise in noises],
        boundary=[brentq(surplus, 0.0, 1.0, args=(noise,), xtol=1e-12) for noise in noises],
    )


def _less_sure(found: DecisionFigure) -> bool:
    strong, weak = np.array(found.belief)
    left = np.array(found.r) < 0.5 - 1e-9
    return bool((weak[left] < strong[left]).all())


def _draw_decision(found: DecisionFigure) -> Figure:
    figure, (left, right) = panels(("(a) densities", "(b) posterior belief"), x="output r", y="")
    r = np.array(found.r)
    rows = zip(found.epsilon, found.density, found.belief, ("-", "--"), strict=True)
    for epsilon, (on_d, on_other), belief, style in rows:
        left.plot(r, on_d, style, color=RED, label=f"D, ε = {epsilon:g}")
        left.plot(r, on_other, style, color=BLUE, label=f"D', ε = {epsilon:g}")
        right.plot(r, belief, style, color=RED, label=f"β(D), ε = {epsilon:g}")
        right.plot(r, 1 - np.array(belief), style, color=BLUE, label=f"β(D'), ε = {epsilon:g}")
    for axes, name in ((left, "density"), (right, "belief")):
        axes.axvspan(r[0], 0.5, color=RED, alpha=0.12, linewidth=0)
        axes.axvspan(0.5, r[-1], color=BLUE, alpha=0.12, linewidth=0)
        axes.set(ylabel=name, xlim=(r[0], r[-1]), ylim=(0, 1.3 * axes.get_ylim()[1]))
        legend(axes, loc="upper center", ncols=2)
    return figure


def _errors(run: ItemRun) -> ErrorFigure:
    r = np.linspace(-12, 13, 20001)
    noises = [classic_noise(epsilon, DELTA) for epsilon in EPSILONS]
    areas = []
    for noise in noises:
        wrong = np.minimum(*_densities(noise, r))
        areas.append(float(np.sum((wrong[1:] + wrong[:-1]) / 2 * np.diff(r))))
    return ErrorFigure(
        epsilon=list(EPSILONS),
        noise=noises,
        from_areas=[1 - area for area in areas],
        theorem_3=[epsilon_to_advantage(epsilon, DELTA) for epsilon in EPSILONS],
        exact=[float(privacy_loss(Gaussian(noise)).advantage()) for noise in noises],
    )


def _draw_errors(found: ErrorFigure) -> Figure:
    rows = zip(found.epsilon, found.exact, strict=True)
    titles = (f"ε = {epsilon:g}, δ = 1e-6: advantage {advantage:.3f}" for epsilon, advantage in rows)
    figure, axes = panels(add_letters(titles), x="output r", y="density")
    r = np.linspace(-3, 4, 281)
    for part, noise in zip(axes, found.noise, strict=True):
        on_d, on_other = _densities(noise, r)
        part.plot(r, on_d, color=RED, label="D")
        part.plot(r, on_other, color=BLUE, label="D'")
        part.fill_between(
            r, on_other, where=(r <= 0.5).tolist(), color=RED, alpha=0.35, linewidth=0, label="D' taken for D"
        )
        part.fill_between(
            r, on_d, where=(r >= 0.5).tolist(), color=BLUE, alpha=0.35, linewidth=0, label="D taken for D'"
        )
        part.axvline(0.5, color=BLACK, linestyle=":")
        part.set(xlim=(r[0], r[-1]), ylim=(0, 0.58))
        legend(part, loc="upper center", ncols=2)
    return figure


def _scores(run: ItemRun) -> ScoreFigure:
    epsilon = np.linspace(0.05, 10, 100).tolist()
    pure = [epsilon_to_belief(one) for one in epsilon]
    return ScoreFigure(
        epsilon=epsilon,
        delta=list(DELTAS),
        belief=[pure, *([(1 - delta) * belief + delta for belief in pure] for delta in DELTAS)],
        advantage=[[epsilon_to_advantage(one, delta) for one in epsilon] for delta in DELTAS],
        round_trip=[advantage_to_epsilon(epsilon_to_advantage(one, 1e-6), 1e-6) for one in epsilon],
        exact_belief=[float(privacy_loss(Gaussian(classic_noise(one, 1e-6))).belief(1e-6)) for one in epsilon],
        at_2=TwoScores(belief=epsilon_to_belief(2.0), advantage=epsilon_to_advantage(2.0, 1e-6)),
    )


def _hardly_differs(found: ScoreFigure) -> bool:
    pure, *others = np.array(found.belief)
    return all(float(np.abs(part - pure).max()) <= delta for part, delta in zip(others, found.delta, strict=True))


def _falls_with_delta(found: ScoreFigure) -> bool:
    return all(bool((np.array(more) > np.array(less)).all()) for more, less in pairwise(found.advantage))


def _promise_kept(found: ScoreFigure) -> bool:
    rows = zip(found.epsilon, found.exact_belief, found.belief[0], strict=True)
    return all(exact <= bound for epsilon, exact, bound in rows if epsilon <= 1)


def _low_and_high(found: ScoreFigure) -> bool:
    return found.at_2.advantage < 0.2 and found.at_2.belief > 0.85


def _draw_scores(found: ScoreFigure) -> Figure:
    titles = ("(a) bound ρβ on posterior belief", "(b) bound ρα on advantage")
    figure, (left, right) = panels(titles, x="ε", y="")
    names = ["ε-DP", *(f"δ = {delta:g}" for delta in found.delta)]
    for belief, name, style in zip(found.belief, names, ("-", "--", "-.", ":"), strict=True):
        left.plot(found.epsilon, belief, style, label=name)
    left.plot(found.epsilon, found.exact_belief, color=GREY, linewidth=1, label="exact belief of the noise, δ = 1e-06")
    for advantage, delta, style in zip(found.advantage, found.delta, ("--", "-.", ":"), strict=True):
        right.plot(found.epsilon, advantage, style, label=f"δ = {delta:g}")
    left.set(ylabel="ρβ", ylim=(0.5, 1.01), xlim=(0, 10))
    right.set(ylabel="ρα", ylim=(0, 1), xlim=(0, 10))
    legend(left)
    legend(right)
    return figure
