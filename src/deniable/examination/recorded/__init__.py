"""One ordinary run, watched: what was applied is recomputed in some of its steps, and judged against the claim.

watch_run (the watcher around any torch optimizer) | batch_gradients (the clipped sum of a batch, recomputed) |
weight_moves (the optimizer played again on a few weights) | run_record (all that is kept: statistics) | judge_run
(checks, causes, verdict).
"""

from deniable.examination.recorded.judge_run import judge_run
from deniable.examination.recorded.run_record import RunRecord
from deniable.examination.recorded.watch_run import RunWatcher, watch_run

__all__ = ["RunRecord", "RunWatcher", "judge_run", "watch_run"]
