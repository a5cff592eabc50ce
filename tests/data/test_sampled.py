"""The search by sample: the exact search's result where the sample holds everything, near it where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.campaigns.campaign import choose_neighbours
from deniable.data import digits, load, most_dissimilar, neighbours, purchases, split
from deniable.data.neighbours import likely_dissimilar, too_many_pairs
from deniable.mechanisms import Adjacency

KINDS = [Adjacency.REPLACE, Adjacency.ADD_REMOVE]


@pytest.mark.parametrize("adjacency", KINDS)
@pytest.mark.parametrize("measure", ["ssim", "euclidean", "hamming", "cosine"])
def test_a_sample_of_everything_gives_the_exact_neighbour(adjacency: Adjacency, measure: str) -> None:
    parts = split(digits().take(np.arange(150)), 60, 1)
    (exact,) = most_dissimilar(*parts, adjacency, measure=measure)
    found = likely_dissimilar(*parts, adjacency, measure=measure)
    assert (found.record, found.replacement) == (exact.record, exact.replacement)
    assert found.dissimilarity == pytest.approx(exact.dissimilarity, rel=1e-4)


@pytest.mark.parametrize("adjacency", KINDS)
def test_a_small_sample_finds_one_of_the_most_unlike(adjacency: Adjacency, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "SAMPLE", 40)
    monkeypatch.setattr(neighbours, "FINALISTS", 10)
    parts = split(purchases(10).take(np.arange(1500)), 700, 2)
    best = most_dissimilar(*parts, adjacency, count=5)
    found = likely_dissimilar(*parts, adjacency, measure="hamming", seed=3)
    assert best[-1].dissimilarity <= found.dissimilarity + 1e-3 <= best[0].dissimilarity + 2e-3


def test_progress_tells_of_the_whole_search() -> None:
    calls: list[tuple[int, int]] = []
    parts = split(digits().take(np.arange(300)), 200, 0)
    likely_dissimilar(*parts, Adjacency.REPLACE, measure="ssim", progress=lambda *done: calls.append(done))
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1]
    assert len({total for _, total in calls}) == 1


def test_only_what_would_take_minutes_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = split(digits(), 100, 0)
    assert not too_many_pairs(*parts, Adjacency.REPLACE, "ssim")
    assert "search" not in choose_neighbours(parts, 0, Adjacency.REPLACE, None)[1]
    monkeypatch.setattr(neighbours, "WORK_BYTES", 10**6)
    assert choose_neighbours(parts, 0, Adjacency.REPLACE, None)[1]["search"] == "sampled"


@pytest.mark.usefixtures("real_data")
def test_mnist_is_sampled_from_some_thousand_records_on() -> None:
    mnist = load("mnist")
    small, large = split(mnist, 1000, 0), split(mnist, 60000, 0)
    assert not too_many_pairs(*small, Adjacency.REPLACE, "ssim")
    assert all(too_many_pairs(*large, kind, "ssim") for kind in KINDS)
    assert not too_many_pairs(*large, Adjacency.REPLACE, "hamming")
