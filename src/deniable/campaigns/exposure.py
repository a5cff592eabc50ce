"""Who is exposed: every record's own clipped gradient along a training, and what the noise leaves of its privacy.

Add-remove: what record i changes at step t is its clipped gradient, of norm n_it, so an observer who knows everything
else sees a Gaussian of mu_i = sqrt(sum_t (n_it / sigma)^2), exactly (Bernau 2021, Eq. 10; erratum 7). Replace: the
change is the distance to the other record's clipped gradient; against any record at all it is at most n_it + C. Poisson
batches: subsampled Gaussians of every step's own norm have no closed form; every step is taken at the record's largest
norm, which is an upper bound, and the smaller of that and the full-batch figure is reported. Figures are about the
weights that this training passed through; they depend on the data, so they are no guarantee and must not be published.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri
from torch import Tensor

from deniable.checks import probability
from deniable.data.dataset import Dataset
from deniable.data.dissimilarity import MEASURES, are_pixels, find_measure
from deniable.data.neighbours import PairSweep, cores
from deniable.mechanisms import Adjacency, Training
from deniable.scores import privacy_loss
from deniable.tradeoff import rank_correlation, ranks
from deniable.training.ensemble import initial_weights, updater
from deniable.training.gradients import ExampleGradients
from deniable.training.networks.losses import loss_function
from deniable.training.noise_source import SeededSource
from deniable.training.settings import TrainingSettings, as_records
from deniable.training.stack import example_gradients
from deniable.training.threads import one_thread

Array = NDArray[np.float64]
CHUNK = 128
"""Records whose gradients are computed at once: what stays in the cache."""
SHARE = 8
"""Records at least for each candidate that rides in their chunk."""
LEVELS = 33
"""Norms at which a sampled training's exact scores are computed; others take the next larger one."""
COMPARED, PAIRS = 256, 2**22
"""Records that every record's dissimilarity is averaged over, and pairs at most."""
COLUMNS = ("mean_norm", "largest_norm", "unclipped_norm", "change", "advantage", "belief")
"""Of the CSV, between label and rank."""


@dataclass(frozen=True)
class Exposure:
    """One row a record of D; the scores are for `delta`, the probability with which the belief may be exceeded."""

    mean_norm: Array
    largest_norm: Array
    """Of the clipped gradients, over the steps."""
    unclipped_norm: Array
    """Mean norm before clipping: it ranks records that are exposed alike, since clipping shortens all of them."""
    change: Array
    """Root mean square over the steps of what the record changes: its norm, or (replace) the distance to the worst."""
    advantage: Array
    belief: Array
    method: str

    def most(self, count: int = 10) -> NDArray[np.intp]:
        """The most exposed records, the most exposed first; of equal ones those with the longest gradients."""
        return np.lexsort((-self.unclipped_norm, -self._alike))[:count]

    def ranks(self) -> Array:
        """From 1, the least exposed; as `most` orders them, and equal where nothing tells two records apart."""
        pairs = np.stack([self._alike, self.unclipped_norm], axis=1)
        return ranks(np.unique(pairs, axis=0, return_inverse=True)[1])

    @property
    def _alike(self) -> Array:
        return np.asarray(np.round(self.change / max(float(self.change.max()), 1e-300), 6))


