"""Examination of somebody else's training: does it do what it claims, and if not, why?

claim (what is claimed) | trainer (what a training yields) | step_listeners (records that change meanwhile, gradients of
another training), noise_draws (kept and shifted) | adapters (Opacus) | recomputation, thinned (some weights), updates
(how weights move), final_weights, alternatives (what it did) | residuals (one trial's statistics), signal_to_noise |
twins (the same seed, one record exchanged) | diagnostics (the causes) | batch_mixing (models without per-example
gradients) | patience (how long it takes) | examination_game (one trial) | trial_plan (how many, and when to look) |
examine, examine_result (`deniable.examine`) | recorded (one ordinary run).
"""

from __future__ import annotations

from deniable.examination.adapters import watch_opacus
from deniable.examination.claim import Adaptive, AutoS, Normalised, PerLayer, Recipe
from deniable.examination.trainer import AppliedStep, Records, Released

__all__ = [
    "Adaptive",
    "AppliedStep",
    "AutoS",
    "Normalised",
    "PerLayer",
    "Recipe",
    "Records",
    "Released",
    "watch_opacus",
]
