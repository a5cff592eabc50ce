"""How batches are drawn, as people describe it: from options to a release, and from its description to a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deniable.checks import MOST_STEPS, RefusedError, one_of
from deniable.fields import Field
from deniable.formatting import as_given, rounded_percent
from deniable.mechanisms import (
    CyclicPoisson,
    FixedSize,
    Gaussian,
    Mechanism,
    RandomAllocation,
    Sampling,
    Shuffled,
    TruncatedPoisson,
)
from deniable.results.explain_result import AnswerInput

Values = Mapping[str, Any]
POISSON = "poisson"
BATCHES: dict[str, Field] = {
    field.name: field
    for field in (
        Field(
            "steps_per_epoch", "M", "Steps of an epoch, with {sampling} allocation or shuffled.", "whole", (1, 1e7)
        ).on_page("Steps of an epoch", "Batches in a pass over the data.", (1, 10**6), (10, 100_000), 200),
        Field("cap", "B", "Largest batch, with {sampling} truncated.", "whole", (1, 1e12)).on_page(
            "Largest batch", "Of a larger one, so many records are kept.", (1, 10**9), (1, 100_000), 400
        ),
        Field("bands", "K", "Bands of the noise's matrix, with {sampling} cyclic.", "whole", (1, 1e6)).on_page(
            "Bands", "Steps over which the noise is correlated.", (1, 10**5), (1, 1000), 8
        ),
    )
}
"""What describes batches other than Poisson's, beside records, batch, epochs, rate and steps."""
REPLACEMENT = "with_replacement"
PERSON = Field(
    "records_per_person", "K", "Records of one person, all protected together. Default 1.", "whole", (1, 10_000)
).on_page("Records of one person", "All of them are protected together.", (1, 1000), (1, 100), 1)
"""In how many records neighbours differ."""
_TRAINING = ("records", "batch", "epochs", "rate", "steps", *BATCHES, REPLACEMENT)


@dataclass(frozen=True)
class SamplingKind:
    """One way to draw batches: as the page lists it, what describes it, the sampling, and how many runs there are."""

    label: str
    needs: tuple[str, ...]
    may: tuple[str, ...]
    build: Callable[[Values], tuple[Sampling, int]]


