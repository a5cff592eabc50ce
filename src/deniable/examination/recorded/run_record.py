"""What is kept of a watched run: statistics of its steps, never gradients or records."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.examination.recorded.batches.draws import Overlaps
from deniable.examination.recorded.batches.given_inputs import OtherInputs
from deniable.examination.recorded.gradients.chosen_records import ChosenRecords
from deniable.examination.recorded.gradients.kept_sums import KeptSums
from deniable.examination.recorded.gradients.mixed_losses import MixedProducts
from deniable.examination.recorded.gradients.record_groups import AveragedRecords, GroupedRecords
from deniable.examination.recorded.gradients.record_shares import RecordShares
from deniable.examination.recorded.gradients.summed_families import MultipliedSum
from deniable.examination.recorded.noise.noise_by_size import NoiseBySize
from deniable.examination.recorded.noise.noise_series import CommonNoise, EarlierSums
from deniable.examination.recorded.noise.number_counts import NumberCounts
from deniable.examination.recorded.weights.forward_weights import OtherWeightsOfGradients
from deniable.examination.recorded.weights.initial_weights import InitialFinding
from deniable.examination.recorded.weights.other_weights import OtherMoves, OtherNoise
from deniable.examination.recorded.weights.second_moments import SecondMoment
from deniable.examination.recorded.weights.watched_buffers import BufferFinding
from deniable.examination.recorded.weights.written_records import WrittenRecords

AbsentRecord = tuple[int, float, float]
"""The number of a record, and over the steps that did not draw it the sums of product and squared length, in variances
of the noise; see other_records.py."""
LeftOut = tuple[float, float]
"""Of a batch that was drawn and left out: its mean loss, and the length of its clipped sum."""


VECTORS = (
    *("residual", "clean", "cut", "normalised", "each parameter", "equal parts"),
    *("weights", "earlier clean", "clean momentum", "all records", "earlier applied"),
)
"""Of which a step keeps inner products: the residual; the clipped sum, and what clipping takes away; what sums have
more than the clipped one whose gradients are all as long as the clipping norm, or are clipped parameter by parameter,
to the whole norm or to equal parts of it; the weights; the clipped sum of the step before, and of all before with
falling shares; the mean clipped gradient of all records, or of a sample; the applied sum of the step before."""
MOMENTUM = 0.9
"""The usual decay, of the shares that fall."""
_PRODUCTS = len(VECTORS) * (len(VECTORS) + 1) // 2
_FIRST = 3
_FEW_WEIGHTS = 4 * len(VECTORS)
"""Of fewer weights known gradients would leave too little of the noise."""
_PARALLEL = 1e-7
"""Squared sines, relative: vectors that differ by less are the same."""


class ExaminedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step whose clipped sum was recomputed. Residual: applied x divisor - clipped sum; lengths are squared.

    Of a large model they are those of the weights that are looked at, a random sample.
    """

    number: int
    """Of the step, from 0 on."""
    batch: int
    """How many records it drew."""
    residual: tuple[float, ...]
    """Of each parameter."""
    sizes: tuple[int, ...]
    """Numbers in each parameter that are looked at."""
    gram: tuple[float, ...]
    """Inner products of `VECTORS`, or of the first three of them, row by row from the diagonal on."""
    clip: float
    longest: float
    """The longest gradient of a record, before clipping."""
    usual_norms: tuple[float, float] | None = None
    """Mean and median of the records' gradients' norms, before clipping; None where there are none."""
    by_parameter: tuple[tuple[float, ...], ...] = ()
    """Of each parameter: residual x what is cut, and the latter's squared length; the same with the clipped sum."""
    fourth: float | None = None
    """Of the residual's numbers the sum of fourth powers."""
    total: float | None = None
    """Of the residual's numbers."""
    loss: float | None = None
    """The batch's mean loss."""
    data_loss: float | None = None
    """That of all records, or of a sample of them; None where none was computed."""
    accuracy: float | None = None
    """The share of the batch whose class the model names; None where there are no classes."""
    data_accuracy: float | None = None
    """That of all records, or of a sample of them."""
    ways: tuple[tuple[float, float], ...] = ()
    """Of each of `WAYS_TO_SUM`: residual x what it has more than the clipped sum, and the latter's squared length."""
    norms: tuple[tuple[float, float], ...] = ()
    """The same of sums that are clipped by a norm without one parameter, each in turn, and without all vectors."""
    left_out: tuple[LeftOut, ...] = ()
    """Batches that were drawn since the step before, without a step."""
    inputs: OtherInputs = ""
    """What the model was given in place of the records; "" for them, or where that is not known."""
    shares: RecordShares | None = None
    """Of the single records; None where they are not told apart."""
    mixed: MixedProducts | None = None
    """Of the batch's own gradient, where its loss mixes the records; None where it does not, or that is not known."""
    earlier_noise: tuple[float, float] | None = None
    """Of the sum of earlier residuals: its product with this one, and its squared length; None without these."""
    shifted: int = 0
    """Numbers of the residual that are copies of some at other places, in it or an earlier one."""
    counts: NumberCounts | None = None
    """Of single numbers; None where they were not kept."""
    by_size: NoiseBySize | None = None
    """Of the noise where the clipped sum is small and where it is large; None where that was not kept."""
    earlier_sums: EarlierSums | None = None
    """Of the residual beside earlier steps; None where that was not kept."""

    @property
    def clean(self) -> float:
        """Of the clipped sum."""
        return float(step_gram(self)[1, 1])


