"""Models that mix the examples of a batch, so that no example has a gradient of its own: refused before training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from deniable.examination.diagnostics import Diagnosis, Report
from deniable.training.gradients import trainable
from deniable.training.networks.usual_models import refuse
from deniable.training.settings import Columns


def find_mixing(model: nn.Module, columns: Columns) -> Diagnosis | None:
    """What makes per-example gradients meaningless: layers known to mix examples, and outputs that show it."""
    apart = "each example's output depends on that example alone", "examples kept apart"
    if not trainable(model):
        raise ValueError("model must have at least one trainable parameter, got none")
    for layer in model.modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0  # it mixes nobody; gradients are recomputed without it
    try:
        refuse(model)
    except ValueError as error:
        why = f"{error}; one record changes the gradients of the others, so clipping bounds nobody's influence"
        return Diagnosis(apart[1], 0.0, str(error), apart[0], why)
    records, model = columns.records[:8], model.eval() if _is_random(model, columns.records[:8]) else model
    if _is_random(model, records):
        why = "the model draws at random, even in evaluation mode, so its gradients cannot be recomputed"
        return Diagnosis(apart[1], 0.0, "two passes differ", apart[0], why, weakens=None)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        together, alone = model(records), model(records[:4])
    if not torch.allclose(together[:4], alone, rtol=1e-3, atol=1e-5):
        why = (
            "the model mixes the examples of a batch, so clipping bounds nobody's influence: normalise each example by "
            "itself, as nn.GroupNorm does"
        )
        return Diagnosis(apart[1], 0.0, "outputs change with the rest of the batch", apart[0], why)
    return None


def _is_random(model: nn.Module, records: Tensor) -> bool:
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        return not torch.allclose(model(records), model(records), rtol=1e-3, atol=1e-5)


def refusal_report(mixed: Diagnosis) -> Report:
    """Nothing was trained: a model that mixes examples has no per-example gradient."""
    return Report((mixed,), (mixed,), 0.0, float("nan"), 0.0)
