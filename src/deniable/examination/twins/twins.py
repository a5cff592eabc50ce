"""Which trainings are compared as twins, and what their differences show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.alternatives import STEPS, VECTORS
from deniable.examination.diagnostics.trial_evidence import Diagnosis
from deniable.examination.trainer import COUNT_NOISE
from deniable.examination.twins.provoking_records import provoke, train_first_step
from deniable.examination.twins.twin_differences import (
    different_batches,
    different_start,
    different_values,
    divides_by_batch,
)
from deniable.examination.twins.twin_run import (
    FAILS,
    LARGE_TIMES,
    Run,
    StandIn,
    Train,
    are_same,
    half_precision_error,
    same_weights,
    stand_in,
    use_all_records,
)
from deniable.examination.updates.post_processing import PostProcessing
from deniable.mechanisms import Adjacency

if TYPE_CHECKING:
    from deniable.examination.twins.shifted_noise import Shown

Array = NDArray[np.float64]
SEEDS = 2
"""Twins are trained with so many seeds."""
NEARLY_TIMES, NEARLY_SAME = 1.0001, 0.02
"""Features so many times as large change a sum by less than this share of its length, if its noise is the same."""
ORDER = 1e-4
"""Sums that differ by this share are the same, in another order of rounding."""
FOUND = 0.02
"""Multiples of the records' shares are told if they leave this share of the difference."""
EXACT = 1e-4
"""The share of the difference between twins, squared, that rounding may leave; mixed precision leaves 2e-5."""
MOVED = 0.02
"""In clipping norms: what another order of the records may change by rounding."""
KEPT = 2**25
"""Numbers of alternatives that are kept of one training: above, the gradient is not explained by twins."""


