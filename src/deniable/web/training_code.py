"""A plan as a training that runs: with Opacus, and in plain PyTorch. Data and model in them are examples to replace."""

from __future__ import annotations

from deniable.formatting import as_given
from deniable.mechanisms import Adjacency
from deniable.results.explain_result import AnswerInput, ChooseResult, ExplainResult

_EXAMPLE = """\
features, labels = torch.randn({records}, 20), torch.randint(2, ({records},))  # your data
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))  # your model, without batch normalisation
loss_of = nn.CrossEntropyLoss()
clipping_norm, learning_rate = 1.0, 0.01  # yours to tune; the promise holds for any"""

_OPACUS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import deniable.opacus  # an exact accountant for Opacus
from opacus import PrivacyEngine

{example}

engine = PrivacyEngine(accountant="deniable", secure_mode=False)  # secure_mode=True for a model that is released
model, optimizer, batches = engine.make_private(
    module=model,
    optimizer=torch.optim.Adam(model.parameters(), lr=learning_rate),
    data_loader=DataLoader(TensorDataset(features, labels), batch_size={batch}),
    noise_multiplier={deviation!r},{why}
    max_grad_norm=clipping_norm,
    poisson_sampling=True,
)
steps = 0
while steps < {steps}:
    for records, answers in batches:
        optimizer.zero_grad()
        loss_of(model(records), answers).backward()
        optimizer.step()
        steps += 1
        if steps == {steps}:
            break
"""

_PYTORCH = """\
import secrets

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

{example}

entropy = torch.Generator().manual_seed(secrets.randbits(63))  # fresh noise: never seed it with a known number
weights = {{name: value.detach().clone() for name, value in model.named_parameters()}}
rate, deviation, steps = {rate!r}, {deviation!r} * clipping_norm, {steps}{why}


def loss_of_one(weights, record, label):
    return loss_of(functional_call(model, weights, (record[None],)), label[None])


for step in range(steps):
    drawn = torch.rand(len(features), generator=entropy) < rate  # every record by itself: a Poisson sample
    sums = {{name: torch.zeros_like(value) for name, value in weights.items()}}
    if drawn.any():
        each = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(weights, features[drawn], labels[drawn])
        lengths = sum(one.flatten(1).pow(2).sum(1) for one in each.values()).sqrt()
        factors = (clipping_norm / lengths.clamp_min(1e-12)).clamp_max(1.0)
        sums = {{name: torch.einsum("n,n...->...", factors, one) for name, one in each.items()}}
    for name, value in sums.items():
        noise = deviation * torch.randn(value.shape, generator=entropy)
        weights[name] -= learning_rate * (value + noise) / (rate * len(features))  # the expected batch, never its size

model.load_state_dict(weights)
"""


def opacus_code(result: ExplainResult) -> str:
    """A program that trains with Opacus; empty where the release is no training with Poisson batches of known size."""
    given, noise = result.input, _noise(result)
    if noise is None or not given.records or not given.batch:
        return ""
    return _OPACUS.format(example=_example(given), batch=given.batch, steps=given.steps, **_deviation(given, noise))


def pytorch_code(result: ExplainResult) -> str:
    """The same in plain PyTorch, with each record's gradient by `torch.func`."""
    given, noise = result.input, _noise(result)
    if noise is None or not given.records:
        return ""
    return _PYTORCH.format(example=_example(given), rate=given.rate, steps=given.steps, **_deviation(given, noise))


def _noise(result: ExplainResult) -> float | None:
    """Of a training with Poisson batches, one record a person; None of any other release."""
    given = result.input
    if not given.is_training or given.sampling is not None or given.is_laplace or given.is_response:
        return None
    if given.records_per_person is not None or given.rate is None or given.steps is None:
        return None
    return result.noise if isinstance(result, ChooseResult) else given.noise


def _example(given: AnswerInput) -> str:
    return _EXAMPLE.format(records=given.records)


def _deviation(given: AnswerInput, noise: float) -> dict[str, object]:
    """The noise's standard deviation over the clipping norm, and why it is not the multiplier, where it is not."""
    factor = Adjacency(given.adjacency).sensitivity(1.0)
    why = "" if factor == 1 else f"  # {as_given(noise)} x {as_given(factor)}: one record exchanged changes up to 2 C"
    return {"deviation": noise * factor, "why": why}
