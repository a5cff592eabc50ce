"""Observers that try to tell what a model was trained on.

They infer membership from one trained model by one protocol (`membership.Attack`): members, non-members and the model
in, a score for every tested record out. (The observer that differential privacy assumes, who sees every step, plays in
`deniable.training.engine`.) From weak to strong: `Blind` (no model at all; where it beats chance, the two groups differ
by themselves), `LossThreshold` (one number a record), `Quantile` (that number against what is usual for such records),
`Shadow` (the outputs, and models of its own), `WhiteBox` (loss, output, label, gradients, and half of the truth),
`ShadowAttack` (each record against models trained with and without it: LiRA, RMIA and their Bayesian kin).

membership (the protocol) | model_observation (what is read off a model) | threshold, quantile, whitebox (attacks
without shadows) | shadow_recipes (how shadows are trained), shadow_models (what is kept of them), usual_gains (what a
record usually changes), shadow_scores (pure functions of arrays), shadow_attacks (the protocol again).
"""

from __future__ import annotations

from deniable.adversaries.membership import Attack, Half, Scored, half_places, halves
from deniable.adversaries.quantile import Quantile
from deniable.adversaries.shadow_attacks import Shadow, ShadowAttack
from deniable.adversaries.shadow_recipes import ShadowTraining
from deniable.adversaries.threshold import Blind, LossThreshold
from deniable.adversaries.whitebox import WhiteBox

__all__ = [
    "Attack",
    "Blind",
    "Half",
    "LossThreshold",
    "Quantile",
    "Scored",
    "Shadow",
    "ShadowAttack",
    "ShadowTraining",
    "WhiteBox",
    "half_places",
    "halves",
]
