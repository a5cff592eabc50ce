"""Records that a step did not draw: their products with the residuals, record by record, and under noise alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from deniable.examination.recorded.gradients.batch_gradients import RecordLoss
from deniable.examination.recorded.gradients.other_records import OtherRecords

CLIP, RECORDS = 0.5, 40


def clipped_gradient(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    found = torch.autograd.grad(cross_entropy(model(x[None]), y[None]), list(model.parameters()))
    flat = torch.cat([g.flatten() for g in found]).double()
    return flat * min(1.0, CLIP / float(flat.norm()))


def test_products_are_those_of_single_records_that_were_not_drawn() -> None:
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    data = TensorDataset(torch.randn(RECORDS, 5), torch.randint(0, 3, (RECORDS,)))
    others, residuals, drawn = OtherRecords(data, 18), torch.randn(3, 18).double(), [{0, 1}, {1, 7}, set(range(20))]
    for residual, batch in zip(residuals, drawn, strict=True):
        sums = others.sums(model, RecordLoss(), CLIP, [None, None], len(batch))
        assert sums is not None
        others.note(sums, CLIP, residual, 2.0, batch)
    each = [clipped_gradient(model, x, y) for x, y in data]
    naive = {}
    for number, gradient in enumerate(each):
        absent = [r for r, batch in zip(residuals, drawn, strict=True) if number not in batch]
        naive[number] = sum(float(r @ gradient) for r in absent) / 2, len(absent) * float(gradient @ gradient) / 2
    ranked = sorted((i for i in naive if naive[i][1]), key=lambda i: -abs(naive[i][0]) / naive[i][1] ** 0.5)
    found = others.found()
    assert [number for number, _, _ in found] == ranked[: len(found)]
    for number, along, squares in found:
        np.testing.assert_allclose((along, squares), naive[number], rtol=1e-4)


def test_noise_alone_is_along_no_record() -> None:
    """The largest of all records' z-values, times their number, is a p-value: below .05 in at most a twentieth."""
    torch.manual_seed(1)
    model = nn.Linear(5, 3)
    data = TensorDataset(torch.randn(RECORDS, 5), torch.randint(0, 3, (RECORDS,)))
    alarms, runs = 0, 200
    sums = OtherRecords(data, 18).sums(model, RecordLoss(), CLIP, [None, None], 4)
    assert sums is not None
    for _ in range(runs):
        others = OtherRecords(data, 18)
        others.sums(model, RecordLoss(), CLIP, [None, None], 4)
        for _ in range(10):
            others.note(sums, CLIP, 3.0 * torch.randn(18).double(), 9.0, set(torch.randperm(RECORDS)[:4].tolist()))
        _, along, squares = others.found()[0]
        alarms += abs(along) / squares**0.5 > 3.23  # 2 x 40 x P(Z > 3.23) = .05
    assert alarms <= runs * 0.05 + 3 * (runs * 0.05 * 0.95) ** 0.5
