"""How batches are drawn, as people describe it: from options to a release, and back to a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deniable.checks import MOST_STEPS, RefusedError, one_of, refuse
from deniable.fields import Field
from deniable.formatting import as_given, percent_as_given
from deniable.mechanisms import FixedSize, Gaussian, Mechanism, RandomAllocation, Sampling, Shuffled, TruncatedPoisson

__all__ = ["BATCHES", "SAMPLINGS", "batches_drawn", "batches_told", "is_poisson"]

Values = Mapping[str, Any]
POISSON = "poisson"
BATCHES: dict[str, Field] = {
    field.name: field
    for field in (
        Field("steps_per_epoch", "M", "Steps of an epoch, with {sampling} allocation or shuffled.", "whole", (1, 1e7)),
        Field("cap", "B", "Largest batch, with {sampling} truncated.", "whole", (1, 1e12)),
    )
}
"""What describes batches other than Poisson's, beside records, batch, epochs, rate and steps."""
_TRAINING = ("records", "batch", "epochs", "rate", "steps", *BATCHES)


@dataclass(frozen=True)
class _Kind:
    """One way to draw batches: what describes it, the sampling, and how many runs there are."""

    needs: tuple[str, ...]
    may: tuple[str, ...]
    build: Callable[[Values], tuple[Sampling, int]]


def _fixed(values: Values) -> tuple[Sampling, int]:
    records, batch = values["records"], values["batch"]
    if "steps" not in values and "epochs" not in values:
        raise RefusedError("{steps} is missing", "steps", hint="or give {epochs}")
    steps = values["steps"] if "steps" in values else values["epochs"] * -(-records // batch)
    return FixedSize(batch, records, bool(values.get("with_replacement"))), steps


SAMPLINGS: dict[str, _Kind] = {
    "allocation": _Kind(
        ("steps_per_epoch",),
        ("epochs", "records"),
        lambda values: (RandomAllocation(values["steps_per_epoch"]), values.get("epochs", 1)),
    ),
    "shuffled": _Kind(
        ("steps_per_epoch",),
        ("epochs", "records"),
        lambda values: (Shuffled(values["steps_per_epoch"]), values.get("epochs", 1)),
    ),
    "fixed": _Kind(("records", "batch"), ("steps", "epochs", "with_replacement"), _fixed),
    "truncated": _Kind(
        ("rate", "cap", "records", "steps"),
        (),
        lambda values: (TruncatedPoisson(values["rate"], values["cap"], values["records"]), values["steps"]),
    ),
}
"""Every word that `sampling` may be, beside "poisson"."""


def is_poisson(values: Values) -> bool:
    """Whether batches are Poisson's, as where nothing is said; whatever describes others is refused then."""
    if one_of("sampling", values.get("sampling", POISSON), (POISSON, *SAMPLINGS)) != POISSON:
        return False
    for stray, owner in (("steps_per_epoch", "allocation"), ("cap", "truncated"), ("with_replacement", "fixed")):
        if values.get(stray):
            raise RefusedError(f"{{{stray}}} needs {{sampling}}, as in {{sampling}} {owner}", stray, values[stray])
    return True


def batches_drawn(values: Values) -> tuple[Callable[[float], Mechanism], dict[str, Any]]:
    """The release by its noise, and the description for the document."""
    name = values["sampling"]
    kind = SAMPLINGS[name]
    for stray in (*_TRAINING, "with_replacement"):
        if values.get(stray) and stray not in (*kind.needs, *kind.may):
            raise RefusedError(f"{{{stray}}} does not go with {{sampling}} {name}", stray, values[stray])
    for missing in kind.needs:
        if missing not in values:
            raise RefusedError(f"{{{missing}}} is missing: {{sampling}} {name} needs it", missing)
    sampling, runs = kind.build(values)
    if runs * sampling.steps_of_run > MOST_STEPS:
        steps = runs * sampling.steps_of_run
        raise refuse("steps", steps, f"at most {MOST_STEPS:g} in all")
    described = {key: values[key] for key in (*_TRAINING, "with_replacement") if values.get(key)}
    counted = {"epochs": runs} if "steps_per_epoch" in described else {"steps": runs}
    return lambda noise: Gaussian(noise).subsampled(sampling).composed(runs), {"sampling": name, **described, **counted}


def batches_told(given: Values) -> str:
    """A clause for a sentence: which steps there are, and who takes part."""
    match given["sampling"]:
        case "allocation":
            return (
                f"{_passes(given)}; in each epoch every record takes part in exactly one step, drawn at random and "
                "independently of the other records"
            )
        case "shuffled":
            return f"{_passes(given)}, each on the next batch of the shuffled records"
        case "fixed":
            drawn = "with" if given.get("with_replacement") else "without"
            return (
                f"{_steps(given)}, each on {as_given(given['batch'])} of {as_given(given['records'])} records, drawn "
                f"at random {drawn} replacement"
            )
    rate = percent_as_given(float(f"{given['rate']:.4g}"))
    return (
        f"{_steps(given)}; in each, every record is drawn independently with probability {rate}, and of a batch above "
        f"{as_given(given['cap'])} so many are kept at random"
    )


def _steps(given: Values) -> str:
    return "1 step" if given["steps"] == 1 else f"{as_given(given['steps'])} steps"


def _passes(given: Values) -> str:
    epochs = "1 epoch" if given["epochs"] == 1 else f"{as_given(given['epochs'])} epochs"
    return f"{epochs} of {as_given(given['steps_per_epoch'])} steps"
