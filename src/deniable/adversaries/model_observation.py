"""What an attacker reads off a trained model for each record: margin, loss, output, gradients of the last layers.

Of a regression there is one number, the error of the prediction; its confidence is how close the prediction comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from deniable.adversaries.membership import as_input
from deniable.data import Dataset
from deniable.data.own_data import call_user_code
from deniable.training.networks.losses import cross_entropy

T = TypeVar("T")
RECORDS_AT_ONCE = 256
"""What a convolution makes of so many stays in the cache: twice as fast as 1024."""
LEAST_PROBABILITY = 1e-7
"""Of an estimator's class: forests and neighbours give 0, whose logarithm is infinite."""

SURELY_ONE = 1e-4
"""Sums of single-precision probabilities are nearer to 1."""
CLOSE_SHARE = 0.1
"""Of the mean squared error: predictions that come closer than this count alike. Chance alone makes an error 0."""


def outputs(model: nn.Module | Any, dataset: Dataset) -> Tensor:
    """The model's outputs before the softmax, (records, classes), in evaluation mode.

    Of anything with `predict_proba` (scikit-learn's estimators) the logarithms of its probabilities, which are at least
    `LEAST_PROBABILITY`.
    """
    if not isinstance(model, nn.Module):
        return _predictions(model, dataset) if dataset.regression else _log_probabilities(model, dataset)
    records, _ = as_input(dataset)
    with _evaluating(model), torch.no_grad():
        made = _ask("model", dataset, lambda: [model(part) for part in torch.split(records, RECORDS_AT_ONCE)])
    parts = zip(made, torch.split(records, RECORDS_AT_ONCE), strict=True)
    found = torch.cat([_check_part(*part, dataset) for part in parts])
    if not bool(torch.isfinite(found).all()):
        raise ValueError("model must give finite outputs for all records; some are NaN or infinite")
    if not dataset.regression and _are_probabilities(found):
        raise ValueError(
            "model must give what comes before the softmax, it gives probabilities: leave the last softmax out, "
            "which has no weights, or give their logarithms"
        )
    return found


def _are_probabilities(found: Tensor) -> bool:
    """Whether every row is one: read as values before the softmax, they would make attacks weak and silent."""
    return bool((found >= 0).all()) and bool(((found.double().sum(1) - 1).abs() < SURELY_ONE).all())


def _ask(what: str, dataset: Dataset, code: Callable[[], T]) -> T:
    """What the user's model says of the records; whatever it raises becomes one sentence."""
    return call_user_code(f"{what} cannot take records of shape {dataset.features.shape[1:]}: it", code)


def _predictions(model: Any, dataset: Dataset) -> Tensor:
    if not hasattr(model, "predict"):
        raise ValueError(f"model must be an nn.Module or have predict for a regression, got {type(model).__name__}")
    rows = dataset.features.reshape(len(dataset), -1)
    found = np.asarray(_ask("estimator", dataset, lambda: model.predict(rows)), dtype=np.float64)
    if found.shape not in ((len(dataset),), (len(dataset), 1)) or not np.isfinite(found).all():
        raise ValueError(f"model must predict one finite number a record, got shape {found.shape}")
    return torch.from_numpy(found.reshape(-1, 1))


def errors(model: nn.Module | Any, dataset: Dataset) -> NDArray[np.float64]:
    """Of a regression: each record's prediction less its label."""
    return np.asarray(outputs(model, dataset).double().squeeze(1).numpy() - dataset.labels)


def closeness(found: NDArray[np.floating[Any]], scale: float) -> NDArray[np.float64]:
    """The confidence of a regression from its errors: minus the logarithm of the squared error over `scale`.

    `scale` is a mean squared error, the same for all models that are compared. The logit of a probability
    ``1 / (1 + error^2 / scale)``, but for `CLOSE_SHARE`, which keeps errors near 0 from reaching infinity.
    """
    return np.asarray(-np.log(np.square(found.astype(np.float64)) / max(scale, 1e-300) + CLOSE_SHARE))


