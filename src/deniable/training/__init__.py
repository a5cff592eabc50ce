"""DP-SGD and DP-Adam, many trainings at once, watched by the strongest observer.

Design
------
*One game.* D and D' differ in one record: `replace` exchanges x for x', `add-remove` leaves x out. A bit b, drawn per
trial, says which of the two is trained on (erratum 10). The observer knows everything but b and the noise; what it sees
at each step, a noisy sum of clipped gradients, is the very tensor that updates the weights.

*Trials together.* Independent trainings on the same data advance in one block. Weights are (trials, out, in) and
activations (trials, features, examples). The examples are D's records with x last, and x' behind it; so g(x), g(x'),
g(D) and g(D') come from one pass, and a trial's bit is only a weight of 0 or 1 on a column.

*Ghost norms.* Clipping needs the norm of each example's gradient, not the gradient. In a dense layer it is an outer
product, whose norm is the product of two short norms; the clipped sum is then one matrix product with scaled columns.
A first dense layer on full batches has the same inputs in all trials and is one product for all trials. Convolutions
and group norms materialise their (small) gradients, in compiled kernels where those were built. Any other module takes
`torch.func`, example by example. Layers that mix examples are refused (erratum 9).

*Evidence in two dimensions.* The log-likelihood ratio depends on the noise only through its inner products with g(x)
and g(x'), so the observer costs two matrix-vector products a layer and no second pass; the arithmetic is float64.

*Sensitivity.* Noise is ``noise * sensitivity``: global (C or 2C), or local, the neighbours' true distance at this step.
Local is an instrument that shows whether bounds are tight; it is NOT differentially private (erratum 8).

*Blocks.* ``run_block(settings, neighbours, seed, number)`` depends on its arguments alone: one thread, and generators
whose whole state is made of (seed, number). Each trial draws its own initial weights from the block's generator, as
Bernau 2021 repeats its experiment with new weights. `deniable.engines` spreads blocks over processes of one thread
each, since two OpenMP threads on busy cores wait for each other.

*Release.* `train` makes one model to be released: global sensitivity only, noise and batches from the operating
system's entropy, no seed for them.

*Targets.* `fit` trains what membership inference attacks, on the same moves: with noise, or without noise and clipping,
with early stopping on held-out loss; `reference_settings` has Bernau 2021b's networks and hyperparameters.

settings, noise_source, threads | networks (the usual ones, layers, losses), columns, kernels | compiled, gradients,
stack (per-example gradients) | ensemble (the moves of a step) | engine (a block of games), final_models (only the last
model is seen), release (one model) | together, subset_models (many models at once) | attacked (models to be attacked).
"""

from __future__ import annotations

from deniable.training.attacked.reference import reference_network, reference_settings
from deniable.training.attacked.targets import Fitted, TargetSettings, calibrate_settings, fit, quality
from deniable.training.engine import BlockResult, Observation, run_block
from deniable.training.networks.usual_models import MODELS
from deniable.training.release import train
from deniable.training.settings import Neighbours, TrainingSettings

__all__ = [
    "MODELS",
    "BlockResult",
    "Fitted",
    "Neighbours",
    "Observation",
    "TargetSettings",
    "TrainingSettings",
    "calibrate_settings",
    "fit",
    "quality",
    "reference_network",
    "reference_settings",
    "run_block",
    "train",
]
