"""Which other gradient explains what was applied: named only if nothing that is known speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.audit.alternatives import AFTER, CLIPS, MICROBATCHES, VECTORS
from deniable.audit.diagnostics.evidence import Evidence

__all__ = ["ACCUMULATED", "Explanation", "explanation"]

Array = NDArray[np.float64]
CLIPPING, MEAN, MEMORY, STEPS = "clipping per example", "mean zero", "no earlier gradient", "independent steps"
NORM, SCALED = "another norm", "scaled"
BETTER = 30.0
"""Another gradient is considered if the distance to it, in claimed variances, is so much smaller than the claim's."""
FITTED = 6.0
"""The distance that a fitted number must gain."""
HIDDEN = 10.0
"""Two short gradients whose distances differ by less are not told apart."""
LEFT, SHARE = 25.0, 0.01
"""What may be left along any known direction: in variances of the noise, and as a share of what is explained."""

ACCUMULATED = (
    "the previous step's gradient is still in it (gradients accumulate, or momentum is added before the gradient is "
    "yielded): set gradients to zero before each step, and yield the gradient that the optimizer is given"
)
_EACH = "clip every example's gradient before summing"
_MEAN_CLIPPED = (
    "the batch's mean gradient is clipped, not each example's, so one example's influence is bounded by nothing: "
    "clip every example's gradient before summing"
)
_SUM_CLIPPED = f"the batch's summed gradient is clipped, not each example's: {_EACH}"
_SUMMED = {
    "whole": (CLIPPING, f"the gradients are not clipped at all: {_EACH}"),
    "mean clipped": (CLIPPING, _MEAN_CLIPPED),
    "mean clipped, not multiplied": (CLIPPING, _MEAN_CLIPPED),
    "sum clipped": (CLIPPING, _SUM_CLIPPED),
    "sum clipped, multiplied": (CLIPPING, _SUM_CLIPPED),
    "loss averaged": (
        CLIPPING,
        "each example's loss is divided by the batch size before clipping, so that hardly any gradient reaches the "
        "clipping norm: clip the gradients of the examples' own losses",
    ),
    "loss multiplied": (CLIPPING, "each example's loss is multiplied by the batch size before clipping"),
    "per layer": (
        CLIPPING,
        "every layer is clipped on its own to the whole norm, so an example's gradient has a norm of up to clip x "
        "sqrt(layers): clip the norm over all layers, or divide the clipping norm among them",
    ),
    "per layer, equal part": (
        CLIPPING,
        "every layer is clipped on its own to clip / sqrt(layers): the norm is bounded as claimed, the gradient is "
        "another one; audit it with its own clipping",
    ),
    "by value": (
        CLIPPING,
        "every number of a gradient is clipped on its own (by value), which bounds no norm: clip the norm over all "
        "numbers",
    ),
    "squared norm": (CLIPPING, "gradients are divided by their squared norm, not by their norm, when they are clipped"),
    "matrices only": (
        CLIPPING,
        "the norm that is clipped leaves out the biases, so the whole gradient is longer than the clipping norm: take "
        "the norm over all parameters",
    ),
    "biases whole": (
        CLIPPING,
        "the biases' gradients are not clipped, only those of the other weights: clip the norm over all parameters",
    ),
    "absolute norm": (
        CLIPPING,
        "gradients are clipped by the sum of their absolute numbers (L1 norm), which is never less than the norm: that "
        "is safe, but not what is claimed",
    ),
    "largest number": (
        CLIPPING,
        "gradients are clipped by their largest number (maximum norm), which bounds no norm: clip the norm over all "
        "numbers",
    ),
    "normalised": (CLIPPING, "every gradient is scaled to the clipping norm, also those that are shorter"),
    "mean": (
        MEAN,
        "what is yielded is the mean over the batch: yield its divisor, too (AppliedStep(..., divisor=...))",
    ),
    "all records": (MEAN, "all records are used in every step, not the batch alone: use the batch that was drawn"),
    "older weights": (
        MEMORY,
        "the gradient is that of the weights one step before: that is safe, but not what is yielded; take it at the "
        "weights that are yielded, or yield those at which it is taken",
    ),
    AFTER: (MEAN, "the gradient belongs to other weights than those yielded: yield the weights before the step"),
}
"""Sums in place of the claimed one: the diagnostic that is about it, and the sentence that says so."""
_GROUPED = (
    "gradients are clipped in groups of {size} (microbatches), not one by one, so one example's influence is larger "
    f"than the clipping norm: {_EACH}"
)
_HARMLESS = ("per layer, equal part", "loss averaged", "normalised", "weights", "absolute norm", "older weights")
_ALIKE = {
    ("whole", "mean clipped"): (
        "the gradients are not clipped example by example: either the batch's mean gradient is clipped in place of "
        f"each example's, or nothing is (in these trainings that is the same, since the mean was short): {_EACH}"
    ),
    ("mean clipped, not multiplied", "loss averaged"): (
        "the batch's mean gradient is clipped, not each example's, or each example's loss is divided by the batch size "
        "before clipping (in these trainings that is the same, since the mean was short): clip the gradients of the "
        "examples' own losses before summing"
    ),
}
"""Sentences for pairs that a training may not tell apart."""
_SHORT = ("sum clipped", "absolute norm")
_FAR_SHORTER = (
    "the gradients are far shorter than if each were clipped to the claimed norm: either the batch's summed gradient "
    "is clipped, which is not safe, or each example's by its L1 norm, which is (in these trainings the noise hides the "
    f"difference): {_EACH}, by its norm"
)


