"""Laplace noise on numbers and images: distributions against the continuous ones, losses, and wrong ones rejected."""

from __future__ import annotations

from fractions import Fraction
from math import expm1

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare, kstest, laplace

import deniable as dn
from deniable.local import BoundedLaplace, ImagePixelization
from deniable.local.coins import entropy
from deniable.local.laplace_noise import rounded_laplace

LEAST = 1e-6


def rounded_masses(scale: float, limit: int) -> NDArray[np.float64]:
    """The twin: the continuous distribution, cut into unit bins, what lies beyond +-limit put at the ends."""
    edges = np.arange(-limit - 0.5, limit + 1.5)
    edges[0], edges[-1] = -np.inf, np.inf
    return np.diff(laplace.cdf(edges, scale=scale))


@pytest.mark.parametrize(("scale", "limit"), [(0.3, 3), (1.0, 1), (2.5, 20), (40.0, 100), (1e5, 6)])
def test_the_noise_is_rounded_continuous_laplace_noise(scale: float, limit: int) -> None:
    noise = rounded_laplace(Fraction(scale), limit, 300_000, entropy(1))
    counts = np.bincount(noise + limit, minlength=2 * limit + 1)
    expected = rounded_masses(scale, limit) * len(noise)
    enough = expected > 5
    kept, wanted = counts[enough], expected[enough]
    assert chisquare(kept, wanted * kept.sum() / wanted.sum()).pvalue > LEAST
    wrong = rounded_masses(1.03 * scale, limit)[enough] * len(noise)
    if 1 < scale < 1e4:  # a scale of 3 % too much is seen
        assert chisquare(kept, wrong * kept.sum() / wrong.sum()).pvalue < LEAST


@given(st.floats(0.01, 1e6), st.integers(1, 2**20))
def test_the_noise_keeps_its_limit(scale: float, limit: int) -> None:
    noise = rounded_laplace(Fraction(scale), limit, 50, entropy(0))
    assert np.abs(noise).max() <= limit


def test_large_scales_give_laplace_noise() -> None:
    noise = rounded_laplace(Fraction(10**6), 2**40, 100_000, entropy(2))
    assert kstest(noise / 1e6, "laplace").pvalue > LEAST
    assert kstest(noise / 1.1e6, "laplace").pvalue < LEAST


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_measured_loss_of_a_number_is_the_claimed_one(epsilon: float) -> None:
    """At the clipped ends the ratio of probabilities is e^epsilon exactly: the claim is attained."""

    def ends(randomizer: BoundedLaplace) -> float:
        low, high = (randomizer.perturb(np.full((400_000, 1), x), 3) for x in (0.0, 1.0))
        return float(np.log((high == 1).mean() / (low == 1).mean()))

    claimed = BoundedLaplace(epsilon).cost((1,))
    assert claimed.loss.epsilon(0) == pytest.approx(claimed.epsilon) == epsilon
    assert ends(BoundedLaplace(epsilon)) == pytest.approx(epsilon, abs=0.03)
    assert ends(BoundedLaplace(1.2 * epsilon)) > epsilon + 0.03


def test_the_measured_advantage_is_at_most_the_exact_one_and_near_it() -> None:
    randomizer = BoundedLaplace((0.8, 0.4))
    low, high = (randomizer.perturb(np.full((300_000, 2), x), seed) for x, seed in ((0.0, 1), (1.0, 2)))

    def likelihood_ratio(values: NDArray[np.float64]) -> NDArray[np.float64]:
        # what is clipped to an end tells as much as any value beyond it
        return np.where(values >= 1, 1, np.where(values <= 0, -1, 2 * values - 1)) @ np.array([0.8, 0.4])

    measured = (likelihood_ratio(high) > 0).mean() - (likelihood_ratio(low) > 0).mean()
    exact = float(randomizer.cost((2,)).loss.advantage())
    assert exact == pytest.approx(measured, abs=0.01)
    single = BoundedLaplace(0.8).cost((1,)).loss.advantage()
    assert float(single) == pytest.approx(-expm1(-0.4))  # 1 - e^(-epsilon / 2)


