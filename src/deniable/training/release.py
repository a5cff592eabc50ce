"""Train one model to be released."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import nn

from deniable.training.ensemble import Ensemble, initial_weights
from deniable.training.noise_source import SeededSource, SystemSource
from deniable.training.settings import Columns, TrainingSettings, as_records


def train(
    settings: TrainingSettings, records: ArrayLike, labels: ArrayLike, weights_seed: int | None = None
) -> nn.Module:
    """One differentially private training, returned as the settings' `nn.Module`.

    Guarantee: the sequence of weights is the output of ``Gaussian(noise).subsampled(rate).composed(steps)`` under the
    settings' adjacency. Noise and batches come from the operating system's entropy; there is no seed for them, since
    who knows it can take the noise away. `weights_seed` fixes the initial weights only. Local sensitivity is refused:
    it is an instrument for audits, not a guarantee (erratum 8).
    """
    if not settings.differentially_private:
        raise ValueError(
            "sensitivity must be 'global' for a model that is released, got 'local': it gives no guarantee"
        )
    x, y = as_records(records, labels)
    generator = SeededSource(weights_seed, 0).generator if weights_seed is not None else unpredictable()
    model, weights = initial_weights(settings, 1, generator)
    ensemble = Ensemble(settings, model, weights, Columns(x, y, 0), SystemSource())
    nobody = torch.empty(1, 0)
    sigma = torch.tensor([settings.noise * settings.global_sensitivity])
    with torch.no_grad():
        for _ in range(settings.steps):
            ensemble.draw_batch(nobody)
            ensemble.sum_gradients()
            ensemble.add_noise(sigma)
            ensemble.apply()
    return fill_model(model, ensemble)


def unpredictable() -> torch.Generator:
    """A generator that nobody can repeat."""
    generator = torch.Generator()
    generator.seed()
    return generator


def fill_model(model: nn.Module, ensemble: Ensemble, trial: int = 0) -> nn.Module:
    """The model with one trial's weights; refused if the training diverged."""
    trained = ensemble.state(trial)
    if not all(bool(torch.isfinite(value).all()) for value in trained.values()):
        raise FloatingPointError("training diverged: lower learning_rate or scale the records")
    model.load_state_dict(trained, strict=False)
    return model
