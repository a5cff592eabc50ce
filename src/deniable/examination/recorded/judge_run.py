"""Checks of one watched run against its claim, each with a known rate of false alarms, and the verdict.

Every check that rests on chance has one p-value and fails below (1 - confidence) / `CHECKS`, so that a run that is as
claimed fails any of them with probability at most 1 - confidence. Structural ones (divisor, number of steps, moves of
the weights) never fail by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from deniable.checks import probability
from deniable.examination.diagnostics.p_values import any_of, binomial, chi_square, cosine, normal
from deniable.examination.recorded.noise_power import tell_power, visible_noise, visible_noise_of_a_step
from deniable.examination.recorded.run_record import UNEXPLAINED_MOVE, ExaminedStep, RunRecord, known_factors
from deniable.examination.recorded.step_lengths import gradient_sigmas, length_check
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck, RunInput, RunResult
from deniable.results.shared import VerdictName
from deniable.scores import privacy_loss

__all__ = ["judge_run"]

Array = NDArray[np.float64]
CHECKS = 6
"""That rest on chance: noise, its layers, that of other steps, the gradient, independent steps,
sampling."""
AS_CLAIMED: Final = "as claimed"
LESS: Final = "less private"
OTHER: Final = "another recipe"
UNKNOWN: Final = "not shown"
_ROUNDING = 2e-3
"""Of float32 sums, relative: a gradient that differs by less is the same."""
_ENOUGH_NOISE = 0.97
"""Of what the sum's factor needs, within what is measured."""
_NOT_SHOWN = (
    "whether the initial weights, or public values such as the learning rate, were made from the records",
    "where the random numbers come from",
)


def judge_run(record: RunRecord, claimed: Training, confidence: float = 0.95) -> RunResult:
    """The verdict on one run: does it do what it claims, and if not, why?

    Guarantee: a run that is as claimed is called *violated* or *other recipe* with probability at most
    1 - `confidence`.
    """
    level = (1 - probability("confidence", confidence, open_ends=True)) / CHECKS
    checks = tuple(_all_checks(record, claimed, level))
    name, text = _verdict(record, checks)
    loss = privacy_loss(claimed.mechanism, claimed.adjacency)
    visible, unseen = visible_noise(record, level, _ROUNDING), visible_noise_of_a_step(record, claimed, level)
    missing = [f"the gradients of {len(record.batches) - len(record.steps)} of {len(record.batches)} steps"]
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
        not_shown=(*(missing if len(record.steps) < len(record.batches) else ()), *_NOT_SHOWN),
        claimed_advantage=float(loss.advantage()),
        claimed_belief=float(loss.belief(1 / max(2, record.records))),
        recomputed=tuple(step.number for step in record.steps),
        noise_ratios=_Noise.of(record, claimed).ratios,
        steps=len(record.batches),
        examined_steps=len(record.steps),
        least_visible_noise=visible,
        power_text=tell_power(visible, unseen),
        watcher_share=record.watcher_seconds / max(record.seconds, 1e-9),
    )


def _verdict(record: RunRecord, checks: tuple[RunCheck, ...]) -> tuple[VerdictName, str]:
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
        return "other recipe", f"As private as claimed, by another recipe: {said[OTHER]}"
    return "consistent", (
        f"Nothing speaks against the claim in {len(record.batches):,} steps, {len(record.steps):,} of them recomputed; "
        "one run cannot show everything"
    )


def _all_checks(record: RunRecord, claimed: Training, level: float) -> Iterator[RunCheck]:
    yield _steps_check(record, claimed)
    yield _sampling_check(record, claimed, level)
    yield _divisor_check(record)
    if record.steps:
        recomputed = tuple(_recomputed_checks(record, claimed, level))
        yield from recomputed
        if len(record.steps) < len(record.lengths) and LESS not in {check.outcome for check in recomputed}:
            yield length_check(record, claimed, level)
    else:
        yield RunCheck(
            name="noise and gradient", outcome="not shown", observed=record.not_recomputed, expected="recomputed steps"
        )
    yield _moves_check(record)


