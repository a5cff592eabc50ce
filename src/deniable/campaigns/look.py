"""A look at a campaign under way: blocks, nodes, and what the finished trials of an audit show so far."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from deniable.engines.status import read_status
from deniable.results.status_result import EvidenceSoFar, StatusResult
from deniable.store import FILE, look_at_blocks
from deniable.store.shared import PLACE as BLOCKS

__all__ = ["look"]

LARGEST_BYTES = 2**28


def look(directory: Path | str, largest_bytes: int = LARGEST_BYTES) -> StatusResult:
    """The state of the campaign in `directory`, read without disturbing anybody; FileNotFoundError if there is none.

    The evidence is left out where the trials have more than `largest_bytes`.
    """
    state = read_status(directory)
    return StatusResult(
        blocks=state.blocks,
        finished=state.finished,
        under_way=state.under_way,
        blocks_a_minute=60 * state.blocks_a_second,
        seconds_left=state.seconds_left,
        nodes=state.nodes,
        is_certain=state.is_certain,
        evidence=_evidence(Path(directory), largest_bytes),
        finish=state.finish,
    )


def _evidence(place: Path, largest_bytes: int) -> EvidenceSoFar | None:
    """Of an audit whose trials are not too many for a look."""
    files = [place / FILE, *(place / BLOCKS).glob("*.block")]
    if sum(file.stat().st_size for file in files if file.is_file()) > largest_bytes:
        return None
    trials = right = 0
    for arrays in look_at_blocks(place):
        if not {"trained_on_d", "log_likelihood_ratio"} <= arrays.keys():
            return None
        on_d, ratio = arrays["trained_on_d"], arrays["log_likelihood_ratio"]
        trials += len(on_d)
        right += int(np.sum((ratio[:, -1] > 0) == on_d))
    return EvidenceSoFar(trials=trials, right=right) if trials else None