@dataclass(frozen=True)
class Explanation:
    """Another gradient that the training may have summed, and the noise's standard deviation that it leaves."""

    about: str
    """The diagnostic that is about it."""
    sentence: str
    noise_ratio: float
    weakens: bool


@dataclass(frozen=True)
class _Candidate:
    """Applied = a combination of `VECTORS` plus noise."""

    name: str
    about: str
    sentence: str
    parts: Array
    """Coefficients of `VECTORS` in what is left: applied minus the candidate."""
    fitted: int = 0
    weakens: bool = True

    def distance(self, gram: Array) -> float:
        return float(self.parts @ gram @ self.parts) + FITTED * self.fitted


def explanation(evidence: Evidence) -> Explanation | None:
    """The candidate that fits best, if it fits better than the claim and nothing known is left in the rest."""
    if not evidence.looked.size:
        return None
    gram = evidence.looked.sum((0, 1))
    claimed = _summed("clean").distance(gram)
    candidates = sorted(_candidates(gram, evidence.claim.clip), key=lambda one: one.distance(gram))
    best, least = candidates[0], candidates[0].distance(gram)
    gained = claimed - least
    numbers = evidence.looked.shape[0] * evidence.looked.shape[1] * evidence.sizes.sum()
    ratio = float(np.sqrt(max(0.0, least) / numbers))
    if gained < BETTER or not _nothing_left(best, gram, ratio, gained):
        return None
    if best.name == "mean" and abs(ratio * float(evidence.trials.batch.sum(2).mean()) - 1) > 0.2:
        return None  # the noise of a mean is divided as well
    close = {one.name: one for one in reversed(candidates) if one.distance(gram) < least + 1}
    hidden = {one.name for one in candidates if one.distance(gram) < least + HIDDEN}
    alike = next((text for pair, text in _ALIKE.items() if close.keys() >= set(pair)), None)
    if best.name in _SHORT and hidden >= set(_SHORT):
        alike = _FAR_SHORTER
    if NORM in close and SCALED in close:
        best = close[SCALED] if abs(ratio - 1) > 0.02 else close[NORM]  # a wrong divisor scales the noise as well
    return Explanation(best.about, alike or best.sentence, ratio, best.weakens)


def _nothing_left(candidate: _Candidate, gram: Array, ratio: float, gained: float) -> bool:
    """Whether the rest is noise along every direction that is known before the noise is drawn."""
    if candidate.name == AFTER:
        return True
    known = np.array([name not in ("applied", AFTER) for name in VECTORS])
    left = np.square(gram @ candidate.parts) / np.maximum(np.diag(gram), 1e-300)
    itself = _unit("applied") - candidate.parts
    explained = min(gained, float(itself @ gram @ itself))
    return bool(left[known].max() <= LEFT * max(ratio, 0.01) ** 2 + SHARE * explained)


