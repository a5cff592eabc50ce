"""One ordinary run, watched: what was applied is recomputed in some of its steps, and judged against the claim.

watch_run (the watcher around any torch optimizer), stepped_optimizer (divisor, clipping norms) | framework_callbacks
(the watcher for Lightning and Hugging Face) | batches (who was drawn, what the model was given), gradients (of a step's
records, and ways to sum them), noise (beside that of other steps), weights (their moves, and buffers) | recording
(lines on disk while the run goes on), run_record (all that is kept: statistics) | checks (one part of the claim each),
judge_run (checks, causes, verdict).
"""

from deniable.examination.recorded.judge_run import CONFIDENCE_OF_A_RUN, judge_run
from deniable.examination.recorded.recording import read_recording
from deniable.examination.recorded.run_record import RunRecord
from deniable.examination.recorded.watch_run import RunWatcher, watch_run

__all__ = ["CONFIDENCE_OF_A_RUN", "RunRecord", "RunWatcher", "judge_run", "read_recording", "watch_run"]
