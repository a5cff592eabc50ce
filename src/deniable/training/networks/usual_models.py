"""The seeds' reference models as plain `nn.Module` factories, and the refusal of layers that mix examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from deniable.data.own_data import call_user_code, import_function
from deniable.training.settings import ModelFactory

USUAL_WIDTH_UNITS = 64
"""Of the hidden layer of a usual network."""


def dense(*widths: int) -> nn.Sequential:
    """Dense layers of these widths, from the record's features to the classes, with ReLU between them."""
    layers: list[nn.Module] = [nn.Flatten()]
    for width, following in pairwise(widths):
        layers += [nn.Linear(width, following), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def purchase() -> nn.Module:
    """Purchase-100: 600-128-100 (Bernau 2021, Section 6)."""
    return dense(600, 128, 100)


def adult() -> nn.Module:
    """Adult: 104-6-6-2 (Bernau 2021, Section 6)."""
    return dense(104, 6, 6, 2)


def location() -> nn.Module:
    """Location-30, in the form of the Purchase model: 446-128-30."""
    return dense(446, 128, 30)


def digits() -> nn.Module:
    """scikit-learn's 8 x 8 digits: 64-32-10."""
    return dense(64, 32, 10)


def mnist() -> nn.Module:
    """Bernau 2021's MNIST network: two times conv 3x3 (16 filters), ReLU, normalisation, max pool 2; then 10 classes.

    Group norm stands where Bernau 2021 has batch norm, which breaks the sensitivity (erratum 9). No padding, so the
    sides are 28, 26, 13, 11, 5. The normalisation follows the ReLU, in the order Bernau 2021 lists them.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.GroupNorm(4, 16),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3),
        nn.ReLU(),
        nn.GroupNorm(4, 16),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 10),
    )


MODELS: dict[str, ModelFactory] = {
    "adult": adult,
    "digits": digits,
    "location30": location,
    "mnist": mnist,
    "purchase100": purchase,
}


def small_images(channels: int, height: int, width: int, classes: int) -> nn.Sequential:
    """Twice conv 3x3 (16 filters), ReLU, max pool 2; then dense to the classes. Sides from 4 on."""
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (height // 4) * (width // 4), classes),
    )


def sized_model(model: str | None, shape: tuple[int, ...], classes: int) -> str:
    """The name, with its sizes, of a usual network for records of this shape; any other name as it is.

    ``logistic`` is one dense layer, ``mlp:64,32`` has hidden layers of these widths, ``cnn`` is `small_images`. Without
    a name it is ``cnn`` for images with sides from 8 on, else ``mlp:64``.
    """
    outputs = max(2, classes)
    if model is None:
        model = "cnn" if len(shape) == 3 and min(shape[1:]) >= 8 else f"mlp:{USUAL_WIDTH_UNITS}"
    if model == "cnn":
        if len(shape) != 3 or min(shape[1:]) < 4:
            raise ValueError(f"model cnn needs images with sides from 4 on, the records have shape {shape}: name mlp")
        return f"cnn:{','.join(map(str, (*shape, outputs)))}"
    if model.startswith("mlp:") and not re.fullmatch(r"mlp:\d+(,\d+)*", model):
        raise ValueError(f"model mlp: must name the widths of its hidden layers, as in mlp:64,32, got {model!r}")
    if model in ("logistic", "mlp") or model.startswith("mlp:"):
        hidden = {"logistic": "", "mlp": f"{USUAL_WIDTH_UNITS},"}.get(model, f"{model[4:]},")
        return f"dense:{prod(shape)},{hidden}{outputs}"
    return model


def _sized_factory(model: str) -> ModelFactory | None:
    """The factory of a name that `sized_model` made; None for other names."""
    kind, _, text = model.partition(":")
    if kind not in ("dense", "cnn") or not re.fullmatch(r"[\d,]*", text):
        return None
    sizes = [int(size) if size and len(size) < 7 else 0 for size in text.split(",")]
    if 0 in sizes or len(sizes) < 2 or (kind == "cnn" and len(sizes) != 4):
        raise ValueError(
            f"model must name whole numbers from 1 to 999999, as in mlp:64,32 or {kind}:..., got {model!r}"
        )
    return partial(dense if kind == "dense" else small_images, *sizes)


def named_function(argument: str, name: str) -> Callable[..., Any]:
    """The function that ``"module:function"`` names; modules of the current folder are found, too."""
    module, separator, function = name.partition(":")
    if not (module and separator and function):
        raise ValueError(f"{argument} must be a known name or 'module:function', got {name!r}")
    try:
        return import_function(name)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{argument} names {name!r}, which cannot be imported: {error}") from error


def model_factory(model: str | ModelFactory) -> ModelFactory:
    """The factory behind a reference model's name, a ``"module:function"`` or a function."""
    if not isinstance(model, str):
        return model
    if model in MODELS:
        return MODELS[model]
    if ":" not in model:
        known = ", ".join(sorted(MODELS))
        raise ValueError(f"model must be one of logistic, mlp:64,32, cnn, {known} or 'module:function', got {model!r}")
    return _sized_factory(model) or named_function("model", model)


def check_fit(model: nn.Module, records: Tensor, classes: int) -> None:
    """Refuse a model that does not take such records or has no output for every class."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"model's function must return an nn.Module, got {type(model).__name__}")
    refuse(model)
    with torch.no_grad():
        given = call_user_code(
            f"model cannot take records of shape {tuple(records.shape[1:])}: it", lambda: model(records)
        )
    shape = tuple(getattr(given, "shape", ()))
    if len(shape) != 2 or shape[0] != len(records) or shape[1] < classes:
        wanted = f"{len(records)} records must give shape ({len(records)}, {classes})"
        got = shape if isinstance(given, Tensor) else type(given).__name__
        raise ValueError(f"model must return a value for each of the {classes} classes: {wanted}, got {got}")


def refuse(model: nn.Module) -> None:
    """Refuse what has no per-example gradient: layers that mix examples, keep statistics of them, or draw at random.

    A batch norm lets one record change the others' gradients, so no clipping bounds its influence (erratum 9).
    """
    for name, layer in model.named_modules():
        kind = type(layer).__name__
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):  # Sync and Lazy ones, too
            raise ValueError(f"model has {kind} at {name!r}, which mixes examples: use nn.GroupNorm instead")
        if isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats:
            raise ValueError(
                f"model has {kind} with track_running_stats at {name!r}, which keeps statistics over examples: "
                "use nn.GroupNorm, or track_running_stats=False"
            )
        if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
            raise ValueError(f"model has {kind} at {name!r}, which draws at random: remove it, the noise regularises")
        if isinstance(layer, nn.modules.lazy.LazyModuleMixin):
            raise ValueError(f"model has {kind} at {name!r}, whose size is not known yet: give its sizes")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model must have at least one trainable parameter, got none")
