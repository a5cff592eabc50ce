"""One ordinary run, watched: what was applied is recomputed in some of its steps, and judged against the claim.

watch_run (the watcher around any torch optimizer), stepped_optimizer (divisor, clipping norms), used_batches (which
records a step uses), left_out_batches | framework_callbacks (the watcher for Lightning and Hugging Face) |
batch_gradients, step_products, record_shares, ways_to_sum, summed_families, chosen_records, record_groups,
other_records, mixed_losses (what is recomputed in a step) | earlier_noise, noise_pools (noise beside that of other
steps) | given_inputs, forward_weights (what the model is given, and with which weights), initial_weights,
watched_buffers, buffer_statistics, class_counts, number_counts, draws (what is counted) | weight_moves, other_weights,
second_moments, last_moves (the optimizer played again on a few weights, and those that it does not hold) | recording
(lines on disk while the run goes on), run_record (all that is kept: statistics) | checks (one part of the claim each),
judge_run (checks, causes, verdict).
"""

from deniable.examination.recorded.judge_run import CONFIDENCE_OF_A_RUN, judge_run
from deniable.examination.recorded.recording import read_recording
from deniable.examination.recorded.run_record import RunRecord
from deniable.examination.recorded.watch_run import RunWatcher, watch_run

__all__ = ["CONFIDENCE_OF_A_RUN", "RunRecord", "RunWatcher", "judge_run", "read_recording", "watch_run"]
