"""Checks of the gradient under the noise: the clipped sum, or which other one explains what was applied."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from deniable.examination.diagnostics.p_values import any_of, normal
from deniable.examination.recorded.checks.excess_noise import mixed_p_value
from deniable.examination.recorded.checks.known_vectors import (
    LargestShare,
    along_known,
    explained_share,
    is_rounding,
    together,
)
from deniable.examination.recorded.checks.noise_checks import NoiseSizes, own_size_check
from deniable.examination.recorded.checks.outcomes import AS_CLAIMED, LESS, OTHER, UNKNOWN, list_names
from deniable.examination.recorded.checks.rival_gradient import (
    BETTER,
    FITTED,
    FITTED_IN_A_STEP,
    Candidate,
    distance_of_claim,
)
from deniable.examination.recorded.checks.step_lengths import step_sigmas
from deniable.examination.recorded.checks.way_checks import (
    kept_sums,
    multiplied_sums,
    spread_of_noise,
    sums_of_chosen,
    sums_of_chunks,
    sums_of_groups,
    sums_of_ways,
    ways_p_value,
)
from deniable.examination.recorded.run_record import (
    MOMENTUM,
    VECTORS,
    ExaminedStep,
    RunRecord,
    noise_variance,
    step_gram,
)
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]
_NAME, _EXPECTED = "gradient", "the sum of the batch's gradients, each clipped"
_LEFT = 0.1
"""Of what is not the claimed gradient, an explanation may leave this share."""
_TIED = 6.0
"""Explanations whose distances differ by less are not told apart."""
_ERRORS = 6.0
"""Standard deviations by which noise along known vectors may be longer than on average."""
_SURELY = 4.0
"""The same, from which on a cause that is found leaves more than chance does."""
_NOT_ALL = " (or that is not all: another gradient is added, neither clipped nor hidden by noise)"
_ENOUGH_NOISE = 0.97
"""Of what the sum's factor needs, within what is measured."""


def gradient_check(record: RunRecord, claimed: Training, level: float) -> RunCheck:
    """What was applied, along all that is known before the noise is drawn."""
    grams = [step_gram(step) for step in record.steps]
    shares = LargestShare.of(record, step_sigmas(record, claimed))
    units = [one / noise_variance(step) for one, step in zip(grams, record.steps, strict=True)]
    p_value = any_of(
        any_of(*along_known(record.steps, grams), together(record.steps, grams)),
        ways_p_value(record.steps),
        shares.p_value,
        _absent_p_value(record),
        _size_p_value(record, units),
        any_of(mixed_p_value(record), 1.0 if record.averaged is None else record.averaged[2]),
    )
    if (found := _without_candidates(record, p_value, level, grams)) is not None:
        return found
    candidates = sorted(
        (
            *_all_candidates(record, units, level),
            *multiplied_sums(record, units, NoiseSizes.of(record, claimed).ratio),
            *_of_shares(record, units, shares, level),
            *(_absent_record(record, units, level) if shares.p_value >= level else ()),
        ),
        key=lambda one: one.distance,
    )
    excess = sum(explained_share(unit) for unit in units)
    claim = distance_of_claim(units)
    degrees = len(VECTORS) * len(units)
    allowed = degrees + _ERRORS * (2 * degrees) ** 0.5  # noise along all known vectors, a chi-square
    most = {LESS: allowed + _LEFT * excess}
    candidates = [
        one
        for one in candidates
        if claim - one.distance >= one.gain and one.on_all_weights - (claim - excess) <= most.get(one.outcome, allowed)
    ]
    if not candidates and (shown := next(_of_shares(record, units, shares, level), None)) is not None:
        return RunCheck(name=_NAME, outcome=LESS, observed=shown.sentence, expected=_EXPECTED, p_value=p_value)
    if not candidates:
        seen = _tell_unknown(record, grams, level)
        return RunCheck(name=_NAME, outcome=UNKNOWN, observed=seen, expected=_EXPECTED, p_value=p_value)
    harmless = min((one.distance for one in candidates if one.outcome != LESS), default=np.inf)
    leaks = [one for one in candidates if one.outcome == LESS and one.distance + one.margin - harmless < _TIED]
    leaks.sort(key=lambda one: one.on_all_weights)
    best = next(iter(leaks), next((one for one in candidates if one.outcome != LESS), candidates[0]))
    sentence = best.sentence
    chance = degrees + _SURELY * (2 * degrees) ** 0.5 + _LEFT * best.hidden
    if best.outcome == LESS and best.on_all_weights - (claim - excess) > chance:
        sentence += _NOT_ALL
    found = RunCheck(name=_NAME, outcome=best.outcome, observed=sentence, expected=_EXPECTED, p_value=p_value)
    if best.factors is not None:
        found = _scaled_check(record, claimed, best.factors, p_value)
    return _name_nearest(found, candidates[0])