def test_values_lie_on_the_grid_within_the_bounds() -> None:
    values = np.random.default_rng(0).normal(40, 30, (500, 2))
    noisy = BoundedLaplace(5.0, low=(0.0, -10.0), high=(100.0, 90.0)).perturb(values, 1)
    assert np.all((noisy >= (0, -10)) & (noisy <= (100, 90)))
    steps = (noisy - (0, -10)) * 65536 / 100
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    # numbers outside are clipped first, so they are as private as the bounds
    far = BoundedLaplace(1.0).perturb(np.array([[1e30], [1.0]]).repeat(2000, 0), 5)
    assert far.min() >= 0


def test_the_noise_is_centred() -> None:
    noisy = BoundedLaplace(20.0).perturb(np.full((200_000, 1), 0.5, dtype=np.float32), 1)
    assert noisy.mean() == pytest.approx(0.5, abs=0.001)
    assert noisy.std() == pytest.approx(2**0.5 / 20, rel=0.01)


def images(count: int, height: int, width: int) -> NDArray[np.float32]:
    return np.random.default_rng(3).integers(0, 256, (count, height, width)).astype(np.float32) / 255


def naive_cells(image: NDArray[np.float32], cell: int) -> NDArray[np.float64]:
    out = np.empty_like(image, dtype=np.float64)
    for top in range(0, image.shape[0], cell):
        for left in range(0, image.shape[1], cell):
            window = np.s_[top : top + cell, left : left + cell]
            out[window] = image[window].mean()
    return out


@pytest.mark.parametrize(("shape", "cell"), [((6, 6), 1), ((6, 6), 3), ((7, 5), 2), ((4, 4), 9)])
def test_without_noise_pixelization_averages_cells(shape: tuple[int, int], cell: int) -> None:
    sharp = images(3, *shape)
    coarse = ImagePixelization(1e12, pixels=1, cell=cell).perturb(sharp)
    for before, after in zip(sharp, coarse, strict=True):
        np.testing.assert_allclose(after, naive_cells(before, cell), atol=1e-6)
    assert coarse.dtype == np.float32


@pytest.mark.parametrize(("epsilon", "pixels", "cell"), [(2000.0, 16, 1), (60.0, 2, 2), (200.0, 30, 4)])
def test_the_noise_has_003s_scale(epsilon: float, pixels: int, cell: int) -> None:
    grey = np.full((4000, 8, 8), 0.5, dtype=np.float32)
    noisy = ImagePixelization(epsilon, pixels, cell).perturb(grey, 2)
    levels = (noisy[:, ::cell, ::cell].astype(np.float64) - 0.5).ravel() * 255
    scale = 255 * pixels / (cell**2 * epsilon)
    assert scale == pytest.approx(dn.Pixelization(epsilon, pixels, cell).scale)
    assert scale < 12  # so that clipping at 127 levels does not show
    assert np.abs(levels).mean() == pytest.approx(scale, rel=5 / len(levels) ** 0.5)
    within_a_step = np.random.default_rng(0).uniform(-1, 1, len(levels)) / (32 * cell**2)
    assert kstest(levels + within_a_step, "laplace", (0, scale)).pvalue > LEAST
    assert kstest(levels, "laplace", (0, 1.2 * scale)).pvalue < LEAST


