"""What Jia 2023's figures draw again and again: a bound by DP, one by TVD privacy, and the exact curve of the loss."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from deniable.experiments.drawing import BLUE, GREEN, ORANGE


def draw_three(
    axes: Axes, x: Sequence[float], curves: Sequence[Sequence[float]], exact_label: str = "exact (ours)"
) -> None:
    """The curves of DP, of TVD privacy and of the loss itself."""
    lines = (("DP", BLUE, "--"), ("TVD privacy", ORANGE, "-."), (exact_label, GREEN, "-"))
    for curve, (label, colour, style) in zip(curves, lines, strict=True):
        axes.plot(x, curve, style, color=colour, label=label)