def _tell_unknown(record: RunRecord, grams: list[Array], level: float) -> str:
    """Of a gradient that nothing explains: whether all steps have it, or only a few."""
    each = [together((step,), [gram]) for step, gram in zip(record.steps, grams, strict=True)]
    odd = [at for at, chance in enumerate(each) if chance * len(each) < level]
    others = [at for at in range(len(grams)) if at not in odd]
    steps, known = tuple(record.steps[at] for at in others), [grams[at] for at in others]
    as_claimed = 0 < len(odd) < len(others) and any_of(*along_known(steps, known), together(steps, known)) >= level
    if not as_claimed:
        return "the applied gradient is another than the batch's clipped sum: name the loss that is trained on"
    first = record.steps[odd[0]].number + 1
    return (
        f"in {len(odd):,} of {len(grams):,} steps, the first is step {first:,}, the applied gradient is another than "
        "the batch's clipped sum, in the others it is that: if a gradient of records is added there (one that was not "
        "cleared), no noise hides it; apply the noisy gradient alone"
    )


def _name_nearest(found: RunCheck, nearest: Candidate) -> RunCheck:
    """What is not judged, with the leak that it is nearest to, though harmless gradients are about as near."""
    if found.outcome != UNKNOWN or nearest.outcome != LESS:
        return found
    return msgspec.structs.replace(found, observed=f"{found.observed} (nearest, not surely: {nearest.sentence})")


def _without_candidates(record: RunRecord, p_value: float, level: float, grams: list[Array]) -> RunCheck | None:
    """Of a gradient that is the claimed one, of a loss that mixes records, of variance reduction; None of others."""
    outcome: Outcome = AS_CLAIMED
    seen = "the same"
    if mixed_p_value(record) < level:
        outcome, seen = LESS, _MIXED_BY.format(record.mixing_layer) if record.mixing_layer else _MIXED
    elif p_value >= level and _have_no_gradient(record.steps):
        outcome, seen = UNKNOWN, _NOT_ALONE
    elif p_value < level and not is_rounding(grams):
        if not record.variance_reduction:
            return None
        outcome, seen = LESS, _REDUCED
    return RunCheck(name=_NAME, outcome=outcome, observed=seen, expected=_EXPECTED, p_value=p_value)


_MIXED = (
    "the loss mixes the records of a batch (it is neither the sum nor the mean of their own losses, as with the others "
    "of the batch for negatives), and its gradient is applied, so that one record is in the gradients of others and "
    "clipping bounds nobody's influence: train on a loss that every record has by itself"
)
_MIXED_BY = (
    "{} mixes the records of a batch (what it makes of a record is another in a batch than alone), so that one record "
    "is in the gradients of others and clipping bounds nobody's influence: use what treats every record by itself, "
    "such as nn.GroupNorm or nn.LayerNorm"
)
_REDUCED = (
    "a gradient of all records at earlier weights, less that of the batch there, is added (variance reduction), which "
    "is neither clipped nor hidden by the claimed noise: use the drawn records alone"
)
_NOT_ALONE = (
    "the loss mixes the records of a batch, and one alone has no gradient, so that none could be recomputed: name a "
    "loss that every record has by itself"
)


