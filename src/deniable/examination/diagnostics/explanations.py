"""Which other gradient explains what was applied: named only if nothing that is known speaks against it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.examination.alternatives import AFTER, FLAT, VECTORS
from deniable.examination.diagnostics.candidates import (
    ADDED_DIRECTIONS,
    BOUNDED,
    CLAIMED,
    CLIP_EACH,
    CLIPPING,
    NORM,
    SCALED,
    Array,
    Candidate,
    all_candidates,
    other_norms,
    place,
    sum_candidate,
    unit_vector,
)
from deniable.examination.diagnostics.moving_norms import moving_norm, norm_of_other_records
from deniable.examination.diagnostics.trial_evidence import Evidence

BETTER = 30.0
"""Another gradient is considered if the distance to it, in claimed variances, is so much smaller than the claim's."""
HIDDEN = 10.0
"""Two short gradients whose distances differ by less are not told apart."""
LEFT, SHARE = 25.0, 0.01
"""What may be left along any known direction: in variances of the noise, and as a share of what is explained."""
EXACT, EXPLAINED, CARRIED = 1e-4, 0.05, 1e-3
"""Between twins: the share of the difference that rounding may leave, that a named gradient may leave, and that what is
carried over from the step before may leave (a record's share is alike in both steps, whatever the recipe)."""

