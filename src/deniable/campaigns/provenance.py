"""Where a record comes from: the data as it was named, versions, and the one command that gives the record again.

Nothing here decides a result, so nothing here is compared when a campaign is resumed.
"""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.data.table_reader import SUFFIXES
from deniable.promises import AUDITED
from deniable.results.shared import Provenance

if TYPE_CHECKING:
    from deniable.data import Dataset

PACKAGES = ("numpy", "scipy", "torch", "scikit-learn")
USUAL_LOSS = "cross-entropy"
_SIZED = re.compile(r"(dense|cnn):[\d,]+")
"""A usual network, as `sized_model` names it."""
_IMPORTABLE = re.compile(r"(?!__main__:)[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def versions() -> dict[str, str]:
    """Of deniable, Python and the packages that compute."""
    from deniable import __version__  # noqa: PLC0415 (the house is complete only when its rooms are)

    return {"deniable": __version__, "python": platform.python_version(), **dict(filter(None, map(_found, PACKAGES)))}


@cache
def _found(package: str) -> tuple[str, str] | None:
    try:
        return package, version(package)
    except PackageNotFoundError:
        return None


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def data_source(data: Any, dataset: Dataset, label: str | None = None, classes: int | None = None) -> Provenance:
    """The data as the user named it, its shape, and how to ask for it again; the command follows with the result."""
    return Provenance(
        versions=versions(),
        data=name_data(data),
        label=label,
        asked_classes=classes,
        shape=tuple(dataset.features.shape),
        classes=dataset.classes,
        kind=dataset.kind,
        by_statistics=dataset.by_statistics,
    )


def no_source() -> Provenance:
    """Of data that were not named."""
    return Provenance(versions=versions())


def name_data(data: Any) -> str | None:
    """The data as another process could find them; None where they have no name."""
    return str(data) if isinstance(data, str | Path) else _reference(data)


def _reference(function: Any) -> str | None:
    """The name under which another process finds a function; None where there is none."""
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    return name if _IMPORTABLE.fullmatch(name) else None


def audit_command(given: Mapping[str, Any], source: Provenance, confidence: float, stop: str = "never") -> str | None:
    """The campaign's one command; None where its data or model has no name that another process could find."""
    asked = (
        _name_options(given, source)
        | {name: given[name] for name in ("measure", "trials")}
        | {"confidence": confidence}
    )
    asked |= {} if stop == "never" else {"stop": stop}
    if source.data is None or not _is_importable(given["model"]):
        return None
    if given["loss"] == USUAL_LOSS and source.usual_block:
        options = _options({**asked, "learning-rate": given["learning_rate"]})
        return shlex.join(["deniable", "audit", *_data(source.data), *options])
    if not _is_importable(given["loss"]):
        return None
    more = {name: given[name] for name in ("learning_rate", "loss", "trials_per_block")}
    return _program(python_call("audit", repr(source.data), {**asked, **more, "processes": 1}))


def with_final_model(command: str) -> str:
    """The campaign's command, for observers of the final model, too."""
    if command.startswith("python"):
        return command.replace(").to_json()", ", final_model=True).to_json()")
    return f"{command} --final-model"


def exposure_command(given: Mapping[str, Any], source: Provenance) -> str | None:
    """The command that tells who is exposed, without a campaign; None as for `audit_command`."""
    if source.data is None or not _is_importable(given["model"]) or given["loss"] != USUAL_LOSS:
        return None
    asked = _name_options(given, source) | {"learning-rate": given["learning_rate"], "trials": 0}
    return shlex.join(["deniable", "audit", *_data(source.data), *_options(asked), "--exposure"])


def _name_options(given: Mapping[str, Any], source: Provenance) -> dict[str, Any]:
    """The promise, the data and the training, by the command's options."""
    promise = next(name for name in AUDITED if name in given)  # noise comes last: a calibrated campaign has it, too
    words = ("records", "delta", "calibration", "model", "steps", "clip", "optimizer", "rate")
    asked = {promise: given[promise], **{name: given[name] for name in words}}
    asked |= {name: given[name] for name in ("sensitivity", "adjacency", "seed")}
    return asked if source.label is None else {**asked, "label": source.label}


def _is_importable(name: str) -> bool:
    """A reference model's or loss's name, or that of a function which can be imported."""
    return ":" not in name or _IMPORTABLE.fullmatch(name) is not None or _SIZED.fullmatch(name) is not None


def _data(name: str) -> list[str]:
    return ["--data", name] if name.endswith((".npz", *SUFFIXES)) else [name]


def compare_command(given: Mapping[str, Any], source: Provenance, confidence: float) -> str | None:
    """The comparison's one command; None where its data has no name that another process could find."""
    if source.data is None:
        return None
    asked = {name: given[name] for name in ("records", "epochs", "attack", "repeats", "seed")}
    asked |= {"classes": source.asked_classes, "label": source.label, "confidence": confidence}
    asked |= {name: ",".join(map(repr, given[name])) or "," for name in ("central", "local")}
    asked["patience"] = given["patience"] or 0
    return shlex.join(["deniable", "compare", source.data, *_options(asked)])


def frontier_command(data: str | None, asked: Mapping[str, Any], confidence: float) -> str | None:
    """The frontier's one command; None where its data or model has no name that another process could find."""
    model = _reference(asked["model"]) if callable(asked["model"]) else asked["model"]
    if data is None or (asked["model"] is not None and model is None):
        return None
    values = {**asked, "model": model, "confidence": confidence}
    options = {one.replace("_", "-"): _list_words(value) for one, value in values.items() if value is not False}
    flags = ["--local"] if options.pop("local", None) else []
    return shlex.join(["deniable", "frontier", data, *_options(options), *flags])


def _list_words(value: Any) -> Any:
    return ",".join(map(repr, value)) if isinstance(value, tuple) else value


def attack_command(model: str, files: Sequence[str], asked: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The command that attacks the same model again; `asked` are the options that name files and columns."""
    shadows = ("shadows", "queries", "epochs", "batch", "learning_rate", "optimizer", "noise", "clip")
    names = ("attack", "repeats", "seed", "delta", "confidence", *shadows)
    settings = {name.replace("_", "-"): given.get(name) or None for name in names} | {"seed": given["seed"]}
    return shlex.join(["deniable", "attack", model, *files, *_options({**asked, **settings})])


def verdict_command(given: Mapping[str, Any]) -> str:
    """The command that judges the same scores again."""
    names = (
        "claimed_epsilon",
        "delta",
        "noise",
        "rate",
        "steps",
        "adjacency",
        "rows_from",
        "method",
        "rule",
        "threshold",
    )
    asked = {name.replace("_", "-"): given.get(name) for name in (*names, "confidence")}
    if given.get("rows_from") == "one-run" or given["method"] == "watch":
        del asked["rule"]  # there are no thresholds to choose
    return shlex.join(["deniable", "verdict", given["scores"], *_options(asked)])


def _options(asked: Mapping[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in asked.items() if value is not None]


def python_call(function: str, data: str, settings: Mapping[str, Any]) -> str:
    """``dn.audit(...)``, or another function, with these settings, as Python would write them."""
    named = (f"{name}={_literal(value)}" for name, value in settings.items())
    return f"dn.{function}({', '.join([data, *named])})"


def _literal(value: Any) -> str:
    return repr(str(value)) if isinstance(value, str) else repr(value)  # an Adjacency is a text, too


def _program(call: str) -> str:
    return shlex.join(["python", "-c", f"import deniable as dn; print({call}.to_json())"])
