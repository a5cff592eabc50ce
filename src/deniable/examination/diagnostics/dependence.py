"""Independence of the noise: between steps, between trainings, between layers and within a layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.alternatives import STEPS
from deniable.examination.diagnostics.p_values import any_of, chi_square, cosine, normal, student
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence

Array = NDArray[np.float64]
ROWS = 3000
"""So many noise vectors are compared with each other."""
ALIVE = 0.2
"""Noise below this share of the claimed standard deviation is not compared: what is left is the auditor's own."""
REPEATED = 0.1
"""A mean cosine above this means that noise is used again; independent noise has a cosine of 1 / sqrt(weights)."""
COPIED = 0.9
"""A single cosine above this, or below its negative, is the same noise, unless chance brings such cosines."""
NOT_BY_CHANCE = 1e-3
"""The p-value below which noise of an earlier step is taken to be in a later one."""
BY_CHANCE = 1e-6
"""Large cosines that come with a larger probability may be chance."""
SPREAD = 0.1
"""Noise on fewer than about this share of the weights is not compared: few numbers resemble others by chance."""
FEW_DIRECTIONS = 0.5
"""Noise in fewer than this share of all directions keeps to some."""
NORMAL_MEDIAN = 0.6745
"""The median of the absolute value of a standard normal number."""
DEPENDS = "the noise of a step depends on that of steps before: draw fresh noise in every step"
AGAIN = (
    "the same noise is used in several steps, so that it cancels out of their difference: the generator is reseeded, "
    "or the noise is drawn once; draw fresh noise in every step from one generator"
)
REORDERED = (
    "a step's noise has the numbers of another step's, in another order or with other signs (shuffled, rolled or "
    "turned), so that whoever guesses the order sees the gradients' difference bare: draw fresh noise in every step"
)
SORTED = 2**25
"""So many numbers are sorted, but two steps at least."""
SAME_NUMBERS = 1e-4
"""Sorted numbers that differ by this share of their size are the same; those of fresh noise by 1 / sqrt(weights)."""
DIFFERENT = 0.1
"""The mean distance of a step's sizes from their mean, beside it, from which on an order is told; normal ones: .6."""
ROWS_A_STEP = 20
"""Numbers of noise for each step, from which on their covariance between steps is told."""
FILLED = "it keeps to some directions of all"