def share_explained(found: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    """The share of the labels' variance that a regression explains, by its errors; negative where a constant is better.

    Labels that do not vary have nothing to explain: 0.
    """
    spread = float(np.var(labels))
    return 1 - float(np.mean(np.square(found))) / spread if spread > 0 else 0.0


def _log_probabilities(model: Any, dataset: Dataset) -> Tensor:
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"model must be an nn.Module or have predict_proba, got {type(model).__name__}")
    rows = dataset.features.reshape(len(dataset), -1)
    found = np.asarray(_ask("estimator", dataset, lambda: model.predict_proba(rows)), dtype=np.float64)
    classes = getattr(model, "classes_", None)
    if found.ndim == 2 and classes is not None and len(classes) == found.shape[1]:
        named = np.asarray(classes)
        if not np.issubdtype(named.dtype, np.integer) or named.min() < 0:
            raise ValueError(f"model must know classes by their numbers from 0 on, it knows {named[:5].tolist()}")
        spread = np.zeros((len(found), max(dataset.classes, int(named.max()) + 1)))
        spread[:, named] = found
        found = spread
    if not np.isfinite(found).all():
        raise ValueError("model must give finite probabilities for all records; some are NaN or infinite")
    logs = torch.from_numpy(np.log(np.clip(found, LEAST_PROBABILITY, None)))
    return _check_part(logs, torch.from_numpy(dataset.features), dataset)


def accuracy(model: nn.Module | Any, dataset: Dataset) -> float:
    """The share of records whose class has the largest output; of a regression, the share of variance explained."""
    if dataset.regression:
        return share_explained(errors(model, dataset), dataset.labels)
    return float((outputs(model, dataset).argmax(1).numpy() == dataset.labels).mean())


def _check_part(found: Tensor, part: Tensor, dataset: Dataset) -> Tensor:
    if not isinstance(found, Tensor):
        raise ValueError(f"model must return a tensor, one row a record, got {type(found).__name__}")
    if dataset.regression:
        if tuple(found.shape) != (len(part), 1):
            raise ValueError(f"model must return one value a record, shape ({len(part)}, 1), got {tuple(found.shape)}")
        return found
    highest = int(dataset.labels.max()) + 1
    if found.ndim != 2 or len(found) != len(part) or found.shape[1] < highest:
        wanted = f"({len(part)}, at least {highest})"
        raise ValueError(f"model must return one value a class, shape {wanted}, got {tuple(found.shape)}")
    return found


def margins(found: Tensor, labels: NDArray[np.int64]) -> Tensor:
    """ln p / (1 - p) of the true class, in float64.

    The loss on a scale that does not saturate: float32 losses of a model that fits its data are ties at 0.
    """
    logits, own = found.double(), torch.from_numpy(labels)[:, None]
    if logits.shape[1] == 1:
        raise ValueError("model must have at least two classes, got one output")
    others = logits.scatter(1, own, -torch.inf)
    return logits.gather(1, own).squeeze(1) - others.logsumexp(1)


def losses(model: nn.Module | Any, dataset: Dataset) -> NDArray[np.float64]:
    """Cross-entropies of the records, ln(1 + e^-margin), without ties at 0; of a regression, half the square errors."""
    if dataset.regression:
        return np.asarray(np.square(errors(model, dataset)) / 2)
    loss: NDArray[np.float64] = nn.functional.softplus(-margins(outputs(model, dataset), dataset.labels)).numpy()
    return loss


@dataclass(frozen=True)
class LayerGradient:
    """The gradient of each record's loss in one layer's weights, as a matrix (records, out, in).

    A dense layer's is the outer product of what flows back into it (records, out) and what came in (records, in), and
    is kept as these two; any other layer's is kept whole, with `incoming` None.
    """

    backward: Tensor
    incoming: Tensor | None

    def take(self, records: Tensor) -> LayerGradient:
        """The named records."""
        return LayerGradient(self.backward[records], None if self.incoming is None else self.incoming[records])

    @property
    def shape(self) -> tuple[int, int]:
        """(out, in) of the matrix."""
        last = self.backward.shape[2] if self.incoming is None else self.incoming.shape[1]
        return self.backward.shape[1], last

    def norms(self) -> Tensor:
        """The length of each record's gradient."""
        if self.incoming is None:
            return self.backward.square().sum((1, 2)).sqrt()
        return (self.backward.square().sum(1) * self.incoming.square().sum(1)).sqrt()