def _have_no_gradient(steps: tuple[ExaminedStep, ...]) -> bool:
    """Whether all records' own gradients are zero, and a batch's is not."""
    return any(step.mixed is not None for step in steps) and not any(step.clean for step in steps)


def _all_candidates(record: RunRecord, units: list[Array], level: float) -> Iterator[Candidate]:
    longest = max(step.longest / step.clip for step in record.steps)
    about = f"(the longest has {longest:.3g} x the clipping norm)"
    yield _fixed_vector(units, "cut", LESS, f"the records' gradients are not clipped {about}")
    yield from _in_some_steps(units, "cut", f"the records' gradients are not clipped in {{}} {about}")
    yield from _cut_in_part(units, about)
    yield from _sum_clipped(record, units)
    yield _scaled_sum(units)
    yield _sum_of_one_scale(units)
    yield from _chosen_noise(units)
    yield _sum_by_size(record, units, level)
    if len(units[0]) == len(VECTORS):
        yield from _other_clippings(units)
        yield from _added_vector(units)
        yield from _single_parameters(record, units)
    yield from sums_of_ways(record, units, level)
    yield from sums_of_chosen(record, units)
    yield from sums_of_groups(record, units)
    yield from sums_of_chunks(record, units, level)
    yield from kept_sums(record, units)


def _fixed_vector(units: list[Array], name: str, outcome: Outcome, sentence: str) -> Candidate:
    """Applied = clipped sum + a vector."""
    at = VECTORS.index(name)
    return Candidate(float(sum(u[0, 0] - 2 * u[0, at] + u[at, at] for u in units)), outcome, sentence)


def _fit(units: list[Array], name: str) -> tuple[float, float]:
    """Applied = clipped sum + one multiple of a vector in all steps: the distance, and the multiple."""
    at = VECTORS.index(name)
    along, length = sum(u[0, at] for u in units), max(sum(u[at, at] for u in units), 1e-300)
    return float(sum(u[0, 0] for u in units) - along**2 / length) + FITTED, float(along / length)


def _cut_in_part(units: list[Array], about: str) -> Iterator[Candidate]:
    distance, share = _fit(units, "cut")
    if share > 0:
        kept = f"{share:.0%} of the rest stays {about}"
        text = f"the records' gradients are clipped in part, in groups or only some: {kept}"
        yield Candidate(distance, LESS, text, margin=BETTER)
    else:
        text = (
            "the records' gradients are shorter than those recomputed (clipped to less than the clipping norm, or of "
            "another loss, or mixed): name the clipping norm and the loss"
        )
        yield Candidate(distance, UNKNOWN, text)


def _sum_clipped(record: RunRecord, units: list[Array]) -> Iterator[Candidate]:
    """Applied = the sum without clipping, or its mean, where that is longer shortened to one length, which is fitted.

    Shorter gradients of any kind are like it.
    """
    lengths = np.sqrt([max(_whole_length(step, record.weights), 1e-300) for step in record.steps])
    sizes = np.array([max(1, step.batch) for step in record.steps])
    divisors = np.array([record.divisors[step.number] for step in record.steps])
    for times, most in ((1.0, 1.0), (1.0, 1 / sizes), (sizes, 1.0), (1.0, divisors / sizes)):
        factors = _fit_length(units, times / lengths, np.broadcast_to(most, lengths.shape))
        fitted = 3 * FITTED  # the length, and which steps it shortens
        yield Candidate(_distance_of_whole(units, factors) + fitted, LESS, _CLIPPED_AS_ONE, margin=BETTER)
    yield Candidate(_distance_of_whole(units, divisors / sizes), LESS, _MEAN_AS_IT_IS, margin=BETTER)


