"""The tables and figures of the five documents, made anew: one room a paper, each item a small description.

`find` picks items by the paper's and the item's name; `reproduce` runs them.
"""

from __future__ import annotations

from deniable.experiments import d53, dbsec, erlingsson, tvd, vldb
from deniable.experiments.item import Item, Paper, Run, Scale, Values, expected
from deniable.experiments.run import SCHEMA, Selected, kept, reproduce

__all__ = [
    "EVERYTHING",
    "PAPERS",
    "SCHEMA",
    "Item",
    "Paper",
    "Run",
    "Scale",
    "Values",
    "expected",
    "find",
    "kept",
    "reproduce",
]

PAPERS: tuple[Paper, ...] = (d53.PAPER, vldb.PAPER, tvd.PAPER, dbsec.PAPER, erlingsson.PAPER)
EVERYTHING = "all"


def find(paper: str = EVERYTHING, item: str | None = None) -> list[Selected]:
    """The items meant by a paper's name ("all" for every paper) and, if given, an item's name."""
    papers = [one for one in PAPERS if paper in (EVERYTHING, one.name)]
    if not papers:
        names = ", ".join(one.name for one in PAPERS)
        raise ValueError(f"PAPER must be one of {names}, or {EVERYTHING}, got {paper!r}")
    chosen = [(one, part) for one in papers for part in one.items if item in (None, part.name)]
    if not chosen:
        names = ", ".join(part.name for one in papers for part in one.items)
        raise ValueError(f"ITEM must be one of {names}, got {item!r}")
    return chosen