def test_clipping_back_and_the_measured_loss_of_an_image() -> None:
    """Black against white in all of 2 x 2 pixels, m = 4: the loss at the ends is epsilon, as claimed."""

    def white_share(level: float, randomizer: ImagePixelization) -> float:
        noisy = randomizer.perturb(np.full((300_000, 2, 2), level, dtype=np.float32), 6)
        assert 0 <= noisy.min() <= noisy.max() <= 1
        return float((noisy[:, 0, 0] == 1).mean())

    fair = ImagePixelization(1.0, pixels=4, cell=2)
    loss = np.log(white_share(1.0, fair) / white_share(0.0, fair))
    assert loss == pytest.approx(1.0, abs=0.03)
    assert dn.privacy_loss(fair.neighbourhood, adjacency="add-remove").epsilon(0) == pytest.approx(1.0)
    assert fair.cost((2, 2)).epsilon == pytest.approx(1.0)
    wrong = ImagePixelization(1.0, pixels=3, cell=2)  # noise for three pixels does not hide four
    assert np.log(white_share(1.0, wrong) / white_share(0.0, wrong)) > 1.2
    assert wrong.cost((2, 2)).epsilon == pytest.approx(4 / 3)


@pytest.mark.parametrize(("shape", "cell"), [((250, 250), 1), ((62, 47), 4), ((5, 3), 2)])
def test_the_cost_of_an_image(shape: tuple[int, int], cell: int) -> None:
    cost = ImagePixelization(10.0, pixels=5, cell=cell).cost(shape)
    assert cost.epsilon == pytest.approx(10 * shape[0] * shape[1] / 5)
    assert cost.loss.epsilon(0) == pytest.approx(cost.epsilon)
    assert cost.features == -(-shape[0] // cell) * -(-shape[1] // cell)
    assert float(ImagePixelization(1e-3, 1, cell).cost(shape).loss.advantage()) < -expm1(-1e-3 * shape[0] * shape[1])


def test_seeds_repeat_and_the_system_does_not() -> None:
    pictures = images(2, 9, 9)
    for randomizer, records in ((ImagePixelization(5.0, 3, 2), pictures), (BoundedLaplace(1.0), pictures[0])):
        np.testing.assert_array_equal(randomizer.perturb(records, 1), randomizer.perturb(records, 1))
        assert (randomizer.perturb(records, 1) != randomizer.perturb(records, 2)).any()
        assert (randomizer.perturb(records) != randomizer.perturb(records)).any()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: BoundedLaplace(0.0), "epsilon must be"),
        (lambda: BoundedLaplace(1.0, low=1.0, high=1.0), "low must be below high"),
        (lambda: BoundedLaplace(1.0, low=float("-inf")), "low must be a finite number"),
        (lambda: BoundedLaplace((1.0, 2.0)).perturb(np.zeros((4, 3))), "one number or one for each of 3"),
        (lambda: BoundedLaplace(1.0).perturb(np.array([[np.nan]])), "finite floating-point"),
        (lambda: BoundedLaplace(1.0).perturb(np.array([[1]])), "finite floating-point numbers, got int64"),
        (lambda: BoundedLaplace(1.0).perturb(np.zeros(3)), r"records must be \(records, features\)"),
        (lambda: ImagePixelization(-1.0, 3), "epsilon must be"),
        (lambda: ImagePixelization(1.0, 0), "pixels must be"),
        (lambda: ImagePixelization(1.0, 3, 1.5), "cell must be"),
        (lambda: ImagePixelization(1.0, 3).perturb(np.zeros((2, 3, 4, 4))), "make colours grey first"),
        (lambda: ImagePixelization(1.0, 3).perturb(np.full((2, 4, 4), 17.0)), "from 0 to 1"),
        (lambda: ImagePixelization(1.0, 3).perturb(np.full((2, 4, 4), np.nan)), "from 0 to 1"),
        (lambda: ImagePixelization(1.0, 3).cost((3, 4, 4)), "grey images"),
    ],
)
def test_bad_input_is_named(bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bad()  # type: ignore[operator]


def test_extremes() -> None:
    assert BoundedLaplace(1e9).perturb(np.array([[0.25]]))[0, 0] == pytest.approx(0.25, abs=1e-4)
    tiny = BoundedLaplace(1e-9).perturb(np.full((4000, 1), 0.9))
    assert (tiny == 1).mean() == pytest.approx(0.5, abs=0.05)
    least = BoundedLaplace(1e-30).perturb(np.full((4000, 1), 0.9))
    assert (least == 1).mean() == pytest.approx(0.5, abs=0.05)
