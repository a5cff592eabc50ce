"""The product that stays in one thread is the usual one, for every shape that the loss room hands to it."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.loss.arrays import _ONE_THREAD, multiply

SHAPES = [
    ((7,), (7,)),
    ((7,), (7, 5)),
    ((7,), (7, 3, 5)),
    ((400, 300), (300,)),
    ((3, 4, 7), (7,)),
    ((20, 30), (30, 40)),
    ((400, 30), (30, 20)),
    ((3, 300), (300, 900)),
    ((2, 60, 50), (2, 50, 70)),
    ((1, 70_000), (70_000, 2)),
    ((5000, 40), (40, 1)),
    ((90, 2048), (2048, 110)),
]


@pytest.mark.parametrize("complex_numbers", [False, True])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_the_product_is_that_of_numpy(left, right, complex_numbers):
    draw = np.random.default_rng(5)
    a, b = draw.normal(size=left), draw.normal(size=right) + (1j * draw.normal(size=right) if complex_numbers else 0)
    found, naive = multiply(a, b), np.tensordot(a, b, 1) if a.ndim < 3 else a @ b
    assert found.shape == naive.shape
    assert np.abs(found - naive).max() <= 1e-15 * left[-1] * np.abs(a).max() * np.abs(b).max()


def test_some_products_are_taken_in_parts():
    assert _ONE_THREAD < 400 * 30 * 20
    assert _ONE_THREAD < 3 * 300 * 900


class Recorded(np.ndarray):
    """A matrix that notes the size of every product it is the left side of."""

    products: list[tuple[int, int, int]]

    def __array_finalize__(self, made_from):
        self.products = getattr(made_from, "products", [])

    def __matmul__(self, other):
        self.products.append((self.shape[-2], self.shape[-1], other.shape[-1]))
        return np.asarray(self) @ np.asarray(other)


@pytest.mark.parametrize(
    ("left", "right"), [*SHAPES[5:], ((64, 600), (600, 64)), ((33, 64), (64, 9)), ((1, 8000), (8000, 2))]
)
def test_no_product_wakes_a_thread(left, right):
    """OpenBLAS does from 2^16 multiplications on, with a vector from 2^12: 64 x 64 frequencies took 250 ms, not 1."""
    a, b = (np.ones(shape).view(Recorded) for shape in (left, right))
    a.products = b.products = []
    multiply(a, b)
    assert a.products
    assert all(m * n * k < (2**16 if min(m, k) > 1 else 2**12) for m, n, k in a.products)
