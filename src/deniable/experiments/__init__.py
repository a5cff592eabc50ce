"""The tables and figures of the five documents, made anew: one room a paper, each item a small description.

`find` picks items by the paper's and the item's name; `reproduce` runs them.
"""

from __future__ import annotations

from pathlib import Path

from deniable.checks import refuse
from deniable.engines import Engine, choose_engine
from deniable.experiments import d53, dbsec, erlingsson, tvd, vldb
from deniable.experiments.item import Item, ItemRun, Paper, Scale, Values, expected_seconds
from deniable.experiments.run import Progress, Selected, kept_record, run_items
from deniable.results.reproduce_result import ReproduceResult

__all__ = [
    "EVERYTHING",
    "PAPERS",
    "Item",
    "ItemRun",
    "Paper",
    "Scale",
    "Values",
    "expected_seconds",
    "find",
    "kept_record",
    "reproduce",
    "run_items",
]

PAPERS: tuple[Paper, ...] = (d53.PAPER, vldb.PAPER, tvd.PAPER, dbsec.PAPER, erlingsson.PAPER)
EVERYTHING = "all"


def reproduce(
    paper: str = EVERYTHING,
    item: str | None = None,
    *,
    scale: Scale | str = Scale.SMOKE,
    out: Path | str | None = None,
    seed: int = 0,
    engine: Engine | str | None = None,
    progress: Progress | None = None,
) -> ReproduceResult:
    """Make tables and figures of the five documents anew, the paper's value beside ours.

    Args:
        paper: d53, vldb, tvd, dbsec or erlingsson; all for all.
        item: One table or figure, as in table-2 or figure-6a. Default: all of the paper.
        scale: smoke (minutes), hours (as in docs/results) or full (the papers' sizes).
        out: Where records, pictures and RESULTS.md go; finished items there are kept. Default reproduced-SCALE.
        seed: Of everything random.
        engine: Where campaigns are played. Default: on the cores of this machine.
        progress: Hears (paper and item, share of it that is done).

    Returns:
        What was made, and how it compares with what the paper prints.

    Examples:
        >>> import deniable as dn
        >>> from tempfile import mkdtemp
        >>> [item.passed for item in dn.reproduce("tvd", "figure-1", out=mkdtemp()).items]
        [True]
    """
    size = Scale(scale)
    place = Path(out or f"reproduced-{size}")
    chosen = None if engine is None else choose_engine(engine)
    return run_items(find(paper, item), size, place, every=PAPERS, seed=seed, engine=chosen, progress=progress)


def find(paper: str = EVERYTHING, item: str | None = None) -> list[Selected]:
    """The items meant by a paper's name ("all" for every paper) and, if given, an item's name."""
    papers = [one for one in PAPERS if paper in (EVERYTHING, one.name)]
    if not papers:
        raise refuse("paper", paper, f"one of {', '.join(one.name for one in PAPERS)}, or {EVERYTHING}")
    chosen = [(one, part) for one in papers for part in one.items if item in (None, part.name)]
    if not chosen:
        raise refuse("item", item, f"one of {', '.join(part.name for one in papers for part in one.items)}")
    return chosen
