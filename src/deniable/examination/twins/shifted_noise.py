"""Whether the records are seen through the noisy sum alone: by twins whose noise is shifted, or drowns everything.

*Shifted.* A second training has other records, and draws noise that is shifted by what its clean sums lack, so that
clean sum and noise are together what they were. If all that it shows is the same, that is a function of the noisy sums,
whatever function it is: post-processing. The noise it is made of is f times the claimed one, if shifts of 1 / f of the
claimed standard deviations do it.

*Drowned.* The noise of one step is made so large that any clean sum vanishes in it. What still differs between
trainings on other records was made by looking at them beside the noisy sum, and no noise hides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import exp

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

from deniable.examination.noise_draws import NoiseDraws
from deniable.examination.recomputation import Recomputer, flat
from deniable.examination.twins.idle_records import hardest_contents, other_contents
from deniable.examination.twins.provoking_records import provoke
from deniable.examination.twins.twin_differences import different_batches
from deniable.examination.twins.twin_run import FAILS, Run, StandIn, are_same, final_row, same_weights
from deniable.examination.twins.twins import Twins
from deniable.examination.updates.post_processing import SUMS, NoisySum
from deniable.training.settings import Columns

_NAME, _YES = "noisy sums", "yes"

DROWNED = 1e6
"""So many times its size, noise hides every clean sum."""
APART, FEW = 1e-3, 1e-3
"""Numbers that differ by this share of their layer's typical size are others; so many of them may be, by rounding at a
jump of what is computed."""
APART_LATER, FEW_LATER = 2e-2, 1e-2
"""The same after the first step, where rounding grows and one number that jumped changes others."""
EXTREME_STEPS = 3
"""So many steps are compared with trainings on extreme records, in which rounding grows fastest."""
MULTIPLES: NDArray[np.float64] = np.geomspace(1 / 30, 30, 25)
"""Multiples of the claimed noise that are tried first."""
EXACT, FEW_FITTED = 1e-5, 0.03
"""The relative precision to which a multiple is searched, and the numbers that may differ where one was fitted."""
BESIDE = 0.02
"""The share of a layer's typical size by which records change it where noise drowns them."""
MOVED_SCALE = 0.01
"""Noise that other records make larger or smaller by this share follows them."""
SAME_DIRECTION = 0.99
"""The cosine from which on two drowned sums have the same noise; all clean sums are a millionth of it."""
EXTRA_STEPS, EXTRA_APART = 2, 0.02
"""In so many first steps a record's gradient is looked for, to this share of its length."""
SAME_WAY = 1e-3
"""Weights that differ by this share took the same way."""
LOOKED_STEPS = 6
"""So many steps are drowned, one at a time."""


@dataclass(frozen=True)
class Shown:
    """What the steps of a training show, as far as its noise can be followed."""

    noisy_sum: NoisySum | None
    """The noisy sum of which all is a function; None: not such a function, as far as is known."""
    scaled: bool
    """Whether the first sum has its noise in it, each layer times one number."""
    beside: int | None
    """The first step (counted from 0) that shows records beside its noisy sum; None: none that was looked at."""
    bare_layers: tuple[int, ...] = ()
    """The layers of the first sum that no noise changes."""
    repeated: int | None = None
    """The first step (counted from 0) that has the noise of the step before; None: none that was seen."""
    extra_record: bool = False
    """Whether every sum has the gradient of one more record, which is among those of D or D'."""
    redrawn: bool = False
    """Whether the records decide how often the first step draws."""
    noise_scales: tuple[float, float] | None = None
    """The least and the largest noise of first sums on other records, in claimed ones, where these decide on it."""


def look_through_noise(twins: Twins) -> Shown | None:
    """Follow the noise of twins; None where it is not seen, or they do not repeat."""
    if not twins.repeatable:
        return None
    with suppress(*FAILS), torch.no_grad():
        every = [_Followed(twins, seed) for seed in twins.seeds]
        if any(one.noise is None for one in every):
            again = [one.step_with_noise_of_before() for one in every]
            return None if None in again else Shown(None, False, None, repeated=again[0])
        return Shown(None, False, None, redrawn=True) if every[0].redraws() else _follow(twins, every)
    return None


def _follow(twins: Twins, every: list[_Followed]) -> Shown:
    first = every[0]
    found, scaled = first.noisy_sum(search=twins.looked), first.is_scaled_sum()
    if found is not None and twins.looked and first.has_extra_record(found):
        return Shown(None, scaled, None, extra_record=True)
    if found is not None and all(one.stays_on_its_way(found) for one in every):
        return Shown(first.describe(found), scaled, None)
    beside, bare = first.step_beside_noise(found), first.bare_layers()
    return Shown(None, scaled, beside, bare, noise_scales=first.noise_scales())