def known_factors(step: ExaminedStep) -> NDArray[np.float64]:
    """By how much of the clean sum, and of what is cut, the residual is explained best."""
    gram = step_gram(step)
    return np.asarray(np.linalg.pinv(gram[1:3, 1:3], rcond=1e-9, hermitian=True) @ gram[0, 1:3])


def step_gram(step: ExaminedStep) -> NDArray[np.float64]:
    """(vectors, vectors) inner products of `VECTORS`; of the first three where no more was kept."""
    count = len(VECTORS) if len(step.gram) == _PRODUCTS else _FIRST
    gram = np.zeros((count, count))
    gram[np.triu_indices(count)] = step.gram
    return gram + np.triu(gram, 1).T


def noise_of_step(step: ExaminedStep, present: bool = False) -> tuple[float, float]:
    """The residual's squared length across the gradients that are known before the noise is drawn; its dimension.

    Not across the applied sum of the step before, whose noise may be this step's again. `present`: only across the
    clipped sum and what is cut, since earlier noise is in the weights, too; of a model of few weights as well, and of
    very few across the clipped sum alone, since known gradients fill its space.
    """
    gram, numbers = step_gram(step), sum(step.sizes)
    few = 3 if numbers >= _FEW_WEIGHTS / 4 else 2
    gram = gram[:few, :few] if present or numbers < _FEW_WEIGHTS or len(gram) < len(VECTORS) else gram[:-1, :-1]
    lengths = np.sqrt(np.diag(gram)[1:])
    there = lengths > 1e-6 * lengths.max(initial=0.0)
    unit = gram[1:, 1:][np.ix_(there, there)] / np.outer(lengths[there], lengths[there])
    values, vectors = np.linalg.eigh(unit)
    kept = values > _PARALLEL
    along = vectors[:, kept].T @ (gram[0, 1:][there] / lengths[there]) / np.sqrt(values[kept])
    return max(gram[0, 0] - float(along @ along), 0.0), float(max(1, numbers - kept.sum()))


