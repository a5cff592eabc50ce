"""Causes that are settled at the end, where several diagnostics together say what a training does.

A rule that nobody knows, by twins that are handed gradients or whose noise is shifted; noise that could be followed
through what a training shows; too little noise, because all that was yielded was shortened after it; noise that is too
little for a claim that also pays for a count.

"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deniable.examination.claim import Adaptive
from deniable.examination.diagnostics import noise_spread
from deniable.examination.diagnostics.around_the_steps import FINAL, STEPS
from deniable.examination.diagnostics.candidates import CLAIMED, place
from deniable.examination.diagnostics.gradient import FOLLOWS, MOVED_OTHERWISE
from deniable.examination.diagnostics.noise_spread import ENOUGH, noise_ratio
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.signal_to_noise import SignalToNoise
from deniable.examination.twins.handed_twins import follows_gradients_alone, ignores_draws
from deniable.examination.twins.shifted_noise import Shown, follows_noisy_sums


def settle_own_rule(test: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The same diagnosis, passed if it failed for an unknown rule that is one of yielded gradients or noisy sums alone.

    A number of steps that varies stays another recipe.
    """
    unknown = test.weakens is None or test.sentence in MOVED_OTHERWISE
    asked = test.name in (FOLLOWS, FINAL, STEPS) and unknown and test.p_value < evidence.level
    if not asked or not (follows_gradients_alone(evidence.twins) or follows_noisy_sums(evidence.twins)):
        return test
    if test.name == STEPS:
        if evidence.twins is None or (evidence.claim.rate < 1 and not ignores_draws(evidence.twins)):
            return test  # the batches' sizes may decide, which are no more public than the records
        text = (
            f"the training takes {test.observed}; the noisy gradients decide, which is safe: claim the largest number"
        )
        return replace(test, sentence=text, weakens=False)
    return replace(test, p_value=1.0, observed="made of the yielded gradients alone", weakens=True)


_BESIDE = (
    "what is yielded in step {step} depends on the records beside the noisy sum: under noise that drowns every "
    "gradient other records still change it (it is scaled, chosen or corrected by clean gradients, or a part of it "
    "has no noise), which no noise hides: use nothing but the noisy sum once the noise is added"
)
_BY_RECORDS = (
    "the size of the noise follows the records ({} to {} x the claimed standard deviation of the first step, on some "
    "other records), so that it tells of them and hides less where it is small: fix it beforehand"
)
_REDRAWN = (
    "the records decide how often random numbers are drawn in a step (the same seed draws more or fewer of them on "
    "others, as where noise is drawn again until the loss falls), so that the noise is chosen by them: draw it once"
)
_UNKNOWN = (
    "what is yielded is no sum of gradients and noise, but something that is computed from one that is not the claimed "
    "one (a sign, a scale for every weight), so that its noise cannot be measured: yield the noisy sum before that, "
    "and audit with the loss that is trained on"
)


def settle_by_followed_noise(causes: list[Diagnosis], evidence: Evidence, about: frozenset[str]) -> list[Diagnosis]:
    """The same causes; those `about` sums with noise are others where what is yielded is no such sum."""
    shown = None if evidence.twins is None else evidence.twins.shown
    ours = [cause for cause in causes if cause.name in about]
    rest = [cause for cause in causes if cause.name not in about]
    if shown is not None and ours and (text := _by_records(shown)):
        return [replace(ours[0], p_value=0.0, sentence=text, weakens=True), *rest]
    if shown is None or shown.noisy_sum is not None or shown.repeated is not None or shown.scaled or not ours:
        return causes
    if shown.beside is None:
        return [*rest, replace(ours[0], sentence=_UNKNOWN, weakens=None)]
    named = noise_spread.has_bare_weights(evidence) or bool(evidence.trials.kept_by_clean.all())
    if named and any(cause.weakens for cause in ours):
        return causes
    bare = [evidence.layers[layer] for layer in shown.bare_layers]
    if 0 < len(bare) < len(evidence.layers):
        text = f"there is no noise on {', '.join(bare)}: add it to every weight"
        return [replace(ours[0], p_value=0.0, sentence=text, weakens=True), *rest]
    beside = replace(ours[0], p_value=0.0, sentence=_BESIDE.format(step=shown.beside + 1), weakens=True)
    return [beside, *rest]


def _by_records(shown: Shown) -> str:
    """How the records decide on the noise, in words; "" if they do not."""
    if shown.redrawn:
        return _REDRAWN
    return "" if shown.noise_scales is None else _BY_RECORDS.format(*(f"{scale:.3g}" for scale in shown.noise_scales))


def settle_shortened(cause: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The same cause, not to be told if gradient and noise are both smaller than claimed, the gradient not less so."""
    ratio = noise_ratio(evidence)
    if (
        cause.name not in ("noise scale", "normality")
        or not cause.weakens
        or ratio >= ENOUGH
        or not evidence.trial_products.size
    ):
        return cause
    gram, clean = evidence.trial_products.sum((0, 1)), place(CLAIMED)
    squares = float(gram[clean, clean])
    signal = SignalToNoise.of(float(gram[0, clean]) - squares, squares, ratio, np.empty(0))
    if not signal.explains(ratio):
        return cause
    text = (
        f"gradient and noise are both smaller than claimed ({signal.factor:.3g} x and {ratio:.3g} x): if what is "
        "yielded was shortened after the noise (cut off, squeezed, another divisor) that is safe, but it cannot be "
        "seen here; yield the noisy gradient before that, and the divisor that is used"
    )
    return replace(cause, sentence=text, weakens=None)


ERRORS = 4
"""Standard errors by which the measured noise may fall short of what is enough without a count."""


def settle_unmoved_norm(cause: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The same cause, not to be told if the noise is enough for a fixed norm, and the norm never moves."""
    claim = evidence.claim
    asked = cause.name == "noise scale" and cause.weakens and isinstance(claim.recipe.clipping, Adaptive)
    if not asked or np.ptp(evidence.trials.clip) > 0:
        return cause
    on_sum = claim.recipe.noise_on_sum(claim.noise)
    numbers = float(evidence.sizes.sum() * evidence.trials.squares[..., 0].size)
    if noise_ratio(evidence) < (1 - ERRORS / (2 * numbers) ** 0.5) * claim.noise / on_sum:
        return cause
    text = (
        f"the clipping norm never changes, or is not yielded, so that no count is seen to take its part of the noise: "
        f"with a fixed norm a noise multiplier of {claim.noise:.4g} on the sum is enough, with a count {on_sum:.4g}; "
        "claim recipe=Recipe() if the norm is fixed, or yield it (AppliedStep(..., clip=...)) and add that much"
    )
    return replace(cause, sentence=text, weakens=None)
