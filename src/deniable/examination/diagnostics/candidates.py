"""Gradients that a training may have summed in place of the claimed one: what each means for privacy, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.examination.alternatives import (
    ADAM,
    AFTER,
    CLIPS,
    COUNTED,
    FLAT,
    LOSSES,
    MICROBATCHES,
    MOMENTA,
    VALUES,
    VECTORS,
)
from deniable.examination.claim import Adaptive, Flat
from deniable.examination.diagnostics.dependence import DEPENDS
from deniable.examination.diagnostics.trial_evidence import Evidence
from deniable.examination.updates.post_processing import ACCUMULATED, WEIGHTS_ADDED, YIELDED_MEAN
from deniable.mechanisms import Adjacency

Array = NDArray[np.float64]


CLIPPING, MEAN, MEMORY, STEPS = "clipping per example", "mean zero", "no earlier gradient", "independent steps"


NORM, SCALED = "another norm", "scaled"


SLIGHTLY = 1.005
"""A fitted norm below this multiple of the claimed one is the claimed one: it is found to about so much."""
FITTED = 6.0
"""The distance that a fitted number must gain."""


CLIP_EACH = "clip every example's gradient before summing"


_MEAN_CLIPPED = (
    "the batch's mean gradient is clipped, not each example's, so one example's influence is bounded by nothing: "
    "clip every example's gradient before summing"
)


_SUM_CLIPPED = f"the batch's summed gradient is clipped, not each example's: {CLIP_EACH}"


_SUMMED = {
    "whole": (CLIPPING, f"the gradients are not clipped at all: {CLIP_EACH}"),
    "mean clipped": (CLIPPING, _MEAN_CLIPPED),
    "mean clipped, not multiplied": (CLIPPING, _MEAN_CLIPPED),
    "mean clipped, expected size": (CLIPPING, _MEAN_CLIPPED),
    "sum clipped": (CLIPPING, _SUM_CLIPPED),
    "sum clipped, multiplied": (CLIPPING, _SUM_CLIPPED),
    "loss averaged": (
        CLIPPING,
        "each example's loss is divided by the batch size before clipping, so that one example changes the gradients "
        "of all others, too (by up to twice the clipping norm together): clip gradients of the examples' own losses",
    ),
    "loss averaged, expected size": (
        CLIPPING,
        "each example's loss is divided by the expected batch size before clipping: that is safe, but hardly any "
        "gradient reaches the clipping norm; audit with the loss that is trained on",
    ),
    FLAT: (
        CLIPPING,
        "every gradient that is longer than the clipping norm is shortened to it, over all layers together (flat "
        "clipping), which bounds it as claimed: claim it, {flat}",
    ),
    "auto-s": (
        CLIPPING,
        "gradients are made C g / (|g| + 0.01) (AUTO-S), which bounds them as claimed: claim it, "
        "recipe=Recipe(AutoS())",
    ),
    "median norm": (
        CLIPPING,
        "gradients are clipped at the batch's own median norm, which depends on the records and has no noise: fix the "
        "clipping norm, or follow a noisy count (recipe=Recipe(Adaptive(...)))",
    ),
    "mean norm": (
        CLIPPING,
        "gradients are clipped at the batch's own mean norm, which depends on the records and has no noise: fix the "
        "clipping norm, or follow a noisy count (recipe=Recipe(Adaptive(...)))",
    ),
    "first layer whole": (
        CLIPPING,
        "the first layer's gradients are not clipped, only those of other layers: clip the norm over all parameters",
    ),
    "last layer whole": (
        CLIPPING,
        "the last layer's gradients are not clipped, only those of other layers: clip the norm over all parameters",
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
        "another one; claim it, {per_layer}",
    ),
    "layers scaled": (
        CLIPPING,
        "every layer is scaled on its own to the whole norm, so an example's gradient has a norm of clip x "
        "sqrt(layers): clip the norm over all layers, or divide the clipping norm among them",
    ),
    "layers scaled, equal part": (
        CLIPPING,
        "every layer is scaled on its own to clip / sqrt(layers), also where it is shorter: the norm is bounded as "
        "claimed, the gradient is another one; claim {per_layer}, or audit with the loss trained on",
    ),
    **{
        f"by value {share:g}": (
            CLIPPING,
            "every number of a gradient is clipped on its own (by value), which does not bound the norm by the claimed "
            "one: clip the norm over all numbers",
        )
        for share in VALUES
    },
    "squared norm": (CLIPPING, "gradients are divided by their squared norm, not by their norm, when they are clipped"),
    "matrices only": (
        CLIPPING,
        "the norm that is clipped leaves out the biases, so the whole gradient is longer than the clipping norm: take "
        "the norm over all parameters",
    ),
    **{
        name: (
            CLIPPING,
            f"the norm that is clipped leaves out some parameters ({name} of them), so the whole gradient is longer "
            "than the clipping norm: take the norm over all parameters",
        )
        for name in COUNTED
    },
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
    "normalised": (
        CLIPPING,
        "every gradient is scaled to the clipping norm, also those that are shorter, which is as safe: claim it, "
        "recipe=Recipe(Normalised())",
    ),
    "mean": (
        MEAN,
        YIELDED_MEAN,
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
    f"than the clipping norm: {CLIP_EACH}"
)


_HARMLESS = (
    *(
        "per layer, equal part",
        "loss averaged, expected size",
        "normalised",
        "auto-s",
        "weights",
        "absolute norm",
        FLAT,
    ),
    *("older weights", "gradient", "mean", "layers scaled, equal part", AFTER),
)


_ADVISED = (FLAT, "per layer, equal part", "layers scaled, equal part")
"""Those whose sentence says how they are claimed."""
EQUAL_PARTS = ("per layer, equal part", "layers scaled, equal part")
CLAIMED, BOUNDED = "clean", (FLAT, "auto-s", "normalised", *EQUAL_PARTS, "absolute norm")


@dataclass(frozen=True)
class Candidate:
    """Applied = a combination of `VECTORS` plus noise."""

    name: str
    about: str
    sentence: str
    parts: Array
    """Coefficients of `VECTORS` in what is left: applied minus the candidate."""
    fitted: int = 0
    weakens: bool = True
    stretch: float = 1.0

    def distance(self, gram: Array) -> float:
        return float(self.parts @ gram @ self.parts) + FITTED * self.fitted

    @property
    def order(self) -> int:
        """The simplest first, where nothing else tells them apart."""
        return VECTORS.index(self.name) if self.name in VECTORS else len(VECTORS)

    def left(self, gram: Array) -> float:
        """The distance between twins, where nothing is random."""
        return float(self.parts @ gram @ self.parts) * (1 + 1e-3 * self.fitted)


def place(name: str) -> int:
    return VECTORS.index(name)


def left_over(name: str) -> Array:
    """The applied sum less this vector, as coefficients of `VECTORS`."""
    parts = np.zeros(len(VECTORS))
    parts[place("applied")] = 1
    parts[place(name)] -= 1
    return parts


def sum_candidate(name: str, about: str = "", sentence: str = "", fitted: int = 0, weakens: bool = True) -> Candidate:
    return Candidate(name, about, sentence, left_over(name), fitted, weakens)


def named_candidate(name: str) -> Candidate:
    """One of the known sums, with its sentence."""
    return sum_candidate(name, *_SUMMED[name])


def all_candidates(gram: Array, evidence: Evidence) -> Iterator[Candidate]:
    replaced = evidence.claim.adjacency is not Adjacency.ADD_REMOVE
    for name, (about, text) in _SUMMED.items():
        if not _is_another_sum(name, evidence):
            continue
        sentence = text.format(**_advice(evidence)) if name in _ADVISED else text
        harmless = name in _HARMLESS or (name == "squared norm" and evidence.claim.clip >= 1)
        # the size of a batch, and a bound of twice the norm, are no secret where a record is exchanged
        harmless |= (replaced and name == "loss averaged") or (
            evidence.claim.adjacency is Adjacency.REPLACE and name == "sum clipped"
        )
        harmless |= name.startswith("by value") and float(name.split()[-1]) * evidence.sizes.sum() ** 0.5 <= 1
        found = sum_candidate(name, about, sentence, weakens=not harmless)
        size = max(1.0, float(evidence.trials.batch.sum(2).mean()))
        yield replace(found, stretch=1 / size) if name == "mean" else found
    for factor in LOSSES:
        text = f"the loss is {factor:g} x the audit's, before clipping, which is safe: audit with the loss trained on"
        yield sum_candidate(f"loss x {factor:g}", CLIPPING, text, fitted=1, weakens=False)
    for size, what in MICROBATCHES:
        yield sum_candidate(f"{what} of {size}", CLIPPING, _GROUPED.format(size=size), fitted=1)  # the size
    yield from other_norms(gram)
    yield from _multiples(gram)


def _is_another_sum(name: str, evidence: Evidence) -> bool:
    """Whether it is another sum than flat clipping's, and flat clipping another than the claimed one."""
    if name == FLAT:
        return not isinstance(evidence.claim.recipe.clipping, Flat | Adaptive)
    if name in COUNTED:
        return bool(evidence.shapes[COUNTED[name]])
    return name != "matrices only" or len({len(shape) > 1 for shape in evidence.shapes}) > 1


