"""Canaries in one ordinary training: coins that are tossed before it, scores after it, and what they prove of epsilon.

plan (coins, identifiers, scores, verdict, one file for all of it), canary_claim | gradient_canaries (inserted through
the optimizer, the strongest there are) | record_canaries (records of their own, for any training: mislabelled, out of
distribution, new tokens, crafted).
"""

from deniable.canary.plan import KINDS, CanaryPlan, canaries, read_plan

__all__ = ["KINDS", "CanaryPlan", "canaries", "read_plan"]
