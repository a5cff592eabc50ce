"""One ordinary run, watched: what was applied is recomputed in some of its steps, and judged against the claim.

watch_run (the watcher around any torch optimizer), of stepped_optimizer (divisor, clipping norms) and used_batches
(which records a step uses) | framework_callbacks (the watcher for Lightning and Hugging Face) | batch_gradients (the
clipped sum of a batch, recomputed) | weight_moves (the optimizer played again on a few weights) | recording (lines on
disk while the run goes on), run_record (all that is kept: statistics) | judge_run (checks, causes, verdict),
step_lengths (steps that are not recomputed), noise_power (what would have been seen).
"""

from deniable.examination.recorded.judge_run import CONFIDENCE_OF_A_RUN, judge_run
from deniable.examination.recorded.recording import read_recording
from deniable.examination.recorded.run_record import RunRecord
from deniable.examination.recorded.watch_run import RunWatcher, watch_run

__all__ = ["CONFIDENCE_OF_A_RUN", "RunRecord", "RunWatcher", "judge_run", "read_recording", "watch_run"]