_CLIPPED_AS_ONE = "the batch's summed or mean gradient is clipped, not each record's: clip every record's gradient"
_MEAN_AS_IT_IS = (
    "the batch's mean gradient is applied, not each record's clipped one (where a mean is clipped, as a whole, it was "
    "mostly shorter): clip every record's gradient"
)


def _fit_length(units: list[Array], shares: Array, most: Array) -> Array:
    """Factors of the whole sum in each step: shares times one length, fitted to those steps that it shortens."""
    shortened = np.ones(len(units), dtype=bool)
    along = np.array([float(_APPLIED @ u[:3, :3] @ _WHOLE) for u in units])
    squares = np.array([float(_WHOLE @ u[:3, :3] @ _WHOLE) for u in units])
    for _ in range(_FITS):
        some = shares * shortened
        factors = np.minimum(most, shares * max(float(some @ along), 0.0) / max(float(some**2 @ squares), 1e-300))
        shortened = factors < most
    return np.asarray(factors)


def _distance_of_whole(units: list[Array], factors: Array) -> float:
    left = [_APPLIED - factor * _WHOLE for factor in factors]
    return float(sum(one @ u[:3, :3] @ one for one, u in zip(left, units, strict=True)))


_FITS = 5
_APPLIED = np.array([1.0, 1.0, 0.0])
"""Of residual, clean and cut."""
_WHOLE = np.array([0.0, 1.0, 1.0])
"""The sum without clipping, of residual, clean and cut."""


def _whole_length(step: ExaminedStep, weights: int) -> float:
    """Squared, of the sum without clipping over all weights; estimated where a sample of them is looked at."""
    return max(float(_WHOLE @ step_gram(step)[:3, :3] @ _WHOLE), 0.0) * weights / sum(step.sizes)


def _scaled_sum(units: list[Array]) -> Candidate:
    """Applied = a multiple, of each step, of the clipped sum."""
    factors = np.array([u[0, 1] / max(u[1, 1], 1e-300) for u in units])
    distance = float(sum(u[0, 0] - f * u[0, 1] for u, f in zip(units, factors, strict=True)))
    distance += FITTED_IN_A_STEP * len(units)
    return Candidate(distance, OTHER, "", 1 + factors)


def _sum_of_one_scale(units: list[Array]) -> Candidate:
    """Applied = a multiple, the same in all steps, of the clipped sum."""
    distance, share = _fit(units, "clean")
    return Candidate(distance, OTHER, "", np.full(len(units), 1 + share))


def _chosen_noise(units: list[Array]) -> Iterator[Candidate]:
    """Applied = clipped sum + noise with the same product with its direction in all steps, but for less than chance.

    The best of a few noises has that, however long the sum is; scaled sums differ from step to step as noise does.
    """
    along = np.array([u[0, 1] / u[1, 1] ** 0.5 for u in units if u[1, 1] > 0])
    if len(along) < _FEWEST_CHOSEN or not 0 < abs(along.mean()) < _BEST_NOISE:
        return
    squares, mean = float(np.square(along - along.mean()).sum()), float(along.mean())
    if gammainc((len(along) - 1) / 2, squares / 2) > _LESS_THAN_CHANCE:
        return
    narrow = max(squares / len(along), 1e-3)
    gained = mean**2 * len(along) + len(along) * (narrow - 1 - np.log(narrow))  # of a normal law with that variance
    where = "along" if mean > 0 else "against"
    text = (
        f"the noise is chosen, or turned, by looking at the clipped sum: in every step it has {abs(mean):.2g} standard "
        f"deviations {where} it, with less chance than noise has: draw it once, by itself"
    )
    yield Candidate(distance_of_claim(units) - gained + 2 * FITTED, LESS, text)


