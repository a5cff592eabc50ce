from __future__ import annotations

import pytest
import torch
from torch import nn

from deniable.training.networks.losses import loss_function
from deniable.training.networks.usual_models import MODELS, model_factory, refuse

SHAPES = {"adult": (104,), "digits": (8, 8), "location30": (446,), "mnist": (1, 28, 28), "purchase100": (600,)}
CLASSES = {"adult": 2, "digits": 10, "location30": 30, "mnist": 10, "purchase100": 100}


@pytest.mark.parametrize("name", MODELS)
def test_reference_models_are_accepted_and_classify(name: str) -> None:
    model = model_factory(name)()
    refuse(model)
    assert model(torch.zeros(3, *SHAPES[name])).shape == (3, CLASSES[name])


@pytest.mark.parametrize(
    "layer",
    [
        nn.BatchNorm1d(4),
        nn.BatchNorm2d(4),
        nn.BatchNorm3d(4, track_running_stats=False),
        nn.SyncBatchNorm(4),
        nn.LazyBatchNorm2d(),
        nn.InstanceNorm2d(4, track_running_stats=True),
    ],
)
def test_layers_that_mix_examples_are_refused(layer: nn.Module) -> None:
    with pytest.raises(ValueError, match=rf"{type(layer).__name__}.*'1.0'.*GroupNorm"):
        refuse(nn.Sequential(nn.Linear(3, 4), nn.Sequential(layer)))


def test_layers_that_do_not_mix_are_accepted() -> None:
    refuse(
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.InstanceNorm2d(4), nn.GroupNorm(2, 4), nn.LayerNorm(5), nn.Dropout(0.0))
    )


def test_dropout_and_untrainable_and_lazy_models_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Dropout.*remove"):
        refuse(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)))
    with pytest.raises(ValueError, match="trainable"):
        refuse(nn.ReLU())
    with pytest.raises(ValueError, match="LazyLinear"):
        refuse(nn.Sequential(nn.LazyLinear(2)))


@pytest.mark.parametrize(
    "name", ["nothing", "no.such.module:f", "deniable.training.networks.usual_models:no_such", "a:", ":b"]
)
def test_unknown_models_and_losses_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="model"):
        model_factory(name)
    with pytest.raises(ValueError, match="loss"):
        loss_function(name)


def test_models_by_module_and_function() -> None:
    assert model_factory("deniable.training.networks.usual_models:adult") is MODELS["adult"]
    with pytest.raises(ValueError, match="has no function 'MODELS'"):
        model_factory("deniable.training.networks.usual_models:MODELS")