def last_layer_gradients(model: nn.Module, dataset: Dataset, layers: int) -> list[LayerGradient]:
    """The gradients of the last `layers` layers with weights, the last one first; biases count as inputs of 1."""
    chosen = _weighted_layers(model)[-layers:][::-1]
    if len(chosen) < layers:
        raise ValueError(f"layers must be at most {len(chosen)}, the layers of the model with weights, got {layers}")
    records, labels = as_input(dataset)
    parts = list(zip(torch.split(records, RECORDS_AT_ONCE), torch.split(labels, RECORDS_AT_ONCE), strict=True))
    with _evaluating(model):
        return [_join_gradients([_gradient(model, name, layer, *part) for part in parts]) for name, layer in chosen]


def _weighted_layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Layers that own weights of at least two dimensions, in the order of definition."""
    return [
        (name, layer)
        for name, layer in model.named_modules()
        if any(parameter.ndim >= 2 for parameter in layer.parameters(recurse=False))
    ]


def _gradient(model: nn.Module, name: str, layer: nn.Module, records: Tensor, labels: Tensor) -> LayerGradient:
    if isinstance(layer, nn.Linear):
        found = _dense(model, layer, records, labels)
        if found is not None:
            return found
    return _whole(model, name, layer, records, labels)


def _dense(model: nn.Module, layer: nn.Linear, records: Tensor, labels: Tensor) -> LayerGradient | None:
    """From one pass forward and back; None where the layer sees more than one row a record."""
    seen: list[tuple[Tensor, Tensor]] = []

    def cut(_: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> Tensor:
        """The graph begins behind the layer: frozen weights do no harm, and nothing flows further back."""
        leaf = made.detach().requires_grad_()
        seen.append((given[0].detach(), leaf))
        return leaf.clone()  # what follows may work in place

    hook = layer.register_forward_hook(cut)
    try:
        with torch.enable_grad():
            loss = cross_entropy(model(records), labels).sum()
    finally:
        hook.remove()
    if len(seen) != 1 or seen[0][1].ndim != 2 or len(seen[0][1]) != len(records):
        return None
    (backward,) = torch.autograd.grad(loss, seen[0][1])
    incoming = seen[0][0]
    return LayerGradient(backward, torch.cat([incoming, torch.ones(len(incoming), 1)], 1))


def _whole(model: nn.Module, name: str, layer: nn.Module, records: Tensor, labels: Tensor) -> LayerGradient:
    prefix = f"{name}." if name else ""
    own = {prefix + key: value.detach() for key, value in layer.named_parameters(recurse=False)}

    def loss(weights: dict[str, Tensor], record: Tensor, label: Tensor) -> Tensor:
        return cross_entropy(functional_call(model, weights, (record[None],)), label[None]).sum()

    found = vmap(grad(loss), in_dims=(None, 0, 0))(own, records, labels)
    rows = max(own.values(), key=lambda weight: weight.ndim).shape[0]
    parts = [value.reshape(len(records), rows, -1) for value in found.values() if value.shape[1] == rows]
    return LayerGradient(torch.cat(parts, 2), None)


def _join_gradients(parts: list[LayerGradient]) -> LayerGradient:
    incoming = [part.incoming for part in parts if part.incoming is not None]
    return LayerGradient(torch.cat([part.backward for part in parts]), torch.cat(incoming) if incoming else None)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, in which no record changes what another one gets; then as before."""
    training = {name: module.training for name, module in model.named_modules()}
    model.eval()
    try:
        yield
    finally:
        for name, module in model.named_modules():
            module.training = training[name]