_FEWEST_CHOSEN, _LESS_THAN_CHANCE = 8, 1e-2
"""Steps; and the probability of so narrow a spread along the clipped sum, beside a mean that no noise has."""


def _sum_by_size(record: RunRecord, units: list[Array], level: float) -> Candidate:
    """Applied = the clipped sum x divisor / the batch's own size."""
    along, length = _more_by_size(record, units)
    text = (
        "the clipped sum is divided by the batch's own size before its noise is added, so that a record's share is "
        "larger in a small batch: divide by a public number"
    )
    shown = _size_p_value(record, units) < level
    distance = distance_of_claim(units) - 2 * along + length
    return Candidate(distance, LESS, text, gain=0.0 if shown else BETTER)


def _more_by_size(record: RunRecord, units: list[Array]) -> tuple[float, float]:
    """Of what that sum has more: residual x it, and its squared length, in variances of the noise."""
    shares = np.array([record.divisors[step.number] / max(1, step.batch) - 1 for step in record.steps])
    along, squares = (np.array([u[at, 1] for u in units]) for at in (0, 1))
    return float(shares @ along), float(shares**2 @ squares)


def _size_p_value(record: RunRecord, units: list[Array]) -> float:
    """Of the residuals along it, which are normal."""
    along, length = _more_by_size(record, units)
    return float(normal(along / length**0.5 / spread_of_noise(record.steps))) if length > 0 else 1.0


def _other_clippings(units: list[Array]) -> Iterator[Candidate]:
    text = "every gradient is scaled to the clipping norm, also the shorter ones (as by AUTO-S), which is as safe"
    yield _fixed_vector(units, "normalised", OTHER, text)
    text = (
        "every layer is clipped on its own to the whole norm, so that a record's gradient has a norm of up to clip x "
        "sqrt(layers): clip the norm over all layers, or divide the clipping norm among them"
    )
    yield _fixed_vector(units, "each parameter", LESS, text)
    yield _fixed_vector(
        units, "equal parts", OTHER, "every layer is clipped on its own to clip / sqrt(layers), which is as safe"
    )


def _added_vector(units: list[Array]) -> Iterator[Candidate]:
    text = (
        "the gradient of all records, not only of those that were drawn, is in the steps without noise of its own: use "
        "the drawn records alone"
    )
    yield from _in_part(units, "all records", text)
    distance, share = _fit(units, "weights")
    text = f"{share:.3g} x the weights is in the noisy sum (weight decay), which is as safe"
    yield Candidate(distance, OTHER, text)
    text = (
        "clipped sums of earlier steps are in it without their noise (momentum before the noise): add the noise first"
    )
    yield from _in_part(units, "earlier clean", text)
    yield from _in_part(units, "clean momentum", text)
    yield from _among_earlier(units, text)
    text = "the noisy sum of the step before is in it (gradients accumulate), which is as safe"
    yield Candidate(_fit(units, "earlier applied")[0], OTHER, text)


def _among_earlier(units: list[Array], text: str) -> Iterator[Candidate]:
    """Applied = multiples of clipped sum, that of the step before and that of all before, the same in all steps.

    A record that is drawn once moves all of these together by the root of the sum of their squares.
    """
    some = [VECTORS.index(name) for name in ("clean", "earlier clean", "clean momentum")]
    along, squares = np.sum([u[0, some] for u in units], axis=0), np.sum([u[np.ix_(some, some)] for u in units], axis=0)
    own, before, falling = np.linalg.lstsq(squares, along, rcond=1e-9)[0]
    if before + falling > 0:
        moved = np.hypot(1 + own, before + falling) ** 2 + (MOMENTUM * falling) ** 2 / (1 - MOMENTUM**2)
        distance = float(sum(u[0, 0] for u in units) - along @ (own, before, falling)) + FITTED * len(some)
        damped = f"{text}; as each has a share only, one run does not show whether that is less private"
        yield Candidate(distance, *((LESS, text) if moved > 1 else (UNKNOWN, damped)), margin=BETTER)


