"""The gradients of a step's records, recomputed: their clipped sum, other ways to sum them, and inner products.

batch_gradients (record by record, in bounded memory), record_shares (the share of each) | ways_to_sum, summed_families,
rounded_norms, chosen_records, record_groups, kept_sums, class_counts (sums by other rules) | other_records,
variance_reduction, mixed_losses (records that were not drawn, losses that mix those that were) | step_products (all
that is kept of a step's vectors).
"""
