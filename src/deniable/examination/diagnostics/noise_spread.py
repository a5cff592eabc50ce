"""The noise's standard deviation: in every layer, step and training, and how its length varies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtr

from deniable.examination.claim import Adaptive
from deniable.examination.diagnostics.p_values import any_of, chi_square, scale
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, compose
from deniable.scores import PrivacyLoss, privacy_loss

Array = NDArray[np.float64]
NEAR = 0.025
"""Two ratios that differ by this share have one cause."""
MISSING = 0.2
"""Noise below this share of the claimed standard deviation is missing: what is left is the auditor's own."""
HALF = 0.5
"""Of the largest noise: what lies between this and `MISSING` is neither missing nor there."""
NONE = 0.02
"""Noise of less is none."""
ENOUGH = 0.9
"""Noise of a single step that is less than this share of the claimed standard deviation is too little."""
FEW = 0.05
"""Weights without noise are told if they are more than this share of all."""
SOME = 5
"""So many numbers without any noise are no accident."""
BARE = 1e-3
"""Noise below this, in claimed standard deviations, is none but for rounding."""
_ALIKE = 0.05
"""Deviation of batch sizes, relative to them, below which no noise is said to follow them."""
VARIED, WITHIN = 0.05, 0.01
"""Steps whose noise differs by the first share have a schedule; by the second, it may be what was measured wrongly."""
DELTAS, TOLD = (0.1, 1e-3, 1e-5, 1e-8), 8
"""At which two schedules are compared, and so many steps of one are told."""
MEDIAN_ERROR = 1.17
"""Of the median of n absolute normal numbers, relative, times sqrt(n)."""
CLEAR = 6.0
"""Standard errors of a slope from which on it is no chance."""


def _lengths(evidence: Evidence) -> tuple[Array, Array]:
    """(trials, steps) squared lengths of the noise without the auditor's own numbers, and their degrees of freedom."""
    fresh = evidence.trials.fresh
    squares = np.maximum(0.0, evidence.trials.squares.sum(2) - fresh[..., 0])
    return squares, evidence.sizes.sum() - fresh[..., 1]


def noise_ratio(evidence: Evidence) -> float:
    """The noise's standard deviation over the claimed one, all layers together."""
    squares, numbers = _lengths(evidence)
    return float(scale(squares.sum(), numbers.sum()))


def noise_scale(evidence: Evidence) -> Diagnosis:
    """Variance equal to the claim in every layer, step and training: sums of squares are chi-square."""
    by_layer = evidence.trials.squares.sum((0, 1)), evidence.sizes * evidence.trials.squares[..., 0].size
    squares, numbers = _lengths(evidence)
    groups = [by_layer, *((squares.sum(axis), numbers.sum(axis)) for axis in (0, 1)), (squares, numbers)]
    p_values = [any_of(chi_square(*group)) for group in groups]
    ratios = [scale(*group) for group in groups]
    part = evidence.level / (len(groups) + 1)
    failing = [chi_square(*group) * group[0].size < part for group in groups]
    overall, uneven = noise_ratio(evidence), _dispersion(evidence)
    low, high = min(r.min() for r in ratios[:2]), max(r.max() for r in ratios[:2])
    below = any(bool((ratio[fails] < 1).any()) for ratio, fails in zip(ratios, failing, strict=True))
    if (p_value := any_of(*p_values, uneven.p_value)) < evidence.level and (schedule := _safe_schedule(evidence)):
        observed = f"{overall:.4g} x the claimed standard deviation (steps {low:.3g} to {high:.3g})"
        return Diagnosis("noise scale", p_value, observed, "1 x in every step", schedule, weakens=False)
    return Diagnosis(
        "noise scale",
        p_value,
        f"{overall:.4g} x the claimed standard deviation (layers and steps {low:.3g} to {high:.3g})",
        "1 x in every layer, step and trial",
        _scale_sentence(evidence, overall, _Scales(ratios[0], ratios[1], ratios[2], ratios[3], failing, uneven)),
        weakens=below or (uneven.p_value < part and (uneven.ratio < 1 or bool((ratios[3] < ENOUGH).any()))),
    )


@dataclass(frozen=True)
class _Dispersion:
    """How much the noise's squared length varies between the steps of a training, relative to independent noise."""

    ratio: float
    p_value: float
    by_training: bool = False
    """Whether it varies far more between trainings."""


