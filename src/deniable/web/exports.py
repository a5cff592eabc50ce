"""A plan as the command, as the Python lines that give the same numbers, and as a training that runs.

Trainings are written for Opacus and for plain PyTorch; data and model in them are examples to replace.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deniable.answers.batches import BATCHES, PERSON, REPLACEMENT
from deniable.answers.describe import mechanism_in, write_python
from deniable.answers.parse import COUNTED, LOCAL, RELEASES, SAMPLED
from deniable.answers.written import WRITTEN
from deniable.formatting import as_given
from deniable.mechanisms import Adjacency
from deniable.promises import PARAMETERS, SCORES, SPELLINGS, promise_in
from deniable.results.explain_result import AnswerInput, ChooseResult, ExplainResult

_ORDER = (
    *SCORES,
    *RELEASES,
    *WRITTEN,
    "mechanism",
    *LOCAL,
    "sampling",
    *BATCHES,
    REPLACEMENT,
    *COUNTED,
    *SAMPLED,
    PERSON.name,
    *PARAMETERS,
    *SPELLINGS,
    "adjacency",
)
_PROBE = 1.25
"""A noise that is written as the word."""


def command(what: str, values: Mapping[str, Any]) -> str:
    """The command line of a request; documents are files of their name."""
    words = ["deniable", what]
    for name, value in sorted(values.items(), key=lambda item: _ORDER.index(item[0])):
        given = value if isinstance(value, (list, tuple)) and name not in WRITTEN else [value]
        for one in given:
            text = [] if one is True else [f"{name}.json" if name in WRITTEN else str(one)]
            words += [f"--{name.replace('_', '-')}", *text] if one is not False else []
    return " ".join(words)


def python(result: ExplainResult, values: Mapping[str, Any]) -> str:
    """Lines that end with `scores`, the same numbers as in the result (and with `noise`, for `choose`).

    `values` are those of the request: a document is a file of its name.
    """
    given, document = result.input, next((name for name in WRITTEN if name in values), None)
    if isinstance(result, ChooseResult):
        found = [
            "plan = dn.calibrate(",
            f"    lambda noise: {_unknown(given)},",
            f"    {_promise(given)},",
            f'    "{given.adjacency}",',
            ")",
            "noise, loss = plan.value, plan.loss",
        ]
    else:
        found = [f'loss = dn.privacy_loss({_mechanism(given, document, values)}, "{given.adjacency}")']
    belief_delta = result.scores.belief_delta
    bare = not isinstance(result, ChooseResult) and given.is_bare and belief_delta > 0
    imports = ["import json", ""] if document else []
    imports += ["import deniable as dn", *(["from deniable.bounds import any_release_belief"] if bare else [])]
    return "\n".join([*imports, "", *found, *_scores(given, belief_delta, bare)])


def _scores(given: AnswerInput, belief_delta: float, bare: bool) -> Iterator[str]:
    yield "scores = {"
    for name, score in sorted(SCORES.items(), key=lambda item: item[0] != "epsilon"):  # asked first, as by `explain`
        at = {parameter: getattr(given, parameter) for parameter in score.parameter_names()}
        listed = score.list_parameter()
        call = f"loss.{name}({', '.join(one if one == listed else repr(at[one]) for one in at)})"
        if name == "belief" and bare:
            call = f"any_release_belief(loss.epsilon, {belief_delta!r}, {given.prior!r})"
        if listed is not None:
            call = f"[{call} for {listed} in {list(at[listed])!r}]"
        if listed is None or at[listed]:
            yield f'    "{name}": {call},'
    yield "}"


def _mechanism(given: AnswerInput, document: str | None, values: Mapping[str, Any]) -> str:
    if document is not None:
        sampling = f', sampling="{values["sampling"]}"' if "sampling" in values else ""
        read = f'dn.from_{document}(json.load(open("{document}.json")), "{given.adjacency}"{sampling})'
        return read if given.records_per_person is None else f"{read}.group({given.records_per_person})"
    mechanism = mechanism_in(given)
    assert mechanism is not None
    return write_python(mechanism, "dn.")


def _unknown(given: AnswerInput) -> str:
    """The release as an expression of its `noise`."""
    if given.is_response:
        return f"dn.RandomizedResponse(1 / noise, {given.categories}).composed({given.features})"
    mechanism = mechanism_in(given, _PROBE)
    assert mechanism is not None
    return write_python(mechanism, "dn.").replace(f"({_PROBE})", "(noise)", 1)


def _promise(given: AnswerInput) -> str:
    promise = promise_in(given)
    arguments = promise.bound, *promise.parameters.values()
    return f"dn.{type(promise).__name__}({', '.join(map(repr, arguments))})"


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