def _recomputed_checks(record: RunRecord, claimed: Training, level: float) -> Iterator[RunCheck]:
    """Of the recomputed steps; what follows from a cause that is found is left out."""
    independent, noise = _independence_check(record, level), _Noise.of(record, claimed)
    if independent.outcome == LESS:
        yield independent
        yield noise.check(level, repeated=True)
    elif noise.p_value() < level and noise.follows_size(record, level):
        yield _own_size_check(noise.p_value())
    else:
        gradient = _gradient_check(record, claimed, level)
        yield from (gradient, independent, noise.check(level))
        if gradient.outcome == AS_CLAIMED and noise.p_value() >= level:
            yield _layers_check(record, claimed, level)


def _steps_check(record: RunRecord, claimed: Training) -> RunCheck:
    taken = len(record.batches)
    if not record.ended and taken <= claimed.steps:
        seen = f"the recording ends after step {taken:,}, before the run was over: watch the run to its end"
        return RunCheck(name="number of steps", outcome="not shown", observed=seen, expected=f"{claimed.steps:,}")
    outcome: Outcome = AS_CLAIMED if taken == claimed.steps else LESS if taken > claimed.steps else OTHER
    return RunCheck(
        name="number of steps",
        outcome=outcome,
        observed=f"{taken:,} steps were taken in place of {claimed.steps:,}" if outcome != AS_CLAIMED else f"{taken:,}",
        expected=f"{claimed.steps:,}",
    )


def _sampling_check(record: RunRecord, claimed: Training, level: float) -> RunCheck:
    """Poisson batches: sizes are binomial, every record is drawn by itself."""
    sizes, n, rate = np.array(record.batches), record.records, claimed.rate
    name, expected = "sampling", f"each record in a batch with probability {rate:g}"
    if rate == 1:
        whole = bool((sizes == n).all())
        seen = (
            "all records in every batch" if whole else f"batches of {sizes.min():,} to {sizes.max():,} of {n:,} records"
        )
        return RunCheck(
            name=name, outcome="as claimed" if whole else "another recipe", observed=seen, expected=expected
        )
    spread = _spread_p_value(sizes, n, rate)
    mean = binomial(int(sizes.sum()), n * len(sizes), rate)
    draws = np.array(record.draws)
    passes = _spread_p_value(draws, len(sizes), rate)
    p_value = any_of(spread, mean, passes)
    if p_value >= level:
        seen = f"batches of {sizes.mean():.4g} records on average"
        return RunCheck(name=name, outcome="as claimed", observed=seen, expected=expected, p_value=p_value)
    even = any_of(spread, passes) < level and sizes[:-1].std() < 0.5 * sqrt(n * rate * (1 - rate))
    if even:
        how = "in passes over shuffled records" if len(draws) and np.ptp(draws) <= 1 else "of a fixed size"
        seen = f"batches are drawn {how}, not by Poisson sampling, whose amplification is then not theirs"
        return RunCheck(name=name, outcome="less private", observed=seen, expected=expected, p_value=p_value)
    found = float(sizes.sum()) / (n * len(sizes))
    seen = f"records are drawn with rate {found:.4g} in place of {rate:g}"
    outcome: Outcome = LESS if found > rate else OTHER if any_of(mean) < level else LESS
    return RunCheck(name=name, outcome=outcome, observed=seen, expected=expected, p_value=p_value)


def _spread_p_value(counts: Array, of: int, rate: float) -> float:
    """Of binomial counts, by their squares; 1 without counts, as of a recording that was cut.

    The squares are no chi-square where counts are small: mean and variance of their sum are matched to one.
    """
    variance = of * rate * (1 - rate)
    wider = 1 + (1 - 6 * rate * (1 - rate)) / (2 * variance)
    return any_of(chi_square(((counts - of * rate) ** 2).sum() / variance / wider, len(counts) / wider))


def _divisor_check(record: RunRecord) -> RunCheck:
    fixed = len(set(record.divisors)) == 1
    return RunCheck(
        name="divisor",
        outcome="as claimed" if fixed else "less private",
        observed="the same in all steps"
        if fixed
        else "the divisor changes from step to step: divide by a public number",
        expected="the same in all steps",
    )