@dataclass(frozen=True)
class _Scales:
    """Standard deviations relative to the claim, and which of them fail: layers, steps, trainings, single steps."""

    layers: Array
    steps: Array
    trainings: Array
    single: Array
    failing: list[NDArray[np.bool_]]
    uneven: _Dispersion


def _dispersion(evidence: Evidence) -> _Dispersion:
    """Squared lengths are chi-square with d degrees: variance 2d, and of their squared deviation (2 + 12 / d) (2d)^2.

    The sum of the squared deviations is matched by a chi-square of the same mean and variance.
    """
    squares, numbers = _lengths(evidence)
    freedom, d = (squares.shape[1] - 1) * len(squares), float(numbers.mean())
    if not freedom or squares.sum() == 0:
        return _Dispersion(1.0, float("nan"))
    off = bool(chi_square(squares.sum(), numbers.sum()) < evidence.level)
    scaled = squares * d / numbers * (numbers.sum() / squares.sum() if off else 1.0)
    value = np.square(scaled - scaled.mean(1, keepdims=True)).sum() / (2 * d)
    between = squares.shape[1] * scaled.mean(1).var() / (2 * d)
    match = 1 / (1 + 6 / d)
    p_value = float(chi_square(value * match, freedom * match))
    plain = value / freedom
    ratio = 2 * plain / max(_kurtosis(evidence) - 1, 0.5)  # what noise of this shape would have
    ratio = max(ratio, min(plain, 1.0))  # a few very large numbers, and no shape, are no reason to expect more
    return _Dispersion(float(ratio), p_value, bool(between > 4 * value / freedom))


def _kurtosis(evidence: Evidence) -> float:
    numbers = evidence.trials.raw.astype(float)
    return float(np.mean(numbers**4) / max(np.mean(numbers**2) ** 2, 1e-300))


def equally_long(evidence: Evidence) -> bool:
    """Whether the noise's length varies far less from step to step than that of independent noise."""
    found = _dispersion(evidence)
    return found.ratio < 0.5 and found.p_value < evidence.level and _kurtosis(evidence) > 1.5


def is_even(evidence: Evidence) -> bool:
    """Whether layers, steps and trainings have noise of one standard deviation, so that its shape can be told."""
    by_layer = np.sqrt(evidence.trials.squares.mean((0, 1)) / evidence.sizes)
    single = scale(*_lengths(evidence))
    usual = single.mean() * np.sqrt((_kurtosis(evidence) - 1) / (4 * evidence.sizes.sum()))
    return bool(by_layer.min() > 0.8 and single.std() < 2 * usual) or _has_even_medians(evidence)


def _has_even_medians(evidence: Evidence) -> bool:
    """The same by medians of the sketched numbers' sizes, which a few very large ones do not move."""
    if has_bare_weights(evidence):
        return False
    sizes = np.abs(evidence.trials.sketch)
    layers = np.array([np.median(np.abs(part)) for part in evidence.layer_noise()])
    steps, usual = np.median(sizes, axis=2), MEDIAN_ERROR / np.sqrt(sizes.shape[2])
    return bool(layers.min() > 0.8 * layers.max() and steps.std() < 1.5 * usual * steps.mean())


def bare_share(evidence: Evidence) -> float:
    """The share of weights without noise; of normal numbers one in a thousand is so small."""
    raw = evidence.trials.raw
    return float(np.mean(np.abs(raw) < BARE * min(1.0, float(raw.std()))))


def has_bare_weights(evidence: Evidence) -> bool:
    """Whether many weights have no noise, or some numbers are exactly the clean sum, which noise never gives."""
    return bare_share(evidence) > FEW or int((evidence.trials.raw == 0).sum()) >= SOME


def left_out(evidence: Evidence) -> Diagnosis:
    """The finding for weights that have exactly the claimed clean sum and no noise, whatever the others have."""
    test, p_value = noise_scale(evidence), evidence.level / 2
    named = any(words in test.sentence for words in ("missing", "no noise"))  # in steps or layers
    sentence = test.sentence if named else _bare_sentence(evidence)
    return replace(test, p_value=min(test.p_value, p_value), sentence=sentence, weakens=True)


def _layer_squares(evidence: Evidence) -> Array:
    """(layers,) sums of squared noise: as it is, where twins show that the gradient is the claimed one."""
    chosen = evidence.trials.plain if evidence.gradient_fits else evidence.trials.squares
    return np.asarray(chosen.sum((0, 1)))


