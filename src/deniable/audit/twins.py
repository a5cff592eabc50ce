"""Twin trainings: the same seed on data sets that differ in one record.

All randomness comes from the seed, so twins draw the same weights, batches and noise, and whatever else differs between
them differs because of the record. That shows, without any noise in the way,

- public values that are computed from the records (initial weights, divisors, learning rates, clipping norms);
- batches that are chosen by looking at the records;
- the very gradient that is summed: the difference of two noisy sums is the difference of the clean ones;
- how far one record changes the first sum, whatever the recipe, and whether its share depends on other records;
- whether records that no batch has drawn change anything at all.

A record is exchanged for another one of the data set, so that twins have equally many. For add-remove neighbours D' is
a further twin: numbers that depend on how many records there are differ there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.audit.alternatives import STEPS, VECTORS, vectors
from deniable.audit.diagnostics.evidence import Diagnosis
from deniable.audit.post_processing import PostProcessing
from deniable.audit.recomputed import Recomputer, flat
from deniable.audit.trainer import COUNT_NOISE, Seen
from deniable.audit.updates import first_decay, learning_rates
from deniable.mechanisms import Adjacency
from deniable.training.settings import Columns

__all__ = ["FAILS", "SEEDS", "Probe", "Run", "StandIn", "Twins"]

Array = NDArray[np.float64]
SEEDS = 2
"""Twins are trained with so many seeds."""
CONTENTS = 6
"""So many other records are tried in a place."""
LARGE, HUGE = 20.0, 1000.0
"""A record with features so many times as large has a share that clipping bounds, and that nothing else does."""
TIMES = (1.0, 3.0, 10.0, 30.0)
"""So many times as large features are tried for a short gradient."""
FAILS = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)
"""What a training may raise on records that it was not made for."""
SAME = 1e-6
"""float32 numbers that differ by this share are the same."""
FOUND = 0.02
"""Multiples of the records' shares are told if they leave this share of the difference."""
EXACT = 1e-4
"""The share of the difference between twins, squared, that rounding may leave; mixed precision leaves 2e-5."""
CLAIMED = "clean"
SHORT = 0.5
"""The length of a short gradient, in clipping norms."""
MOST_LABELS, MOST_PROVOKED = 10, 64
"""At most so many labels are tried for a short gradient, and so many records exchanged."""
_UNDRAWN = "records that no batch has drawn"
_UNHIDDEN = "which no noise hides: only batches, noise and public data may decide"
KEPT = 2**25
"""Numbers of alternatives that are kept of one training: above, the gradient is not explained by twins."""


@dataclass(frozen=True)
class Run:
    """One training, and what recomputes it."""

    seen: Seen
    recomputer: Recomputer
    members: NDArray[np.int64]

    @cached_property
    def sums(self) -> Tensor:
        """(steps, weights) noisy sums."""
        return flat(self.seen.sums).double()

    @cached_property
    def shares(self) -> Tensor:
        """(first steps, columns, weights) of each record of the batch in the claimed sum."""
        found, steps = self.recomputer.recompute(self.seen, self.members), min(STEPS, len(self.seen))
        layers = [g.flatten(2) for g in self.recomputer.every([w[:steps] for w in self.seen.weights])]
        norms = torch.stack([g.norm(dim=2) for g in layers], 2)
        clipping = self.recomputer.claim.recipe.clipping
        factors = clipping.factors(norms, found.clip[:steps].float().unsqueeze(1)) * found.include[:steps].unsqueeze(2)
        return torch.cat([factors[..., i : i + 1] * g for i, g in enumerate(layers)], 2).double()

    @cached_property
    def vectors(self) -> Tensor:
        """(first steps, vectors, weights), see `deniable.audit.alternatives`."""
        found = self.recomputer.recompute(self.seen, self.members)
        return torch.cat(list(vectors(self.recomputer, self.seen, found, self.members)))


@dataclass(frozen=True)
class Probe:
    """How far one record changes the first sum, in claimed clipping norms."""

    reach: float
    """The norm of a record's share is at least this for some record."""
    interaction: float
    """How far the share of one record depends on another."""
    outside: float
    """How far a record that is not in the batch changes the sum."""
    rounding: float
    """How far sums of half precision may be off."""


