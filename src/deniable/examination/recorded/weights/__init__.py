"""What a model holds, from step to step: is it moved by the applied gradients alone?

weight_moves (the optimizer played again on a few weights), other_weights (those that it does not hold), second_moments
(what it divides by), forward_weights (where gradients are taken), written_records (in digits), pulled_weights
(lookahead) | initial_weights, last_moves (before the first step, and after the last) | watched_buffers,
buffer_statistics, recalibrated_buffers.
"""