def _gradient_check(record: RunRecord, claimed: Training, level: float) -> RunCheck:
    """What was applied, along the clipped sum and along what clipping takes away."""
    scaled, cut_shares, p_values = _components(record.steps)
    known = cut_shares[~np.isnan(cut_shares)]
    cut = float(known.mean()) if len(known) else 0.0
    p_value = any_of(*p_values)
    name, expected = "gradient", "the sum of the batch's gradients, each clipped"
    if p_value >= level or (abs(scaled.mean()) < _ROUNDING and abs(cut) < _ROUNDING):
        return RunCheck(name=name, outcome="as claimed", observed="the same", expected=expected, p_value=p_value)
    unclipped = any_of(p_values[1]) < level and cut > _ROUNDING
    if unclipped:
        much = "not clipped" if cut > 0.9 else f"clipped in part: {cut:.0%} of the rest stays"
        longest = max(step.longest / step.clip for step in record.steps)
        seen = f"the records' gradients are {much} (the longest has {longest:.3g} x the clipping norm)"
        return RunCheck(name=name, outcome="less private", observed=seen, expected=expected, p_value=p_value)
    return _scaled_check(record, claimed, 1 + scaled, p_value, expected)


def _scaled_check(record: RunRecord, claimed: Training, factors: Array, p_value: float, expected: str) -> RunCheck:
    """The clipped sum times a factor: of the batch's own size, or another one."""
    sizes = np.array([max(1, step.batch) for step in record.steps])
    by_size = factors * sizes
    if len(sizes) > 1 and np.ptp(sizes) and by_size.std() / by_size.mean() < 0.5 * factors.std() / factors.mean():
        return _own_size_check(p_value)
    factor = float(factors.mean())
    enough: bool = _Noise.of(record, claimed).ratio >= _ENOUGH_NOISE * factor
    seen = f"the sum is {factor:.3g} x the clipped one" + ("" if enough else ", with too little noise for that")
    outcome: Outcome = OTHER if enough and factor > 0 else LESS
    return RunCheck(name="gradient", outcome=outcome, observed=seen, expected=expected, p_value=p_value)


def _components(steps: tuple[ExaminedStep, ...]) -> tuple[Array, Array, tuple[Array, Array]]:
    """Of each step: the residual's factor on the clean sum and on what is cut, and both p-values, in measured noise."""
    rows = []
    for step in steps:
        noise = sqrt(max(sum(step.residual), 1e-30) / max(1, sum(step.sizes)))
        clean = sqrt(max(step.clean, 1e-30))
        along = step.residual_clean / clean
        cut = max(step.cut - step.clean_cut**2 / clean**2, 0.0)  # perpendicular to the clean sum
        over = (step.residual_cut - along * step.clean_cut / clean) / sqrt(cut) if cut > 1e-9 * clean**2 else np.nan
        rows.append((along / clean, over / sqrt(cut) if cut > 0 else np.nan, along / noise, over / noise))
    scaled, left, z_clean, z_cut = np.array(rows).T
    return scaled, left, (normal(z_clean), normal(z_cut))


def _perpendicular(step: ExaminedStep) -> float:
    """The residual's squared length across the clean sum and what is cut."""
    along = np.array([step.residual_clean, step.residual_cut])
    explained = float(along @ known_factors(step))
    return max(sum(step.residual) - explained, 0.0)


def _sigmas(record: RunRecord, claimed: Training) -> Array:
    return gradient_sigmas(record, claimed, np.array([step.clip for step in record.steps]))


