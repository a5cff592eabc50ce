"""Observers that try to tell what a model was trained on.

They infer membership from one trained model by one protocol (`membership.Attack`): members, non-members and the model
in, a score for every tested record out. (The observer that differential privacy assumes, who sees every step, plays in
`deniable.training.engine`.) From weak to strong: `Blind` (no model at all; where it beats chance, the two groups differ
by themselves), `LossThreshold` (one number a record), `Shadow` (the outputs, and models of its own), `WhiteBox` (loss,
output, label, gradients, and half of the truth).
"""

from __future__ import annotations

from deniable.adversaries.blind import Blind
from deniable.adversaries.membership import Attack, Half, Scored, halves
from deniable.adversaries.shadow import Shadow
from deniable.adversaries.threshold import LossThreshold
from deniable.adversaries.whitebox import WhiteBox

__all__ = ["Attack", "Blind", "Half", "LossThreshold", "Scored", "Shadow", "WhiteBox", "halves"]
