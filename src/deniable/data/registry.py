"""One door to all data: a name, a file or a function."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from deniable.checks import as_path
from deniable.data import bits, faces, generated, own_data, published
from deniable.data.dataset import Dataset
from deniable.data.table_reader import is_table

Part = Literal["all", "train", "test"]
Found = Dataset | tuple[Dataset, Dataset]

GENERATED: dict[str, Callable[..., Found]] = {
    "purchases": generated.purchases,
    "skewed-purchases": generated.skewed_purchases,
}
COLLECTED: dict[str, Callable[[], Found]] = {
    "digits": generated.digits,
    "mnist": published.mnist,
    "adult": published.adult,
    "location30": bits.location30,
    **{f"purchase{classes}": partial(bits.purchase, classes) for classes in (10, 20, 50, 100)},
    **{f"texas{classes}": partial(bits.texas, classes) for classes in (100, 150, 200, 300)},
    "lfw": faces.lfw,
    **{f"lfw{people}": partial(faces.lfw, people) for people in (20, 50, 100)},
}
NAMES = (*COLLECTED, *GENERATED)
"""Every name that `load` knows."""


def load(
    source: str | Path | Callable[[], Any],
    part: Part = "all",
    classes: int | None = None,
    label: str | None = None,
    *,
    regression: bool = False,
    encode: bool = False,
) -> Dataset:
    """A data set by name (`NAMES`), by file or by function ("module:function" or the function itself).

    A file is an .npz, or a table: .csv, .csv.gz or .parquet.

    `part` picks the published training or test part (mnist, adult, skewed-purchases). `classes` keeps the most common
    classes only; for generated data it is their number. `label` names the label column of a table. With `regression`
    the labels of a file are any numbers. With `encode` a table may hold words, dates and blanks (`from_table`).
    """
    if label is not None and not is_table(str(source)):
        raise ValueError(f"label names a column of a .csv file (.csv.gz, .parquet), {source} is none: leave it out")
    if isinstance(source, str) and source in GENERATED:
        generate = GENERATED[source]
        return _part(source, generate() if classes is None else generate(classes), part)
    dataset = _part(str(source), _find(source, label, regression, encode), part)
    return dataset if classes is None else dataset.most_common(classes)


def _find(source: str | Path | Callable[[], Any], label: str | None, regression: bool, encode: bool) -> Found:
    if callable(source):
        return own_data.from_function(source, getattr(source, "__qualname__", repr(source)))
    if isinstance(source, str) and source in COLLECTED:
        return COLLECTED[source]()
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", str(source)):
        return own_data.from_function(own_data.import_function(str(source)), str(source))
    path = as_path("data", source)
    if path.is_dir():
        raise ValueError(f"data must be a file, {path} is a folder: name a table in it")
    if path.suffix != ".npz" and not is_table(path):
        files = "an .npz or .csv file (.csv.gz, .parquet)"
        raise ValueError(f"data must be one of {', '.join(NAMES)}, {files} or module:function, got {source}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".npz":
        return own_data.from_npz(path, regression=regression)
    return own_data.from_table(path, label, regression=regression, encode=encode)


def _part(name: str, found: Found, part: Part) -> Dataset:
    if part not in get_args(Part):
        raise ValueError(f"part must be one of {', '.join(get_args(Part))}, got {part!r}")
    if isinstance(found, Dataset):
        if part != "all":
            raise ValueError(f"{name} has no published {part} part: load all of it and use split")
        return found
    train, test = found
    if part != "all":
        return train if part == "train" else test
    features = np.concatenate((train.features, test.features))
    return replace(train, features=features, labels=np.concatenate((train.labels, test.labels)))
