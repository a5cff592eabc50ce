"""Pictures of who is exposed: the distribution over the records; in a file of its own, the ten most exposed, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure, FigureBase
from numpy.typing import NDArray

from deniable.report.pictures.picture import BLUE, INK, Data, Picture, axes, legend_above
from deniable.report.words.amount_text import allowed_figure, figure
from deniable.results.attack_result import MemberExposure
from deniable.results.audit_result import ExposureSummary as ShownExposure
from deniable.results.audit_result import Histogram

if TYPE_CHECKING:
    from deniable.campaigns.exposure import Exposure
    from deniable.data.dataset import Dataset

COLOUR, LIMIT = BLUE, INK


def exposure_picture(found: ShownExposure, spread: Histogram, possible: float) -> Picture:
    """How many records are how exposed, beside what the noise allows; no record is shown."""
    told = (
        f"Half of the records have an advantage over them of at most {figure(found.median_advantage)}, the least "
        f"exposed {figure(found.least_advantage)}; the noise allows {allowed_figure(possible)} at worst."
    )
    data = {"edges": spread.edges, "counts": spread.counts, "possible": possible}
    return Picture("exposure", "How exposed the records are", told, told, data, _draw_distribution)


def _draw_distribution(data: Data) -> Figure:
    drawing, found = axes("membership advantage of the strongest observer over a record", "records")
    found.stairs(data["counts"], data["edges"], fill=True, color=BLUE, alpha=0.35)
    found.stairs(data["counts"], data["edges"], color=BLUE, linewidth=1.3)
    label = f"what the noise allows at worst: {allowed_figure(data['possible'])}"
    found.axvline(data["possible"], color=INK, linestyle="--", linewidth=1.2, label=label)
    found.set_xlim(0, 1.05 * max(data["possible"], data["edges"][-1]))
    legend_above(found)
    return drawing


def member_picture(found: MemberExposure) -> Picture:
    """Every member as a point: what an observer of every step may believe, and what LiRA does believe."""
    told = (
        "Each point is a member: how sure an observer of every step may become that it was trained on, and how sure "
        f"LiRA is of it. {found.surer:,} of {len(found.lira):,} lie above the line, where LiRA is surer."
    )
    data = {"lira": found.lira, "observer": found.observer}
    return Picture("exposed-members", "How exposed the members are", told, told, data, _draw_members)


def _draw_members(data: Data) -> Figure:
    drawing, found = axes("belief of an observer of every step, at most", "LiRA's belief", height=4.0)
    found.plot(data["observer"], data["lira"], ".", color=BLUE, markersize=3, alpha=0.5)
    found.plot([0, 1], [0, 1], color=INK, linestyle=":", linewidth=1)
    found.set(xlim=(0.45, 1.01), ylim=(-0.01, 1.01))
    return drawing


def exposed_records(exposed: Exposure, data: Dataset, possible: float, show_records: bool = False) -> Figure:
    """Advantage over every record, beside what the noise allows; below, the ten most exposed by number.

    With `show_records` they have their labels, and images are drawn: personal data.
    """
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    upper, lower = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=[2, 1.3])))
    axes = upper.add_subplot()
    axes.hist(exposed.advantage, bins=np.linspace(0, max(possible, exposed.advantage.max()), 50).tolist(), color=COLOUR)
    axes.axvline(
        possible, color=LIMIT, linestyle="--", label=f"what the noise allows at worst: {allowed_figure(possible)}"
    )
    axes.set(xlabel="membership advantage of the strongest observer over this record", ylabel="records")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))
    most = exposed.most()
    if data.kind == "image" and show_records:
        _images(lower, exposed, data, most)
    else:
        _bars(lower, exposed, data if show_records else None, most)
    return figure


def _images(figure: FigureBase, exposed: Exposure, data: Dataset, most: NDArray[np.intp]) -> None:
    for place, record in enumerate(most, start=1):
        axes = figure.add_subplot(1, len(most), place)
        image = data.features[record]
        axes.imshow(image if image.ndim == 2 else np.moveaxis(image, 0, -1).squeeze(), cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(f"#{record}\n{exposed.advantage[record]:.3g}", fontsize="x-small")
        axes.set_xlabel(f"label {data.labels[record]}", fontsize="x-small")
        axes.set(xticks=[], yticks=[])


def _bars(figure: FigureBase, exposed: Exposure, data: Dataset | None, most: NDArray[np.intp]) -> None:
    axes = figure.add_subplot()
    names = [f"#{record}" + ("" if data is None else f"\nlabel {data.labels[record]}") for record in most]
    axes.bar(names, exposed.advantage[most], color=COLOUR)
    axes.set_ylabel("advantage")
    axes.tick_params(axis="x", labelsize="x-small")
    axes.spines[["top", "right"]].set_visible(False)
