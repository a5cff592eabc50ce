"""A look at a campaign under way: blocks, nodes, and what the finished trials of an audit show so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from msgspec import ValidationError, convert

from deniable.engines.planned import PLAN, Planned
from deniable.engines.status import read_status
from deniable.evidence.played_trials import Trials
from deniable.evidence.watch import Watch
from deniable.mechanisms import Training
from deniable.results.audit_result import AuditInput
from deniable.results.status_result import EvidenceSoFar, StatusResult
from deniable.scores import privacy_loss
from deniable.store import FILE, StoreError, look_at_blocks, look_at_settings
from deniable.store.records import Arrays
from deniable.store.shared import PLACE as BLOCKS

__all__ = ["look"]

LARGEST_BYTES = 2**28
RISK = 0.05
"""Of a watch over a claim that is kept to call it refuted."""


def look(directory: Path | str, largest_bytes: int = LARGEST_BYTES) -> StatusResult:
    """The state of the campaign in `directory`, read without disturbing anybody; FileNotFoundError if there is none.

    The evidence is left out where the trials have more than `largest_bytes`.
    """
    place, state = Path(directory), read_status(directory)
    files = [place / FILE, *(place / BLOCKS).glob("*.block")]
    small = sum(file.stat().st_size for file in files if file.is_file()) <= largest_bytes
    return StatusResult(
        blocks=state.blocks,
        finished=state.finished,
        under_way=state.under_way,
        blocks_a_minute=60 * state.blocks_a_second,
        seconds_left=state.seconds_left,
        nodes=state.nodes,
        is_certain=state.is_certain,
        evidence=_evidence(place) if small else None,
        finish=state.finish,
    )


def _evidence(place: Path) -> EvidenceSoFar | None:
    """Of an audit of our own training; None of anything else."""
    settings = Planned.read(place).settings if (place / PLAN).is_file() else look_at_settings(place) or {}
    try:
        asked = convert(settings, AuditInput)
    except ValidationError:
        return None
    if asked.trainer is not None or asked.trials is None:
        return None
    training = Training.of(asked)
    watch = Watch(privacy_loss(training.mechanism, training.adjacency), asked.trials, RISK)
    right = trials = 0
    for arrays in _blocks(place):
        block = Trials.join_blocks([arrays], asked.trials - trials)
        watch.add(block)
        trials += len(block)
        right += int(np.sum((block.log_likelihood_ratio[:, -1] > 0) == block.trained_on_d))
    if not trials:
        return None
    evidence = watch.evidence()
    bound = evidence.bare_bound(asked.delta or 0.0)
    return EvidenceSoFar(trials=trials, right=right, watched=evidence.result(bound))


def _blocks(place: Path) -> Iterator[Arrays]:
    with suppress(StoreError):  # damaged: what comes behind is not looked at
        yield from (arrays for _, arrays in look_at_blocks(place))
