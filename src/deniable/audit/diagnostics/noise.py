"""The noise itself: its standard deviation in every layer, step and trial, and its normality."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from deniable.audit.diagnostics.evidence import Diagnosis, Evidence
from deniable.audit.diagnostics.laws import any_of, chi_square, scale
from deniable.mechanisms import Adjacency

__all__ = ["noise_ratio", "noise_scale", "normality"]

NEAR = 0.025
"""Two ratios that differ by this share have one cause."""
LEAST_EXPECTED = 20
"""Observations that a bin must expect for its chi-square to hold."""


def noise_ratio(evidence: Evidence) -> float:
    """The noise's standard deviation over the claimed one, all layers together, without the auditor's own numbers."""
    squares, fresh = evidence.trials.squares, evidence.trials.fresh
    numbers = squares.shape[0] * squares.shape[1] * evidence.sizes.sum() - fresh[..., 1].sum()
    return float(scale(max(0.0, squares.sum() - fresh[..., 0].sum()), numbers))


def _step_ratios(evidence: Evidence) -> NDArray[np.float64]:
    squares, fresh = evidence.trials.squares.sum(2), evidence.trials.fresh
    numbers = len(squares) * evidence.sizes.sum() - fresh[..., 1].sum(0)
    return scale(np.maximum(0.0, (squares - fresh[..., 0]).sum(0)), numbers)


def noise_scale(evidence: Evidence) -> Diagnosis:
    """Variance equal to the claim in every layer, step and trial: sums of squares are chi-square."""
    squares, sizes = evidence.trials.squares, evidence.sizes
    trials, steps, _ = squares.shape
    by_layer = squares.sum((0, 1)), trials * steps * sizes
    by_step = squares.sum((0, 2)), np.full(steps, trials * sizes.sum())
    by_trial = squares.sum((1, 2)), np.full(trials, steps * sizes.sum())
    p_values = [any_of(chi_square(*group)) for group in (by_layer, by_step, by_trial)]
    ratios = [scale(*group) for group in (by_layer, by_step, by_trial)]
    failing = [chi_square(*group) * len(group[0]) < evidence.level / 3 for group in (by_layer, by_step, by_trial)]
    overall, alone = noise_ratio(evidence), _step_ratios(evidence)
    low, high = min(r.min() for r in ratios[:2]), max(r.max() for r in ratios[:2])
    below = any(bool((ratio[fails] < 1).any()) for ratio, fails in zip(ratios, failing, strict=True))
    return Diagnosis(
        "noise scale",
        any_of(*p_values),
        f"{overall:.4g} x the claimed standard deviation (layers and steps {low:.3g} to {high:.3g})",
        "1 x in every layer, step and trial",
        _scale_sentence(evidence, overall, [ratios[0], alone, ratios[2]], failing),
        weakens=below,
    )


def _scale_sentence(
    evidence: Evidence, overall: float, ratios: list[NDArray[np.float64]], failing: list[NDArray[np.bool_]]
) -> str:
    layers, steps, trials = ratios
    wrong = failing[0]
    if wrong.any() and not wrong.all():
        named = ", ".join(f"{evidence.layers[i]} ({layers[i]:.2g} x)" for i in np.flatnonzero(wrong)[:6])
        if layers[wrong].max() < 0.2:
            return f"there is no noise on {named}, the other layers have it: add noise to every layer"
        return f"the noise has another standard deviation than claimed on {named}: use the same on every layer"
    odd_steps = failing[1] & (np.abs(steps - 1) > 0.05)
    uneven = steps.max() - steps.min()
    if odd_steps.any() and uneven > (0.5 if odd_steps.all() else 0.1) * max(overall, 0.05):
        named = _ranges(np.flatnonzero(odd_steps) + 1)
        odd = steps[odd_steps].mean()
        what = "is missing" if odd < 0.1 else f"has {odd:.2g} x the claimed standard deviation"
        return f"the noise {what} in steps {named}: add it in every step"
    if failing[2].any() and overall > 0.2 and trials.max() - trials.min() > 0.1 * overall:
        return "the noise's standard deviation changes from training to training: fix it before training"
    return _common_sentence(evidence, overall)


def _common_sentence(evidence: Evidence, ratio: float) -> str:
    claim, sizes = evidence.claim, np.maximum(evidence.trials.batch.sum(2, dtype=float), 1)
    twice = f"it is divided by the batch size ({sizes.mean():.4g}) twice: divide the noisy sum once"
    after = "it is added after averaging without being divided by the batch size: add it to the sum"
    causes = [
        (1 / sizes.mean(), twice),
        (float(np.sqrt(np.mean(sizes**-2))), twice),
        (sizes.mean(), after),
        (float(np.sqrt(np.mean(sizes**2))), after),
        (1 / claim.clip, "the noise multiplier is not multiplied by the clipping norm"),
    ]
    if claim.adjacency is Adjacency.REPLACE:
        why = "replace neighbours have sensitivity 2 x clip, the noise is relative to clip: double the noise"
        causes.insert(0, (0.5, why))
    cause = next((why for value, why in causes if value != 1 and abs(ratio / value - 1) < NEAR), None)
    if cause is None and ratio < 0.02:
        return "there is no noise: add it before the gradient is applied"
    half = f"half the claimed standard deviation ({ratio:.3g} x)"
    times = half if abs(ratio - 0.5) < 0.01 else f"{ratio:.4g} x the claimed standard deviation"
    advice = "use noise x sensitivity as claimed" if ratio < 1 else "that is safe, but not what is claimed"
    return f"the noise has {times}: {cause or advice}"


def _ranges(numbers: NDArray[np.int64]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    if len(numbers) == numbers[-1] - numbers[0] + 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers[:8])) + (" ..." if len(numbers) > 8 else "")


def normality(evidence: Evidence) -> Diagnosis:
    """Counts in bins, the tails among them, against the normal law.

    Where the scale is wrong already, each layer of each step is first brought to its own scale, so that the shape
    alone is judged.
    """
    values = evidence.trials.sketch
    if noise_scale(evidence).p_value < evidence.level:
        values = np.concatenate([_own_scale(part) for part in evidence.layer_noise()], axis=2)
    numbers = values[np.isfinite(values)].astype(np.float64)
    if len(numbers) < 50 * LEAST_EXPECTED:
        return Diagnosis("normality", 1.0, f"{len(numbers)} numbers, too few", "normal", checked=False)
    edges = _edges(len(numbers))
    counts = np.histogram(numbers, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    expected = len(numbers) * np.diff(np.concatenate([[0.0], ndtr(edges), [1.0]]))
    value = float((np.square(counts - expected) / expected).sum())
    kurtosis = float(np.mean(numbers**4) / np.mean(numbers**2) ** 2)
    return Diagnosis(
        "normality",
        float(chi_square(value, len(counts) - 1)),
        f"kurtosis {kurtosis:.3f}, largest {np.abs(numbers).max():.2f} standard deviations",
        "kurtosis 3, normal tails",
        f"the noise is not Gaussian: it looks {_shape(numbers, kurtosis)}; draw it from a normal distribution",
    )


def _own_scale(part: NDArray[np.float32]) -> NDArray[np.float32]:
    spread = np.sqrt(np.mean(np.square(part), axis=(0, 2), keepdims=True))
    return np.where(spread > 0.05, part / np.maximum(spread, 1e-6), np.nan).astype(np.float32)


def _edges(number: int) -> NDArray[np.float64]:
    tails = np.arange(2.75, 6, 0.25)
    tails = tails[number * ndtr(-tails) >= LEAST_EXPECTED]
    return np.concatenate([-tails[::-1], ndtri(np.linspace(0.005, 0.995, 34)), tails])


def _shape(numbers: NDArray[np.float64], kurtosis: float) -> str:
    if abs(kurtosis - 1.8) < 0.05:
        return "uniform"
    if abs(kurtosis - 6) < 0.4:
        return "Laplacian"
    if kurtosis < 3:
        return f"cut off at {np.abs(numbers).max():.2f} standard deviations"
    return "heavy-tailed"
