"""Models that mix the examples of a batch, so that no example has a gradient of its own: refused before training."""

from __future__ import annotations

import torch
from torch import nn

from deniable.audit.diagnostics import Diagnosis, Report
from deniable.training.gradients import trainable
from deniable.training.models import refuse
from deniable.training.settings import Columns

__all__ = ["mixing", "refused"]


def mixing(model: nn.Module, columns: Columns) -> Diagnosis | None:
    """What makes per-example gradients meaningless: layers known to mix examples, and outputs that show it."""
    apart = "each example's output depends on that example alone", "examples kept apart"
    if not trainable(model):
        raise ValueError("model must have at least one trainable parameter, got none")
    try:
        refuse(model)
    except ValueError as error:
        why = f"{error}; one record changes the gradients of the others, so clipping bounds nobody's influence"
        return Diagnosis(apart[1], 0.0, str(error), apart[0], why)
    records = columns.records[:8]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        together, again, alone = model(records), model(records), model(records[:4])
    if not torch.allclose(together, again, rtol=1e-3, atol=1e-5):
        why = "the model draws at random, so its gradients cannot be recomputed: remove the random layer"
        return Diagnosis(apart[1], 0.0, "two passes differ", apart[0], why)
    if not torch.allclose(together[:4], alone, rtol=1e-3, atol=1e-5):
        why = (
            "the model mixes the examples of a batch, so clipping bounds nobody's influence: normalise each example by "
            "itself, as nn.GroupNorm does"
        )
        return Diagnosis(apart[1], 0.0, "outputs change with the rest of the batch", apart[0], why)
    return None


def refused(mixed: Diagnosis) -> Report:
    """Nothing was trained: a model that mixes examples has no per-example gradient."""
    return Report((mixed,), (mixed,), 0.0, float("nan"))