_ALIKE = {
    ("whole", "mean clipped"): (
        "the gradients are not clipped example by example: either the batch's mean gradient is clipped in place of "
        f"each example's, or nothing is (in these trainings that is the same, since the mean was short): {CLIP_EACH}"
    ),
    ("mean clipped, not multiplied", "loss averaged"): (
        "the batch's mean gradient is clipped, not each example's, or each example's loss is divided by the batch size "
        "before clipping (in these trainings that is the same, since the mean was short): clip the gradients of the "
        "examples' own losses before summing"
    ),
}
"""Sentences for pairs that a training may not tell apart."""
_LONG = (
    "every gradient is as long as the clipping norm: either those that are longer are shortened to it (flat clipping), "
    "or all are scaled to it (in these trainings that is the same, since all were longer); both bound it as claimed: "
    "claim recipe=Recipe(), or recipe=Recipe(Normalised()), whichever is done"
)
"""The same of two that are as safe as claimed."""
_SHORT = ("sum clipped", "absolute norm")
_FAR_SHORTER = (
    "the gradients are far shorter than if each were clipped to the claimed norm: either the batch's summed gradient "
    "is clipped, which is not safe, or each example's by its L1 norm, which is (in these trainings the noise hides the "
    f"difference): {CLIP_EACH}, by its norm"
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
    rough: bool = False
    """Whether twins' differences fit it but for a small part, so that it may be another one that is alike."""
    safe: Explanation | None = None
    """One that fits as well and is as private as claimed: which of the two it is, one record's share tells."""


def explanation(evidence: Evidence) -> Explanation | None:
    """The candidate that fits best, if it fits better than the claim and nothing known is left in the rest.

    Twins tell it without noise. Where there are none, what the trials applied is compared.
    """
    if not evidence.trial_products.size:
        return None
    gram = evidence.trial_products.sum((0, 1))
    exact = None if evidence.twins is None else evidence.twins.exact
    if exact is None:
        return _likely(evidence, gram)
    if float(exact[0, 0]) <= 1e-6 * float(exact[place(CLAIMED), place(CLAIMED)]):
        return None  # the exchanged record is not used at all
    if sum_candidate(CLAIMED).left(exact) <= EXACT * float(exact[0, 0]):
        return _likely(evidence, gram, also_exact=exact)
    best, tied = _fitting(evidence, exact)
    if text := _moving_norm(evidence, best, exact):
        return Explanation(CLIPPING, text, 1.0, True)
    return _by_step(evidence, gram) if best is None else _exactly(evidence, gram, exact, tied)


def _moving_norm(evidence: Evidence, best: Candidate | None, exact: Array) -> str:
    """A norm that is taken from the records, in words, where no fixed one fits, or not on other records; else ""."""
    if evidence.twins is None or evidence.twins.first_fits:
        return ""
    roughly = best is None or best.left(exact) > CARRIED * sum_candidate(CLAIMED).left(exact)
    another_norm = best is not None and best.name == NORM
    found = moving_norm(evidence.twins, clipped_only=not roughly) if roughly or another_norm else ""
    if found or best is None or not another_norm:
        return found
    return norm_of_other_records(evidence.twins, best.stretch * evidence.claim.clip)


def _fitting(evidence: Evidence, exact: Array) -> tuple[Candidate | None, list[Candidate]]:
    """The candidate that twins' differences fit best, and all that fit as well; None if none does."""
    claimed, rounding = sum_candidate(CLAIMED).left(exact), EXACT * float(exact[0, 0])
    candidates = sorted(all_candidates(exact, evidence), key=lambda one: one.left(exact))
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
    safe = _harmless(chosen, tied)
    found, other = (None if one is None else _unmeasured_explanation(one, exact) for one in (chosen, safe))
    return None if found is None else replace(found, safe=other)


def _harmless(chosen: Candidate, tied: list[Candidate]) -> Candidate | None:
    """The simplest of those that are as private as claimed, where one record's share tells: only of clipping."""
    safe = (one for one in tied if not one.weakens and one.about == chosen.about == CLIPPING)
    return min(safe, key=lambda one: (one.fitted, one.order), default=None)


def _unmeasured_explanation(candidate: Candidate, exact: Array) -> Explanation:
    """With the claimed noise, since no trial was looked at."""
    found = Explanation(candidate.about, candidate.sentence, 1.0, candidate.weakens, candidate.stretch, candidate.parts)
    return replace(found, rough=_is_rough(candidate, exact))


def _is_rough(candidate: Candidate, exact: Array) -> bool:
    return candidate.left(exact) > max(CARRIED * sum_candidate(CLAIMED).left(exact), EXACT * float(exact[0, 0]))


def _exactly(evidence: Evidence, gram: Array, exact: Array, tied: list[Candidate]) -> Explanation:
    """Of the candidates that twins do not tell apart, the one that the trials fit best."""
    tied = _told_apart(evidence, tied)
    names = {one.name for one in tied}
    best = min(tied, key=lambda one: (round(one.distance(gram)), one.order))
    alike = next((text for pair, text in _ALIKE.items() if names >= set(pair)), None)
    harmless = _harmless(best, tied)
    both = _LONG if names >= {FLAT, "normalised"} else None
    safe = None if harmless is None else _as_explanation(evidence, harmless, gram, both)
    alike = alike if best.weakens else both
    found = replace(_as_explanation(evidence, best, gram, alike), rough=_is_rough(best, exact), safe=safe)
    if best.name != SCALED or abs(found.noise_ratio - 1) >= 0.1:
        return found
    norm = min(other_norms(exact), key=lambda one: one.left(exact))
    fits = norm.left(exact) <= EXPLAINED * sum_candidate(CLAIMED).left(exact)
    return (
        replace(_as_explanation(evidence, norm, gram), rough=True) if fits else found
    )  # a wrong divisor would scale the noise as well


def _told_apart(evidence: Evidence, tied: list[Candidate]) -> list[Candidate]:
    """Of these, the ones that also fit on records with longer and shorter gradients; all, where these do not tell."""
    provoked = evidence.twins.on_provoking_records if evidence.twins is not None and len(tied) > 1 else None
    if provoked is None or provoked.exact is None:
        return tied
    exact = provoked.exact
    least, rounding = min(one.left(exact) for one in tied), EXACT * float(exact[0, 0])
    if least > max(CARRIED * sum_candidate(CLAIMED).left(exact), rounding):
        return tied
    return [one for one in tied if one.left(exact) <= 4 * least + 1e-3 * rounding]


def _by_step(evidence: Evidence, gram: Array) -> Explanation | None:
    """A leak that is in some steps only: the gradient that fits in them."""
    every = evidence.twins.exact_steps if evidence.twins is not None else None
    found: dict[int, Candidate] = {}
    for step, exact in enumerate(every if every is not None else []):
        if exact[0, 0] > 0 and sum_candidate(CLAIMED).left(exact) > EXACT * float(exact[0, 0]):
            _, tied = _fitting(evidence, exact)
            most = max(CARRIED * sum_candidate(CLAIMED).left(exact), EXACT * float(exact[0, 0]))
            tied = [one for one in tied if one.left(exact) <= most or one.name == NORM]
            leaks = [one for one in tied if one.weakens and one.name not in ADDED_DIRECTIONS]
            if leaks and len(leaks) == sum(one.name not in ADDED_DIRECTIONS for one in tied):
                found[step + 1] = min(leaks, key=lambda one: (one.fitted, one.order))
    norms = [one.stretch for one in found.values() if one.name == NORM]
    if not found or (len(norms) == len(found) and (len(norms) < 2 or max(norms) > 1.02 * min(norms))):
        return None  # one record's excess alone fits some norm
    worst = found[max(found, key=lambda step: found[step].stretch)]
    named = f"in steps {', '.join(str(step) for step in list(found)[:8])}"
    return Explanation(worst.about, f"{named} {worst.sentence}", 1.0, True, parts=worst.parts)


def _as_explanation(evidence: Evidence, best: Candidate, gram: Array, alike: str | None = None) -> Explanation:
    least = float(best.parts @ gram @ best.parts)
    numbers = evidence.trial_products.shape[0] * evidence.trial_products.shape[1] * evidence.sizes.sum()
    ratio = float(np.sqrt(max(0.0, least) / numbers))
    return Explanation(best.about, alike or best.sentence, ratio, best.weakens, best.stretch, best.parts)


def _likely(evidence: Evidence, gram: Array, also_exact: Array | None = None) -> Explanation | None:
    """By what the trials applied, under their noise; between twins it must not fit worse than the claim."""
    claimed = sum_candidate(CLAIMED).distance(gram)
    candidates = sorted(all_candidates(gram, evidence), key=lambda one: one.distance(gram))
    if also_exact is not None:
        rounding = EXACT * float(also_exact[0, 0])
        candidates = [one for one in candidates if one.left(also_exact) <= rounding] or candidates
    best, least = candidates[0], candidates[0].distance(gram)
    gained = claimed - least
    numbers = evidence.trial_products.shape[0] * evidence.trial_products.shape[1] * evidence.sizes.sum()
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
    return _as_explanation(evidence, best, gram, alike)


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
    if found is not None and found.name in (CLAIMED, *BOUNDED):
        text = "the noisy sum is clipped once more, after its noise, which is safe: yield it before that"
        little = found.noise_ratio < 1 - 4 / (2 * evidence.sizes.sum()) ** 0.5
        return Explanation(CLIPPING, text, found.noise_ratio if little else 1.0, False)
    text = (
        "the noise is added before clipping: the noisy sum is clipped, and single examples' gradients are not, so one "
        f"example's influence is not bounded: {CLIP_EACH}, then add the noise"
    )
    return Explanation(CLIPPING, text, 1.0, True)


def _under_noise(evidence: Evidence) -> _Shortened | None:
    if evidence.twins is None or evidence.twins.exact is None:
        return None
    ends = np.cumsum(evidence.sizes)[:-1]
    for cuts in (ends[:0], ends):  # one scale for all, or one for each layer
        best: tuple[float, str, float] = (0.05, "", 1.0)
        for one, two in evidence.twins.exchanged_pairs:
            first, second = one.vectors[0].numpy(), two.vectors[0].numpy()
            for name in (CLAIMED, "whole", *BOUNDED):
                left, noise = _as_scaled(first, second, place(name), cuts)
                best = min(best, (left, name, noise))
        if best[1]:
            return _Shortened(best[1], best[2])
    return None


def _as_scaled(first: Array, second: Array, at: int, cuts: NDArray[np.int64]) -> tuple[float, float]:
    """What the best a x (noisy sum) - b x (its twin's) leaves of the clean ones' difference; the noise's scale."""
    squares, noises = 0.0, []
    difference = first[at] - second[at]
    parts = zip(*(np.split(values, cuts) for values in (first[0], second[0], difference, first[at])), strict=True)
    for mine, other, apart, clean in parts:
        scales, *_ = np.linalg.lstsq(np.stack([mine, -other], 1), apart, rcond=None)
        squares += float(np.square(scales[0] * mine - scales[1] * other - apart).sum())
        noises.append(scales[0] * mine - clean)
    left = squares**0.5 / max(float(np.linalg.norm(difference)), 1e-300)
    return left, float(np.sqrt(np.mean(np.square(np.concatenate(noises)))))


def _nothing_left(candidate: Candidate, gram: Array, ratio: float, gained: float) -> bool:
    """Whether the rest is noise along every direction that is known before the noise is drawn."""
    if candidate.name == AFTER:
        return True
    known = np.array([name not in ("applied", AFTER) for name in VECTORS])
    left = np.square(gram @ candidate.parts) / np.maximum(np.diag(gram), 1e-300)
    itself = unit_vector("applied") - candidate.parts
    explained = min(gained, float(itself @ gram @ itself))
    return bool(left[known].max() <= LEFT * max(ratio, 0.01) ** 2 + SHARE * explained)