@dataclass(frozen=True)
class _Noise:
    """Of every examined step: the residual's squares across known directions, in claimed variances; how many."""

    squares: Array
    degrees: Array

    @classmethod
    def of(cls, record: RunRecord, claimed: Training) -> _Noise:
        squares = np.array([_perpendicular(step) for step in record.steps]) / _sigmas(record, claimed) ** 2
        return cls(squares, np.array([sum(step.sizes) - 2 for step in record.steps]))

    @property
    def ratios(self) -> tuple[float, ...]:
        """Measured standard deviation / claimed, of each step."""
        return tuple(np.sqrt(self.squares / self.degrees).tolist())

    @property
    def ratio(self) -> float:
        """Measured standard deviation / claimed."""
        return sqrt(self.squares.sum() / self.degrees.sum())

    def p_value(self, repeated: bool = False) -> float:
        """Of every step, and of all together unless it is the same noise in all, which is one draw."""
        together = [] if repeated else [chi_square(self.squares.sum(), self.degrees.sum())]
        return any_of(any_of(chi_square(self.squares, self.degrees)), *together)

    def check(self, level: float, repeated: bool = False) -> RunCheck:
        """The size of the noise: of all steps, or of the one with the least where only single ones differ."""
        all_differ = any_of(chi_square(self.squares.sum(), self.degrees.sum())) < level
        shown = self.ratio if all_differ else float(np.sqrt(self.squares / self.degrees).min())
        return _scale_check("noise", "the noise", self.p_value(repeated), level, shown)

    def follows_size(self, record: RunRecord, level: float) -> bool:
        """Whether the noise is as claimed once every step is multiplied by its batch's own size."""
        sizes = np.array([max(1, step.batch) / record.divisors[step.number] for step in record.steps])
        return len(sizes) > 1 and any_of(chi_square(self.squares * sizes**2, self.degrees)) >= level


def _layers_check(record: RunRecord, claimed: Training, level: float) -> RunCheck:
    """The noise of each parameter, where that of all together is as claimed."""
    parts = np.array([step.residual for step in record.steps]) / _sigmas(record, claimed)[:, None] ** 2
    sizes = np.array([step.sizes for step in record.steps])
    p_values = chi_square(parts.sum(0), sizes.sum(0))
    worst = int(np.nanargmin(p_values))
    ratio = sqrt(parts.sum(0)[worst] / sizes.sum(0)[worst])
    return _scale_check("noise of each layer", f"the noise of parameter {worst}", any_of(p_values), level, ratio)


def _own_size_check(p_value: float) -> RunCheck:
    seen = "the noisy sum is divided by the batch's own size, which depends on the records: divide by a public number"
    return RunCheck(
        name="divisor", outcome="less private", observed=seen, expected="the same in all steps", p_value=p_value
    )


def _scale_check(name: str, what: str, p_value: float, level: float, ratio: float) -> RunCheck:
    expected = "1 x the claimed standard deviation"
    seen = f"{what} has {ratio:.3g} x the claimed standard deviation"
    outcome: Outcome = AS_CLAIMED if p_value >= level or abs(ratio - 1) < _ROUNDING else LESS if ratio < 1 else OTHER
    return RunCheck(name=name, outcome=outcome, observed=seen, expected=expected, p_value=p_value)


def _independence_check(record: RunRecord, level: float) -> RunCheck:
    """Independent noise has small cosines between steps, on the watched weights."""
    cosines = np.array(record.cosines)
    compared = np.arange(1, len(cosines) + 1)
    p_value = any_of(np.minimum(1.0, compared * cosine(cosines, record.watched_weights))) if len(cosines) else 1.0
    largest = float(np.abs(cosines).max()) if len(cosines) else 0.0
    outcome: Outcome = "less private" if p_value < level and largest > 0.1 else "as claimed"
    seen = f"the noise of different steps has a cosine of {largest:.2g}" + (
        ": draw fresh noise in every step" if outcome == LESS else ""
    )
    return RunCheck(
        name="independent steps", outcome=outcome, observed=seen, expected="independent noise", p_value=p_value
    )


def _moves_check(record: RunRecord) -> RunCheck:
    """The weights move by the applied gradient, and end where it leads."""
    name, expected = "moves of the weights", "by the optimizer with the applied gradient alone"
    odd = [number for number, off in enumerate(record.moves) if off > UNEXPLAINED_MOVE]
    last = record.final_move is not None and record.final_move > UNEXPLAINED_MOVE
    if not odd and not last:
        return RunCheck(name=name, outcome="as claimed", observed="the same", expected=expected)
    along = record.final_along_gradient
    if last and not odd and along is not None and cosine(along, record.watched_weights) < 1e-3 and along > 0:
        seen = "after the last watched step the weights move along the records' gradient, without noise"
        return RunCheck(name=name, outcome="less private", observed=seen, expected=expected)
    where = f"in {len(odd):,} steps, first in step {odd[0] + 1:,}" if odd else "after the last watched step"
    seen = f"the weights move by something that was not watched, {where}"
    return RunCheck(name=name, outcome="not shown", observed=seen, expected=expected)
