"""Who is exposed: the fast pass equals the naive one, the scores equal the exact ones, bounds are on the safe side."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from deniable.campaigns import exposure as room
from deniable.campaigns.exposure import exposure, rank_correlations, write_records
from deniable.data import load
from deniable.mechanisms import Gaussian, GaussianDP
from deniable.scores import privacy_loss
from deniable.training import TrainingSettings
from deniable.training.ensemble import initial_weights
from deniable.training.noise_source import SeededSource


def settings(**other: object) -> TrainingSettings:
    given: dict[str, object] = {"noise": 2.0, "steps": 3, "clip": 2.0, "adjacency": "add-remove"}
    return TrainingSettings("digits", **(given | other))  # type: ignore[arg-type]


def first_gradients(data) -> torch.Tensor:
    """Clipped gradients at the first weights, one example at a time by autograd."""
    model, weights = initial_weights(settings(), 1, SeededSource(0, 0, stream=0).generator)
    model.load_state_dict(dict(zip(model.state_dict(), (w[0] for w in weights), strict=True)))
    rows = []
    for x, y in zip(data.features, data.labels, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(torch.tensor(x)[None]), torch.tensor([y])).backward()
        rows.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    each = torch.stack(rows)
    return each * (2.0 / each.norm(dim=1, keepdim=True)).clamp(max=1.0)


def test_norms_are_those_of_the_naive_twin_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("digits").take(np.arange(50))
    one = exposure(settings(steps=1), data)
    assert one.mean_norm == pytest.approx(first_gradients(data).norm(dim=1).numpy(), rel=1e-4)
    monkeypatch.setattr(room, "CHUNK", 7)
    assert exposure(settings(steps=1), data).change == pytest.approx(one.change, rel=1e-5)


def test_scores_are_the_exact_ones_of_the_records_own_gaussian() -> None:
    data = load("digits").take(np.arange(20))
    found = exposure(settings(), data, delta=0.02)
    loss = privacy_loss(GaussianDP(float(found.change[3]) * 3**0.5 / 4.0))
    assert found.advantage[3] == pytest.approx(float(loss.advantage()), rel=1e-9)
    assert found.belief[3] == pytest.approx(float(loss.belief(0.02)), rel=1e-9)
    assert found.advantage.max() <= float(privacy_loss(Gaussian(2.0).composed(3)).advantage()) + 1e-9


def test_sampling_helps_and_stays_below_the_claim() -> None:
    data = load("digits").take(np.arange(40))
    full, sampled = exposure(settings(), data), exposure(settings(rate=0.2), data)
    assert (sampled.advantage <= full.advantage.max()).all()
    worst = privacy_loss(Gaussian(2.0).subsampled(0.2).composed(3), adjacency="add-remove")
    assert sampled.advantage.max() <= float(worst.advantage()) + 1e-9
    assert "upper bound" in sampled.method


def test_replace_is_against_the_worst_candidate_and_at_most_the_bound_against_any() -> None:
    every = load("digits")
    data, others = every.take(np.arange(30)), every.take(np.arange(30, 60))
    against, anybody = (exposure(settings(adjacency="replace"), data, candidates=c) for c in (others, None))
    assert (against.change <= anybody.change + 1e-6).all()
    fewer = exposure(settings(adjacency="replace"), data, candidates=others.take(np.arange(5)))
    assert (fewer.change <= against.change + 1e-6).all()


def test_the_worst_candidate_is_that_of_the_naive_twin() -> None:
    every = load("digits")
    data, others = every.take(np.arange(30)), every.take(np.arange(30, 50))
    found = exposure(settings(adjacency="replace", steps=1), data, candidates=others)
    farthest = torch.cdist(first_gradients(data), first_gradients(others)).amax(1)
    assert found.change == pytest.approx(farthest.numpy(), rel=1e-4)


def test_local_sensitivity_is_refused() -> None:
    with pytest.raises(ValueError, match="global"):
        exposure(settings(sensitivity="local"), load("digits").take(np.arange(10)))


def test_the_file_has_every_record_and_the_ranks(tmp_path: Path) -> None:
    data = load("digits").take(np.arange(60))
    found = exposure(settings(), data)
    write_records(found, data.labels, tmp_path / "records.csv")
    with (tmp_path / "records.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    first = next(row for row in rows if row["rank"] == "1")
    assert int(first["record"]) == found.most()[0]
    assert float(first["advantage"]) == pytest.approx(found.advantage.max())
    correlations = rank_correlations(found, data)
    assert set(correlations) == {"ssim", "euclidean", "hamming", "manhattan", "cosine"}
    assert all(value is None or -1 <= value <= 1 for value in correlations.values())


def test_records_exposed_alike_are_ranked_by_their_gradients_before_clipping() -> None:
    data = load("digits").take(np.arange(200))
    found = exposure(settings(clip=1e-3), data)
    assert np.ptp(found.change) < 1e-8
    assert found.ranks() == pytest.approx(np.argsort(np.argsort(found.unclipped_norm)) + 1)
    correlations = rank_correlations(found, data)
    assert all(value is not None for name, value in correlations.items() if name != "cosine")
