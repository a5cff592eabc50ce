"""Noise that is too little because all that was yielded was shortened after it, which costs no privacy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deniable.examination.diagnostics.candidates import CLAIMED, place
from deniable.examination.diagnostics.noise_spread import ENOUGH, noise_ratio
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.signal_to_noise import SignalToNoise


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
