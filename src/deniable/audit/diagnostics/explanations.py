"""Which other gradient explains what was applied: named only if nothing that is known speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.audit.alternatives import AFTER, CLIPS, LOSSES, MICROBATCHES, MOMENTA, VALUES, VECTORS
from deniable.audit.diagnostics.dependence import DEPENDS
from deniable.audit.diagnostics.evidence import Evidence
from deniable.audit.diagnostics.moving import moving_norm
from deniable.mechanisms import Adjacency

__all__ = ["ACCUMULATED", "CLAIMED", "Explanation", "explanation", "simplest", "sum_is_clipped"]

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
EXACT, EXPLAINED, CARRIED = 1e-4, 0.05, 1e-3
"""Between twins: the share of the difference that rounding may leave, that a named gradient may leave, and that what is
carried over from the step before may leave (a record's share is alike in both steps, whatever the recipe)."""

ACCUMULATED = (
    "the previous step's gradient is still in it, noise included (gradients accumulate, or momentum is added before "
    "the gradient is yielded), which is safe as long as every step has fresh noise: yield the gradient without the "
    "earlier ones"
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
        "each example's loss is divided by the batch size before clipping, so that one example changes the gradients "
        "of all others, too (by up to twice the clipping norm together): clip gradients of the examples' own losses",
    ),
    "loss averaged, expected size": (
        CLIPPING,
        "each example's loss is divided by the expected batch size before clipping: that is safe, but hardly any "
        "gradient reaches the clipping norm; audit with the loss that is trained on",
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
        "another one; claim it, recipe=Recipe(PerLayer((...)))",
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
        "what is yielded is the mean over the batch, noise included: yield its divisor, too "
        "(AppliedStep(..., divisor=...))",
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
_HARMLESS = (
    *("per layer, equal part", "loss averaged, expected size", "normalised", "auto-s", "weights", "absolute norm"),
    *("older weights", "gradient", "mean", AFTER),
)
CLAIMED, _BOUNDED = "clean", ("auto-s", "normalised", "per layer, equal part", "absolute norm")
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
    stretch: float = 1.0
    """How long one record's share may be, in clipping norms, where it is another multiple of the claimed one."""
    parts: Array | None = None
    """Coefficients of `VECTORS` in what is left."""


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


def explanation(evidence: Evidence) -> Explanation | None:
    """The candidate that fits best, if it fits better than the claim and nothing known is left in the rest.

    Twins tell it without noise. Where there are none, what the trials applied is compared.
    """
    if not evidence.looked.size:
        return None
    gram = evidence.looked.sum((0, 1))
    exact = None if evidence.twins is None else evidence.twins.exact
    if exact is None:
        return _likely(evidence, gram)
    if float(exact[0, 0]) <= 1e-6 * float(exact[_place(CLAIMED), _place(CLAIMED)]):
        return None  # the exchanged record is not used at all
    if _summed(CLAIMED).left(exact) <= EXACT * float(exact[0, 0]):
        return _likely(evidence, gram, also_exact=exact)
    best, tied = _fitting(evidence, exact)
    roughly = best is None or best.left(exact) > CARRIED * _summed(CLAIMED).left(exact)
    if roughly and (text := moving_norm(evidence.twins)):
        return Explanation(CLIPPING, text, 1.0, True)
    return _by_step(evidence, gram) if best is None else _exactly(evidence, gram, exact, tied)


def _fitting(evidence: Evidence, exact: Array) -> tuple[_Candidate | None, list[_Candidate]]:
    """The candidate that twins' differences fit best, and all that fit as well; None if none does."""
    claimed, rounding = _summed(CLAIMED).left(exact), EXACT * float(exact[0, 0])
    candidates = sorted(_candidates(exact, evidence), key=lambda one: one.left(exact))
    candidates = [
        one
        for one in candidates
        if one.name not in ("gradient", "clean", "noise") or one.left(exact) < CARRIED * claimed
    ]
    # what is called safe must be summed exactly: a leak may be like it
    candidates = [one for one in candidates if one.weakens or one.left(exact) <= max(CARRIED * claimed, rounding)]
    best = candidates[0]
    if best.left(exact) > max(EXPLAINED * claimed, rounding):
        return None, []
    most = 4 * best.left(exact) + 1e-3 * rounding
    return best, [one for one in candidates if one.left(exact) <= most]


def simplest(evidence: Evidence, exact: Array) -> Explanation | None:
    """The simplest candidate that twins' differences fit, without a look at the trials; None if none does."""
    best, tied = _fitting(evidence, exact)
    if best is None:
        return None
    chosen = min(tied, key=lambda one: (one.fitted, one.order))
    return Explanation(chosen.about, chosen.sentence, 1.0, chosen.weakens, chosen.stretch, chosen.parts)


def _exactly(evidence: Evidence, gram: Array, exact: Array, tied: list[_Candidate]) -> Explanation:
    """Of the candidates that twins do not tell apart, the one that the trials fit best."""
    best = min(tied, key=lambda one: (round(one.distance(gram)), one.order))
    alike = next((text for pair, text in _ALIKE.items() if {one.name for one in tied} >= set(pair)), None)
    found = _explained(evidence, best, gram, alike)
    if best.name != SCALED or abs(found.noise_ratio - 1) >= 0.1:
        return found
    norm = min(_other_norms(exact), key=lambda one: one.left(exact))
    fits = norm.left(exact) <= EXPLAINED * _summed(CLAIMED).left(exact)
    return _explained(evidence, norm, gram) if fits else found  # a wrong divisor would scale the noise as well


def _by_step(evidence: Evidence, gram: Array) -> Explanation | None:
    """A leak that is in some steps only: the gradient that fits in them."""
    every = evidence.twins.exact_steps if evidence.twins is not None else None
    found: dict[int, _Candidate] = {}
    for step, exact in enumerate(every if every is not None else []):
        if exact[0, 0] > 0 and _summed(CLAIMED).left(exact) > EXACT * float(exact[0, 0]):
            _, tied = _fitting(evidence, exact)
            leaks = [one for one in tied if one.weakens and one.name not in _DIRECTIONS]
            if leaks and len(leaks) == sum(one.name not in _DIRECTIONS for one in tied):
                found[step + 1] = min(leaks, key=lambda one: (one.fitted, one.order))
    norms = [one.stretch for one in found.values() if one.name == NORM]
    if not found or (len(norms) == len(found) and (len(norms) < 2 or max(norms) > 1.02 * min(norms))):
        return None  # one record's excess alone fits some norm
    worst = found[max(found, key=lambda step: found[step].stretch)]
    named = f"in steps {', '.join(str(step) for step in list(found)[:8])}"
    return Explanation(worst.about, f"{named} {worst.sentence}", 1.0, True, parts=worst.parts)


def _explained(evidence: Evidence, best: _Candidate, gram: Array, alike: str | None = None) -> Explanation:
    least = float(best.parts @ gram @ best.parts)
    numbers = evidence.looked.shape[0] * evidence.looked.shape[1] * evidence.sizes.sum()
    ratio = float(np.sqrt(max(0.0, least) / numbers))
    return Explanation(best.about, alike or best.sentence, ratio, best.weakens, best.stretch, best.parts)


def _likely(evidence: Evidence, gram: Array, also_exact: Array | None = None) -> Explanation | None:
    """By what the trials applied, under their noise; between twins it must not fit worse than the claim."""
    claimed = _summed(CLAIMED).distance(gram)
    candidates = sorted(_candidates(gram, evidence), key=lambda one: one.distance(gram))
    if also_exact is not None:
        rounding = EXACT * float(also_exact[0, 0])
        candidates = [one for one in candidates if one.left(also_exact) <= rounding] or candidates
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
    return _explained(evidence, best, gram, alike)


@dataclass(frozen=True)
class _Shortened:
    """A noisy sum that was shortened to one length: what was summed under the noise, and the noise's scale."""

    name: str
    noise_ratio: float


def sum_is_clipped(evidence: Evidence) -> Explanation | None:
    """Whether the noisy sums have one largest length, which most of them reach: clipping after the noise.

    Twins tell what was summed: a x (noisy sum) - b x (its twin's) is the difference of the clean ones, for some a, b.
    """
    lengths = evidence.trials.length_applied
    if np.mean(lengths > (1 - 1e-4) * lengths.max()) < 0.5:
        return None
    found = _under_noise(evidence)
    if found is not None and found.name in (CLAIMED, *_BOUNDED):
        text = "the noisy sum is clipped once more, after its noise, which is safe: yield it before that"
        little = found.noise_ratio < 1 - 4 / (2 * evidence.sizes.sum()) ** 0.5
        return Explanation(CLIPPING, text, found.noise_ratio if little else 1.0, False)
    text = (
        "the noise is added before clipping: the noisy sum is clipped, and single examples' gradients are not, so one "
        f"example's influence is not bounded: {_EACH}, then add the noise"
    )
    return Explanation(CLIPPING, text, 1.0, True)


def _under_noise(evidence: Evidence) -> _Shortened | None:
    if evidence.twins is None or evidence.twins.exact is None:
        return None
    best: tuple[float, str, float] = (0.05, "", 1.0)
    for one, two in evidence.twins.exchanged:
        first, second = one.vectors[0].numpy(), two.vectors[0].numpy()
        pair = np.stack([first[0], -second[0]], 1)
        for name in (CLAIMED, "whole", *_BOUNDED):
            difference = first[_place(name)] - second[_place(name)]
            scales, *_ = np.linalg.lstsq(pair, difference, rcond=None)
            left = np.linalg.norm(pair @ scales - difference) / max(float(np.linalg.norm(difference)), 1e-300)
            noise = scales[0] * first[0] - first[_place(name)]
            if left < best[0]:
                best = float(left), name, float(np.sqrt(np.mean(np.square(noise))))
    return _Shortened(best[1], best[2]) if best[1] else None


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


def _candidates(gram: Array, evidence: Evidence) -> Iterator[_Candidate]:
    replaced = evidence.claim.adjacency is not Adjacency.ADD_REMOVE
    for name, (about, sentence) in _SUMMED.items():
        harmless = name in _HARMLESS or (name == "squared norm" and evidence.claim.clip >= 1)
        # the size of a batch, and a bound of twice the norm, are no secret where a record is exchanged
        harmless |= (replaced and name == "loss averaged") or (
            evidence.claim.adjacency is Adjacency.REPLACE and name == "sum clipped"
        )
        harmless |= name.startswith("by value") and float(name.split()[-1]) * evidence.sizes.sum() ** 0.5 <= 1
        found = _summed(name, about, sentence, weakens=not harmless)
        size = max(1.0, float(evidence.trials.batch.sum(2).mean()))
        yield replace(found, stretch=1 / size) if name == "mean" else found
    for factor in LOSSES:
        text = f"the loss is {factor:g} x the audit's, before clipping, which is safe: audit with the loss trained on"
        yield _summed(f"loss x {factor:g}", CLIPPING, text, fitted=1, weakens=False)
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
        yield _Candidate(NORM, CLIPPING, _norm_sentence(norm), parts, fitted=1, weakens=norm > 1, stretch=norm)


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
            if name == "noise":
                weakens = abs(factor) > 0.01
            yield _Candidate(name, about, sentence, clean - factor * along, fitted=1, weakens=weakens)
    along = _unit("clean")
    factor = float(_unit("applied") @ gram @ along) / max(float(along @ gram @ along), 1e-300)
    text = f"the gradient is {factor:.4g} x the clipped sum: check the divisor and the loss's reduction"
    parts = _unit("applied") - factor * along
    yield _Candidate(SCALED, MEAN, text, parts, fitted=1, weakens=abs(factor) > 1, stretch=abs(factor))


def _unit(name: str) -> Array:
    return np.asarray(np.eye(len(VECTORS))[_place(name)])


_DIRECTIONS = {
    "gradient": _unit("previous gradient"),
    "clean": _unit("previous clean"),
    "noise": _unit("previous gradient") - _unit("previous clean"),
    "weights": _unit("weights"),
    **{f"momentum {decay:g}": _unit(f"momentum {decay:g}") for decay in MOMENTA},
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
    (
        "weights",
        MEAN,
        "a multiple of the weights is in it (weight decay, or a penalty on the weights), which is safe: yield the "
        "gradient before that is added",
    ),
)
