"""Who is exposed in a campaign's data: from its plan to the document's `exposure`, the CSV's rows and the picture's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit.campaign import Plan, Progress
from deniable.audit.exposure import Exposure, exposure, rank_correlations
from deniable.data import Dataset, load, split
from deniable.document import Document
from deniable.mechanisms import Adjacency

__all__ = ["exposed_by", "exposure_document"]

CANDIDATES = 64
"""Records of U \\ D that stand in for x', with replace neighbours."""
BINS = 40
"""Of the advantages' histogram, from 0 to the largest."""
WARNING = "Exposure depends on the data: it is for those who hold the data, and no guarantee."


def exposed_by(
    plan: Plan, data: Any, label: str | None = None, progress: Progress | None = None
) -> tuple[Exposure, Dataset]:
    """Every record of the plan's D, in one training with the plan's settings; `progress` hears of its steps."""
    inside, outside = split(load(data, label=label), int(plan.origin["records"]), plan.seed)
    replace = plan.training.adjacency is Adjacency.REPLACE
    some = outside.take(_spread(len(outside))) if replace and len(outside) else None
    found = exposure(
        plan.training, inside, seed=plan.seed, failure=plan.promise.delta, candidates=some, progress=progress
    )
    return found, inside


def _spread(number: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, number - 1, min(number, CANDIDATES)).astype(np.intp))


def exposure_document(exposed: Exposure, inside: Dataset, path: Path) -> Document:
    """The most exposed, the spread, and whether unlike records are the exposed ones."""
    ten = [
        {
            "record": int(record),
            "label": int(inside.labels[record]),
            "change": float(exposed.change[record]),
            "advantage": float(exposed.advantage[record]),
            "belief": float(exposed.belief[record]),
        }
        for record in exposed.most()
    ]
    return {
        "file": path.name,
        "method": exposed.method,
        "records": len(inside),
        "most_exposed": ten,
        "equally_exposed": int(np.sum(exposed.change > exposed.change.max() * (1 - 1e-6))),
        "least_advantage": float(exposed.advantage.min()),
        "median_advantage": float(np.median(exposed.advantage)),
        "distribution": _distribution(exposed.advantage),
        "rank_correlation": rank_correlations(exposed, inside),
        "note": WARNING,
    }


def _distribution(advantage: NDArray[np.float64]) -> Document:
    """How many records are how exposed, without naming any."""
    counts, edges = np.histogram(advantage, bins=BINS, range=(0, max(float(advantage.max()), 1e-12)))
    return {"edges": edges.tolist(), "counts": counts.tolist()}
