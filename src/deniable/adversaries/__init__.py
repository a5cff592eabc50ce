"""Observers that try to tell what a model was trained on.

`Identifiability` is the observer that differential privacy assumes, and the upper reference. The others infer
membership from one trained model by one protocol (`membership.Attack`): members, non-members and the model in, a score
for every tested record out. From weak to strong: `Blind` (no model at all; where it beats chance, the two groups differ
by themselves), `LossThreshold` (one number a record), `Shadow` (the outputs, and models of its own), `WhiteBox` (loss,
output, label, gradients, and half of the truth).
"""

from __future__ import annotations

from deniable.adversaries.blind import Blind
from deniable.adversaries.identifiability import Identifiability
from deniable.adversaries.membership import Attack, Half, Scored, halves
from deniable.adversaries.shadow import Shadow
from deniable.adversaries.threshold import LossThreshold
from deniable.adversaries.whitebox import WhiteBox

__all__ = ["Attack", "Blind", "Half", "Identifiability", "LossThreshold", "Scored", "Shadow", "WhiteBox", "halves"]
