"""Canaries that are gradients: each adds a vector of the clipping norm's length to the sum, on coordinates of its own.

They are what the guarantee allows a record to be at worst, and orthogonal to each other. The model never sees them as
records; what they add is hidden by the same noise as everybody's gradients. The auditor, who knows the clean sum, sees
on a canary's coordinates the noise, and in some steps the canary: its score is the log-likelihood ratio of the sampled
Gaussian, summed over the steps.

Where canaries share a coordinate, its likelihoods say something of each: at once, or one after the other. A coordinate
has k canaries, alike but for their coins. `likelihoods[s, c]` is the log-likelihood of what was seen on coordinate s if
c of its canaries were in the training, up to a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import chdtrc, gammaln, xlog1py, xlogy
from torch import Tensor

from deniable.checks import positive, probability
from deniable.examination.adapters import drawn_batches, next_batch

if TYPE_CHECKING:
    from deniable.canary.plan import CanaryPlan


Array = NDArray[np.float64]
_SPREAD_COORDINATES = 64
"""On which one spread-gradient canary lies."""
_FEWEST_COMPARED = 20
"""Canaries that are not in a batch, from which on their noise is compared within a step."""


class GradientCanaries:
    """The canaries of a plan on the coordinates of a model; tells their log-likelihood ratios after the training."""

    def __init__(
        self, plan: CanaryPlan, shapes: Sequence[tuple[int, ...]], clips: Sequence[float], noise: float, rate: float
    ) -> None:
        self.plan, self.steps = plan, 0
        self.noise, self.rate = positive("noise", noise), probability("rate", rate)
        width = 1 if plan.kind == "gradient" else _SPREAD_COORDINATES
        self._places = len(plan) // plan.per_coordinate
        self._layer, self._place, self._sign = _draw_coordinates([prod(shape) for shape in shapes], self._places, width)
        self.set_clips(clips)
        inside = np.flatnonzero(np.repeat(plan.coins, plan.records_per_person))
        each = plan.per_coordinate * plan.records_per_person
        self._of_carrier = {int(plan.carriers[i]): int(i) // each for i in inside}
        """The place of every record whose canary is in."""
        self._likelihoods = np.zeros((self._places, plan.per_coordinate + 1))
        self._drawn_laws = _drawn_laws(plan.per_coordinate, plan.records_per_person, self.rate)
        self._common: list[float] = []
        self._spreads: list[float] = []
        self._compared: list[int] = []
        self._clean: Array | None = None

    def set_clips(self, clips: Sequence[float]) -> None:
        """The clipping norm of each layer from now on: a canary is as long as that of its layer."""
        self._length = np.array([positive("clip", clip) for clip in clips])[self._layer]

    def add(self, sums: Sequence[Tensor], batch: Iterable[int]) -> None:
        """Add the batch's canaries to the clipped sums, in place, before the noise; `batch` numbers its records."""
        if self._clean is not None:
            raise ValueError("observe(noisy sums) must follow each add(sums, batch)")
        self._clean = self._read(sums)
        self._times = self._count(batch)
        self._write(sums, 1.0)

    def insert_after_noise(
        self, sums: Sequence[Tensor], gradients: Sequence[Tensor], divisor: float, batch: Iterable[int]
    ) -> None:
        """The same for a library that has added its noise already: sums are linear, so the order does not matter."""
        clean, self._times = self._read(sums), self._count(batch)
        self._write(gradients, 1 / divisor)
        self._note(self._read(gradients) * divisor - clean)

    def _count(self, batch: Iterable[int]) -> Array:
        """How many canaries' records of each place are in the batch."""
        times = np.zeros(self._places)
        for record in batch:
            if int(record) in self._of_carrier:
                times[self._of_carrier[int(record)]] += 1
        return times

    def observe(self, noisy: Sequence[Tensor]) -> None:
        """Take note of the sums after the noise."""
        if self._clean is None:
            raise ValueError("add(sums, batch) must come before each observe(noisy sums)")
        self._note(self._read(noisy) - self._clean)

    def _note(self, added: Array) -> None:
        """Add the step's log-likelihoods; `added` is what noise and canaries added to the clean sums."""
        seen = added / self._length
        self._clean, self.steps = None, self.steps + 1
        for canaries, law in enumerate(self._drawn_laws):  # with so many canaries in, j records are drawn by this law
            j = np.arange(len(law))
            exponents = law + (seen[:, None] * j - j * j / 2) / self.noise**2
            self._likelihoods[:, canaries] += np.logaddexp.reduce(exponents, axis=1)
        self._compare(seen[self._times == 0] / self.noise)

    def _compare(self, noise: Array) -> None:
        """What the noise on canaries outside the batch has in common in this step: its mean, and its size."""
        if len(noise) >= _FEWEST_COMPARED:
            self._common.append(len(noise) * float(noise.mean()) ** 2)
            self._spreads.append(float(noise.var()))
            self._compared.append(len(noise))

    def log_likelihood_ratios(self, plan: CanaryPlan, adaptive: bool = False) -> tuple[Array, float | None]:
        """The canaries' scores, and the p-value against noise that they share; for the plan that they came from.

        `adaptive`: in place of ratios, the order of guesses that know the coins of those before them.
        """
        if plan is not self.plan:
            raise ValueError("these canaries are another plan's: their coins are not this one's")
        if not self.steps:
            raise ValueError("the run showed no step: attach the plan before the training, to the loader it draws from")
        if adaptive:
            return guess_adaptively(self._likelihoods, plan.coins), self._independence()
        return guess_at_once(self._likelihoods), self._independence()

    def _independence(self) -> float | None:
        """Shared noise moves the mean of many coordinates, or their spread, from step to step."""
        if len(self._spreads) < 2:
            return None
        spread = float(np.mean(self._spreads))
        if spread == 0:
            return 0.0
        common = chdtrc(len(self._common), sum(self._common) / spread)
        counts = np.array(self._compared, dtype=np.float64)
        moved = float((counts / 2 * (np.array(self._spreads) / spread - 1) ** 2).sum())
        return float(min(1.0, 2 * min(common, chdtrc(len(counts) - 1, moved))))

    def _read(self, values: Sequence[Tensor]) -> Array:
        """The component of some sums along each canary, in double precision."""
        found = np.empty(self._places)
        for layer, own in self._by_layer():
            flat = values[layer].detach().flatten()
            place = torch.as_tensor(self._place[own], device=flat.device)
            part = flat[place].double().cpu().numpy()
            found[own] = (part * self._sign[own]).sum(1)
        return found

    def _write(self, values: Sequence[Tensor], scale: float) -> None:
        """Add every canary of the batch to the values, times `scale`."""
        with torch.no_grad():
            for layer, own in self._by_layer():
                flat = values[layer].view(-1)
                amount = (self._times * self._length)[own][:, None] * self._sign[own] * scale
                place = torch.as_tensor(self._place[own].ravel(), device=flat.device)
                flat.index_add_(0, place, torch.as_tensor(amount.ravel(), dtype=flat.dtype, device=flat.device))

    def _by_layer(self) -> Iterable[tuple[int, NDArray[np.int64]]]:
        for layer in np.unique(self._layer):
            yield int(layer), np.flatnonzero(self._layer == layer)


