"""A run as lines that are added while it goes on, one a step: what a killed run leaves is its complete steps."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import BinaryIO

import msgspec

from deniable.examination.recorded.batches.draws import Overlaps
from deniable.examination.recorded.gradients.chosen_records import ChosenRecords
from deniable.examination.recorded.gradients.kept_sums import KeptSums
from deniable.examination.recorded.gradients.record_groups import AveragedRecords, GroupedRecords
from deniable.examination.recorded.gradients.summed_families import MultipliedSum
from deniable.examination.recorded.noise.noise_series import CommonNoise
from deniable.examination.recorded.run_record import AbsentRecord, ExaminedStep, RunRecord
from deniable.examination.recorded.weights.forward_weights import OtherWeightsOfGradients
from deniable.examination.recorded.weights.initial_weights import InitialFinding
from deniable.examination.recorded.weights.other_weights import OtherMoves, OtherNoise
from deniable.examination.recorded.weights.second_moments import SecondMoment
from deniable.examination.recorded.weights.watched_buffers import BufferFinding
from deniable.examination.recorded.weights.written_records import WrittenRecords
from deniable.results.base import UnreadableError


class RunStart(msgspec.Struct, frozen=True, kw_only=True, tag="start"):
    """What is known before the first step; see `RunRecord`."""

    format: int = 1
    records: int
    weights: int
    watched_weights: int
    count_noise: float | None
    names: tuple[str, ...] = ()
    mixes_records: str = ""
    initial: InitialFinding = ""
    initial_is_public: bool = False


class StepTaken(msgspec.Struct, frozen=True, kw_only=True, tag="step", omit_defaults=True):
    """One step, and with the next one, which sees its result, how far its move is from the expected one."""

    batch: int
    divisor: float
    clip: float
    length: float | None
    """None where the gradient has numbers that are not finite."""
    seconds: float
    watcher_seconds: float
    repeated: bool = False
    rate: float | None = None
    move_before: float | None = None
    odd_before: tuple[float, ...] | None = None
    """Of a move before that is not explained, see `RunRecord.odd_moves`."""
    odd_size: float | None = None
    """Of it, the root mean square as of noise on the sum, see `RunRecord.odd_sizes`."""
    set_back: bool = False
    """Whether the weights are those before the step before again."""
    examined: ExaminedStep | None = None
    cosine: float | None = None


class RunEnd(msgspec.Struct, frozen=True, kw_only=True, tag="end"):
    """What is known after the last step."""

    draws: tuple[int, ...]
    overlaps: Overlaps = (0.0, 0.0, 0)
    batches_again: int = 0
    final_move: float | None
    final_odd_size: float | None = None
    final_along_gradient: float | None
    not_recomputed: str
    seconds: float
    watcher_seconds: float
    final_is_average: bool = False
    final_holds_clean: bool = False
    final_step: int | None = None
    absent: tuple[AbsentRecord, ...] = ()
    compared_records: int = 0
    multiplied: tuple[MultipliedSum, ...] = ()
    multiplied_apart: tuple[float, ...] = ()
    chosen: tuple[ChosenRecords, ...] = ()
    second_moment: SecondMoment | None = None
    buffers: tuple[tuple[str, BufferFinding], ...] = ()
    buffers_left_out: int = 0
    moved: tuple[int, ...] = ()
    final_moved: tuple[int, ...] = ()
    final_made_of: str = ""
    weights_from_counts: bool = False
    scheduled: bool = False
    other_moves: OtherMoves | None = None
    other_noise: OtherNoise | None = None
    written: WrittenRecords | None = None
    pulled: tuple[int, ...] = ()
    grouped: GroupedRecords | None = None
    averaged: AveragedRecords | None = None
    kept: KeptSums | None = None
    variance_reduction: int | None = None
    mixing_layer: str = ""
    elsewhere: OtherWeightsOfGradients | None = None
    along_records: float | None = None
    common_noise: CommonNoise | None = None


_NOT_ENDED = RunEnd(
    draws=(),
    final_move=None,
    final_along_gradient=None,
    not_recomputed="no step was recomputed before the recording ends",
    seconds=nan,
    watcher_seconds=nan,
)
"""What is known of a run whose recording was cut; its times are those of the last step."""
_LINES = msgspec.json.Decoder(RunStart | StepTaken | RunEnd)


class Recording:
    """Start, steps and end of a run, collected and, with a path, written at once: each line by one write.

    A killed process loses at most the step that it was taking; a file that is there is not written over.
    """

    def __init__(self, start: RunStart, path: Path | str | None = None) -> None:
        self.start = start
        self.end: RunEnd | None = None
        self.steps: list[StepTaken] = []
        self._file = None if path is None else _new_file(Path(path))
        self._write(start)

    def take(self, step: StepTaken) -> None:
        """Add a step."""
        self.steps.append(step)
        self._write(step)

    def finish(self, end: RunEnd | None) -> None:
        """Close it; without `end` as the recording of a run that was not watched to its end."""
        self.end = end
        if end is not None:
            self._write(end)
        if self._file is not None:
            self._file.close()
            self._file = None

    def record(self) -> RunRecord:
        """All that is known of the run."""
        end, last = self.end or _NOT_ENDED, self.end or self.steps[-1]
        examined = [step for step in self.steps if step.examined is not None]
        return RunRecord(
            records=self.start.records,
            weights=self.start.weights,
            watched_weights=self.start.watched_weights,
            count_noise=self.start.count_noise,
            batches=tuple(step.batch for step in self.steps),
            divisors=tuple(step.divisor for step in self.steps),
            clips=tuple(step.clip for step in self.steps),
            lengths=tuple(nan if step.length is None else step.length for step in self.steps),
            moves=tuple(step.move_before for step in self.steps if step.move_before is not None),
            steps=tuple(step.examined for step in examined if step.examined is not None),
            cosines=tuple(step.cosine for step in examined if step.cosine is not None),
            draws=end.draws,
            overlaps=end.overlaps,
            batches_again=end.batches_again,
            final_move=end.final_move,
            final_along_gradient=end.final_along_gradient,
            not_recomputed=end.not_recomputed,
            seconds=last.seconds,
            watcher_seconds=last.watcher_seconds,
            ended=self.end is not None,
            names=self.start.names,
            mixes_records=self.start.mixes_records,
            repeated=sum(step.repeated for step in self.steps),
            rates=tuple(nan if step.rate is None else step.rate for step in self.steps),
            set_back=tuple(at - 1 for at, step in enumerate(self.steps) if step.set_back),
            odd_sizes=tuple(
                size for size in (*(step.odd_size for step in self.steps), end.final_odd_size) if size is not None
            ),
            odd_moves=tuple(step.odd_before for step in self.steps if step.odd_before is not None),
            final_is_average=end.final_is_average,
            final_holds_clean=end.final_holds_clean,
            final_step=end.final_step,
            absent=end.absent,
            compared_records=end.compared_records,
            multiplied=end.multiplied,
            multiplied_apart=end.multiplied_apart,
            chosen=end.chosen,
            moved=end.moved,
            final_moved=end.final_moved,
            final_made_of=end.final_made_of,
            buffers=end.buffers,
            buffers_left_out=end.buffers_left_out,
            second_moment=end.second_moment,
            initial=self.start.initial,
            initial_is_public=self.start.initial_is_public,
            weights_from_counts=end.weights_from_counts,
            scheduled=end.scheduled,
            pulled=end.pulled,
            written=end.written,
            other_moves=end.other_moves,
            other_noise=end.other_noise,
            grouped=end.grouped,
            averaged=end.averaged,
            kept=end.kept,
            variance_reduction=end.variance_reduction,
            mixing_layer=end.mixing_layer,
            along_records=end.along_records,
            elsewhere=end.elsewhere,
            common_noise=end.common_noise,
        )

    def _write(self, line: RunStart | StepTaken | RunEnd) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode(line) + b"\n")


def read_recording(path: Path | str) -> RunRecord:
    """What `watch_run` wrote into its `path`, also that of a killed run: its complete steps."""
    try:
        *whole, _cut = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
    lines = [_decode(path, number, line) for number, line in enumerate(whole, 1)]
    if len(lines) < 2 or not isinstance(lines[0], RunStart) or not isinstance(lines[1], StepTaken):
        raise UnreadableError(f"{path} is no recording of a run, or of one without a complete step")
    recording = Recording(lines[0])
    for number, line in enumerate(lines[1:], 2):
        if isinstance(line, RunStart) or recording.end is not None:
            raise UnreadableError(f"{path} is damaged: line {number} belongs to another recording")
        if isinstance(line, StepTaken):
            _check_place(path, number, line, len(recording.steps))
            recording.steps.append(line)
        else:
            recording.end = line
    return recording.record()


def _check_place(path: Path | str, number: int, line: StepTaken, steps: int) -> None:
    """An examined step knows its number: where it is another, lines before it are missing, or written twice."""
    if line.examined is not None and line.examined.number != steps:
        raise UnreadableError(
            f"{path} is damaged: line {number} holds step {line.examined.number + 1:,} where step {steps + 1:,} belongs"
        )


def _decode(path: Path | str, number: int, line: bytes) -> RunStart | StepTaken | RunEnd:
    try:
        found: RunStart | StepTaken | RunEnd = _LINES.decode(line)
        return found
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path} is no recording of a run: line {number}: {error}") from error


def _new_file(path: Path) -> BinaryIO:
    try:
        return path.open("xb", buffering=0)
    except FileExistsError as error:
        raise ValueError(f"path: {path} is there already; name a new file for each run") from error