def _fixed_size(values: Values) -> tuple[Sampling, int]:
    records, batch = values["records"], values["batch"]
    if "steps" not in values and "epochs" not in values:
        raise RefusedError("{steps} is missing", "steps", hint="or give {epochs}")
    sampling = FixedSize(batch, records, bool(values.get(REPLACEMENT)))
    return sampling, values["steps"] if "steps" in values else values["epochs"] * -(-records // batch)


SAMPLINGS: dict[str, SamplingKind] = {
    "allocation": SamplingKind(
        "one step an epoch for each record, at random",
        ("steps_per_epoch",),
        ("epochs", "records"),
        lambda values: (RandomAllocation(values["steps_per_epoch"]), values.get("epochs", 1)),
    ),
    "shuffled": SamplingKind(
        "shuffled passes (shuffle=True)",
        ("steps_per_epoch",),
        ("epochs", "records"),
        lambda values: (Shuffled(values["steps_per_epoch"]), values.get("epochs", 1)),
    ),
    "fixed": SamplingKind(
        "batches of a fixed size", ("records", "batch"), ("steps", "epochs", REPLACEMENT), _fixed_size
    ),
    "truncated": SamplingKind(
        "Poisson samples, cut to a largest batch",
        ("rate", "cap", "records", "steps"),
        (),
        lambda values: (TruncatedPoisson(values["rate"], values["cap"], values["records"]), values["steps"]),
    ),
    "cyclic": SamplingKind(
        "groups that take turns (banded noise)",
        ("rate", "bands", "steps"),
        (),
        lambda values: (CyclicPoisson(values["rate"], values["bands"]), -(-values["steps"] // values["bands"])),
    ),
}
"""Every word that `sampling` may be, beside "poisson"."""


def are_poisson(values: Values) -> bool:
    """Whether batches are Poisson's, as where nothing is said; what describes others is refused then."""
    if one_of("sampling", values.get("sampling", POISSON), (POISSON, *SAMPLINGS)) != POISSON:
        return False
    owners = {"steps_per_epoch": "allocation", "cap": "truncated", "bands": "cyclic", REPLACEMENT: "fixed"}
    for stray, owner in owners.items():
        if stray in values:
            raise RefusedError(f"{{{stray}}} needs {{sampling}}, as in {{sampling}} {owner}", stray, values[stray])
    return True


def parse_batches(values: Values) -> Callable[[float], Mechanism]:
    """The release by its noise."""
    name = values["sampling"]
    kind = SAMPLINGS[name]
    for stray in _TRAINING:
        if stray in values and stray not in (*kind.needs, *kind.may):
            text = f"{{{stray}}} does not go with {{sampling}} {name}"
            raise RefusedError(text, stray, values[stray], hint=_what_to_give(kind, values))
    for missing in kind.needs:
        if missing not in values:
            raise RefusedError(f"{{{missing}}} is missing: {{sampling}} {name} needs it", missing)
    sampling, runs = kind.build(values)
    if runs * sampling.steps_of_run > MOST_STEPS:
        field = next(name for name in ("epochs", "steps_per_epoch", "steps") if name in values)
        raise RefusedError(f"{{{field}}} must give at most {MOST_STEPS:g} steps in all", field, values[field])
    return lambda noise: Gaussian(noise).subsampled(sampling).composed(runs)


def _what_to_give(kind: SamplingKind, values: Values) -> str:
    """A clause: what describes batches of this kind, and the steps of an epoch where records and batch tell them."""
    told = f"it takes {', '.join(f'{{{name}}}' for name in (*kind.needs, *kind.may))}"
    if "steps_per_epoch" not in kind.needs or not {"records", "batch"} <= values.keys():
        return told
    return f"{told}; {values['records']:,} records in batches of {values['batch']:,} are {{steps_per_epoch}} " + str(
        -(-values["records"] // values["batch"])
    )


def tell_batches(given: AnswerInput) -> str:
    """A clause: which steps there are, and who takes part in them."""
    epochs = "1 epoch" if given.epochs == 1 else f"{as_given(given.epochs or 0)} epochs"
    passes = f"{epochs} of {_steps_text(given.steps_per_epoch)}"
    steps = _steps_text(given.steps)
    match given.sampling:
        case "allocation":
            drawn = "every record takes part in exactly one step, drawn at random and independently of the others"
            return f"{passes}; in {'it' if given.epochs == 1 else 'each epoch'} {drawn}"
        case "shuffled":
            each = "" if (given.epochs, given.steps_per_epoch) == (1, 1) else "each "
            return f"{passes}, {each}on the next batch of the shuffled records"
        case "fixed":
            drawn = f"{as_given(given.batch or 0)} of {as_given(given.records or 0)} records"
            how = "with" if given.with_replacement else "without"
            each = "" if given.steps == 1 else "each "
            return f"{steps}, {each}on {drawn}, drawn at random {how} replacement"
        case "cyclic":
            return _tell_turns(given, steps)
    rate = rounded_percent(given.rate or 0.0)
    return (
        f"{steps}; in {_each(given)}, every record is drawn independently with probability {rate}, and of more than "
        f"{as_given(given.cap or 0)} drawn records {as_given(given.cap or 0)} are kept at random"
    )


def _steps_text(steps: float | None) -> str:
    return "1 step" if steps == 1 else f"{as_given(steps or 0)} steps"


def _each(given: AnswerInput) -> str:
    return "it" if given.steps == 1 else "each"


def _tell_turns(given: AnswerInput, steps: str) -> str:
    bands, rate = given.bands or 1, rounded_percent((given.bands or 1) * (given.rate or 0.0))
    if bands == 1:
        return f"{steps}; in {_each(given)}, every record is drawn independently with probability {rate}"
    return (
        f"{steps} with noise that is correlated over {as_given(bands)} of them; the records are split into "
        f"{as_given(bands)} groups that take turns, and in its group's turn every record is drawn independently with "
        f"probability {rate}"
    )