def _in_part(units: list[Array], name: str, text: str) -> Iterator[Candidate]:
    """A share of a vector that nobody takes away: a negative one is of another gradient."""
    distance, share = _fit(units, name)
    if share > 0:
        yield Candidate(distance, LESS, text)


def _in_some_steps(units: list[Array], name: str, text: str) -> Iterator[Candidate]:
    """Applied = clipped sum, and in those steps that are nearer for it a vector as it is; not in all of them."""
    at = VECTORS.index(name)
    gained = np.array([2 * u[0, at] - u[at, at] for u in units])
    there = gained > 0
    if there.any() and not there.all():
        distance = float(sum(u[0, 0] for u in units) - gained[there].sum()) + FITTED_IN_A_STEP * len(units)
        yield Candidate(distance, LESS, text.format(f"{int(there.sum()):,} of {len(units):,} steps"))


def _single_parameters(record: RunRecord, units: list[Array]) -> Iterator[Candidate]:
    """Applied = clipped sum, but for one parameter, or those that are nearer so, whose gradients are not clipped."""
    claim, variances = distance_of_claim(units), [noise_variance(step) for step in record.steps]
    if not all(step.by_parameter for step in record.steps):
        return
    parts = np.array([step.by_parameter for step in record.steps]) / np.array(variances)[:, None, None]
    along, length = parts.sum(0)[:, :2].T
    gained = 2 * along - length - FITTED
    nearer = np.flatnonzero(gained > BETTER)
    several = [nearer] if 1 < len(nearer) < len(gained) else []
    for places in (*np.arange(len(gained))[:, None], *several):
        names = list_names([record.names[at] if record.names else f"parameter {at}" for at in places])
        text = f"the gradients of {names} are not clipped, those of other layers are: clip the norm over all layers"
        yield Candidate(claim - float(gained[places].sum()), LESS, text)


def _along_absent(record: RunRecord) -> Array:
    """Standard normal, for those few that it is most along: the residuals along a record that was not drawn."""
    _, along, squares = np.array(record.absent).reshape(-1, 3).T
    return np.where(squares > 0, along / np.sqrt(np.maximum(squares, 1e-300)), np.nan)


def _absent_p_value(record: RunRecord) -> float:
    """Of the largest of so many that were looked at."""
    found = normal(_along_absent(record))
    return (
        min(1.0, float(np.nanmin(found)) * record.compared_records) if len(found) and np.isfinite(found).any() else 1.0
    )


def _absent_record(record: RunRecord, units: list[Array], level: float) -> Iterator[Candidate]:
    """Applied = clipped sum + a multiple of the clipped gradient of one record that was not drawn."""
    if _absent_p_value(record) >= level:
        return
    found = np.nan_to_num(_along_absent(record))
    most = int(np.argmax(np.abs(found)))
    text = (
        "the gradient of a record is in steps that did not draw it (it is most like that of record "
        f"{record.absent[most][0]:,}): use the drawn records alone"
    )
    yield Candidate(float(sum(u[0, 0] for u in units) - found[most] ** 2), LESS, text, gain=0.0)


def _of_shares(record: RunRecord, units: list[Array], shares: LargestShare, level: float) -> Iterator[Candidate]:
    """Applied = the records' gradients, each times a factor of its own that is fitted, one of them above its share."""
    if shares.p_value >= level:
        return
    claim = distance_of_claim(units)
    fits = [(step.shares, noise_variance(step)) for step in record.steps if step.shares is not None]
    gained = sum(one.inside / variance - FITTED_IN_A_STEP * one.fitted for one, variance in fits)
    text = (
        "the gradients are not clipped to the claimed norm, or not all of them: some record's share is above "
        f"{shares.at_least(level):g} x the clipping norm: clip every record's gradient"
    )
    yield Candidate(claim - gained, LESS, text)