def _advice(evidence: Evidence) -> dict[str, str]:
    """How a kind of clipping is claimed."""
    layers, moving = len(evidence.shapes), bool(np.ptp(evidence.trials.clip) > 0)
    return {
        "flat": "recipe=Recipe(Adaptive(count_noise)) if its norm follows a noisy count"
        if moving
        else "recipe=Recipe()",
        "per_layer": f"recipe=Recipe(PerLayer(({evidence.claim.clip:g} / {layers}**0.5,) * {layers}))",
    }


def other_norms(gram: Array) -> Iterator[Candidate]:
    """Another clipping norm; between two that are computed, the sum is taken to be on the line between theirs."""
    for low, high in pairwise(CLIPS):
        ends = f"clipped at {low:g} x", f"clipped at {high:g} x"
        start = left_over(ends[0])
        step = left_over(ends[1]) - start
        length = float(step @ gram @ step)
        share = float(np.clip(-(start @ gram @ step) / max(length, 1e-300), 0, 1))
        norm = low + share * (high - low)
        parts = start + share * step
        yield Candidate(NORM, CLIPPING, _norm_sentence(norm), parts, fitted=1, weakens=norm > SLIGHTLY, stretch=norm)


def _norm_sentence(norm: float) -> str:
    times = {2.0: "twice", 0.5: "half"}.get(round(norm, 1), f"about {norm:.3g} x")
    if norm > SLIGHTLY:
        return f"the gradients are clipped at {times} the claimed norm: one example counts up to {norm:.3g} times"
    about = f"the gradients are clipped at {times} the claimed norm: that is safe, but not what is claimed"
    return f"{about}; claim that norm, and the noise relative to it ({1 / norm:.3g} x the claimed multiplier)"