def _drawn_laws(canaries: int, records: int, rate: float) -> list[Array]:
    """For 0, 1, ... canaries that are in: the logarithms of a batch's chances to draw 0, 1, ... of their records."""
    laws = []
    for number in range(0, canaries * records + 1, records):
        j = np.arange(number + 1)
        ways = gammaln(number + 1) - gammaln(j + 1) - gammaln(number - j + 1)
        laws.append(ways + xlogy(j, rate) + xlog1py(number - j, -rate))
    return laws


def _draw_coordinates(
    sizes: Sequence[int], number: int, width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """The layer of each canary, its coordinates there, and its unit vector on them; no coordinate is used twice."""
    room = np.array(sizes) // width
    if room.sum() < number:
        raise ValueError(
            f"the model has room for {room.sum():,} canaries, {number:,} are planned: draw a plan with fewer of them, "
            "or with more per_coordinate"
        )
    random = np.random.default_rng()
    slots = np.sort(random.choice(int(room.sum()), number, replace=False))
    ends = np.cumsum(room)
    layer = np.searchsorted(ends, slots, side="right")
    first = (slots - np.append(0, ends)[layer]) * width
    signs = random.choice([-1.0, 1.0], (number, width)) / width**0.5
    return layer, first[:, None] + np.arange(width), signs


def refuse_earlier_steps(parameters: Iterable[Tensor], state: Sized = ()) -> None:
    """Coins must be tossed before the first step: earlier ones had no canaries, and no score would show their leaks.

    A step leaves gradients on the parameters, until they are cleared, and most optimizers a `state`.
    """
    if len(state) or any(p.grad is not None for p in parameters):
        raise ValueError(
            "the model was trained before the canaries were in: what those steps leak would not be seen. Draw the plan "
            "and attach it before the first step. If no step was taken, or the steps from here on are all that is "
            "claimed, clear the gradients (zero_grad) and take a new optimizer"
        )


def attach_to_opacus(plan: CanaryPlan, optimizer: Any, loader: Any) -> GradientCanaries:
    """Canaries in the steps of an Opacus optimizer; see `CanaryPlan.attach`."""
    if loader is None:
        raise ValueError("loader is missing: canaries are drawn with the records of its batches, which must be watched")
    drawn, params = drawn_batches(loader), list(optimizer.params)
    refuse_earlier_steps(params, optimizer.state)
    rate = min(1.0, optimizer.expected_batch_size / plan.records)
    shapes = [tuple(p.shape) for p in params]
    found = GradientCanaries(plan, shapes, _clips(optimizer), float(optimizer.noise_multiplier), rate)
    earlier = optimizer.step_hook

    def insert(stepping: Any) -> None:
        divisor = stepping.expected_batch_size * stepping.accumulated_iterations
        scale = float(divisor) if stepping.loss_reduction == "mean" else 1.0
        batch = next_batch(drawn, stepping)
        found.set_clips(_clips(stepping))
        found.insert_after_noise([p.summed_grad for p in params], [p.grad for p in params], scale, batch)
        if earlier is not None:
            earlier(stepping)

    optimizer.attach_step_hook(insert)
    return found


def _clips(optimizer: Any) -> list[float]:
    """The clipping norm of each parameter; one for all of them unless clipping is per layer."""
    norm = optimizer.max_grad_norm
    return [float(one) for one in norm] if isinstance(norm, list | tuple) else [float(norm)] * len(optimizer.params)


_TIE = 1e-9
"""Between the scores of canaries that nothing but their number tells apart; relative to one unit of log-likelihood."""


def guess_at_once(likelihoods: Array) -> Array:
    """The log-likelihood ratio of every canary, in or out, with fair coins for all others; shape (coordinates x k).

    Canaries of one coordinate have the same one: they are put in the order of their numbers, which know of no coin.
    """
    coordinates, counts = likelihoods.shape
    each = _log_odds(likelihoods, counts - 1, 0)
    order = np.arange(coordinates * (counts - 1)) % (counts - 1)
    return np.asarray(np.repeat(each, counts - 1) - _TIE * order)


def guess_adaptively(likelihoods: Array, coins: NDArray[np.bool_]) -> Array:
    """Scores that stand for guesses one after the other, each knowing the coins of those before, and never its own.

    By turns the likeliest canary of all is called a member and the unlikeliest is not; then its coin is shown. The
    first guess has the score +M, the second -(M - 1), and so on: the first r guesses are the ceil(r/2) highest scores
    and the floor(r/2) lowest, which is how `evidence.one_run` counts guesses (Lemma E6 holds for them).
    """
    coordinates, counts = likelihoods.shape
    size = counts - 1
    truth = coins.reshape(coordinates, size)
    left, inside = np.full(coordinates, size), np.zeros(coordinates, dtype=int)
    known = {(m, n): _log_odds(likelihoods, m, n) for m in range(1, size + 1) for n in range(size - m + 1)}
    odds, scores = known[size, 0].copy(), np.empty((coordinates, size))
    for turn in range(truth.size):
        sign = 1 if turn % 2 == 0 else -1
        place = int(np.where(left > 0, sign * odds, -np.inf).argmax())
        canary = size - left[place]
        scores[place, canary] = sign * (truth.size - turn)
        left[place] -= 1
        inside[place] += truth[place, canary]
        if left[place]:
            odds[place] = known[int(left[place]), int(inside[place])][place]
    return scores.ravel()


def _log_odds(likelihoods: Array, left: int, inside: int) -> Array:
    """Of a canary whose coin is unknown like that of `left` - 1 others, `inside` being the known ones that are in."""
    others = np.arange(left)
    ways = gammaln(left) - gammaln(others + 1) - gammaln(left - others)
    member = np.logaddexp.reduce(ways + likelihoods[:, inside + 1 + others], axis=1)
    return np.asarray(member - np.logaddexp.reduce(ways + likelihoods[:, inside + others], axis=1))