def exposure(
    settings: TrainingSettings,
    data: Dataset,
    *,
    seed: int = 0,
    delta: float = 0.01,
    candidates: Dataset | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Exposure:
    """Train once on all of `data` and say of every record how far the noise hides it.

    With replace neighbours the worst of `candidates` is taken; without them, the bound norm + clip against any record.
    Local sensitivity is refused: its noise is another for every record.
    """
    probability("delta", delta, open_ends=True)
    if not settings.differentially_private:
        raise ValueError("sensitivity must be 'global' for the exposure of records, got 'local'")
    others = candidates if settings.adjacency is Adjacency.REPLACE else None
    with one_thread(), torch.no_grad():
        totals = _Totals(len(data), settings.clip)
        for norms, changes in _course(settings, data, others, seed, progress or (lambda done, total: None)):
            totals.add(norms, changes)
    return _score_exposure(settings, totals, delta, others)


class _Totals:
    """What is kept of the steps: a few numbers a record, however many steps there are."""

    def __init__(self, records: int, clip: float) -> None:
        self._clip, self.steps = clip, 0
        self.norm, self.clipped, self.square_change, self.largest_norm, self.largest_change = np.zeros((5, records))

    def add(self, norms: Array, changes: Array) -> None:
        """One step's norms before clipping, and changes."""
        clipped = np.minimum(norms, self._clip)
        self.steps += 1
        self.norm += norms
        self.clipped += clipped
        self.square_change += np.square(changes)
        np.maximum(self.largest_norm, clipped, out=self.largest_norm)
        np.maximum(self.largest_change, changes, out=self.largest_change)


def _course(
    settings: TrainingSettings,
    data: Dataset,
    candidates: Dataset | None,
    seed: int,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[Array, Array]]:
    """Every step's (norms before clipping, changes), while one training goes on; a chunk of records at a time."""
    x, y = as_records(data.inputs, data.labels)
    extra = as_records(candidates.inputs, candidates.labels) if candidates is not None else (x[:0], y[:0])
    model, weights = initial_weights(settings, 1, SeededSource(seed, 0, stream=0).generator)
    source, update = SeededSource(seed, 0, stream=1), updater(settings)
    loss = loss_function(settings.loss)
    sigma = settings.noise * settings.global_sensitivity
    make = partial(example_gradients, model, loss, weights, x[0], shared=True)
    passes = _Passes(settings, local(), make, (x, y), extra)
    for step in range(settings.steps):
        drawn = torch.ones(len(x)) if settings.rate == 1 else (source.uniform(len(x)) < settings.rate).float()
        total, norms, changes = passes.go(drawn, [torch.zeros_like(w) for w in weights])
        noisy = [t + sigma * source.normal_(torch.empty_like(t)) for t in total]
        update.apply(weights, noisy, settings.rate * len(x))
        progress(step + 1, settings.steps)
        yield norms, changes + (settings.clip if settings.adjacency is Adjacency.REPLACE and candidates is None else 0)


@dataclass(frozen=True)
class _Passes:
    """Passes over all records, a chunk at a time, on a thread a core, each with memory that it uses again.

    Chunks are added up in their order, so the result does not depend on the threads. Candidates ride in every chunk.
    """

    settings: TrainingSettings
    own: local
    make: Callable[[], ExampleGradients]
    records: tuple[Tensor, Tensor]
    extra: tuple[Tensor, Tensor]

    def go(self, drawn: Tensor, total: list[Tensor]) -> tuple[list[Tensor], Array, Array]:
        """The clipped sum of those drawn, added to `total`; everybody's norm before clipping, and change."""
        shapes, parts = [torch.empty_like(t) for t in total], []
        size = max(CHUNK, SHARE * len(self.extra[0]))
        chunks = [slice(start, start + size) for start in range(0, len(drawn), size)]
        with ThreadPoolExecutor(min(cores(), len(chunks)), initializer=_alone) as pool:
            for sums, *part in pool.map(lambda chunk: self._chunk(chunk, drawn, shapes), chunks):
                parts.append(part)
                for whole, share in zip(total, sums, strict=True):
                    whole.add_(share)
            norms, changes = (np.concatenate(column) for column in zip(*parts, strict=True))
        return total, norms, changes

    def _chunk(self, part: slice, drawn: Tensor, shapes: list[Tensor]) -> tuple[list[Tensor], Array, Array]:
        (x, y), others = self.records, len(self.extra[0])
        gradients: ExampleGradients = self.own.__dict__.setdefault("gradients", None) or self.make()
        self.own.gradients = gradients
        together = torch.cat([x[part], self.extra[0]])[None], torch.cat([y[part], self.extra[1]])[None]
        gradients.load(*together, differing=len(x[part]) + others if others else 0)
        include, sums = torch.cat([drawn[part], torch.zeros(others)])[None], [torch.empty_like(t) for t in shapes]
        norms = gradients.clipped_sum(include, self.settings.clip, sums)[0].double()
        lengths, own = norms.clamp(max=self.settings.clip), slice(0, len(x[part]))
        if not others:
            return sums, norms.numpy().copy(), lengths.numpy()
        products = gradients.cross_products(own, slice(own.stop, None))[0]
        return sums, norms[own].numpy().copy(), _farthest(products, lengths[own], lengths[own.stop :]).numpy()


def _alone() -> None:
    """Threads and gradient recording are each thread's own setting."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)


def _farthest(products: Tensor, lengths: Tensor, others: Tensor) -> Tensor:
    """Each record's distance to the candidate whose clipped gradient is farthest."""
    distances = lengths.square()[:, None] + others.square()[None, :] - 2 * products
    return distances.amax(1).clamp(min=0).sqrt()


def _score_exposure(settings: TrainingSettings, totals: _Totals, delta: float, candidates: Dataset | None) -> Exposure:
    sigma = settings.noise * settings.global_sensitivity
    change = np.sqrt(totals.square_change / totals.steps)
    mu = change * np.sqrt(totals.steps) / sigma
    advantage = 2 * ndtr(mu / 2) - 1
    belief = expit(np.square(mu) / 2 + mu * ndtri(1 - delta))
    method = "exact for the weights passed through"
    if settings.adjacency is Adjacency.REPLACE:
        worst = "any record (norm + clip)" if candidates is None else f"the worst of {len(candidates)} candidates"
        method = f"against {worst}"
    if settings.rate < 1:
        method += "; upper bound for sampling: every step at the largest norm"
        sampled = _score_sampling(settings, totals.largest_change, delta)
        advantage, belief = np.minimum(advantage, sampled[0]), np.minimum(belief, sampled[1])
    means = totals.clipped / totals.steps, totals.largest_norm, totals.norm / totals.steps
    return Exposure(*means, change, advantage, belief, method)


def _score_sampling(settings: TrainingSettings, largest: Array, delta: float) -> tuple[Array, Array]:
    """Advantage and belief of a training that is sampled, if every step changes by the record's largest change.

    Replace: the sampled pair of a smaller distance is not known to be dominated, so only the claim itself is used.
    """
    training, top = Training.of(settings), settings.global_sensitivity
    levels = np.array([top]) if training.adjacency is Adjacency.REPLACE else top * np.linspace(1 / LEVELS, 1, LEVELS)
    losses = [
        privacy_loss(replace(training, noise=training.noise * top / level).mechanism, training.adjacency)
        for level in levels
    ]
    place = np.minimum(np.searchsorted(levels, largest * (1 - 1e-6)), len(levels) - 1)
    scores = [float(loss.advantage()) for loss in losses], [float(loss.belief(delta)) for loss in losses]
    return np.array(scores[0])[place], np.array(scores[1])[place]


def rank_correlations(exposed: Exposure, data: Dataset, seed: int = 0) -> dict[str, float | None]:
    """Spearman's correlation of exposure with each dissimilarity, averaged over records of D: is the heuristic right?

    None where a measure is undefined for the data, or does not vary. Bernau 2021 (Section 5.1) assumes that unlike
    records are the exposed ones; here it is tested. Where clipping exposes many alike, their gradients before it rank
    them.
    """
    chosen = np.random.default_rng(seed).permutation(len(data))[: max(8, min(COMPARED, PAIRS // len(data)))]
    places = exposed.ranks()
    return {name: _correlation(places, name, data, data.features[chosen]) for name in MEASURES}


def _correlation(places: Array, measure: str, data: Dataset, compared: NDArray[np.float32]) -> float | None:
    if measure == "ssim" and not are_pixels(data.features):
        return None
    if measure == "cosine" and not data.features.reshape(len(data), -1).any(1).all():
        return None
    sums = np.zeros(len(data))

    def row_sums(block: Any, row: int, _: int) -> tuple[int, Array]:
        return row, block.sum(axis=1, dtype=np.float64)

    sweep = PairSweep(find_measure(measure), data.features, compared, cores(), lambda done, total: None)
    for row, part in sweep.blocks(row_sums):
        sums[row : row + len(part)] += part
    return rank_correlation(places, sums)


def write_records(exposed: Exposure, labels: NDArray[np.int64] | None, path: Path | str) -> None:
    """One CSV row a record of D, in its order: record, label (if given), norms, change, advantage, belief, rank."""
    count = len(exposed.change)
    rank = np.empty(count, dtype=int)
    rank[exposed.most(count)] = np.arange(1, count + 1)
    columns = [getattr(exposed, name) for name in COLUMNS]
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["record", *([] if labels is None else ["label"]), *COLUMNS, "rank"])
        for i in range(count):
            label = [] if labels is None else [int(labels[i])]
            writer.writerow([i, *label, *(f"{float(column[i]):.9g}" for column in columns), rank[i]])
