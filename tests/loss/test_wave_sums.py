"""Sums over a line by products of a few exponentials equal those with every exponential computed by itself."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.loss.moments.nodes import _PANEL_CHUNK, _as_panels, growing_panels, sum_waves

EPS = 2.2e-16
HALF_OCTAVES = 0.3 * np.ldexp(np.where(np.arange(13) % 2, np.sqrt(2), 1.0), np.arange(13) // 2)
FREQUENCIES = {
    "evenly spaced": np.arange(3000) * 0.01,
    "not from 0": 0.3 + np.arange(301) * 0.7,
    "panels over 25 octaves": growing_panels(1e-6, 40.0, 1.3)[0],
    "panels of one width": growing_panels(4.0, 40.0, 1.3)[0],
    "half-octaves": HALF_OCTAVES,
    "anything": np.random.default_rng(1).random(37),
}


def line(rows=()):
    generator = np.random.default_rng(0)
    losses = generator.standard_normal((*rows, 300)) ** 3 + 0.2j * generator.random((*rows, 300))
    return losses, np.exp(-20 * generator.random((*rows, 300)))


@pytest.mark.parametrize("name", FREQUENCIES)
def test_products_equal_exponentials(name):
    """To the round-off of the exponents, also where they are tiny."""
    (losses, weights), omega = line(), FREQUENCIES[name]
    naive = (weights * np.expm1(1j * omega[:, None] * losses)).sum(axis=1)
    roundoff = EPS * (weights * np.abs(omega[:, None] * losses)).sum(axis=1)
    assert (np.abs(sum_waves(losses, weights, omega) - naive) <= 32 * roundoff + 1e-300).all()


@pytest.mark.parametrize("name", FREQUENCIES)
def test_rows_are_summed_side_by_side(name):
    losses, weights = line((3,))
    together = sum_waves(losses, weights, FREQUENCIES[name])
    alone = [sum_waves(*row, FREQUENCIES[name]) for row in zip(losses, weights, strict=True)]
    assert together == pytest.approx(np.array(alone), rel=1e-13, abs=1e-300)


def test_many_nodes_on_panels_are_summed_in_parts():
    """Parts of unequal size, the last of a few nodes, add up to the sum over all."""
    omega = growing_panels(1e-3, 4.0, 1.3)[0]
    generator = np.random.default_rng(2)
    losses, weights = generator.standard_normal(2 * _PANEL_CHUNK + 5), generator.random(2 * _PANEL_CHUNK + 5)
    naive = np.array([(weights * np.expm1(1j * one * losses)).sum() for one in omega])
    roundoff = EPS * np.array([(weights * np.abs(one * losses)).sum() for one in omega])
    assert (np.abs(sum_waves(losses, weights, omega) - naive) <= 32 * roundoff).all()


@pytest.mark.parametrize("omega", [np.linspace(0, 30, 64), np.linspace(3, 4, 17), np.linspace(0, 1e-6, 40)])
def test_rows_at_few_frequencies_are_turned_from_one_to_the_next(omega):
    """Each turn adds the round-off of one product; blocks of rows are put together in their order."""
    losses, weights = line((60,))
    naive = (weights[:, None, :] * np.expm1(1j * omega[:, None] * losses[:, None, :])).sum(axis=-1)
    roundoff = EPS * (weights[:, None, :] * np.abs(omega[:, None] * losses[:, None, :])).sum(axis=-1)
    assert (np.abs(sum_waves(losses, weights, omega) - naive) <= 64 * roundoff + 1e-300).all()


@pytest.mark.parametrize(
    ("first", "end", "widest"), [(1e-6, 40.0, 1.3), (3.0, 40.0, 1.3), (5.0, 2.0, 2.0), (1.0, 1.1, 1.0)]
)
def test_growing_panels_are_recognised_and_cover_their_range(first, end, widest):
    points, weights = growing_panels(first, end, widest)
    assert _as_panels(points) is not None
    assert (np.diff(points) > 0).all()
    assert end <= weights.sum() <= end + widest * (1 + 1e-12)
    assert float(weights @ np.exp(-points)) == pytest.approx(-np.expm1(-weights.sum()), rel=1e-14)


def test_other_points_are_not_taken_for_panels():
    points, _ = growing_panels(1e-3, 40.0, 1.3)
    points[20] *= 1 + 1e-9
    assert _as_panels(points) is None
