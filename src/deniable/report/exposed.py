"""The picture of who is exposed: the distribution over the records, and the ten most exposed."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure, FigureBase
from numpy.typing import NDArray

from deniable.audit.exposure import Exposure
from deniable.data.dataset import Dataset

__all__ = ["exposed_records"]

COLOUR, LIMIT = "#0072b2", "#333333"


def exposed_records(exposed: Exposure, data: Dataset, possible: float) -> Figure:
    """Advantage over every record, beside what the noise allows; below, the ten most exposed, images as such."""
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    upper, lower = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=[2, 1.3])))
    axes = upper.add_subplot()
    axes.hist(exposed.advantage, bins=np.linspace(0, max(possible, exposed.advantage.max()), 50).tolist(), color=COLOUR)
    axes.axvline(possible, color=LIMIT, linestyle="--", label=f"what the noise allows at worst: {possible:.3g}")
    axes.set(xlabel="membership advantage of the strongest observer over this record", ylabel="records")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))
    most = exposed.most()
    if data.kind == "image":
        _images(lower, exposed, data, most)
    else:
        _bars(lower, exposed, data, most)
    return figure


def _images(figure: FigureBase, exposed: Exposure, data: Dataset, most: NDArray[np.intp]) -> None:
    for place, record in enumerate(most, start=1):
        axes = figure.add_subplot(1, len(most), place)
        image = data.features[record]
        axes.imshow(image if image.ndim == 2 else np.moveaxis(image, 0, -1).squeeze(), cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(f"#{record}\n{exposed.advantage[record]:.3g}", fontsize="x-small")
        axes.set_xlabel(f"label {data.labels[record]}", fontsize="x-small")
        axes.set(xticks=[], yticks=[])


def _bars(figure: FigureBase, exposed: Exposure, data: Dataset, most: NDArray[np.intp]) -> None:
    axes = figure.add_subplot()
    names = [f"#{record}\nlabel {data.labels[record]}" for record in most]
    axes.bar(names, exposed.advantage[most], color=COLOUR)
    axes.set_ylabel("advantage")
    axes.tick_params(axis="x", labelsize="x-small")
    axes.spines[["top", "right"]].set_visible(False)