def _place(name: str) -> int:
    return VECTORS.index(name)


def _left_over(**coefficients: float) -> Array:
    """Applied minus a combination of vectors."""
    parts = np.zeros(len(VECTORS))
    parts[_place("applied")] = 1
    for name, coefficient in coefficients.items():
        parts[_place(name)] -= coefficient
    return parts


def _summed(name: str, about: str = "", sentence: str = "", fitted: int = 0, weakens: bool = True) -> _Candidate:
    return _Candidate(name, about, sentence, _left_over(**{name: 1.0}), fitted, weakens)


def _candidates(gram: Array, clip: float) -> Iterator[_Candidate]:
    for name, (about, sentence) in _SUMMED.items():
        harmless = name in _HARMLESS or (name == "squared norm" and clip >= 1)
        yield _summed(name, about, sentence, weakens=not harmless)
    for size, what in MICROBATCHES:
        yield _summed(f"{what} of {size}", CLIPPING, _GROUPED.format(size=size), fitted=1)  # the size
    yield from _other_norms(gram)
    yield from _multiples(gram)


def _other_norms(gram: Array) -> Iterator[_Candidate]:
    """Another clipping norm; between two that are computed, the sum is taken to be on the line between theirs."""
    for low, high in pairwise(CLIPS):
        ends = f"clipped at {low:g} x", f"clipped at {high:g} x"
        start = _left_over(**{ends[0]: 1.0})
        step = _left_over(**{ends[1]: 1.0}) - start
        length = float(step @ gram @ step)
        share = float(np.clip(-(start @ gram @ step) / max(length, 1e-300), 0, 1))
        norm = low + share * (high - low)
        parts = start + share * step
        yield _Candidate(NORM, CLIPPING, _norm_sentence(norm), parts, fitted=1, weakens=norm > 1)


def _norm_sentence(norm: float) -> str:
    times = {2.0: "twice", 0.5: "half"}.get(round(norm, 1), f"about {norm:.3g} x")
    effect = f"one example counts up to {norm:.3g} times" if norm > 1 else "that is safe, but not what is claimed"
    return f"the gradients are clipped at {times} the claimed norm: {effect}"


def _multiples(gram: Array) -> Iterator[_Candidate]:
    """The claimed sum plus a fitted multiple of something else."""
    clean = _left_over(clean=1.0)
    for name, about, sentence in _ADDED:
        along = _DIRECTIONS[name]
        length = float(along @ gram @ along)
        if length > 1e-9:
            factor = float(clean @ gram @ along) / length
            weakens = name not in _HARMLESS
            yield _Candidate(name, about, sentence, clean - factor * along, fitted=1, weakens=weakens)
    along = _unit("clean")
    factor = float(_unit("applied") @ gram @ along) / max(float(along @ gram @ along), 1e-300)
    text = f"the gradient is {factor:.4g} x the clipped sum: check the divisor and the loss's reduction"
    yield _Candidate(SCALED, MEAN, text, _unit("applied") - factor * along, fitted=1, weakens=abs(factor) > 1)


def _unit(name: str) -> Array:
    return np.asarray(np.eye(len(VECTORS))[_place(name)])


_DIRECTIONS = {
    "gradient": _unit("previous gradient"),
    "clean": _unit("previous clean"),
    "noise": _unit("previous gradient") - _unit("previous clean"),
    "weights": _unit("weights"),
    "momentum": _unit("momentum"),
}
_ADDED = (
    ("gradient", MEMORY, ACCUMULATED),
    ("clean", MEMORY, "the previous step's clean gradient is added again: set gradients to zero before each step"),
    (
        "momentum",
        MEMORY,
        "earlier steps' clean gradients are in it (momentum before the noise is added), so every step releases all "
        "gradients before it again: add the noise first, and give the noisy gradient to the optimizer",
    ),
    ("noise", STEPS, "the noise of a step depends on that of the step before: draw fresh noise in every step"),
    (
        "weights",
        MEAN,
        "a multiple of the weights is in it (weight decay, or a penalty on the weights), which is safe: yield the "
        "gradient before that is added",
    ),
)
