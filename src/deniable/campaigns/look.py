"""A look at a campaign under way: blocks, nodes, and what the finished trials of an audit show so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from msgspec import ValidationError, convert
from numpy.typing import NDArray

from deniable.engines.planned import PLAN, Planned
from deniable.engines.status import read_status
from deniable.evidence.anytime.watch import Watch
from deniable.mechanisms import Training
from deniable.results.audit_result import AuditInput
from deniable.results.status_result import EvidenceSoFar, StatusResult
from deniable.scores import privacy_loss
from deniable.store import FILE, StoreError, look_at_blocks, look_at_settings
from deniable.store.records import Arrays
from deniable.store.shared_blocks import PLACE as BLOCKS

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
    audit = _find_audit(place)
    blocks = audit.trials if audit is not None and audit.trainer is not None else state.blocks
    return StatusResult(
        blocks=blocks,
        finished=state.finished,
        under_way=state.under_way,
        blocks_a_minute=60 * state.blocks_a_second,
        seconds_left=state.seconds_until(blocks),
        nodes=state.nodes,
        is_certain=state.is_certain,
        evidence=_evidence(place, audit) if small and audit is not None else None,
        finish=state.finish,
    )


def _find_audit(place: Path) -> AuditInput | None:
    """What is audited, by our own training or somebody else's, each trial of which is a block; None: something else."""
    settings = Planned.read(place).settings if (place / PLAN).is_file() else look_at_settings(place) or {}
    try:
        return convert(settings, AuditInput)
    except ValidationError:
        return None


def _evidence(place: Path, asked: AuditInput) -> EvidenceSoFar | None:
    if asked.trials is None or asked.schedule is not None:
        return None
    training = Training.of(asked)
    watch = Watch(privacy_loss(training.mechanism, training.adjacency), asked.trials, RISK)
    right = trials = 0
    for log_odds, on_d in _trials(place):
        watch.count(log_odds, on_d)
        room = asked.trials - trials
        right += int(np.sum((log_odds[:room] > 0) == on_d[:room]))
        trials += min(room, len(on_d))
    if not trials:
        return None
    evidence = watch.evidence()
    bound = evidence.bare_bound(asked.delta or 0.0)
    return EvidenceSoFar(trials=trials, right=right, watched=evidence.result(bound))


def _trials(place: Path) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """The observer's log-odds, and what was trained on, block by block; a block of somebody else's is one trial."""
    for arrays in _blocks(place):
        if "ratio" in arrays:
            yield np.array([np.sum(arrays["ratio"])]), np.atleast_1d(arrays["trained_on_d"])
        elif "log_likelihood_ratio" in arrays:
            yield arrays["log_likelihood_ratio"][:, -1], arrays["trained_on_d"]
        else:  # behind the trials come those of observers of the final model
            return


def _blocks(place: Path) -> Iterator[Arrays]:
    with suppress(StoreError):  # damaged: what comes behind is not looked at
        yield from (arrays for _, arrays in look_at_blocks(place))
