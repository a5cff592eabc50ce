"""Checks of one watched run against its claim, each with a known rate of false alarms, and the verdict.

Every check that rests on chance has one p-value and fails below (1 - confidence) / `CHECKS`, so that a run that is as
claimed fails any of them with probability at most 1 - confidence. Structural ones (divisor, number of steps, moves of
the weights) never fail by chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from deniable.checks import probability
from deniable.examination.recorded.checks.correlated_noise import correlated_check, directions_check, left_by_filter
from deniable.examination.recorded.checks.excess_noise import is_common_noise, level_of_common_noise
from deniable.examination.recorded.checks.gradient_checks import gradient_check
from deniable.examination.recorded.checks.move_checks import (
    moves_check,
    noise_on_weights,
    other_weights_check,
    rates_check,
)
from deniable.examination.recorded.checks.noise_along_gradients import (
    across_check,
    along_check,
    follows_check,
    scales_check,
)
from deniable.examination.recorded.checks.noise_checks import (
    SCALED,
    NoiseSizes,
    centre_check,
    independence_check,
    layers_check,
    own_size_check,
    shape_check,
    shifts_check,
    surely_noise,
)
from deniable.examination.recorded.checks.noise_power import tell_power, visible_noise, visible_noise_of_a_step
from deniable.examination.recorded.checks.norms_check import norms_check
from deniable.examination.recorded.checks.number_checks import numbers_check
from deniable.examination.recorded.checks.outcomes import AS_CLAIMED, LESS, OTHER, ROUNDING, UNKNOWN
from deniable.examination.recorded.checks.outside_checks import (
    buffers_check,
    elsewhere_check,
    inputs_check,
    left_out_check,
    public_checks,
)
from deniable.examination.recorded.checks.sampling_checks import divisor_check, sampling_check, steps_check
from deniable.examination.recorded.checks.step_lengths import length_check
from deniable.examination.recorded.run_record import RunRecord, known_in_each_step, times_own_size
from deniable.mechanisms import Adjacency, Training
from deniable.results.run_result import RunCheck, RunInput, RunResult
from deniable.results.shared import VerdictName
from deniable.scores import privacy_loss

CONFIDENCE_OF_A_RUN = 0.999
"""A run as claimed is found at fault once in a thousand; faults in a few dozen steps are seen far beyond that."""
CHECKS = 8
"""That rest on chance: noise (all, layers, shape, along gradients, other steps), gradient, independence, sampling."""
_NOT_SHOWN = (
    "whether public values such as the learning rate, or the records as they are loaded (their scale, the choice of "
    "features, weights of classes) were made from the records",
    "rules that did not act in these steps (to stop early, to leave a step out, to choose the weights that are "
    "released, by what the records show)",
    "where the random numbers come from",
)
_INITIAL = "whether the initial weights were made from the records"
_INITIAL_PUBLIC = "whether the initial weights were made without the records, as was said"


def judge_run(record: RunRecord, claimed: Training, confidence: float = CONFIDENCE_OF_A_RUN) -> RunResult:
    """The verdict on one run: does it do what it claims, and if not, why?

    Guarantee: a run that is as claimed is called *violated* or *other recipe* with probability at most
    1 - `confidence`.
    """
    level = (1 - probability("confidence", confidence, open_ends=True)) / CHECKS
    checks = tuple(_all_checks(record, claimed, level))
    not_shown = _list_not_shown(record)
    name, text = _verdict(record, checks, not_shown)
    loss = privacy_loss(claimed.mechanism, claimed.adjacency)
    visible, unseen = visible_noise(record, level, ROUNDING), visible_noise_of_a_step(record, claimed, level)
    rare = 1 / max(2, record.records)
    return RunResult(
        input=RunInput(
            noise=claimed.noise,
            rate=claimed.rate,
            steps=claimed.steps,
            adjacency=claimed.adjacency,
            confidence=confidence,
        ),
        verdict=name,
        verdict_text=f"{text}.",
        checks=checks,
        not_shown=not_shown,
        claimed_advantage=float(loss.advantage()),
        claimed_belief=float(loss.belief(rare)),
        claimed_belief_delta=rare,
        recomputed=tuple(step.number for step in record.steps),
        noise_ratios=tuple(NoiseSizes.of(record, claimed).ratios.tolist()),
        steps=len(record.batches),
        examined_steps=len(record.steps),
        least_visible_noise=visible,
        power_text=tell_power(visible, unseen, all_recomputed=len(record.steps) == len(record.batches)),
        watcher_share=record.watcher_seconds / max(record.seconds, 1e-9),
    )


def _list_not_shown(record: RunRecord) -> tuple[str, ...]:
    """What this run's recording leaves open, then what every run's does."""
    steps, unseen = len(record.batches) - len(record.steps), record.records - record.compared_records
    found = [f"the gradients of {steps} of {len(record.batches)} steps"] if steps else []
    if record.steps and unseen > 0:
        which = f"{unseen:,} of {record.records:,} were not" if record.compared_records else "none was"
        found.append(f"whether a step uses records that it did not draw ({which} compared with it)")
    if record.count_noise is not None:
        found.append(f"the noise of the count that the clipping norm follows ({record.count_noise:g}, it is said)")
    if record.buffers_left_out:
        found.append(f"{record.buffers_left_out:,} large buffers of the model, which are released with its weights")
    return (*found, _INITIAL_PUBLIC if record.initial_is_public else _INITIAL, *_NOT_SHOWN)


def _verdict(record: RunRecord, checks: tuple[RunCheck, ...], not_shown: tuple[str, ...]) -> tuple[VerdictName, str]:
    """One of the four words, and the checks that it rests on."""
    said = {
        outcome: "; ".join(check.observed for check in checks if check.outcome == outcome)
        for outcome in (LESS, UNKNOWN, OTHER)
    }
    if said[LESS]:
        return "violated", f"Less private than claimed: {said[LESS]}"
    if said[UNKNOWN]:
        return "cannot judge", f"Not everything was shown: {said[UNKNOWN]}"
    if said[OTHER]:
        return (
            "other recipe",
            f"Another recipe than claimed; nothing in it is seen to be less private: {said[OTHER]}",
        )
    return "consistent", (
        f"Nothing speaks against the claim in {len(record.batches):,} steps, {len(record.steps):,} of them recomputed; "
        f"not examined: {'; '.join(not_shown)}"
    )


def _all_checks(record: RunRecord, claimed: Training, level: float) -> Iterator[RunCheck]:
    yield steps_check(record, claimed)
    yield sampling_check(record, claimed, level)
    yield divisor_check(record)
    if record.mixes_records:
        yield _mixing_check(record)
    elif record.steps:
        recomputed = tuple(_recomputed_checks(record, claimed, level))
        if (inputs := inputs_check(record)) is not None:
            yield inputs
            recomputed = tuple(check for check in recomputed if check.outcome == LESS and check.name != "gradient")
        elif (elsewhere := _elsewhere_check(record, recomputed)) is not None:
            yield elsewhere
            recomputed = tuple(check for check in recomputed if check.outcome == LESS and check.name != "gradient")
        too_little = any(check.outcome == LESS and check.name.startswith("noise") for check in recomputed)
        if too_little and (later := noise_on_weights(record, claimed)) is not None:
            yield later
            recomputed = tuple(check for check in recomputed if not check.name.startswith("noise"))
        yield from recomputed
        changed = any(check.name == "single numbers" and check.outcome == UNKNOWN for check in recomputed)
        if len(record.steps) < len(record.lengths) and not (too_little or changed):
            left = min(NoiseSizes.of(record, claimed).left, left_by_filter(record, claimed))
            yield length_check(record, claimed, level, left)
        if record.not_recomputed and record.ended:
            yield _part_check(record)
    else:
        yield RunCheck(
            name="noise and gradient", outcome=UNKNOWN, observed=record.not_recomputed, expected="recomputed steps"
        )
    buffers = None if record.mixes_records else buffers_check(record)
    found = (left_out_check(record, level), *public_checks(record), buffers, norms_check(record, claimed))
    found = (*found, moves_check(record), other_weights_check(record, claimed), rates_check(record))
    yield from (check for check in found if check is not None)


def _elsewhere_check(record: RunRecord, recomputed: tuple[RunCheck, ...]) -> RunCheck | None:
    """Other weights that are no leak are told only where the gradient is not the recomputed one."""
    found = elsewhere_check(record)
    same = any(check.name == "gradient" and check.outcome == AS_CLAIMED for check in recomputed)
    return None if found is None or (found.outcome != LESS and same) else found


def _part_check(record: RunRecord) -> RunCheck:
    """From some step on nothing could be recomputed."""
    seen = f"after {len(record.steps):,} steps no more were recomputed: {record.not_recomputed}"
    return RunCheck(name="noise and gradient", outcome=UNKNOWN, observed=seen, expected="recomputed steps")


def _mixing_check(record: RunRecord) -> RunCheck:
    seen = (
        f"{record.mixes_records} mixes the records of a batch, so that clipping bounds nobody's influence: use "
        "nn.GroupNorm or nn.LayerNorm"
    )
    return RunCheck(name="gradient", outcome=LESS, observed=seen, expected="of every record by itself")


def _recomputed_checks(record: RunRecord, claimed: Training, level: float) -> Iterator[RunCheck]:
    """Of the recomputed steps; what follows from a cause that is found is left out."""
    independent, noise = independence_check(record, level), NoiseSizes.of(record, claimed)
    numbers = None  # without noise other checks tell more
    if noise.ratio > _BARE:
        numbers = follows_check(record, claimed) or numbers_check(record)
    judged = noise.ratio > _BARE and not noise.is_bare_in_steps and (numbers is None or numbers.outcome != LESS)
    patterns = (across_check(record, claimed), scales_check(record, claimed)) if noise.ratio > _BARE else ()
    pattern = next((one for one in patterns if one is not None), None)
    alike = independent.outcome != AS_CLAIMED
    common = _common_check(record, claimed, level, alike=alike) if judged and pattern is None else None
    told_better = independent.outcome == LESS or centre_check(record) is not None
    if common is not None and common.outcome == OTHER and common.name == independent.name:
        if independent.outcome != LESS and is_common_noise(record):
            independent, record = common, known_in_each_step(record)
            level = level_of_common_noise(record, level)
    elif common is not None and (common.name != independent.name or not told_better):
        yield common
        return
    if independent.outcome == LESS and noise.ratio > _BARE and (numbers is None or numbers.outcome != LESS):
        if noise.ratio > _LONG:
            yield _carried_check(independent, noise.ratio)
            return
        yield independent
        yield NoiseSizes.of(record, claimed, present=True).check(record, level, repeated=True)
        return
    if numbers is not None:
        yield numbers
        if numbers.outcome != LESS and noise.signal is not None and noise.signal.exceeds(noise.ratio):
            yield noise.check(record, level)
        return
    if pattern is not None:
        yield pattern
        return
    if noise.p_value() < level and noise.follows_size(level):
        yield own_size_check(noise.p_value())
        below = gradient_check(times_own_size(record), claimed, level)
        yield from (check for check in (below,) if check.outcome == LESS)
        return
    yield from _gradient_and_noise_checks(record, claimed, level, noise, independent)


def _common_check(record: RunRecord, claimed: Training, level: float, *, alike: bool) -> RunCheck | None:
    """What the noise of steps has in common; what is left of another gradient may be alike in few directions."""
    common, few = correlated_check(record, claimed, level, alike=alike), directions_check(record, claimed)
    if few is None or (common is not None and common.name == few.name):
        return common
    return few if gradient_check(record, claimed, level).outcome == AS_CLAIMED else common


def _gradient_and_noise_checks(
    record: RunRecord, claimed: Training, level: float, noise: NoiseSizes, independent: RunCheck
) -> Iterator[RunCheck]:
    """Of steps whose noise is fresh, and in which no single number is odd."""
    gradient, shape = gradient_check(record, claimed, level), shape_check(record, claimed, level)
    odd = shape is not None and shape.outcome == LESS
    layers = layers_check(record, claimed, level, _SMALL_LAYER if odd else 0.0)
    if (
        layers is not None and layers.outcome == LESS and not noise.is_bare_in_steps and noise.ratio > _BARE
    ):  # whatever the gradient is, the residual is longer for it
        yield from (check for check in (layers, gradient) if check.outcome == LESS)
        return
    if layers is not None and layers.outcome == OTHER and layers.observed.endswith(SCALED):
        yield layers
        yield gradient if gradient.outcome in (AS_CLAIMED, OTHER) else _scaled_layers_check(gradient)
        return
    if gradient.outcome != LESS and (centre := centre_check(record)) is not None:
        yield centre
        return
    yield gradient
    shifts = shifts_check(record) if gradient.outcome == AS_CLAIMED and _BARE < noise.ratio < _LONG else None
    if shifts is not None:
        yield shifts
        yield NoiseSizes.of(record, claimed, present=True).check(record, level, repeated=True)
        return
    if gradient.outcome == AS_CLAIMED and noise.ratio > _BARE:
        yield independent
        yield along_check(record, claimed, level)
    size = _hint_adjacency(noise.check(record, level), claimed, noise.ratio)
    size = surely_noise(size, record) if gradient.outcome == AS_CLAIMED else size
    shape = (
        shape_check(record, claimed, level) if gradient.outcome == AS_CLAIMED and not noise.is_bare_in_steps else None
    )
    if shape is not None and shape.outcome == LESS and noise.ratio > _BARE:  # its size varies otherwise, too
        yield shape
        return
    if gradient.outcome != LESS or not odd or noise.ratios.min() < 1:  # else the gradient is in it
        yield size
    if gradient.outcome == AS_CLAIMED:
        told = layers, shape if noise.p_value() >= level else None
        yield from (surely_noise(check, record) for check in told if check is not None)


def _carried_check(independent: RunCheck, ratio: float) -> RunCheck:
    """Residuals that are alike, and too long for the claimed noise."""
    seen = (
        f"beside the clipped sum something {ratio:.3g} x as long as the claimed noise is applied, and is the same in "
        "different steps: gradients are carried over from step to step (momentum, an optimizer before the noise), "
        "or larger noise is used again: add fresh noise to the clipped sum, before the optimizer"
    )
    return msgspec.structs.replace(independent, observed=seen)


def _scaled_layers_check(gradient: RunCheck) -> RunCheck:
    """Layers that are scaled after the noise hide what the clipped sum was."""
    seen = "layers are scaled after the noise, so that clipping is not seen: watch the noisy gradient before that"
    return msgspec.structs.replace(gradient, outcome=UNKNOWN, observed=seen)


def _hint_adjacency(check: RunCheck, claimed: Training, ratio: float) -> RunCheck:
    """Half the noise of a claim for replace neighbours is the whole of one for add-remove neighbours."""
    if check.outcome != LESS or claimed.adjacency != Adjacency.REPLACE or not 0.45 < ratio < 0.55:
        return check
    told = "as noise that is relative to C, for add-remove neighbours: of replace neighbours it is relative to 2 C"
    return msgspec.structs.replace(check, observed=f"{check.observed}, {told}")


_SMALL_LAYER = 0.05
"""Of fewer weights than this share the size of noise that is not Gaussian shows nothing."""
_LONG = 1.5
"""Of the claimed noise: the same noise in several steps is not longer."""
_BARE = 0.01
"""Noise below this share of the claimed one is rounding, which is alike in different steps."""
