"""Who is exposed in D: from the data and the training to the document's `exposure`, or to a document of its own."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
from msgspec import convert, structs
from numpy.typing import NDArray

from deniable.answers.explain import exact_scores
from deniable.campaigns.campaign import Ground, Progress, named_by
from deniable.campaigns.exposure import Exposure, exposure, rank_correlations
from deniable.campaigns.provenance import exposure_command, now
from deniable.data import Dataset
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Question, claimed_scores
from deniable.results import audit_result as results
from deniable.results.audit_result import AuditInput, ExposureResult
from deniable.results.shared import ReleaseScores

CANDIDATES = 64
"""Records of U \\ D that stand in for x', with replace neighbours."""
BINS = 40
"""Of the advantages' histogram, from 0 to the largest."""
WARNING = "Exposure depends on the data: it is for those who hold the data, and no guarantee."


def exposed_by(ground: Ground, progress: Progress | None = None) -> Exposure:
    """Every record of D, in one training with the ground's settings; `progress` hears of its steps."""
    inside, outside = ground.parts
    replace = ground.training.adjacency is Adjacency.REPLACE
    some = outside.take(_spread(len(outside))) if replace and len(outside) else None
    return exposure(ground.training, inside, seed=ground.seed, delta=ground.delta, candidates=some, progress=progress)


def scores_of(ground: Ground) -> ReleaseScores:
    """What the noise allows at worst."""
    training = Training.of(ground.training)
    return exact_scores(training.mechanism, Question(training.adjacency, ground.delta))


def exposure_alone(ground: Ground, found: results.ExposureSummary) -> ExposureResult:
    """The document of an exposure without a campaign."""
    promise, training = ground.promise, ground.training
    settings = {field.name: named_by(getattr(training, field.name)) for field in fields(training)}
    settings |= {"data": ground.dataset.name, "data_sha256": ground.dataset.sha256, "records": ground.records}
    settings |= {promise.field.name: promise.bound, "delta": ground.delta, "calibration": ground.calibration}
    settings["seed"] = ground.seed
    return ExposureResult(
        input=convert(settings, AuditInput),
        claimed=claimed_scores(promise, ground.delta),
        exact=scores_of(ground),
        exposure=found,
        provenance=structs.replace(ground.source, command=exposure_command(settings, ground.source)),
        finished=now(),
    )


def _spread(number: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, number - 1, min(number, CANDIDATES)).astype(np.intp))


def exposure_document(
    exposed: Exposure, inside: Dataset, path: Path, show_records: bool = False
) -> results.ExposureSummary:
    """The most exposed, the spread, and whether unlike records are the exposed ones; labels only if asked for."""
    ten = tuple(
        results.ExposedRecord(
            record=int(record),
            label=int(inside.labels[record]) if show_records else None,
            change=float(exposed.change[record]),
            advantage=float(exposed.advantage[record]),
            belief=float(exposed.belief[record]),
        )
        for record in exposed.most()
    )
    return results.ExposureSummary(
        file=path.name,
        method=exposed.method,
        records=len(inside),
        most_exposed=ten,
        equally_exposed=int(np.sum(exposed.change > exposed.change.max() * (1 - 1e-6))),
        least_advantage=float(exposed.advantage.min()),
        median_advantage=float(np.median(exposed.advantage)),
        distribution=_distribution(exposed.advantage),
        rank_correlation=rank_correlations(exposed, inside),
        ranked_by="exposure; of records exposed alike, the length of their gradients before clipping",
        note=WARNING,
    )


def _distribution(advantage: NDArray[np.float64]) -> results.Histogram:
    """How many records are how exposed, without naming any."""
    counts, edges = np.histogram(advantage, bins=BINS, range=(0, max(float(advantage.max()), 1e-12)))
    return results.Histogram(edges=tuple(edges.tolist()), counts=tuple(counts.tolist()))
