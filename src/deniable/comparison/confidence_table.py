"""Confidences from elsewhere: a table with one record a row, of a target and of shadow models.

Columns: `member` (0 or 1), `target` (the target's confidence), and for each shadow k = 1, 2, ... `shadow_k` (its
confidence) and `inside_k` (1 if it was trained on the record). A confidence is ln p / (1 - p) of the true class; for a
regression any number that grows as the prediction comes closer, such as minus the logarithm of the squared error, of
which the Gaussian scores make sense (RMIA reads a confidence as a probability).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.adversaries.shadow_scores import RULES
from deniable.data import Dataset, load
from deniable.data.table_reader import first_row
from deniable.results.attack_result import ShadowsUsed

LEAST_SHADOWS = 4
"""As many as are trained at least: fewer tell nothing of a record's spread."""


@dataclass(frozen=True)
class ConfidenceTable:
    """Members first, then non-members."""

    target: NDArray[np.float64]
    shadows: NDArray[np.float64]
    inside: NDArray[np.bool_]
    members: Dataset
    non_members: Dataset
    sha256: str

    @property
    def rules(self) -> tuple[str, ...]:
        """Those that can be told; offline ones alone where a record is in no shadow."""
        online = bool(self.inside.any(0).all())
        return tuple(rule for rule in RULES if online or rule == "threshold" or rule.endswith("-offline"))

    def scores(self, rules: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """Each rule's score of every record."""
        return {rule: RULES[rule](self.target, self.shadows, self.inside) for rule in rules}

    def describe(self) -> ShadowsUsed:
        """What is told of the shadows."""
        return ShadowsUsed(
            shadows=len(self.shadows),
            records=int(self.inside.sum(1).mean()),
            queries=1,
            trained_by="elsewhere",
            epochs=None,
            epochs_loss=None,
        )


def read_confidence_table(path: Path | str) -> ConfidenceTable:
    """The table of a .csv, .csv.gz or .parquet file; ValueError says what is wrong with it."""
    place = Path(path)
    header = [name.strip() for name in first_row(place)]
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise ValueError(f"{place} has {header.count(twice[0])} columns {twice[0]}: number the shadows 1, 2, ...")
    names = [name for name in header if name != "member"]
    shadows = [name for name in names if name.startswith("shadow_")]
    needed = ["target", *shadows, *(f"inside_{name.removeprefix('shadow_')}" for name in shadows)]
    told = [f"shadow_{name.removeprefix('inside_')}" for name in names if name.startswith("inside_")]
    missing = [name for name in [*needed, *told] if name not in names]
    if "member" not in header or not shadows or missing:
        lacking = ", ".join(missing or ["member" if "member" not in header else "shadow_1"])
        raise ValueError(f"{place} must have columns member, target, shadow_1, inside_1, ...: it lacks {lacking}")
    table = load(place, label="member")
    if table.features.shape[1] != len(names) or table.classes != 2:
        raise ValueError(f"{place} must hold numbers alone, and members as well as non-members")
    order = np.argsort(1 - table.labels, kind="stable")
    values = table.features[order].astype(np.float64)
    inside = values[:, [names.index(name) for name in needed[1 + len(shadows) :]]].T
    if not np.isin(inside, (0, 1)).all():
        raise ValueError(f"inside_1, ... of {place} must be 0 or 1")
    if len(shadows) < LEAST_SHADOWS:
        raise ValueError(f"{place} must hold at least {LEAST_SHADOWS} shadows, it holds {len(shadows)}: train more")
    if ((values >= 0) & (values <= 1)).all():
        raise ValueError(
            f"{place} holds probabilities, all from 0 to 1: give ln(p / (1 - p)) of each as the confidence, "
            "or of a regression minus the logarithm of the squared error"
        )
    members, others = (table.take(np.flatnonzero(table.labels == member)) for member in (1, 0))
    target, made = values[:, names.index("target")], values[:, [names.index(name) for name in shadows]].T
    return ConfidenceTable(target, made, inside.astype(bool), members, others, table.sha256)
