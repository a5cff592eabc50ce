"""A campaign that is under way, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.formatting import count_of
from deniable.results.status_result import StatusResult

_MOST_NODES = 20
"""Named one by one."""


def sentences(found: StatusResult, answer: str | None = None) -> Iterator[str]:
    """How far it has come, who plays it, what it shows so far, and what is to be done; `answer`: where it is judged."""
    of = "" if found.blocks is None else f" of {found.blocks:,}"
    claimed = f", {found.under_way:,} under way" if found.under_way else ""
    yield f"{found.finished:,}{of} blocks finished{claimed}."
    complete = found.blocks is not None and found.finished >= found.blocks
    if found.is_certain:
        yield "The answer was certain before all trials were played: workers play no more of them."
    elif found.nodes:
        left = "" if found.seconds_left is None else f"; about {_time(found.seconds_left)} left"
        yield f"{_rate(found.blocks_a_minute)} blocks a minute on {_nodes(found.nodes)}{left}."
    elif answer is not None:
        yield f"It was judged: {answer} has the answer."
    elif not complete:
        yield "Nobody plays it now, or has said so for five minutes."
    if found.evidence is not None:
        seen = found.evidence
        share = 100 * seen.right / seen.trials
        yield f"The observer was right in {seen.right:,} of the first {seen.trials:,} trials ({share:.1f} %)."
        yield seen.watched.text
    if found.finish is not None and (complete or found.is_certain):
        yield f"This judges the blocks: {found.finish}"


def _nodes(nodes: dict[str, float]) -> str:
    named = [f"{name} ({cpus:g} CPU)" if cpus else name for name, cpus in sorted(nodes.items())]
    more = f" and {len(named) - _MOST_NODES} more" if len(named) > _MOST_NODES else ""
    return ", ".join(named[:_MOST_NODES]) + more


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _time(seconds: float) -> str:
    for length, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return count_of(max(round(seconds), 1), "second")
