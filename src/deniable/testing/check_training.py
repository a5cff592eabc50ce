"""One run of somebody's training, as a test: watched, ended where its time is over, judged, and traced to a line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import structs

from deniable.checks import positive, probability, refuse
from deniable.examination.examine import examine
from deniable.examination.recorded import CONFIDENCE_OF_A_RUN, RunRecord, RunWatcher
from deniable.examination.recorded.gradients.batch_gradients import LossOfBatch
from deniable.mechanisms import Training
from deniable.results.run_result import RunCheck, RunResult
from deniable.testing.cause_lines import BudgetSpentError, CauseLines, WatchedCode, watch_code

_UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


def read_seconds(budget: str | float) -> float:
    """Seconds of a budget such as ``"30 s"``, ``"5 min"``, ``"1 h"``, or a number of seconds.

    Examples:
        >>> read_seconds("1.5 min")
        90.0
    """
    if not isinstance(budget, str):
        return positive("budget", budget)
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(s|min|h|)\s*", budget)
    if found is None:
        raise refuse("budget", budget, "a time such as '30 s', '5 min' or '1 h'")
    return positive("budget", float(found[1]) * _UNITS[found[2]])


def spell_seconds(seconds: float) -> str:
    """A time as people write it."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            amount = seconds / size
            return f"{amount:.3g} {unit}" if amount < 100 else f"{amount:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


_HOW = "an Opacus training is watched by itself; a loop of your own calls dn.watch_run(...) and returns what it gives"


def check_training(
    train: Callable[[], Any],
    *,
    claimed: Training,
    budget: str | float = "30 s",
    loss: LossOfBatch = "cross-entropy",
    confidence: float = CONFIDENCE_OF_A_RUN,
) -> RunResult:
    """Run a training once, watch it, and judge whether it does what it claims; each part with a line of its code.

    Guarantee: a training that is as claimed is called *violated* or *other recipe* with probability at most
    1 - `confidence`.

    Args:
        train: The training, called without arguments. What Opacus makes private inside of it is watched by itself; a
            loop of its own calls `dn.watch_run` and returns the watcher.
        claimed: ``dn.Training(noise, rate, steps, adjacency)``.
        budget: The time that the run may take, such as ``"30 s"`` or ``"5 min"``; looked at before every step. A run
            that is ended by it may be *violated*, but is never *consistent*: it *cannot* be *judged*, and the result
            says how long all of it would take.
        loss: Of each example, by name or as a function (outputs, targets) -> losses.
        confidence: Of all parts together.

    Returns:
        The verdict, each part with the line of code that it speaks of.

    Examples:
        >>> import deniable as dn
        >>> import torch
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> data = TensorDataset(torch.randn(20, 30), torch.randint(0, 3, (20,)))
        >>> model = torch.nn.Linear(30, 3)
        >>> optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=20)
        >>> def train():  # no noise, no clipping
        ...     run = dn.watch_run(model, optimizer, loader, clip=1.0, divisor=20)
        ...     for features, labels in loader:
        ...         torch.nn.functional.cross_entropy(model(features), labels).backward()
        ...         optimizer.step()
        ...     return run
        >>> claimed = dn.Training(noise=1.0, rate=1.0, steps=1, adjacency="add-remove")
        >>> dn.check_training(train, claimed=claimed).verdict
        'violated'
    """
    _check_arguments(train, claimed)
    probability("confidence", confidence, open_ends=True)
    seconds, returned = read_seconds(budget), None
    with watch_code(seconds, loss) as seen:
        try:
            returned = train()
        except BudgetSpentError:
            seen.spent = True
    judged = _judge(_record_of(returned, seen), claimed, confidence, seconds, seen)
    return _with_lines(judged, CauseLines(train, seen, claimed))


def _check_arguments(train: Callable[[], Any], claimed: Training) -> None:
    if not isinstance(claimed, Training):
        raise ValueError(f"claimed must be dn.Training(noise, rate, steps, adjacency), got {claimed!r}")
    if not callable(train):
        raise ValueError(f"train must be a function that trains, got {type(train).__name__}")
    needed = [
        name
        for name, one in inspect.signature(train).parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed:
        raise ValueError(
            f"train must be called without arguments, and asks for {', '.join(needed)}: give lambda: train(...). A "
            "trainer of (records, seed) is for dn.examine(data, trainer=...)"
        )


def _record_of(returned: Any, seen: WatchedCode) -> RunRecord:
    """Of the run that the training returned, or of the only one that it made."""
    if isinstance(returned, RunRecord):
        return returned
    watchers = [returned] if isinstance(returned, RunWatcher) else seen.watchers
    if seen.spent and not seen.taken:
        raise ValueError("budget must be longer than the training takes until its second step, and was spent before")
    if not watchers:
        raise ValueError(f"train showed no run that could be judged: {_HOW}")
    if len(watchers) > 1:
        raise ValueError(f"train made {len(watchers)} runs private: return the watcher of the one that is to be judged")
    return watchers[0].record()


def _judge(record: RunRecord, claimed: Training, confidence: float, seconds: float, seen: WatchedCode) -> RunResult:
    taken, cut = len(record.batches), seen.spent and len(record.batches) < claimed.steps
    found = examine(record, claimed=replace(claimed, steps=taken) if cut else claimed, confidence=confidence)
    assert isinstance(found, RunResult)
    if not cut:
        return found
    needed = spell_seconds(seconds * claimed.steps / taken)
    said = (
        f"the budget of {spell_seconds(seconds)} ended the run after {taken:,} of {claimed.steps:,} steps; all of them "
        f"take about {needed}"
    )
    told = structs.replace(found.input, steps=claimed.steps)
    found = found.replace(unfinished=said, input=told, not_shown=(said, *found.not_shown))
    if found.verdict != "consistent":
        return found
    text = f"Not everything was shown: {said}. Nothing speaks against the claim so far."
    return found.replace(verdict="cannot judge", verdict_text=text)


def _with_lines(found: RunResult, lines: CauseLines) -> RunResult:
    def with_line(check: RunCheck) -> RunCheck:
        return check if check.outcome == "as claimed" else structs.replace(check, place=lines.place(check))

    return found.replace(checks=tuple(with_line(check) for check in found.checks))
