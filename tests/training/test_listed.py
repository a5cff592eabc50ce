"""Products of kernels, those that skip the inputs' zeros and others, equal those in float64, and hide no NaN."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from deniable.training import kernels
from deniable.training.networks.listed import LARGEST_SHARE, ListedInputs, list_inputs
from deniable.training.subset_models import _list_records

pytestmark = pytest.mark.skipif(kernels.KERNELS is None, reason="the compiled kernels were not built")


def inputs(features: int, examples: int, share: float) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(features, examples) * (torch.rand(features, examples) < share)


def listed(values: Tensor) -> ListedInputs:
    found = list_inputs(values, 16)
    assert found is not None
    return found


@pytest.mark.parametrize("rows", [1, 16, 63, 64, 65, 150])
@pytest.mark.parametrize(("features", "examples"), [(1, 1), (9, 16), (104, 37), (40, 7)])
@pytest.mark.parametrize("share", [0.0, 0.12])
def test_products(rows: int, features: int, examples: int, share: float) -> None:
    values = inputs(features, examples, share) if features > 1 else torch.zeros(1, 1)
    weights, deltas = torch.randn(rows, features), torch.randn(rows, examples)
    out, sums = torch.full((rows, examples), torch.nan), torch.full((rows, features), torch.nan)
    listed(values).multiply(weights, out)
    listed(values).outer(deltas, sums)
    torch.testing.assert_close(out.double(), weights.double() @ values.double(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(sums.double(), deltas.double() @ values.double().mT, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 5, 6, 13, 270])
@pytest.mark.parametrize(("inner", "columns"), [(1, 1), (9, 16), (104, 37), (40, 8), (3, 48)])
def test_dense_product(rows: int, inner: int, columns: int) -> None:
    torch.manual_seed(0)
    left, right = torch.randn(rows, inner), torch.randn(inner, columns)
    room = torch.full((rows * columns + 16,), torch.nan)
    kernels.call("multiply_dense", left, right, room, kernels.sizes(rows, inner, columns))
    found = room[: rows * columns].view(rows, columns).double()
    torch.testing.assert_close(found, left.double() @ right.double(), rtol=1e-5, atol=1e-5)
    assert bool(room[rows * columns :].isnan().all()), "nothing is written behind the product"


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("rows", [20, 70])
def test_divergence_is_never_hidden_behind_a_zero(bad: float, rows: int) -> None:
    values, weights = inputs(10, 20, 0.1), torch.randn(rows, 10)
    weights[rows - 2, 3] = bad
    out = torch.empty(rows, 20)
    listed(values).multiply(weights, out)
    assert (~out.isfinite()).all(1).nonzero().flatten().tolist() == [rows - 2]
    values[4, 5] = torch.nan
    listed(values).multiply(torch.ones(rows, 10), out)
    assert out.isnan().all(0).nonzero().flatten().tolist() == [5]


@pytest.mark.parametrize(("more", "known"), [(0, True), (1, False)])
def test_dense_inputs_are_not_listed(more: int, known: bool) -> None:
    values = torch.zeros(8, 10)
    values.view(-1)[: int(LARGEST_SHARE * 80) + more] = 1.0
    assert (list_inputs(values, 16) is not None) is known
    assert list_inputs(values, 15) is None


def test_more_values_than_a_list_can_count_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    values = inputs(20, 20, 0.2)
    count = int((values != 0).sum())
    for most, known in ((count, True), (count - 1, False)):
        monkeypatch.setattr("deniable.training.networks.listed.MOST_COUNTED", most)
        assert (list_inputs(values, 16) is not None) is known
        assert (_list_records(values) is not None) is known