def follows_noisy_sums(twins: Twins | None) -> bool:
    """Whether all that a training shows is a function of its noisy sums and seed, as far as twins show."""
    if twins is None:
        return False
    if twins.post is not None:
        return twins.post.noisy_sum is not None
    if _NAME not in twins.known:
        shown = look_through_noise(twins) if twins.shown is None else twins.shown
        twins.known[_NAME] = _YES if shown is not None and shown.noisy_sum is not None else ""
    return bool(twins.known[_NAME])


class _Followed:
    """One training on D whose draws are kept, and others with shifted ones."""

    def __init__(self, twins: Twins, seed: int) -> None:
        self.twins, self.seed = twins, seed
        self.shapes = [w.shape[1:] for w in twins.original(seed).seen.weights]
        self.draws = NoiseDraws(self.shapes)
        self.run = twins.train(seed, True, {}, None, draws=self.draws)
        self.noise = self.draws.noise(len(self.run.seen))
        self.found = self.run.recomputer.recompute(self.run.seen, self.run.members)

    def train(self, contents: Mapping[int, StandIn], shifts: Tensor, at_most: int | None = None) -> Run:
        """On other records, the noise of each step shifted, in standard deviations."""
        draws = NoiseDraws(self.shapes, self.draws, shifts)
        return self.twins.train(self.seed, True, contents, at_most, draws=draws)

    @cached_property
    def contents(self) -> tuple[Mapping[int, StandIn], ...]:
        """Other contents of all records: usual, large, easiest, hardest ones."""
        large, usual, easiest = other_contents(self.twins, self.run)
        return usual, large, easiest, hardest_contents(self.run)

    def missing(self, contents: Mapping[int, StandIn], name: str) -> Tensor:
        """(steps, weights) what a sum of other records lacks, at the same weights, in claimed standard deviations."""
        own, members = self.run.recomputer, self.run.members
        records, labels, differing = own.columns
        records, labels = records.clone(), labels.clone()
        for place, (record, label) in contents.items():
            records[members[place]], labels[members[place]] = record, label
        other = Recomputer(own.claim, own.model, own.loss, Columns(records, labels, differing))
        lack: Tensor = getattr(self.found, name) - getattr(other.recompute(self.run.seen, members), name)
        return (lack / self.found.sigma.unsqueeze(1)).float()

    def redraws(self) -> bool:
        """Whether other records, in the same batch, change how often normal numbers are drawn in the first step."""
        for contents in self.contents:
            draws = NoiseDraws(self.shapes)
            two = self.twins.train(self.seed, True, contents, 1, draws=draws)
            if draws.number(0) != self.draws.number(0) and not different_batches(self.run, two, 1):
                return True
        return False

    def noisy_sum(self, search: bool) -> NoisySum | None:
        """The one that explains the first step; only with the claimed noise without a search, or where it is there."""
        lacks = {name: [self.missing(c, name)[:1] for c in self.contents] for name in SUMS}
        for name, lack in lacks.items():
            if self._explains(lack, 1.0, FEW):
                return NoisySum(name, 1.0)
        for name, lack in lacks.items() if search and not self.has_claimed_noise() else ():
            multiple = _lowest(partial(self._apart, lack))
            if multiple is not None and self._explains(lack, multiple, FEW_FITTED):
                return NoisySum(name, multiple)
        return None

    def _first_steps(self, lacks: list[Tensor], multiple: float) -> Iterator[Run]:
        for contents, lack in zip(self.contents, lacks, strict=True):
            yield self.train(contents, lack / multiple, 1)

    def _explains(self, lacks: list[Tensor], multiple: float, few: float) -> bool:
        steps = self._first_steps(lacks, multiple)
        return all(float(_differing(self.run, two, 0).float().mean()) <= few for two in steps)

    def _apart(self, lacks: list[Tensor], log_multiple: float) -> float:
        """How far the first sums are from that on D, all contents together."""
        first = self.run.sums[0]
        steps = self._first_steps(lacks, exp(log_multiple))
        return sum(float((two.sums[0] - first).norm() / first.norm().clamp(min=1e-30)) for two in steps)

    @cached_property
    def _shift(self) -> Tensor:
        """(1, weights) of the first noise, in standard deviations."""
        return torch.randn(1, self.run.sums.shape[1], generator=torch.Generator().manual_seed(0))

    @cached_property
    def _first_move(self) -> Tensor:
        """(weights,) how far the shift moves the first sum."""
        return self._move({}, self.run)

    def _move(self, contents: Mapping[int, StandIn], unmoved: Run) -> Tensor:
        return (self.train(contents, self._shift, 1).sums[0] - unmoved.sums[0]).double()

    def is_scaled_sum(self) -> bool:
        """Whether shifted noise shifts every layer of the first sum by one multiple of that, and not all by nothing."""
        sizes = [shape.numel() for shape in self.shapes]
        pairs = zip(torch.split(self._first_move, sizes), torch.split(self._shift[0].double(), sizes), strict=True)
        left = torch.cat([part - along * (part @ along) / (along @ along) for part, along in pairs])
        return bool(left.norm() < APART * self._first_move.norm())

    def noise_scales(self) -> tuple[float, float] | None:
        """Of first sums whose noise is as large as their records make it; None where it is alike, or not a multiple."""
        usual, _, easiest, hardest = self.contents
        short = dict.fromkeys(usual, provoke(self.run, self.twins.clip).contents[0])
        others = [(c, self.train(c, torch.zeros_like(self._shift), 1)) for c in (usual, easiest, hardest, short)]
        along, scales = self._shift[0].double(), []
        for moved in (self._first_move, *(self._move(*pair) for pair in others)):
            multiple = float(moved @ along / (along @ along))
            if (moved - multiple * along).norm() > APART * moved.norm() or not moved.any():
                return None
            scales.append(multiple / float(self.found.sigma[0]))
        return (min(scales), max(scales)) if min(scales) < (1 - MOVED_SCALE) * max(scales) else None

    def has_claimed_noise(self) -> bool:
        """Whether the claimed noise is in the first sum as it is: then what is odd is the sum of gradients."""
        claimed = self._shift[0].double() * float(self.found.sigma[0])
        return bool((self._first_move - claimed).norm() < APART * self._first_move.norm())

    def bare_layers(self) -> tuple[int, ...]:
        """Those that very much noise leaves as they are."""
        drowned = self._drown({}, None, 0).seen.applied
        pairs = enumerate(zip(self.run.seen.applied, drowned, strict=True))
        return tuple(layer for layer, (one, two) in pairs if bool(one[0].any()) and are_same(one[0], two[0]))

    def stays_on_its_way(self, noisy: NoisySum) -> bool:
        """Whether trainings on other records, with what they lack in their noise, show all the same."""
        usual, *extreme = self.contents
        few = FEW if noisy.multiple == 1 else FEW_FITTED
        others = [self._compensate(usual, noisy), *(self._compensate(c, noisy, EXTREME_STEPS) for c in extreme)]
        always = torch.stack([_differing(self.run, two, 0) for two in others]).all(0)
        return not bool(always.any()) and all(_same_way(self.run, two, few) for two in others)

    def noisy_sums(self, noisy: NoisySum) -> Tensor:
        """(steps, weights)"""
        assert self.noise is not None
        sigma = self.found.sigma.unsqueeze(1)
        found: Tensor = (getattr(self.found, noisy.name) + noisy.multiple * self.noise * sigma).double()
        return found

    def has_extra_record(self, noisy: NoisySum) -> bool:
        """Whether the first sums have, beside clean sum and noise, the clipped gradient of one record of D or D'."""
        weights = [w[:EXTRA_STEPS] for w in self.run.seen.weights]
        every = torch.cat([g.flatten(2) for g in self.run.recomputer.every(weights)], 2).double()
        rest = (flat(self.run.seen.applied) - self.noisy_sums(noisy))[:EXTRA_STEPS].double()
        clipped = every * (self.twins.clip / every.norm(dim=2).clamp(min=1e-300)).clamp(max=1).unsqueeze(2)
        apart = (clipped - rest.unsqueeze(1)).norm(dim=2) / clipped.norm(dim=2).clamp(min=1e-300)
        return bool((apart < EXTRA_APART).all(0).any())

    def describe(self, noisy: NoisySum) -> NoisySum:
        """The same, with the multiples of it, of the sum before and of the weights that every step is, if it is."""
        sums = self.noisy_sums(noisy)
        shown = flat(self.run.seen.applied).double()
        before = torch.cat([torch.zeros_like(shown[:1]), shown[:-1]])
        weights = flat(self.run.seen.weights).double()[: len(shown)]
        span = torch.stack([sums.flatten(), before.flatten(), weights.flatten()], 1)
        later = span[shown.shape[1] :] if len(shown) > 1 else span  # of the first, some have another multiple
        target = shown.flatten()[len(span) - len(later) :]
        parts = torch.linalg.lstsq(later.T @ later, later.T @ target, driver="gelsd").solution
        if (target - later @ parts).norm() > APART * target.norm():
            return noisy
        scale, memory, decay = parts.tolist()
        decays = abs(decay) * float(weights.norm()) > APART * float(target.norm())
        return replace(noisy, scale=scale, memory=memory, decay=decay if decays else 0.0)

    def step_with_noise_of_before(self) -> int | None:
        """The first step that draws none, and goes the way of the step before once that one's noise drowns it."""
        for step in self.draws.steps_without_own(len(self.run.seen)):
            draws = self.draws.drown(step - 1, DROWNED)
            shown = flat(self.twins.train(self.seed, True, {}, step + 1, draws=draws).seen.applied).double()
            if abs(float(torch.cosine_similarity(shown[step - 1], shown[step], dim=0))) > SAME_DIRECTION:
                return step
        return None

    def _compensate(self, contents: Mapping[int, StandIn], noisy: NoisySum, steps: int | None = None) -> Run:
        return self.train(contents, self.missing(contents, noisy.name) / noisy.multiple, steps)

    def step_beside_noise(self, noisy: NoisySum | None) -> int | None:
        """The first step that other records change although it is drowned; those before are compensated for."""
        last = len(self.run.seen) - 1 if noisy is not None else 0
        usual, _, easiest, _ = self.contents  # no larger ones, which may not be clipped
        for step in sorted({int(step) for step in np.linspace(0, last, LOOKED_STEPS)}):
            one, *others = (self._drown(contents, noisy, step) for contents in ({}, usual, easiest))
            if any(_differs_at_same_place(one, two, step) for two in others):
                return step
        return None

    def _drown(self, contents: Mapping[int, StandIn], noisy: NoisySum | None, step: int) -> Run:
        assert self.noise is not None
        shifts = torch.zeros_like(self.noise[: step + 1])
        if noisy is not None and contents:
            shifts += self.missing(contents, noisy.name)[: step + 1] / noisy.multiple
        shifts[step] = DROWNED * self.noise[step]
        return self.train(contents, shifts, step + 1)