def _odd_layers(evidence: Evidence, failing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Layers whose scale is not the claimed one, nor that of the other layers together (F test)."""
    squares, sizes = _layer_squares(evidence), evidence.sizes * evidence.trials.squares[..., 0].size
    rest = np.maximum(sizes.sum() - sizes, 1)
    own, others = squares / sizes, (squares.sum() - squares) / rest
    below = fdtr(sizes, rest, own / np.maximum(others, 1e-300))
    unlike = np.minimum(below, 1 - below) * 2 * len(sizes) < evidence.level
    # the auditor's own three numbers a step may be in any layer
    steps = 0 if evidence.gradient_fits else evidence.trials.squares[..., 0].size
    return np.asarray(failing & unlike & (np.abs(own - others) > 3 * steps * (1 / sizes + 1 / rest)))


def _scale_sentence(evidence: Evidence, overall: float, found: _Scales) -> str:
    layers, steps = found.layers, found.steps
    if evidence.gradient_fits:
        layers = scale(_layer_squares(evidence), evidence.sizes * evidence.trials.squares[..., 0].size)
    odd = _odd_layers(evidence, found.failing[0] | (layers < MISSING))
    if odd.any() and layers.max() > MISSING and (not odd.all() or layers.max() > 1.2 * layers.min()):
        named = ", ".join(f"{evidence.layers[i]} ({layers[i]:.2g} x)" for i in np.flatnonzero(odd)[:6])
        if layers[odd].max() < (MISSING if evidence.twins is not None else 2 * MISSING):  # see `single_records`
            return f"there is no noise on {named}, the other layers have it: add noise to every layer"
        return f"the noise has another standard deviation than claimed on {named}: use the same on every layer"
    if sized := _divided_sentence(evidence, found):
        return sized
    steady = found.single.std(0) < 0.02 + 3 / np.sqrt(2 * evidence.sizes.sum())  # the same in all trainings
    odd_steps = found.failing[1] & (np.abs(steps - 1) > 0.05) & steady
    uneven = steps.max() - steps.min()
    everywhere = bool(odd_steps.all()) and steps.max() < MISSING  # so that no step is unlike the others
    if odd_steps.any() and not everywhere and uneven > (0.5 if odd_steps.all() else 0.1) * max(overall, 0.05):
        whole_steps = _step_sentence(steps, odd_steps)
        return whole_steps if steps[odd_steps].min() < MISSING else _bare_sentence(evidence) or whole_steps
    if overall < NONE:
        return scale_cause(evidence, overall)
    some = bare_share(evidence) > FEW + float((found.single < MISSING).mean())  # weights of steps that have noise, too
    uneven = "" if some else _uneven_sentence(found, overall, _noise_before_clipping(evidence, overall))
    return _sized_sentence(evidence, found) or uneven or scale_cause(evidence, overall)


def _safe_schedule(evidence: Evidence) -> str:
    """What to claim, if the noise varies with the step alone, and all steps together are as private as claimed."""
    squares, numbers = _lengths(evidence)
    steps = scale(squares.sum(0), numbers.sum(0))
    varies = MISSING < steps.min() < 1 and np.ptp(steps) > VARIED
    if not varies or len(steps) > evidence.claim.steps or isinstance(evidence.claim.recipe.clipping, Adaptive):
        return ""
    relative = squares / np.square(steps)
    alike = any_of(chi_square(relative, numbers), chi_square(relative.sum(1), numbers.sum(1)))
    layers = np.sqrt((evidence.trials.squares / np.square(steps)[:, None]).mean((0, 1)) / evidence.sizes)
    if alike < evidence.level or float(np.abs(layers - 1).max()) > VARIED:
        return ""
    noises = [float(noise) for noise in evidence.claim.noises(len(steps)) * steps * (1 + WITHIN)]
    own = compose(*(_step(noise, evidence.claim.rate) for noise in noises))
    adjacency = evidence.claim.adjacency
    if not _as_private(privacy_loss(own, adjacency), privacy_loss(evidence.claim.mechanism, adjacency)):
        return ""
    told = ", ".join(f"{noise / (1 + WITHIN):.3g}" for noise in noises[:TOLD]) + (" ..." if len(noises) > TOLD else "")
    return (
        f"the noise changes from step to step ({steps.min():.2g} to {steps.max():.2g} x the claimed standard deviation)"
        f", and all steps together are as private as claimed: claim this schedule, of noise {told}"
    )


def _step(noise: float, rate: float) -> Mechanism:
    return Gaussian(noise) if rate == 1 else Gaussian(noise).subsampled(rate)


def _as_private(own: PrivacyLoss, claimed: PrivacyLoss) -> bool:
    """Whether delta is at most the claimed one, wherever the claimed one is between 0.1 and 1e-8."""
    epsilons = [max(0.0, float(claimed.epsilon(delta))) for delta in DELTAS]
    return all(float(own.delta(epsilon)) <= float(claimed.delta(epsilon)) * (1 + 1e-9) for epsilon in epsilons)


def _divided_sentence(evidence: Evidence, found: _Scales) -> str:
    """Whether the noise of every step is that of a mean over its own batch."""
    sizes = np.maximum(evidence.trials.batch.sum(2, dtype=float), 1)
    if found.single.std() < 0.005 or sizes.std() == 0:
        return ""
    times = f"{float(np.median(found.single)):.3g} x the claimed standard deviation"
    divided, rooted = found.single * sizes, found.single * np.sqrt(sizes)
    if abs(float(np.median(rooted)) - 1) < 0.1 and rooted.std() < min(0.2, 0.5 * divided.std()):
        root = "the square root of the batch's own size"
        return f"the noise has {times}: it is divided by {root}; use the same in every step"
    if abs(float(np.median(divided)) - 1) > 0.1 or divided.std() > 0.2:
        return ""
    return (
        f"the noise has {times}: it is divided by the batch size ({sizes.mean():.4g}) twice; divide the noisy sum once"
    )


def _sized_sentence(evidence: Evidence, found: _Scales) -> str:
    """Whether the noise grows or falls with the batch's size."""
    sizes = evidence.trials.batch.sum(2, dtype=float)
    if found.single.std() < 0.02 or sizes.min() == 0:
        return ""
    falls, grows = ((found.single * (sizes / sizes.mean()) ** power).std() for power in (1, -1))
    slope = _slope(sizes, found.single)
    if min(falls, grows) > 0.3 * found.single.std() and not slope:
        return ""
    if slope > 0 or (not slope and grows < falls):
        return "the noise grows with the batch's size: use the same in every step, whatever the batch"
    return "the noise falls with the batch's size: divide by the expected size, or yield the divisor that is used"


def _slope(sizes: Array, single: Array) -> float:
    """1 or -1 if the noise is proportional to the batch's size, or to its inverse, and not by chance; else 0."""
    x, y = (np.log(np.maximum(values, 1e-12)).ravel() for values in (sizes, single))
    x, y = x - x.mean(), y - y.mean()
    if x.std() < _ALIKE:
        return 0.0
    slope = float(x @ y / np.square(x).sum())
    error = float(np.std(y - slope * x) / np.sqrt(np.square(x).sum()))
    nearest = float(np.sign(slope))
    return nearest if abs(slope) > CLEAR * error and abs(slope - nearest) < 0.1 + 3 * error else 0.0


def _step_sentence(steps: Array, odd: NDArray[np.bool_]) -> str:
    named, scales = _ranges(np.flatnonzero(odd) + 1), steps[odd]
    if scales.max() < MISSING:
        return f"the noise is missing in steps {named}: add it in every step"
    if scales.max() - scales.min() > 0.1:
        between = f"{scales.min():.2g} to {scales.max():.2g} x"
        return f"the noise changes from step to step ({between} the claimed standard deviation): use the claimed one"
    return f"the noise has {scales.mean():.2g} x the claimed standard deviation in steps {named}: add it in every step"


def _uneven_sentence(found: _Scales, overall: float, before: str | None) -> str:
    """`before` tells that noise is added before clipping, which makes it about equally long, too."""
    most = found.single.max()
    missing = found.failing[3] & (found.single < MISSING * most)
    between = (found.single >= MISSING * most) & (found.single < HALF * most)  # of noise that is there or not: none
    if missing.any() and overall > MISSING and between.sum() <= missing.sum():
        whole = missing.all(1)
        if whole.sum() * missing.shape[1] == missing.sum():
            return f"the noise is missing in {100 * whole.mean():.0f} % of the trainings: add it in every training"
        return f"the noise is missing in {100 * missing.mean():.0f} % of the steps, at random: add it in every step"
    if found.uneven.p_value < 1e-3 and found.uneven.ratio < 0.5 and before is None:
        return (
            "the noise is equally long in every step, as if the same numbers came again in another order or were "
            "scaled to one length: draw fresh noise in every step, and leave it as it is"
        )
    spread = found.trainings.max() - found.trainings.min()
    if found.failing[2].any() and overall > MISSING and spread > 0.1 * overall and found.uneven.by_training:
        return "the noise's standard deviation changes from training to training: fix it before training"
    if found.uneven.p_value < 1e-3 and found.uneven.ratio > 2:
        ends = f"{found.single.min():.2g} to {most:.2g} x"
        return f"the noise's standard deviation changes from step to step at random ({ends}): fix it before training"
    return ""


def scale_cause(evidence: Evidence, ratio: float) -> str:
    """The sentence for noise of one wrong scale, `ratio` times the claimed one."""
    claim, sizes = evidence.claim, np.maximum(evidence.trials.batch.sum(2, dtype=float), 1)
    twice = "it looks as if it were divided by the batch size ({:.4g}) twice: divide the noisy sum once"
    after = "it looks as if it were added after averaging without being divided by the batch size: add it to the sum"
    expected = max(1.0, claim.rate * float(evidence.members.sum(1).max()))
    causes = [
        (1 / expected, twice.format(expected)),
        (1 / sizes.mean(), twice.format(sizes.mean())),
        (float(np.sqrt(np.mean(sizes**-2))), twice.format(sizes.mean())),
        (sizes.mean(), after),
        (float(np.sqrt(np.mean(sizes**2))), after),
        (1 / claim.clip, "the noise multiplier is not multiplied by the clipping norm"),
        (1 / claim.noise, "it looks as if it were not multiplied by the noise multiplier"),
        (claim.sigma**-0.5, "it looks as if the standard deviation were used as the variance"),
        (claim.sigma, "it looks as if the variance were used as the standard deviation"),
    ]
    told = float(evidence.trials.clip.mean())
    why = (
        f"it is that of the claimed clipping norm, {claim.clip:g}, and gradients are clipped at {told:g}: use one norm"
    )
    causes.insert(0, (claim.clip / told, why))
    if claim.adjacency is Adjacency.REPLACE:
        why = "replace neighbours have sensitivity 2 x clip, the noise is relative to clip: double the noise"
        causes.insert(0, (0.5, why))
    cause = next((why for value, why in causes if value != 1 and abs(ratio / value - 1) < NEAR), None)
    cause = cause or _noise_before_clipping(evidence, ratio)
    if cause is None and ratio < NONE:
        return "there is no noise: add it before the gradient is applied"
    if text := _bare_sentence(evidence):
        return text
    half = f"half the claimed standard deviation ({ratio:.3g} x)"
    times = half if abs(ratio - 0.5) < 0.01 else f"{ratio:.4g} x the claimed standard deviation"
    advice = (
        "use noise x sensitivity as claimed, and yield the divisor that is used"
        if ratio < 1
        else "that is safe, but not what is claimed"
    )
    return f"the noise has {times}: {cause or advice}"


def _bare_sentence(evidence: Evidence) -> str:
    """For weights without noise, if more than one in twenty has none."""
    if not has_bare_weights(evidence):
        return ""
    share = f"{100 * bare_share(evidence):.2g} %"
    return f"there is no noise on {share} of the weights, the others have it: add noise to every weight"


def _noise_before_clipping(evidence: Evidence, ratio: float) -> str | None:
    """Vectors of the clipping norm in random directions, one for each record of the batch, have this length together.

    The gradients themselves are hardly left then, so that the sum has less than nine tenths of what is claimed.
    """
    sizes = evidence.trials.batch.sum(2, dtype=float).mean()
    length = np.sqrt(sizes / evidence.sizes.sum()) * evidence.claim.clip / evidence.claim.sigma
    inner, squares = evidence.trials.inner[..., 0], np.square(evidence.trials.length[..., 0])
    left = 1 + evidence.claim.sigma * np.nansum(inner) / max(float(np.nansum(squares)), 1e-300)
    if not (0.6 < ratio / length < 1.1 and left < 0.9):
        return None
    return (
        "it looks as if noise were added to every gradient before clipping, which shortens it again: clip first, and "
        "add the noise to the sum"
    )


def _ranges(numbers: NDArray[np.int64]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    if len(numbers) == numbers[-1] - numbers[0] + 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers[:8])) + (" ..." if len(numbers) > 8 else "")
