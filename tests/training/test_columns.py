"""The passes between matrix products equal float64 arithmetic, by the kernels and by torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from deniable.training import columns, ensemble, kernels

SHAPES = [(1, 1, 1), (3, 2, 7), (2, 5, 16), (2, 100, 37), (1, 3, 1008)]
compiled_only = pytest.mark.skipif(kernels.KERNELS is None, reason="the compiled kernels were not built")


@pytest.fixture(params=[pytest.param(True, marks=compiled_only), False], ids=["kernels", "torch"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(kernels, "KERNELS", None)


@pytest.fixture(params=SHAPES, ids=str)
def values(request: pytest.FixtureRequest) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(request.param)


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, check_dtype=False)


def test_squares(values: Tensor) -> None:
    found = columns.squares(values, torch.full((len(values), values.shape[2]), torch.nan))
    close(found, values.double().square().sum(1), 1e-5)


@pytest.mark.parametrize("biased", [True, False])
def test_rectify(values: Tensor, biased: bool) -> None:
    bias = torch.randn(values.shape[:2]) if biased else None
    expected = (values.double() + (bias.unsqueeze(2) if bias is not None else 0)).clamp(min=0)
    columns.rectify(values, bias)
    close(values, expected)


def test_stop(values: Tensor) -> None:
    outputs = torch.randn_like(values).clamp(min=0)
    expected = values.double() * (outputs > 0)
    squares = columns.stop(values, outputs, torch.full((len(values), values.shape[2]), torch.nan))
    close(values, expected)
    close(squares, expected.square().sum(1), 1e-5)


@pytest.mark.parametrize("summed", [True, False])
def test_weigh(values: Tensor, summed: bool) -> None:
    factors = torch.rand(len(values), values.shape[2])
    sums = torch.full(values.shape[:2], torch.nan) if summed else None
    expected = values.double() * factors.unsqueeze(1)
    columns.weigh(values, factors, sums)
    close(values, expected)
    if sums is not None:
        close(sums, expected.sum(2), 1e-5)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("scale", [1, 30, 1e4])
def test_softmax_minus_class(values: Tensor, shared: bool, scale: float) -> None:
    outputs = scale * values
    labels = torch.randint(0, values.shape[1], (1 if shared else len(values), values.shape[2]))
    classes = functional.one_hot(labels, values.shape[1]).transpose(1, 2)
    expected = outputs.double().softmax(1) - classes
    close(columns.softmax_minus_class(outputs, labels), expected)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_divergence_is_never_hidden(bad: float) -> None:
    outputs = torch.zeros(1, 3, 17)
    outputs[0, 1, [2, 16]] = bad
    found = columns.softmax_minus_class(outputs.clone(), torch.zeros(1, 17, dtype=torch.long))
    wrong = found.isnan().any(1)[0]
    assert wrong.nonzero().flatten().tolist() == [2, 16]
    columns.rectify(outputs, torch.zeros(1, 3))
    assert bool((outputs[0, 1, [2, 16]] != 0).all())


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("shared", [True, False])
def test_multiply_few(values: Tensor, shared: bool, count: int) -> None:
    vectors = torch.randn(1 if shared else len(values), values.shape[2], count)
    found = columns.multiply_few(values, vectors)
    assert found.shape == (*values.shape[:2], count)
    close(found, values.double() @ vectors.double(), 1e-4)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("rows", "inner", "width"), [(8, 16, 16), (9, 17, 33), (15, 40, 47), (71, 18, 64), (66, 100, 80)]
)
def test_multiply(rows: int, inner: int, width: int, turned: tuple[bool, bool]) -> None:
    """Rows and columns that fill registers and that do not, as they are and turned."""
    torch.manual_seed(2)
    left = torch.randn(3, inner, rows).mT if turned[0] else torch.randn(3, rows, inner)
    right = torch.randn(3, width, inner).mT if turned[1] else torch.randn(3, inner, width)
    right[1, 2, 3] = torch.nan
    found = columns.multiply(left, right, torch.empty(3, rows, width))
    assert torch.equal(found.isnan().any(1).nonzero(), torch.tensor([[1, 3]]))
    close(found.nan_to_num(), (left.double() @ right.double()).nan_to_num(), 1e-4)


@pytest.mark.parametrize("rate", [0.01, torch.tensor([0.01, 0.3, 1e-4])], ids=["one rate", "a rate a trial"])
def test_adam(rate: float | Tensor) -> None:
    """Three steps of three trials against the formulas in float64; gradients of 0 and of 1e-12 among them."""
    torch.manual_seed(1)
    weights, gradients = torch.randn(3, 5, 7), torch.randn(4, 3, 5, 7).mul_(torch.tensor([1, 1e-12, 0, 5, 1, 1, 1e3]))
    expected, first, second = weights.double(), torch.zeros(3, 5, 7).double(), torch.zeros(3, 5, 7).double()
    adam = ensemble.Adam(rate)
    for step, gradient in enumerate(gradients, 1):
        adam.apply([weights], [gradient], 20.0)
        mean = gradient.double() / 20
        first, second = 0.9 * first + 0.1 * mean, 0.999 * second + 0.001 * mean.square()
        move = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        expected -= move * (rate.double().view(3, 1, 1) if isinstance(rate, Tensor) else rate)
    close(weights, expected, 1e-5)


@pytest.mark.parametrize("gradient", [0.0, 1e-30, 1e-20, 1e-9, 3e-8, 1e-3, 1.0, 1e15])
def test_adam_of_extreme_gradients(gradient: float) -> None:
    """Sixteen numbers and more at once, where roots and divisions are estimated; 1e-8 in the divisor counts."""
    weights = torch.zeros(1, 67)
    adam = ensemble.Adam(1.0)
    adam.apply([weights], [torch.full((1, 67), gradient)], 1.0)
    close(weights, torch.full((1, 67), -gradient / (gradient + 1e-8), dtype=torch.float64), 2e-6)
    adam.apply([weights], [torch.full((1, 67), torch.nan)], 1.0)
    assert weights.isnan().all()


def test_a_kernel_for_each_trial_is_refused_tensors_of_other_trials() -> None:
    if kernels.KERNELS is None:
        pytest.skip("the compiled kernels are left out")
    with pytest.raises(TypeError, match="3 trials needs tensors of as many parts"):
        kernels.plan_each("rectify", 3, torch.zeros(2, 4, 8), None, kernels.sizes(1, 4, 8))