def _differs_at_same_place(one: Run, two: Run, step: int) -> bool:
    there = min(len(one.seen), len(two.seen)) > step and same_weights(one, two, step)
    return there and float(_differing(one, two, step, BESIDE).float().mean()) > FEW


def _lowest(apart: Callable[[float], float]) -> float | None:
    """The multiple at whose logarithm a function is least; with few digits, where these do it as well."""
    points = np.log(MULTIPLES)
    heights = [apart(float(point)) for point in points]
    at = int(np.argmin(heights))
    if at in (0, len(points) - 1):
        return None
    found = minimize_scalar(apart, bounds=(points[at - 1], points[at + 1]), method="bounded", options={"xatol": EXACT})
    multiple = float(np.exp(found.x))
    digits = (float(f"{multiple:.{number}g}") for number in (1, 2, 3))
    return next((rounded for rounded in digits if apart(float(np.log(rounded))) <= found.fun + EXACT), multiple)


def _differing(one: Run, two: Run, step: int, apart: float = APART) -> Tensor:
    """(weights,) which numbers of a step's sum are others, beside the typical size of their layer."""
    sizes = [s[0].numel() for s in one.seen.applied]
    first, second = (flat([s[step : step + 1] for s in run.seen.applied])[0].double() for run in (one, two))
    typical = torch.cat([part.square().mean().sqrt().expand_as(part) for part in torch.split(first, sizes)])
    return (first - second).abs() > apart * (typical + first.abs())


def _same_way(one: Run, two: Run, few: float) -> bool:
    """In all steps of the second."""
    steps = len(two.seen)
    if different_batches(one, two, steps) or (two.seen.final is not None and not _same_end(one, two)):
        return False
    first = float(_differing(one, two, 0).float().mean()) <= few
    return first and all(
        float(_differing(one, two, step, APART_LATER).float().mean()) <= max(few, FEW_LATER)
        and same_weights(one, two, step, SAME_WAY)
        for step in range(1, steps)
    )


def _same_end(one: Run, two: Run) -> bool:
    if len(one.seen) != len(two.seen) or one.seen.final is None:
        return False
    return are_same(final_row(one), final_row(two), SAME_WAY)