StandIn = tuple[Tensor, Tensor]
"""A record and its label, in place of those of the data set."""
Train = Callable[[int, bool, Mapping[int, StandIn], int | None], Run]
"""From seed, whether on D, the stand-ins at some places, and steps at most, to the training."""


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
    exchanges: int = 1
    """So many contents are tried in the place of the exchanged record."""
    _first: dict[int, Run] = field(default_factory=dict, repr=False, compare=False)

    def original(self, seed: int) -> Run:
        """The training on D."""
        if seed not in self._first:
            self._first[seed] = self.train(seed, True, {}, None)
        return self._first[seed]

    @cached_property
    def exchanged(self) -> list[tuple[Run, Run]]:
        """Twins of equally many records: on D, and with one record exchanged."""
        return [
            (one, self.train(seed, True, {place: _like(one, content)}, None))
            for seed in self.seeds
            for one in [self.original(seed)]
            for place in [self._place(one)]
            for content in self._contents(one, place)[: self.exchanges]
        ]

    @cached_property
    def neighbours(self) -> list[tuple[Run, Run]]:
        """Twins on D and D'."""
        return [(self.original(seed), self.train(seed, False, {}, None)) for seed in self.seeds]

    @cached_property
    def repeated(self) -> tuple[Run, Run]:
        """The training on D, and its first step once more."""
        return self.original(self.seeds[0]), self.train(self.seeds[0], True, {}, 1)

    @cached_property
    def repeatable(self) -> bool:
        """Whether a training with the same seed on the same records is the same."""
        one, again = self.repeated
        return _same(one.sums[0], again.sums[0]) and _same_weights(one, again)

    def _place(self, run: Run) -> int:
        """A record of the first batch: the differing one, if it is in it."""
        batch = run.seen.batches[0]
        return self.place if batch is None or self.place in batch or not len(batch) else int(batch[len(batch) // 2])

    def _contents(self, run: Run, place: int) -> list[int]:
        """Columns of other records, those of another label first."""
        labels = run.recomputer.columns.labels
        own = labels[run.members[place]]
        order = [int(c) for c in np.roll(run.members, -place - len(run.members) // 2) if c != run.members[place]]
        return sorted(order, key=lambda column: bool(labels[column] == own))

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
            if found := kind():
                yield _diagnosis(found)

    def _by_content(self) -> str:
        """What a change of one record changes, and a repetition does not."""
        for one, two in self.exchanged:
            if (found := _other_start(one, two)) and not _other_start(*self.repeated):
                return found
            if self.repeatable and (found := _other_values(one, two, "the records") or _other_batches(one, two)):
                return found
        stretched = (self._stretched(seed) for seed in (self.seeds if self.repeatable else ()))
        return next((found for one, two in filter(None, stretched) if (found := _other_batches(one, two))), "")

    def undrawn(self) -> str:
        """What records change that no batch has drawn: nothing, in a training as claimed."""
        for seed in self.seeds if self.repeatable else ():
            one = self.original(seed)
            steps, places = _undrawn(one)
            for times in (LARGE, 1.0) if places else ():
                exchanged = {place: _like(one, self._contents(one, place)[0], times) for place in places}
                with suppress(*FAILS):
                    whole = steps == len(one.seen)
                    two = self.train(seed, True, exchanged, None if whole else steps + 1)
                    if found := _other_course(one, two, steps):
                        return found
                    break
        return ""

    def _stretched(self, seed: int, times: float = LARGE, which: int = 0) -> tuple[Run, Run] | None:
        """Twins of which one has a stretched record; None if its training diverges."""
        one = self.original(seed)
        place = self._place(one)
        record = _like(one, self._contents(one, place)[which], times)
        try:
            return one, self.train(seed, True, {place: record}, min(STEPS, len(one.seen)))
        except FAILS:
            return None

    @cached_property
    def provoked(self) -> Twins | None:
        """Twins of one step on records with longer and shorter gradients than D's; None where that fails.

        What clipping leaves as it is, and what it shortens, both show there, whatever D's own gradients are.
        """
        if not self.repeatable or not self.looked:
            return None
        try:
            base = self._provoking(self.original(self.seeds[0]))
            found = replace(
                self, train=partial(_first_step, self.train, base), seeds=self.seeds[:1], exchanges=4,
                adjacency=Adjacency.ZERO_OUT, _first={},
            )  # fmt: skip
            return found if found.fits is not None else None
        except FAILS:
            return None

    def _provoking(self, run: Run) -> dict[int, StandIn]:
        """For every other record one of a short gradient, at the first weights; for the others large ones."""
        records, labels, _ = run.recomputer.columns
        first, every = [w[:1] for w in run.seen.weights], torch.unique(labels)[:MOST_LABELS]
        found = {}
        for place, column in enumerate(run.members[:MOST_PROVOKED]):
            found[place] = _like(run, column, LARGE)
            if place % 2 == 0:
                times = torch.tensor(TIMES).repeat_interleave(len(every))
                tried = Columns(torch.stack([records[column] * t for t in times]), every.repeat(len(TIMES)), 1)
                recomputer = Recomputer(run.recomputer.claim, run.recomputer.model, run.recomputer.loss, tried)
                layers = [g.flatten(2).norm(dim=2) for g in recomputer.every(first)]
                lengths = torch.stack(layers).norm(dim=0)[0] / self.clip
                best = int((lengths - SHORT).abs().argmin())
                found[place] = tried.records[best], tried.labels[best]
        return found

    @cached_property
    def fits(self) -> bool | None:
        """Whether twins differ by what the claimed gradients differ by, to rounding; None if it is not known."""
        if self.exact is None:
            return None
        applied, clean = VECTORS.index("applied"), VECTORS.index(CLAIMED)
        left = self.exact[applied, applied] - 2 * self.exact[applied, clean] + self.exact[clean, clean]
        return bool(left <= EXACT * max(self.exact[applied, applied], self.exact[clean, clean]))

    def _by_size(self) -> str:
        if self.adjacency is Adjacency.ZERO_OUT:
            return ""
        what = "the number of records" if self.adjacency is Adjacency.ADD_REMOVE else "the records"
        for one, two in self.neighbours:
            found = "" if _divides_by_batch(one) else _other_values(one, two, what)
            if self.adjacency is Adjacency.REPLACE:
                found = found or _other_start(one, two)
            if found:
                return found
        return ""

    @cached_property
    def synchronous(self) -> list[tuple[Run, Run]]:
        """Those twins whose noise is the same, so that it cancels out of their difference."""
        pairs = [pair for pair in self.exchanged if _same_weights(*pair) and not _other_batches(*pair)]
        if self.adjacency is Adjacency.ADD_REMOVE:
            pairs += [pair for pair in self.neighbours if _same_weights(*pair) and _all_records(*pair)]
        return [pair for pair in pairs if self._cancels(*pair)] if self.repeatable else []

    def _cancels(self, one: Run, two: Run) -> bool:
        """Whether the first sums differ by far less than two draws of the noise do, or by far more.

        Equally many records take equally many random numbers; only of the others a small difference could be noise.
        """
        apart = float((one.sums[0] - two.sums[0]).norm())
        found = one.recomputer.recompute(one.seen, one.members)
        directions = torch.stack([found.clean[0], found.whole[0]], 1).double()
        basis, _ = torch.linalg.qr(directions)
        left = float((one.sums[0] - basis @ (basis.T @ one.sums[0])).norm())  # mostly noise, whatever its scale
        small = max(3 * self.clip if len(one.members) == len(two.members) else 0.0, 0.3 * left)
        return apart <= small or apart >= 3 * left

    @cached_property
    def exact(self) -> Array | None:
        """The sum of `exact_steps` over the steps."""
        return None if self.exact_steps is None else np.asarray(self.exact_steps.sum(0))

    @cached_property
    def exact_steps(self) -> Array | None:
        """(steps, vectors, vectors) inner products of the differences of `VECTORS` between twins; None if not known."""
        pairs = [(a, b) for a, b in self.synchronous if len(VECTORS) * STEPS * a.sums.shape[1] <= KEPT]
        if not pairs or not self.looked:
            return None
        gram = np.zeros((STEPS, len(VECTORS), len(VECTORS)))
        for one, two in pairs:
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
        return [torch.einsum("v,svd->sd", torch.from_numpy(parts), one.vectors) for one, _ in self.exchanged]

    def _outside(self, seed: int) -> float:
        """How far the first sum changes if all records outside the batch are exchanged."""
        one = self.original(seed)
        drawn = set(_drawn(one))
        exchanged = {i: _like(one, self._contents(one, i)[0]) for i in range(len(one.members)) if i not in drawn}
        return float((self.train(seed, True, exchanged, 1).sums[0] - one.sums[0]).norm()) if exchanged else 0.0

    @cached_property
    def multipliers(self) -> Array | None:
        """How often each record (column) counts, if the twins differ by multiples of the claimed shares; else None."""
        if self.exact is None:
            return None
        rows, targets = [], []
        for one, two in self.exchanged:
            shares = one.shares - two.shares
            difference = (one.sums - two.sums)[: len(shares)]
            rows.append(shares.transpose(1, 2).flatten(0, 1))
            targets.append(difference.flatten())
        matrix, target = torch.cat(rows), torch.cat(targets)
        solved = torch.linalg.lstsq(matrix, target.unsqueeze(1), driver="gelsd").solution.flatten()
        left = (matrix @ solved - target).norm()
        lengths = matrix.norm(dim=0)
        solved = torch.where(lengths > 1e-3 * lengths.max(), solved, 1.0)  # of the others nothing is known
        return np.asarray(solved) if left <= FOUND * (matrix.sum(1) - target).norm() else None

    def probe(self, place: int | None = None) -> Probe | None:
        """First steps only, with one and two records exchanged; None where a seed does not repeat a training."""
        holding = [s for s in self.seeds if place is None or place in _drawn(self.original(s))]
        if not holding or not any(pair[0] is self.original(holding[0]) for pair in self.synchronous):
            return None
        first = self._place(self.original(holding[0])) if place is None else place
        found = self._probe(holding[0], first, 0)
        outside, reach = max(self._outside(other) for other in self.seeds), found.reach
        if self.adjacency is Adjacency.ADD_REMOVE:
            pairs = [pair for pair in self.synchronous if len(pair[0].members) != len(pair[1].members)]
            reach = max([reach, *(float((a.sums[0] - b.sums[0]).norm()) / self.clip for a, b in pairs)])
        return replace(found, reach=reach, outside=outside / self.clip)

    def later_probes(self) -> Iterator[tuple[int, Probe]]:
        """The same at steps after the first (counted from 0), by records that no step before has drawn."""
        for seed in self.seeds if self.repeatable and self.synchronous else ():
            for step in range(1, min(STEPS, len(self.original(seed).seen))):
                if fresh := _drawn(self.original(seed), step):
                    yield step, self._probe(seed, fresh[0], step)

    def _probe(self, seed: int, first: int, step: int) -> Probe:
        """One record, and a second one, exchanged at a step before which neither was drawn."""
        one = self.original(seed)
        others = [i for i in _drawn(one, step) if i != first]
        usual = self._contents(one, first)[:CONTENTS]

        def change(exchanged: dict[int, StandIn]) -> Tensor:
            try:
                found = self.train(seed, True, exchanged, step + 1).sums
            except ArithmeticError:  # a stretched record's training diverges
                return torch.zeros_like(one.sums[step])
            return (found[step] if len(found) > step else torch.zeros_like(found[0])) - one.sums[step]

        contents = [*(_like(one, column, LARGE) for column in usual[:2]), *(_like(one, column) for column in usual)]
        points = torch.stack([torch.zeros_like(one.sums[0]), *(change({first: content}) for content in contents)])
        context = {place: contents[-1 - number % len(usual)] for number, place in enumerate(others[::2])}
        alike = dict.fromkeys(others, _like(one, self._short(one, usual[0], step)))
        apart = [change({first: contents[0], **c}) - points[1] - change(c) for c in (context, alike) if others]
        interaction = max((float(rest.norm()) for rest in apart), default=0.0)
        rounding = _half_precision(one) * float(one.sums[step].norm())
        return Probe(_radius(points) / self.clip, interaction / self.clip, 0.0, rounding / self.clip)

    def _short(self, run: Run, like: int, step: int) -> int:
        """The column of a record with the label of another one, whose gradient is nearest to a short one."""
        lengths = run.recomputer.recompute(run.seen, run.members).norms[step] / self.clip
        labels = run.recomputer.columns.labels
        fitting = [column for column in run.members if labels[column] == labels[like]]
        return int(min(fitting, key=lambda column: abs(float(lengths[column]) - SHORT)))

    def unbounded(self) -> int | None:
        """The first step (counted from 0) whose sum one stretched record changes further than clipped sums can."""
        for seed in self.seeds if self.repeatable and self.synchronous else ():
            for one, two in filter(None, (self._stretched(seed, HUGE, which) for which in range(2))):
                for step in range(min(len(two.seen), STEPS) if not _other_batches(one, two) else 0):
                    longest = 2.1 * self.clip * len(_all_drawn(one, step))
                    if float((two.sums[step] - one.sums[step]).norm()) > longest:
                        return step
        return None


def _first_step(
    train: Train, base: Mapping[int, StandIn], seed: int, on_d: bool, exchanged: Mapping[int, StandIn], _: int | None
) -> Run:
    """One step on other records than D's."""
    return train(seed, on_d, {**base, **exchanged}, 1)


def _like(run: Run, column: int, times: float = 1.0) -> StandIn:
    """The record of a column, with features so many times as large."""
    return run.recomputer.columns.records[column] * times, run.recomputer.columns.labels[column]


def _undrawn(run: Run) -> tuple[int, list[int]]:
    """The largest number of first steps that leave a record undrawn, and such records' places."""
    left = set(range(len(run.members)))
    for step in range(len(run.seen)):
        before, left = left, left - set(_all_drawn(run, step))
        if not left:
            return step, sorted(before) if step else []
    return len(run.seen), sorted(left)


def _other_course(one: Run, two: Run, steps: int) -> str:
    """What differs in so many steps between trainings that differ in records that these have not drawn; "": nothing."""
    last = min(steps, len(two.seen))
    moved = f"{_UNDRAWN} change how the weights move, {_UNHIDDEN}"
    for step in range(last):
        if found := _other_step(one, two, step, moved):
            return found
    if steps < len(one.seen):
        return "" if len(two.seen) <= steps or _same_weights(one, two, steps) else moved
    if len(two.seen) != len(one.seen):
        return f"{_UNDRAWN} change the number of steps, {_UNHIDDEN}"
    shown = one.seen.final is not None and two.seen.final is not None
    return f"{_UNDRAWN} change the final weights, {_UNHIDDEN}" if shown and not _same(_row(one), _row(two)) else ""


def _other_step(one: Run, two: Run, step: int, moved: str) -> str:
    if not _same_weights(one, two, step):
        return moved
    if found := _other_batches(one, two, step + 1):
        return found
    if one.seen.public[step] != two.seen.public[step] or one.seen.divisors[step] != two.seen.divisors[step]:
        return f"{_UNDRAWN} change numbers that are made known (a divisor, a loss), {_UNHIDDEN}"
    if not _same(one.sums[step], two.sums[step]):
        return "records outside the batch are used as well: use the batch that was drawn, and yield its indices"
    return ""


def _row(run: Run) -> Tensor:
    """The final weights."""
    return torch.cat([weights.flatten() for weights in run.seen.final or []])


def _all_drawn(run: Run, step: int) -> list[int]:
    batch = run.seen.batches[step]
    return list(range(len(run.members))) if batch is None else sorted({int(i) for i in batch})


def _drawn(run: Run, step: int = 0) -> list[int]:
    """The places of a batch that no step before has drawn."""
    before = {place for earlier in range(step) for place in _all_drawn(run, earlier)}
    return [place for place in _all_drawn(run, step) if place not in before]


def _half_precision(run: Run) -> float:
    """The relative rounding of sums that are kept in half precision; 0 for full precision."""
    first = (run.sums[0] / run.seen.divisors[0]).float()
    for kind in (torch.float16, torch.bfloat16):
        if torch.allclose(first.to(kind).float(), first, rtol=1e-6, atol=0):
            return float(torch.finfo(kind).eps)
    return 0.0


def _radius(points: Tensor) -> float:
    """A lower limit of the radius of the ball, around any centre, that holds the points (rows)."""
    around = (points - points.mean(0)).square().sum(1).mean().sqrt()
    return max(float(around), float(torch.cdist(points, points).max()) / 2)


def _diagnosis(sentence: str) -> Diagnosis:
    return Diagnosis(
        "public values",
        0.0,
        sentence.split(":", maxsplit=1)[0],
        "the same for neighbouring records and the same seed",
        sentence,
    )


def _same(x: Tensor, y: Tensor) -> bool:
    return x.shape == y.shape and bool((x - y).norm() <= SAME * (x.norm() + y.norm()))


def _same_weights(one: Run, two: Run, step: int = 0) -> bool:
    """Whether the weights before a step, counted from 0, are the same."""
    return _same(*(flat([w[step : step + 1] for w in run.seen.weights]) for run in (one, two)))


def _other_start(one: Run, two: Run) -> str:
    if _same_weights(one, two):
        return ""
    return (
        "the initial weights depend on the records, and no noise hides it (they were trained on them, or scaled by "
        "them): start from weights that are drawn at random, or trained on public data"
    )


def _all_records(one: Run, two: Run) -> bool:
    return all(batch is None or len(batch) == len(run.members) for run in (one, two) for batch in run.seen.batches)


def _other_batches(one: Run, two: Run, steps: int | None = None) -> str:
    pairs = zip(one.seen.batches[:steps], two.seen.batches[:steps], strict=False)
    if all(a is b is None or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs):
        return ""
    return (
        "the batches are chosen by looking at the records (with the same seed another record's content changes who is "
        "drawn): draw every record with the same probability, whatever it holds"
    )


def _divides_by_batch(run: Run) -> bool:
    sizes = [len(run.members) if batch is None else max(1, len(batch)) for batch in run.seen.batches]
    return len(set(sizes)) > 1 and sizes == run.seen.divisors


def _other_values(one: Run, two: Run, what: str) -> str:
    """Numbers that everybody is taken to know, and that differ."""
    advice = "fix it before the records are seen"
    for a, b in zip(one.seen.divisors, two.seen.divisors, strict=False):
        if abs(a - b) > SAME * abs(a):
            return f"the divisor depends on {what} ({a:.6g} and {b:.6g} for neighbours): {advice}{_size_advice(what)}"
    first, second = one.seen.clips[0], two.seen.clips[0]
    if first is not None and second is not None and abs(first - second) > SAME * abs(first):
        return f"the clipping norm depends on {what} ({first:.6g} and {second:.6g} for neighbours): {advice}"
    for name, value in one.seen.public[0].items():
        other = two.seen.public[0].get(name, np.nan)
        if not abs(value - other) <= SAME * abs(value):
            return (
                f"the {name} that is made known depends on {what} and has no noise ({value:.6g} and {other:.6g} for "
                f"neighbours): {advice}, or add noise and count it"
            )
    return _other_rates(one, two, what) or _other_decay(one, two, what)


def _size_advice(what: str) -> str:
    if "number" not in what:
        return ""
    return ", such as the expected batch size; or claim replace or zero-out neighbours, for which that number is known"


def _other_decay(one: Run, two: Run, what: str) -> str:
    """A weight decay that differs at the first step, where the weights are the same."""
    first, second = first_decay(one.seen), first_decay(two.seen)
    rounding = 1e-4 * max(abs(first), abs(second)) + 1e-6
    if not _same_weights(one, two) or not abs(first - second) > rounding:
        return ""
    return f"the weight decay depends on {what} ({first:.6g} and {second:.6g} for neighbours): fix it beforehand"


def _other_rates(one: Run, two: Run, what: str) -> str:
    """Learning rates that differ by one factor in all steps, or at the first step where only the records differ."""
    first, second = learning_rates(one.seen), learning_rates(two.seen)
    steps = min(len(first), len(second))
    told = np.isfinite(first[:steps]) & np.isfinite(second[:steps])
    ratio = second[:steps][told] / first[:steps][told]
    if len(ratio) < 2:
        return ""
    rounding = 1e-4 + max(_rounding(one.seen, steps), _rounding(two.seen, steps))
    constant = abs(ratio.mean() - 1) > 3 * rounding and ratio.std() <= max(0.1 * abs(ratio.mean() - 1), rounding)
    lengths = float(one.sums[0].norm() / two.sums[0].norm()) * two.seen.divisors[0] / one.seen.divisors[0]
    # at the first step the weights are the same; a rate that follows the noisy gradient's length is no leak
    at_once = told[0] and abs(ratio[0] - 1) > 3 * rounding and abs(ratio[0] / lengths - 1) > 3 * rounding
    if not (constant or (at_once and _same_weights(one, two))):
        return ""
    values = f"{first[:steps][told][0]:.6g} and {second[:steps][told][0]:.6g}"
    return f"the learning rate depends on {what} ({values} for neighbours): fix it before the records are seen"


def _rounding(seen: Seen, steps: int) -> float:
    weights = flat(seen.weights)
    moves = (weights[1 : steps + 1] - weights[: min(steps, len(weights) - 1)]).norm(dim=1).clamp(min=1e-30)
    return float((2.0**-22 * weights[: len(moves)].norm(dim=1) / moves).max()) if len(moves) else 1.0
