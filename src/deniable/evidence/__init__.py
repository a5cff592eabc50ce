"""Evidence: scores of any attack -> limits -> lower bounds on epsilon -> a verdict. NumPy and SciPy alone.

attack_scores (what was measured) | row_origin (how the rows of a file arose) | limits, thresholds, intervals, roc_band
(rates and their limits) | bound, estimators, likelihood, one_run, one_run_curves (epsilon) | measured (what an audit's
trials show) | anytime (evidence that holds after every trial) | verdict (violated, consistent, cannot judge) |
examined_claim, score_audit (`deniable verdict`).
"""