def _scaled_check(record: RunRecord, claimed: Training, factors: Array, p_value: float) -> RunCheck:
    """The clipped sum times a factor: of the batch's own size, or another one."""
    sizes = np.array([max(1, step.batch) for step in record.steps])
    factor, sizes_of_noise = float(factors.mean()), NoiseSizes.of(record, claimed)
    noise, signal = sizes_of_noise.ratio, sizes_of_noise.signal
    (varies, by_size), (noise_varies, noise_by_size) = (
        (_spread(one), _spread(one * sizes)) for one in (factors, sizes_of_noise.ratios)
    )
    if len(sizes) > 1 and np.ptp(sizes) and by_size < min(1.0, 0.5 * varies) and noise_by_size < noise_varies:
        return own_size_check(p_value)
    seen = f"the sum is {factor:.3g} x the clipped one"
    surely = signal is None or signal.exceeds(noise)
    if signal is not None and signal.is_scaled(noise):
        seen += f", as its noise{signal.tell_error()}: both are scaled after it, which is as safe"
        return RunCheck(name=_NAME, outcome=OTHER, observed=seen, expected=_EXPECTED, p_value=p_value)
    if noise < _ENOUGH_NOISE * abs(factor) and surely:
        larger = _LONGER if factor > 1 else ""
        larger += _tell_lying_along(record) if factor > 1 else ""
        seen += f"{larger}, with too little noise for that"
        return RunCheck(name=_NAME, outcome=LESS, observed=seen, expected=_EXPECTED, p_value=p_value)
    if noise * _ENOUGH_NOISE <= factor and _is_one_factor(record, factors):
        seen += ", as its noise (another divisor, or another clipping norm, if that was fixed beforehand)"
        return RunCheck(name=_NAME, outcome=OTHER, observed=seen, expected=_EXPECTED, p_value=p_value)
    seen += ": another loss, other records or weights of records are in it"
    seen += f"{_SHORTER if factor < 1 else ''}; name the loss that is trained on"
    return RunCheck(name=_NAME, outcome=UNKNOWN, observed=seen, expected=_EXPECTED, p_value=p_value)


def _spread(values: Array) -> float:
    """Relative to the mean; of values of mean zero it is large."""
    return float(values.std() / max(abs(float(values.mean())), 1e-300))


def _tell_lying_along(record: RunRecord) -> str:
    """What the best of a few noises has along the clipped sum: a few standard deviations, whatever its length."""
    rows = [(step_gram(step)[:2, :2], noise_variance(step)) for step in record.steps if step.clean > 0]
    along = np.array([gram[0, 1] / (gram[1, 1] * variance) ** 0.5 for gram, variance in rows])
    lengths = np.array([(gram[1, 1] / variance) ** 0.5 for gram, variance in rows])
    as_noise, as_sum = along.sum() ** 2 / len(along), (along @ lengths) ** 2 / (lengths @ lengths)
    if along.mean() > _BEST_NOISE or as_noise < as_sum - _TIED:
        return ""
    return f", or the noise is chosen by the gradient, along which it has {along.mean():.2g} standard deviations"


_BEST_NOISE = 3.5
"""Standard deviations that the best of a thousand noises has along a vector."""
_LONGER = " (clipped at a larger norm, by a norm that leaves out parameters, or records count several times)"
_SHORTER = ", or the batch's summed gradient is clipped, not each record's"


def _is_one_factor(record: RunRecord, factors: Array) -> bool:
    """Whether the steps' factors differ by no more than their errors, five standard deviations allowed."""
    lengths = np.array([step.clean / noise_variance(step) for step in record.steps])  # 1 / squared errors
    mean = float(factors @ lengths) / max(float(lengths.sum()), 1e-300)
    return bool(np.square(factors - mean) @ lengths <= len(factors) + 5 * (2 * len(factors)) ** 0.5)
