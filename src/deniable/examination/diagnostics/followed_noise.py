"""Causes where the noise of a training could be followed through what it shows: a sum with noise, or something else."""

from __future__ import annotations

from dataclasses import replace

from deniable.examination.diagnostics import noise_spread
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.twins.shifted_noise import Shown

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