def noise_variance(step: ExaminedStep) -> float:
    """Of one number of the noise, as measured; of a bare gradient, that of rounding."""
    squares, numbers = noise_of_step(step)
    gram = step_gram(step)
    return float(max(squares / numbers, (1e-5 * (gram[1, 1] + gram[0, 0]) ** 0.5) ** 2 / sum(step.sizes), 1e-300))


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The run as a whole."""

    records: int
    weights: int
    """Trainable ones."""
    batches: tuple[int, ...]
    """How many records each step drew, as far as batches were watched."""
    draws: tuple[int, ...]
    """How often each record was drawn; empty where the recording was cut."""
    overlaps: Overlaps = (0.0, 0.0, 0)
    """Of pairs of batches, see draws.py."""
    batches_again: int = 0
    """Batches of just the records of an earlier one."""
    divisors: tuple[float, ...]
    steps: tuple[ExaminedStep, ...]
    cosines: tuple[float, ...]
    """The largest cosine of each examined residual with an earlier one, on as many weights as are watched."""
    watched_weights: int
    moves: tuple[float, ...]
    """How far each step's move is from what the optimizer does with the applied gradient, relative to the move."""
    final_move: float | None
    """The same of the final weights; None where they were not shown."""
    final_along_gradient: float | None
    """The cosine of an unexplained last move with the records' mean gradient, where there is such a move."""
    not_recomputed: str = ""
    """Why no gradient was recomputed; empty where they were."""
    seconds: float = 0.0
    """Of the run, and of them those of the watcher."""
    watcher_seconds: float = 0.0
    lengths: tuple[float, ...] = ()
    """Of each step's applied gradient x divisor, over all weights, squared."""
    clips: tuple[float, ...] = ()
    """Each step's clipping norm (of all parameters together)."""
    count_noise: float | None = None
    """The standard deviation of the noise on the count of unclipped records, for adaptive clipping."""
    ended: bool = True
    """Whether it was watched to its end; False for what a killed run leaves."""
    names: tuple[str, ...] = ()
    """Of the trainable parameters."""
    repeated: int = 0
    """Steps whose batch holds a record more than once."""
    rates: tuple[float, ...] = ()
    """The learning rate of each step."""
    odd_moves: tuple[tuple[float, ...], ...] = ()
    """Of moves that the optimizer does not explain: the cosines of the rest, in the parameters that it is in, with the
    step's noise, its clipped sum, the gradient of all records, and the step's sum without clipping."""
    odd_sizes: tuple[float, ...] = ()
    """Of moves that plain SGD does not explain: the standard deviation of noise on the sum that would make them."""
    second_moment: SecondMoment | None = None
    """What unexplained moves are divided by; None where there are none, or that is not known."""
    buffers: tuple[tuple[str, BufferFinding], ...] = ()
    """What changed those that are not known to change harmlessly."""
    buffers_left_out: int = 0
    """So many were too large to be looked at."""
    moved: tuple[int, ...] = ()
    """The parameters that unexplained moves between steps are in."""
    final_moved: tuple[int, ...] = ()
    """Those of the last one."""
    final_made_of: str = ""
    """What of the records the last one equals, in words; "" for nothing that is known."""
    set_back: tuple[int, ...] = ()
    """Steps after which the weights were those before it again."""
    final_is_average: bool = False
    """Whether the final weights are a combination of those that were watched."""
    final_step: int | None = None
    """The step before which the weights were the final ones; None where these are the last, or no watched ones."""
    final_holds_clean: bool = False
    """Whether they are one of those and of clipped sums without noise."""
    mixes_records: str = ""
    """The module that mixes the records of a batch; empty without one."""
    absent: tuple[AbsentRecord, ...] = ()
    """Of the records that were looked at in every examined step, those few whose gradients it is most along."""
    compared_records: int = 0
    """How many were looked at."""
    multiplied: tuple[MultipliedSum, ...] = ()
    """Of each of `FAMILIES` the best one."""
    multiplied_apart: tuple[float, ...] = ()
    """Of each of them: how much nearer sums are that have another multiple in every step."""
    chosen: tuple[ChosenRecords, ...] = ()
    """Of rules by which only some records of a batch count: the nearest one that looks at all of it, and level."""
    initial: InitialFinding = ""
    """What the initial weights have of the records; "" for nothing that was looked for."""
    initial_is_public: bool = False
    """Whether the user says that they are made without the records."""
    weights_from_counts: bool = False
    """Whether the named loss weights classes by how rare they are among the records."""
    scheduled: bool = False
    """Whether a scheduler of torch, which counts steps, has set the learning rate."""
    grouped: GroupedRecords | None = None
    """Of records that are clipped together: the nearest groups; None where none are nearer."""
    averaged: AveragedRecords | None = None
    """Of clipped gradients that are averaged in chunks of a batch, and those averages again."""
    kept: KeptSums | None = None
    """Of clipped sums that are not cleared; None where none is nearer with them."""
    variance_reduction: int | None = None
    """Steps in which gradients of all records at earlier weights are added, less the batch's there; None without."""
    along_records: float | None = None
    """The correlation of applied numbers' sizes with those of the records' gradients; None where it is not known."""
    elsewhere: OtherWeightsOfGradients | None = None
    """Where gradients are taken at other weights than those that are moved."""
    pulled: tuple[int, ...] = ()
    """Steps after which weights go back to earlier ones by a fixed share, at regular times."""
    written: WrittenRecords | None = None
    """Of records whose numbers are in the weights; None where none are seen."""
    mixing_layer: str = ""
    """What mixes the records of a batch, as its outputs show, where the loss is not what does; empty without it."""
    common_noise: CommonNoise | None = None
    """What the noise of the steps has in common; None where that is not known."""
    other_noise: OtherNoise | None = None
    """Of such weights, if they move along the batches' gradients."""
    other_moves: OtherMoves | None = None
    """Of weights that the watched optimizer does not hold; None where they stay."""


def times_own_size(record: RunRecord) -> RunRecord:
    """The same run, as if what was divided by each batch's own size had been divided by the divisor.

    Known are then the inner products of `VECTORS` alone.
    """
    return msgspec.structs.replace(
        record,
        steps=tuple(_times(step, max(1, step.batch) / record.divisors[step.number]) for step in record.steps),
        multiplied=(),
        multiplied_apart=(),
        chosen=(),
        grouped=None,
        averaged=None,
        kept=None,
        variance_reduction=None,
        along_records=None,
        absent=(),
    )


def known_in_each_step(record: RunRecord) -> RunRecord:
    """The same run, as if only each step's clipped sum were known, and what is cut.

    For noise that steps have in common, which is in the weights and in earlier sums, too.
    """
    some = np.triu_indices(_FIRST)
    grams = (tuple(step_gram(step)[:_FIRST, :_FIRST][some].tolist()) for step in record.steps)
    steps = (msgspec.structs.replace(step, gram=gram) for step, gram in zip(record.steps, grams, strict=True))
    return msgspec.structs.replace(record, steps=tuple(steps))


def _times(step: ExaminedStep, factor: float) -> ExaminedStep:
    """Of an applied sum times a factor: residual' = factor x residual + (factor - 1) x clean."""
    gram = step_gram(step)
    turned = np.eye(len(gram))
    turned[0, :2] = factor, factor - 1
    gram = turned @ gram @ turned.T
    more = (gram[0, 0] / max(sum(step.residual), 1e-300)) if step.residual else 1.0
    return msgspec.structs.replace(
        step,
        gram=tuple(gram[np.triu_indices(len(gram))].tolist()),
        residual=tuple(more * one for one in step.residual),
        by_parameter=(),
        ways=(),
        norms=(),
        shares=None,
        mixed=None,
        earlier_sums=None,
    )