@dataclass(frozen=True)
class Angles:
    """Cosines between the noise vectors of steps of one training, and of different trainings."""

    dimension: int
    following: Array
    """A step and the next one."""
    within: Array
    """All pairs of steps of one training."""
    same_step: Array
    """The same step of two trainings."""
    across: Array
    """Different steps of two trainings."""
    new_in_step: float
    """The variance of a step's noise that the step before does not foretell."""
    new_in_training: float
    """The variance of a training's noise that the same step of the training before does not foretell."""

    @classmethod
    def of(cls, evidence: Evidence) -> Angles:
        """Of the first trials, as many as `ROWS` allows."""
        sketch = evidence.trials.sketch
        steps = min(sketch.shape[1], ROWS // 2)
        used = sketch[: max(2, ROWS // steps), :steps]
        rows = used.reshape(-1, sketch.shape[2])
        lengths = np.linalg.norm(rows, axis=1)
        own = evidence.trials.fresh[: len(used), :steps, 0].reshape(-1)  # the auditor's numbers are no noise of theirs
        alive = np.square(lengths) - own > ALIVE**2 * sketch.shape[2]
        alive &= np.square(rows).sum(1) ** 2 >= SPREAD * sketch.shape[2] * np.power(rows, 4).sum(1)
        unit = rows / np.where(alive, lengths, np.nan)[:, None]
        angles = unit @ unit.T
        trial, step = np.divmod(np.arange(len(rows)), steps)
        upper = np.triu(np.ones_like(angles, dtype=bool), 1) & ~np.isnan(angles)
        together, level = trial[:, None] == trial, step[:, None] == step
        next_one = step[None, :] - step[:, None] == 1
        chosen = (together & next_one, together, ~together & level, ~together & ~level)
        groups = (angles[upper & pairs].astype(float) for pairs in chosen)
        new = np.square(lengths) * (1 - np.square(angles)) / max(1, sketch.shape[2] - 1)
        foretold = together & next_one, level & (trial[None, :] - trial[:, None] == 1)
        return cls(int(sketch.shape[2]), *groups, *(_finite_mean(new[pairs]) for pairs in foretold))

    def repeated_between(self, ratio: float, mean: float) -> list[str]:
        """Between what noise is used again, given its scale; a common mean is no noise and leaves fresh noise."""
        if mean**2 > 0.5 * ratio**2 * max(_mean(self.within), _mean(self.same_step)) > 0.5 * REPEATED * ratio**2:
            return []
        most = 0.9 * min(1.0, ratio**2)
        found = {
            "independent steps": self.is_copied(self.within)
            or (_mean(self.within) > REPEATED and self.new_in_step < most),
            "independent trainings": self.is_copied(self.same_step)
            or self.is_copied(self.across)
            or (_mean(self.same_step) > REPEATED and self.new_in_training < most),
        }
        return [name for name, again in found.items() if again]

    @property
    def directions(self) -> float:
        """How many directions the noise has, by the median cosine of different steps of different trainings."""
        return self._directions(self.across)

    @property
    def step_directions(self) -> float:
        """How many directions the noise of one step has, by the median cosine of that step of different trainings."""
        return self._directions(self.same_step)

    def _directions(self, group: Array) -> float:
        median = float(np.median(np.abs(group))) if len(group) else 0.0
        return float(min(self.dimension, (NORMAL_MEDIAN / median) ** 2)) if median > 1e-6 else float(self.dimension)

    def is_copied(self, group: Array) -> bool:
        """Whether some noise is that of another step or training, and not by chance, as noise of few directions is."""
        largest = _largest(group)
        if largest <= COPIED or self.directions < 2:
            return False
        return len(group) * float(cosine(largest, self.directions)) < BY_CHANCE

    @property
    def p_of_directions(self) -> float:
        """p-value of the noise going in all directions alike: squared cosines have mean 1 / dimension.

        Their sum over N vectors is a degenerate U-statistic: chi-square with one degree of freedom a direction of
        symmetric matrices without trace.
        """
        d, number = self.dimension, len(self.across)
        if d < 8 or not number:
            return 1.0
        z = (np.square(self.across).sum() - number / d) / np.sqrt(number * 2 * (d - 1) / (d * d * (d + 2)))
        freedom = d * (d + 1) / 2 - 1
        return float(chi_square(max(0.0, freedom + z * np.sqrt(2 * freedom)), freedom))

    def p_value(self, *groups: Array) -> float:
        """Of the largest cosine and of the mean one, in each group."""
        tests = []
        for group in groups:
            if len(group):
                tests.append(min(1.0, len(group) * float(cosine(_largest(group), self.dimension))))
                tests.append(float(normal(group.sum() * np.sqrt(self.dimension / len(group)))))
        return any_of(tests) if tests else 1.0


def repeated_noise(noise: list[Tensor]) -> list[str]:
    """Between what noise is used again; (steps, weights) of trainings with different seeds."""
    unit = [each / each.norm(dim=1, keepdim=True).clamp(min=1e-300) for each in noise]
    alive = [each[n.norm(dim=1) > ALIVE * n.shape[1] ** 0.5] for each, n in zip(unit, noise, strict=True)]
    within = [np.asarray((each @ each.T)[torch.triu_indices(len(each), len(each), 1).unbind()]) for each in alive]
    across = [np.asarray(a @ b.T).ravel() for a, b in combinations(alive, 2)]
    groups = {"independent steps": within, "independent trainings": across}
    limit = max(REPEATED, 6 / noise[0].shape[1] ** 0.5)
    every = {name: np.concatenate(group) if group else np.empty(0) for name, group in groups.items()}
    return [name for name, group in every.items() if _largest(group) > COPIED or _mean(group) > limit]


def _finite_mean(values: Array) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else 1.0


def _mean(group: Array) -> float:
    return float(group.mean()) if len(group) else 0.0


def _largest(group: Array) -> float:
    return float(np.abs(group).max(initial=0))


def _describe(group: Array, dimension: int) -> tuple[str, str]:
    return (
        f"mean cosine {_mean(group):.3g}, largest {_largest(group):.3g}",
        f"mean cosine 0, spread {dimension**-0.5:.2g}",
    )


def steps(evidence: Evidence, angles: Angles) -> Diagnosis:
    """Noise of different steps of one training is independent."""
    p_value = angles.p_value(angles.following, angles.within)
    shown = None if evidence.twins is None else evidence.twins.shown
    if shown is not None and shown.repeated is not None:
        observed = f"step {shown.repeated + 1} draws none, and has that of the step before"
        return Diagnosis("independent steps", 0.0, observed, "noise of its own in every step", AGAIN)
    reordered = not angles.is_copied(angles.within) and _comes_reordered(evidence)
    return Diagnosis(
        "independent steps",
        0.0 if reordered else p_value,
        *_describe(angles.within, angles.dimension),
        REORDERED if reordered else _step_sentence(angles),
        checked=len(angles.within) > 0,
    )


def _step_sentence(angles: Angles) -> str:
    copied = angles.is_copied(angles.within)
    if _mean(angles.within) > REPEATED or (copied and float(np.max(angles.within, initial=0)) > COPIED):
        return AGAIN
    if copied and float(np.min(angles.within, initial=0)) < -COPIED:
        return (
            "a step's noise is that of another step with the sign turned, so that it cancels out of their sum: draw "
            "fresh noise in every step"
        )
    return DEPENDS


def _comes_reordered(evidence: Evidence) -> bool:
    """Whether two steps' noise has the same sizes of numbers, which fresh noise never has: no false alarm."""
    if evidence.twins is None or not evidence.gradient_fits:
        return False
    one = evidence.twins.original(evidence.twins.seeds[0])
    first = one.seen.first(max(2, min(STEPS, SORTED // one.sums.shape[1])))
    noise = one.recomputer.recompute(first, one.members).residual.abs()
    ordered = noise[noise.mean(1) > ALIVE].sort(dim=1).values
    spread, mean = (ordered - ordered.mean(1, keepdim=True)).abs().mean(1), ordered.mean(1)
    ordered = ordered[spread > DIFFERENT * mean]  # equal sizes have nothing to reorder
    return any(
        float((two - three).abs().mean()) < SAME_NUMBERS * float(two.mean()) for two, three in combinations(ordered, 2)
    )


def first_noise_stays(evidence: Evidence) -> bool:
    """Whether the first step's noise is in later ones, where what else is in these is not known."""
    sketch = evidence.trials.sketch.astype(float)
    first, later = sketch[:, :1], sketch[:, 1:]
    if not later.size:
        return False
    shares = (first * later).sum(2) / np.maximum(np.linalg.norm(first, axis=2), 1e-300)
    return any_of(student(shares)) < NOT_BY_CHANCE


def correlated_noise(test: Diagnosis, evidence: Evidence) -> Diagnosis:
    """Noise that depends on earlier steps' (a matrix mechanism, DP-FTRL), weighed by its covariance S between steps.

    As private as claimed if S - I is positive: it is then the claimed noise and more. Less private if the trace of
    1 / S is above the number of steps T: neighbours whose gradients differ by the clipping norm in every step, with
    random signs, are at trace(1 / S) in place of T squared norms from each other on average, so some are farther.
    """
    every = evidence.trials.sketch.astype(float)
    rows = every.transpose(0, 2, 1).reshape(-1, every.shape[1])
    number, steps = rows.shape
    about = "the noise of a step depends on that of steps before (correlated noise, as of DP-FTRL)"
    if number < ROWS_A_STEP * steps:
        return replace(test, sentence=f"{about}: too few trials to tell what it hides", weakens=None)
    covariance = rows.T @ rows / number
    error = 4 * np.sqrt(2 / number)
    distance = float(np.trace(np.linalg.inv(covariance))) * (number - steps - 1) / number / steps
    if distance > 1 + error / np.sqrt(steps):
        return replace(test, sentence=f"{about}, and hides less than fresh noise: draw fresh noise in every step")
    advice = "account for it by its own matrix; a claim of independent noise is another mechanism"
    if float(np.linalg.eigvalsh(covariance)[0]) > 1 - error:
        return replace(test, sentence=f"{about}, and hides as much as is claimed: {advice}", weakens=False)
    return replace(test, sentence=f"{about}, which cannot be judged here: {advice}", weakens=None)


def trainings(evidence: Evidence, angles: Angles) -> Diagnosis:
    """Noise of different trainings is independent, whatever the step."""
    return Diagnosis(
        "independent trainings",
        angles.p_value(angles.same_step, angles.across),
        *_describe(angles.same_step, angles.dimension),
        _training_sentence(evidence, angles),
        checked=len(angles.same_step) > 0,
    )


def _training_sentence(evidence: Evidence, angles: Angles) -> str:
    advice = "draw the noise from the training's own seed, or from the operating system"
    if angles.step_directions < FEW_DIRECTIONS * angles.dimension and abs(_mean(angles.same_step)) < REPEATED:
        number = f"about {angles.step_directions:.2g} directions" if angles.step_directions > 1.5 else "one direction"
        return (
            f"the noise of a step keeps to {number} of all {angles.dimension}, the same in every training (few "
            "numbers, times vectors that are known): draw every weight's noise independently"
        )
    if angles.is_copied(angles.across) and not angles.is_copied(angles.same_step):
        return (
            "trainings with neighbouring seeds use the same noise, in other steps: a step's seed is made by counting "
            f"(such as seed + step); {advice}, with one generator for all steps"
        )
    if angles.is_copied(angles.same_step) and _mean(angles.same_step) < 0.5:
        return f"some trainings with different seeds use the same noise: few seeds are left of many; {advice}"
    twins = evidence.twins if angles.is_copied(angles.same_step) else None
    if twins is not None and twins.repeatable and not twins.shares_noise:
        return (
            "trainings on the same records use the same noise, and where a record changes a little it is another one: "
            f"its seed is made of the records, so that it tells of them and hides nothing; {advice}"
        )
    return (
        "trainings with different seeds use the same noise: it comes from a fixed seed, which whoever knows it can "
        f"subtract; {advice}"
    )


def layers(evidence: Evidence, angles: Angles) -> Diagnosis:
    """Noise of different layers, and of different weights of a layer, is independent."""
    inside = _within(evidence)
    found = _between(evidence) | inside | {FILLED: angles.p_of_directions}
    # how alike two layers may be by chance is known where the weights of each are independent
    told = inside if min(inside.values(), default=1.0) < BY_CHANCE else found
    worst = min(told.items(), key=lambda item: item[1])
    return Diagnosis(
        "independent layers",
        any_of(*found.values()),
        f"least p-value {worst[1]:.2g} ({worst[0]})",
        "no dependence between layers, rows, columns or neighbouring weights",
        f"the noise of different weights is correlated ({worst[0]}): draw every weight's noise independently",
    )


def _alive(evidence: Evidence) -> NDArray[np.intp]:
    squares = evidence.trials.squares
    spread = np.sqrt(squares.mean((0, 1)) / evidence.sizes)
    return np.flatnonzero(spread > ALIVE)


def _between(evidence: Evidence) -> dict[str, float]:
    """For pairs of layers: products of their first weights' noise, and of their sums."""
    found, noise, totals = {}, evidence.layer_noise(), evidence.trials.totals
    for a, b in combinations(_alive(evidence), 2):
        name = f"layers {evidence.layers[a]} and {evidence.layers[b]}"
        width = min(noise[a].shape[2], noise[b].shape[2])
        left, right = noise[a][..., :width].astype(float), noise[b][..., :width].astype(float)
        # given one layer's noise, its product with the other's is normal with its length as standard deviation
        products = (left * right).sum(2) / np.maximum(np.linalg.norm(left, axis=2), 1e-300)
        sums = totals[..., a] * totals[..., b]
        mean = student(products.sum(1)[:, None] / np.sqrt(products.shape[1]))
        spread = _one_scale(evidence, b)
        squares = chi_square(np.square(products / spread).sum(), products.size)
        found[name] = any_of(mean, squares, normal(sums.sum() / np.sqrt(np.square(sums).sum())))
    return found


def _one_scale(evidence: Evidence, layer: int) -> float:
    """The layer's own standard deviation if it is not the claimed one."""
    squares, number = evidence.trials.squares[..., layer], evidence.sizes[layer]
    wrong = float(chi_square(squares.sum(), squares.size * number)) < evidence.level
    return float(np.sqrt(squares.mean() / number)) if wrong else 1.0


def _within(evidence: Evidence) -> dict[str, float]:
    """For each layer: sums of everything, by rows and by columns, and products of adjacent weights' noise."""
    found, trials = {}, evidence.trials
    for layer in _alive(evidence):
        shape, size = evidence.shapes[layer], int(evidence.sizes[layer])
        spread = _one_scale(evidence, int(layer))
        rows = shape[0] if len(shape) > 1 else 1
        count = trials.squares[..., layer].size
        degrees = count * np.array([1, rows if 1 < rows < size else 0, size // rows if 1 < rows < size else 0])
        sums = chi_square(trials.sums[:, :, layer].sum((0, 1)) / spread**2, degrees)
        adjacent = trials.adjacent[..., layer].sum() / (spread**2 * np.sqrt(count * max(1, size - 1)))
        found[f"weights of {evidence.layers[layer]}"] = any_of(sums, normal(adjacent) if size > 1 else np.nan)
    return found