def _multiples(gram: Array) -> Iterator[Candidate]:
    """The claimed sum plus a fitted multiple of something else."""
    clean = left_over("clean")
    for name, about, sentence in _ADDED:
        along = ADDED_DIRECTIONS[name]
        length = float(along @ gram @ along)
        if length > 1e-9:
            factor = float(clean @ gram @ along) / length
            weakens = name not in _HARMLESS
            if name == "noise":
                weakens = abs(factor) > 0.01
            yield Candidate(name, about, sentence, clean - factor * along, fitted=1, weakens=weakens)
    yield _by_optimizer(gram)
    along = unit_vector("clean")
    factor = float(unit_vector("applied") @ gram @ along) / max(float(along @ gram @ along), 1e-300)
    text = f"the gradient is {factor:.4g} x the clipped sum: check the divisor and the loss's reduction"
    parts = unit_vector("applied") - factor * along
    yield Candidate(SCALED, MEAN, text, parts, fitted=1, weakens=abs(factor) > 1, stretch=abs(factor))


def _by_optimizer(gram: Array) -> Candidate:
    """A fitted multiple of Adam's direction."""
    along, applied = unit_vector(ADAM), unit_vector("applied")
    factor = float(applied @ gram @ along) / max(float(along @ gram @ along), 1e-300)
    text = (
        "the clipped sums went through an optimizer (Adam or the like) before the noise was added, so that clipping no "
        "longer bounds what one example changes: add the noise to the clipped sum, then give it to the optimizer"
    )
    return Candidate(ADAM, MEMORY, text, applied - factor * along, fitted=1)


def unit_vector(name: str) -> Array:
    return np.asarray(np.eye(len(VECTORS))[place(name)])


ADDED_DIRECTIONS = {
    "gradient": unit_vector("previous gradient"),
    "clean": unit_vector("previous clean"),
    "noise": unit_vector("previous gradient") - unit_vector("previous clean"),
    "weights": unit_vector("weights"),
    **{f"momentum {decay:g}": unit_vector(f"momentum {decay:g}") for decay in MOMENTA},
}


_ADDED = (
    ("gradient", MEMORY, ACCUMULATED),
    ("clean", MEMORY, "the previous step's clean gradient is added again: set gradients to zero before each step"),
    *(
        (
            f"momentum {decay:g}",
            MEMORY,
            "earlier steps' clean gradients are in it (momentum before the noise is added), so every step releases all "
            "gradients before it again: add the noise first, and give the noisy gradient to the optimizer",
        )
        for decay in MOMENTA
    ),
    ("noise", STEPS, DEPENDS),
    ("weights", MEAN, WEIGHTS_ADDED),
)
