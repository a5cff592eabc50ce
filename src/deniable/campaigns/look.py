"""A look at a campaign under way: blocks, nodes, and what the finished trials of an audit show so far."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from deniable.engines.status import read_status
from deniable.results.status_result import EvidenceSoFar, StatusResult
from deniable.store import FILE, look_at_blocks

__all__ = ["look"]

_LARGEST_BYTES = 2**28
"""Of trials that are read for a look."""


def look(directory: Path | str) -> StatusResult:
    """The state of the campaign in `directory`, read without disturbing anybody; FileNotFoundError if there is none."""
    state = read_status(directory)
    return StatusResult(
        blocks=state.blocks,
        finished=state.finished,
        under_way=state.under_way,
        blocks_a_minute=60 * state.blocks_a_second,
        seconds_left=state.seconds_left,
        nodes=state.nodes,
        is_certain=state.is_certain,
        evidence=_evidence(Path(directory)),
        finish=state.finish,
    )


def _evidence(place: Path) -> EvidenceSoFar | None:
    """Of an audit whose trials are not too many for a look."""
    if (place / FILE).is_file() and (place / FILE).stat().st_size > _LARGEST_BYTES:
        return None
    trials = right = 0
    for arrays in look_at_blocks(place):
        if not {"trained_on_d", "log_likelihood_ratio"} <= arrays.keys():
            return None
        on_d, ratio = arrays["trained_on_d"], arrays["log_likelihood_ratio"]
        trials += len(on_d)
        right += int(np.sum((ratio[:, -1] > 0) == on_d))
    return EvidenceSoFar(trials=trials, right=right) if trials else None