@dataclass(frozen=True)
class Twins:
    """Trains twins and compares them; `train` does the training."""

    train: Train
    seeds: tuple[int, ...]
    adjacency: Adjacency
    clip: float
    place: int
    """Of the differing record among D's."""
    looked: bool = True
    """Whether single gradients may be held in memory."""
    post: PostProcessing | None = None
    """What is done to the noisy sums, and undone in these trainings."""
    shown: Shown | None = None
    """What the noise shows where it was followed, and nothing is undone."""
    trial_seed: Callable[[int], int] | None = None
    """The seed of each trial."""
    contents: tuple[StandIn, ...] = ()
    """What is tried in the place of the exchanged record; without any, another record of D."""
    _first: dict[int, Run] = field(default_factory=dict, repr=False, compare=False)
    known: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """What `idle_records` and `handed_twins` have found, so that it is looked for once."""

    def original(self, seed: int) -> Run:
        """The training on D."""
        if seed not in self._first:
            self._first[seed] = self.train(seed, True, {}, None)
        return self._first[seed]

    @cached_property
    def exchanged_pairs(self) -> list[tuple[Run, Run]]:
        """Twins of equally many records: on D, and with one record exchanged."""
        return [
            (one, self.train(seed, True, {place: content}, None))
            for seed in self.seeds
            for one in [self.original(seed)]
            for place in [self.place_in_batch(one)]
            for content in self.contents or [stand_in(one, self.other_columns(one, place)[0])]
        ]

    @cached_property
    def moved_pairs(self) -> list[tuple[Run, Run]]:
        """Twins of one of which every record has moved to another place; a place may be treated unlike others."""
        pairs = []
        for one in [self.original(self.seeds[0])]:
            moved = dict(enumerate(stand_in(one, column) for column in np.roll(one.members, len(one.members) // 2)))
            with suppress(*FAILS):
                pairs.append((one, self.train(self.seeds[0], True, moved, None)))
        return [(one, two) for one, two in pairs if not different_batches(one, two)]

    def _same_residual(self, one: Run, two: Run) -> bool:
        """Whether what is left of the sums without the claimed gradients is the same noise, in the steps' own norms."""
        steps = min(len(one.seen), len(two.seen), STEPS)
        found = [run.recomputer.recompute(run.seen, run.members) for run in (one, two)]
        rests = [(f.residual[:steps] * (f.sigma / f.clip)[:steps, None]) for f in found]
        rounding = 4 * half_precision_error(one) * one.sums[:steps].norm(dim=1) / found[0].clip[:steps]
        return bool(((rests[0] - rests[1]).norm(dim=1) <= MOVED + rounding).all())

    @cached_property
    def neighbour_pairs(self) -> list[tuple[Run, Run]]:
        """Twins on D and D'."""
        return [(self.original(seed), self.train(seed, False, {}, None)) for seed in self.seeds]

    @cached_property
    def repetition(self) -> tuple[Run, Run]:
        """The training on D, and its first step once more."""
        return self.original(self.seeds[0]), self.train(self.seeds[0], True, {}, 1)

    @cached_property
    def repeatable(self) -> bool:
        """Whether a training with the same seed on the same records is the same."""
        one, again = self.repetition
        return are_same(one.sums[0], again.sums[0]) and same_weights(one, again)

    @cached_property
    def shares_noise(self) -> bool:
        """Whether a record whose content is changed a little leaves the noise as it is, so that the sum hardly changes.

        It would not, were the noise drawn from a seed that is made of the records.
        """
        one = self.original(self.seeds[0])
        place = self.place_in_batch(one)
        nearly = stand_in(one, one.members[place], NEARLY_TIMES)
        changed = self.train(self.seeds[0], True, {place: nearly}, 1)
        return are_same(changed.sums[0], one.sums[0], NEARLY_SAME)

    @cached_property
    def keeps_order(self) -> bool:
        """Whether the first sum is the same whatever the order of the records.

        It is not where every record draws random numbers of its own (dropout, augmentations): then one record fewer
        gives other numbers to all.
        """
        one = self.original(self.seeds[0])
        turned = dict(enumerate(stand_in(one, column) for column in one.members[::-1]))
        return are_same(self.train(self.seeds[0], True, turned, 1).sums[0], one.sums[0], ORDER)

    def place_in_batch(self, run: Run) -> int:
        """A record of the first batch: the differing one, if it is in it."""
        batch = run.seen.batches[0]
        return self.place if batch is None or self.place in batch or not len(batch) else int(batch[len(batch) // 2])

    def other_columns(self, run: Run, place: int) -> list[int]:
        """Columns of other records, those of another label first."""
        labels = run.recomputer.columns.labels
        like_own = (labels == labels[run.members[place]]).tolist()
        order = [int(c) for c in np.roll(run.members, -place - len(run.members) // 2) if c != run.members[place]]
        return sorted(order, key=like_own.__getitem__)

    @cached_property
    def shows_batches(self) -> bool:
        """Whether any step yields the indices of its batch."""
        return any(batch is not None for seed in self.seeds for batch in self.original(seed).seen.batches)

    @cached_property
    def counts_with_noise(self) -> bool:
        """Whether the training tells the noise of the count that its clipping norm follows."""
        return self.original(self.seeds[0]).seen.public[0].get(COUNT_NOISE, 0.0) > 0

    def place_of(self, column: int) -> int | None:
        """The place of a column's record in D; None for a record of D' alone."""
        found = np.flatnonzero(self.original(self.seeds[0]).members == column)
        return int(found[0]) if len(found) else None

    def leaks(self) -> Iterator[Diagnosis]:
        """What is computed from the records and not hidden by noise."""
        for kind in (self._by_content, self._by_size):
            if found := self.once(kind.__name__, kind):
                yield _diagnosis(found)

    def once(self, name: str, find: Callable[[], str]) -> str:
        """What `find` says, asked once: all looks at the trials have the same twins."""
        if name not in self.known:
            self.known[name] = find()
        return self.known[name]

    def _by_content(self) -> str:
        """What a change of one record changes, and a repetition does not."""
        for one, two in self.exchanged_pairs:
            if (found := different_start(one, two)) and not different_start(*self.repetition):
                return found
            if self.repeatable and (found := different_values(one, two, "the records") or different_batches(one, two)):
                return found
        stretched = (self.stretched_pair(seed) for seed in (self.seeds if self.repeatable else ()))
        return next((found for one, two in filter(None, stretched) if (found := different_batches(one, two))), "")

    def stretched_pair(self, seed: int, times: float = LARGE_TIMES, which: int = 0) -> tuple[Run, Run] | None:
        """Twins of which one has a stretched record; None if its training diverges."""
        one = self.original(seed)
        place = self.place_in_batch(one)
        record = stand_in(one, self.other_columns(one, place)[which], times)
        try:
            return one, self.train(seed, True, {place: record}, min(STEPS, len(one.seen)))
        except FAILS:
            return None

    @cached_property
    def on_provoking_records(self) -> Twins | None:
        """Twins of one step on records with longer and shorter gradients than D's; None where that fails.

        What clipping leaves as it is, and what it shortens, both show there, whatever D's own gradients are.
        """
        if not self.repeatable or not self.looked:
            return None
        try:
            provoked = provoke(self.original(self.seeds[0]), self.clip)
            found = replace(
                self, train=partial(train_first_step, self.train, provoked.base), seeds=self.seeds[:1],
                contents=provoked.contents, adjacency=Adjacency.ZERO_OUT, _first={}, known={},
            )  # fmt: skip
            return found if found.fits is not None else None
        except FAILS:
            return None

    @cached_property
    def fits(self) -> bool | None:
        """Whether twins differ by what the claimed gradients differ by, to rounding; None if it is not known."""
        if self.differences is None:
            return None
        (applied, both), (_, clean) = self.differences
        known = bool(applied - 2 * both + clean <= EXACT * max(applied, clean))
        return known and all(self._same_residual(one, two) for one, two in self.moved_pairs)

    def _by_size(self) -> str:
        if self.adjacency is Adjacency.ZERO_OUT:
            return ""
        for one, two in self.neighbour_pairs:
            found = "" if divides_by_batch(one) else different_values(one, two, "the records")
            if found and self._same_values_on_others(one):
                found = different_values(one, two, "the number of records")
            if self.adjacency is Adjacency.REPLACE:
                found = found or different_start(one, two)
            if found:
                return found
        return ""

    def _same_values_on_others(self, one: Run) -> bool:
        """Whether equally many other records, all one large one, change none of the values that are made known."""
        if self.adjacency is not Adjacency.ADD_REMOVE:
            return False
        large = stand_in(one, self.other_columns(one, self.place_in_batch(one))[0], LARGE_TIMES)
        with suppress(*FAILS):
            two = self.train(self.seeds[0], True, dict.fromkeys(range(len(one.members)), large), None)
            return not different_values(self.original(self.seeds[0]), two, "the records")
        return False

    @cached_property
    def synchronous(self) -> list[tuple[Run, Run]]:
        """Those twins whose noise is the same, so that it cancels out of their difference."""
        pairs = [pair for pair in self.exchanged_pairs if same_weights(*pair) and not different_batches(*pair)]
        if self.adjacency is Adjacency.ADD_REMOVE:
            pairs += [pair for pair in self.neighbour_pairs if same_weights(*pair) and use_all_records(*pair)]
        return [pair for pair in pairs if self._cancels(*pair)] if self.repeatable else []

    def _cancels(self, one: Run, two: Run) -> bool:
        """Whether the first sums differ by far less than two draws of the noise do, or by far more.

        Equally many records take equally many random numbers: their noise is the same if it is so for nearly the same
        records.
        """
        if len(one.members) == len(two.members) and self.shares_noise:
            return True
        apart = float((one.sums[0] - two.sums[0]).norm())
        found = one.recomputer.recompute(one.seen, one.members)
        directions = torch.stack([found.clean[0], found.whole[0]], 1).double()
        basis, _ = torch.linalg.qr(directions)
        left = float((one.sums[0] - basis @ (basis.T @ one.sums[0])).norm())  # mostly noise, whatever its scale
        return apart <= 0.3 * left or apart >= 3 * left

    @cached_property
    def _kept_pairs(self) -> list[tuple[Run, Run]]:
        """Of the synchronous twins, those whose vectors may be held in memory."""
        small = [(a, b) for a, b in self.synchronous if len(VECTORS) * STEPS * a.sums.shape[1] <= KEPT]
        return small if self.looked else []

    @cached_property
    def differences(self) -> Array | None:
        """The part of `exact` for the applied and the clean sums, (2, 2): often it is all that is asked for."""
        total = np.zeros((2, 2))
        for one, two in self._kept_pairs:
            steps = min(len(one.as_claimed), len(two.as_claimed))
            difference = (one.as_claimed[:steps] - two.as_claimed[:steps]).transpose(0, 1).flatten(1)
            total += np.asarray(difference @ difference.mT)
        return total if self._kept_pairs else None

    @cached_property
    def exact(self) -> Array | None:
        """The sum of `exact_steps` over the steps."""
        return None if self.exact_steps is None else np.asarray(self.exact_steps.sum(0))

    @cached_property
    def exact_steps(self) -> Array | None:
        """(steps, vectors, vectors) inner products of the differences of `VECTORS` between twins; None if not known."""
        if not self._kept_pairs:
            return None
        gram = np.zeros((STEPS, len(VECTORS), len(VECTORS)))
        for one, two in self._kept_pairs:
            steps = min(len(one.vectors), len(two.vectors))
            difference = one.vectors[:steps] - two.vectors[:steps]
            gram[:steps] += np.asarray(difference @ difference.mT)
        return gram

    @cached_property
    def first_fits(self) -> bool:
        """Whether the twins' first sums differ by what the claimed ones differ by."""
        pairs = [(a.vectors[0] - b.vectors[0])[[0, VECTORS.index("clean")]] for a, b in self.synchronous]
        return bool(pairs) and all(bool((p[0] - p[1]).norm() <= 1e-4 * p[1].norm()) for p in pairs)

    def noise(self, parts: Array) -> list[Tensor]:
        """(steps, weights) of each seed: what is left of the sums on D, given coefficients of `VECTORS`."""
        return [torch.einsum("v,svd->sd", torch.from_numpy(parts), one.vectors) for one, _ in self.exchanged_pairs]

    @cached_property
    def multipliers(self) -> Array | None:
        """How often each record (column) counts, if the twins differ by multiples of the claimed shares; else None."""
        if self.exact is None:
            return None
        rows, targets = [], []
        for one, two in (*self.exchanged_pairs, *self.moved_pairs):
            steps = min(len(one.shares), len(two.shares))
            shares = one.shares[:steps] - two.shares[:steps]
            difference = one.sums[:steps] - two.sums[:steps]
            rows.append(shares.transpose(1, 2).flatten(0, 1))
            targets.append(difference.flatten())
        matrix, target = torch.cat(rows), torch.cat(targets)
        solved = torch.linalg.lstsq(matrix, target.unsqueeze(1), driver="gelsd").solution.flatten()
        left = (matrix @ solved - target).norm()
        lengths = matrix.norm(dim=0)
        solved = torch.where(lengths > 1e-3 * lengths.max(), solved, 1.0)  # of the others nothing is known
        return np.asarray(solved) if left <= FOUND * (matrix.sum(1) - target).norm() else None


def _diagnosis(sentence: str) -> Diagnosis:
    return Diagnosis(
        "public values",
        0.0,
        sentence.split(":", maxsplit=1)[0],
        "the same for neighbouring records and the same seed",
        sentence,
    )
