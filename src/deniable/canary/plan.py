"""The plan of an audit with canaries: who is in the data is settled by coins before the training, and never again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import UTC, datetime
from os import urandom
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.canary.canary_claim import claim_for_people, claim_for_replaced_records, claim_of, training_of
from deniable.checks import one_of, probability, whole
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import Assumption
from deniable.evidence.examined_claim import Asked
from deniable.evidence.score_audit import judge_scores
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Epsilon
from deniable.results.base import UnreadableError, plain
from deniable.results.canary_result import CanaryClaim, CanaryFile
from deniable.results.verdict_result import VerdictResult
from deniable.store.documents import read_document, write_document

if TYPE_CHECKING:
    from deniable.canary.gradient_canaries import GradientCanaries
    from deniable.canary.record_canaries import CanaryDataset, Crafting, LossOfItems

GRADIENT_KINDS = ("gradient", "spread-gradient")
RECORD_KINDS = ("mislabelled", "out-of-distribution", "new-token", "crafted")
KINDS = (*GRADIENT_KINDS, *RECORD_KINDS)
FORMAT = "deniable canaries 1"
_NEW_MODEL = Assumption("the model was new when the coins were tossed: what it learnt before is not examined")
_TOLD = Assumption("each guess knew the coins of the canaries guessed before it, and never its own", True)
DEPENDENT_LEVEL = 1e-3
"""How often independent canaries are taken for dependent ones."""


def canaries(
    dataset: Sized | int,
    number: int = 1000,
    *,
    kind: str = "gradient",
    per_coordinate: int = 1,
    records_per_person: int = 1,
    craft: Crafting | None = None,
    classes: int | None = None,
    vocabulary: int | Sequence[int] | None = None,
) -> CanaryPlan:
    """Toss a fair coin for each canary, before the training; the coins come from the operating system's entropy.

    Args:
        dataset: What is trained on, or how many records it has. Neither its size nor rate or divisor changes.
        number: Of canaries, at most one for each record (or for each `records_per_person` of them).
        kind: ``gradient``: one coordinate of the gradient of length C, through the optimizer (`CanaryPlan.attach`); the
            strongest. ``spread-gradient``: the same over 64 coordinates of its own. Records for `CanaryPlan.dataset`:
            ``mislabelled``, ``out-of-distribution`` (noise for features), ``new-token`` (sequences of tokens) and
            ``crafted`` (by `craft`).
        per_coordinate: How many gradient canaries share each coordinate, for models that have few of them. Then more
            canaries are played, and each is harder to tell (Keinan et al. 2025).
        records_per_person: A canary is a person with so many records, all in or all out; the claim is then one for
            people.
        craft: Makes a canary from a record: ``craft(item, random) -> item``, `random` being a NumPy generator.
        classes: How many labels there are, for mislabelled and out-of-distribution canaries.
        vocabulary: How many tokens there are, for ``new-token``; or those to draw from, such as tokens that no other
            record has.

    Returns:
        The plan: which canaries are in, and how to put them into the training and to score them.

    Examples:
        >>> import deniable as dn
        >>> plan = dn.canaries(10_000, 500)
        >>> len(plan), plan.kind
        (500, 'gradient')
    """
    one_of("kind", kind, KINDS)
    records = whole("dataset", dataset) if isinstance(dataset, int) else len(dataset)
    _check_number(whole("number", number, low=2), records, whole("records_per_person", records_per_person))
    if number % whole("per_coordinate", per_coordinate) or (per_coordinate > 1 and kind not in GRADIENT_KINDS):
        raise ValueError(
            f"per_coordinate is for gradient canaries whose number is a multiple of it, got {per_coordinate} for "
            f"{number:,} {kind} ones"
        )
    if kind in RECORD_KINDS and isinstance(dataset, int):
        raise ValueError(f"kind {kind!r} puts records into a data set: give the data set, not its size")
    random = np.random.default_rng(int.from_bytes(urandom(32), "little"))
    plan = CanaryPlan(
        kind=kind,
        records=records,
        identifiers=tuple(f"canary-{i:06d}" for i in range(number)),
        coins=random.integers(0, 2, number).astype(bool),
        carriers=_draw_carriers(random, records, number, records_per_person),
        drawn=datetime.now(UTC).isoformat(timespec="seconds"),
        per_coordinate=per_coordinate,
        records_per_person=records_per_person,
    )
    if kind in RECORD_KINDS:
        from deniable.canary.record_canaries import CanaryDataset, craft_of_kind  # noqa: PLC0415 (torch)

        made = craft_of_kind(kind, craft, classes, vocabulary)
        coins = np.repeat(plan.coins, records_per_person)
        plan.dataset = CanaryDataset(dataset, plan.carriers, coins, made, random, records_per_person=records_per_person)
    return plan


def _check_number(number: int, records: int, each: int) -> None:
    if number * each > records:
        wanted = "one canary for each" if each == 1 else f"a person with {each} of them for each canary"
        raise ValueError(f"number must be at most what the {records:,} records allow, {wanted}, got {number:,}")


def _draw_carriers(random: np.random.Generator, records: int, number: int, each: int) -> NDArray[np.int64]:
    """Records of their own for every canary; those of one canary stand one after the other."""
    chosen = random.choice(records, number * each, replace=False)
    return np.sort(chosen) if each == 1 else chosen


@dataclass
class CanaryPlan:
    """Coins, scores and verdict of an audit with canaries. The coins are fixed; scores are set once."""

    kind: str
    records: int
    identifiers: tuple[str, ...]
    coins: NDArray[np.bool_]
    carriers: NDArray[np.int64]
    """The records of each canary, `records_per_person` of them, one canary after the other."""
    drawn: str
    dataset: CanaryDataset | None = None
    """The data set to train on, of the same size, for kinds that are records."""
    scores: NDArray[np.float64] | None = None
    independence: float | None = None
    claim: CanaryClaim | None = None
    per_coordinate: int = 1
    records_per_person: int = 1
    adaptive: bool = False
    """Whether the scores stand for guesses that knew the coins of those before them."""
    steps: int | None = None
    """In which gradient canaries were, where their run told the scores."""

    def __len__(self) -> int:
        return len(self.identifiers)

    def attach(self, optimizer: Any, loader: Any) -> GradientCanaries:
        """Put gradient canaries into an Opacus training: `optimizer` and `loader` as `make_private` returned them.

        Every canary that is in is drawn into a batch whenever its carrier is, by the training's own sampler, and then
        adds a gradient of the clipping norm's length to the sum. The training itself stays as it is.
        """
        from deniable.canary.gradient_canaries import attach_to_opacus  # noqa: PLC0415 (torch)

        self._check_gradient_kind("attach")
        return attach_to_opacus(self, optimizer, loader)

    def gradients(self, parameters: Any, *, clip: float, noise: float, rate: float) -> GradientCanaries:
        """The same for a loop of your own: call `add` on the clipped sums before noise, and `observe` after it.

        `parameters` are the model's trainable ones; `clip` the norm, `noise` the multiplier, `rate` of the batches.
        """
        from deniable.canary.gradient_canaries import GradientCanaries, refuse_earlier_steps  # noqa: PLC0415 (torch)

        self._check_gradient_kind("gradients")
        trained = [p for p in parameters if p.requires_grad]
        refuse_earlier_steps(trained)
        shapes = [tuple(p.shape) for p in trained]
        return GradientCanaries(self, shapes, [clip] * len(shapes), noise, rate)

    def score(
        self,
        trained: Any,
        *,
        loss: str | LossOfItems = "cross-entropy",
        reference: Any = None,
        adaptive: bool = False,
    ) -> None:
        """Score every canary by what was trained, once; a larger score speaks for having been in the data.

        - gradient kinds: the run that `attach` or `gradients` returned. Its scores are log-likelihood ratios.
        - record kinds: the model. The score is minus the loss, or the loss of a `reference` model less that of this
          one. `loss` is a name, or a function (model, items) -> losses.
        - `adaptive`, of gradient kinds: guess one after the other, each guess knowing the coins of those before it
          (Keinan et al. 2025). It helps where canaries share coordinates, and is judged by ``one-run`` alone.
        - scores from elsewhere: a mapping from every identifier to its score.
        """
        if self.scores is not None:
            raise ValueError("the canaries are scored already: a second try would choose among scores; draw a new plan")
        if adaptive and (self.kind not in GRADIENT_KINDS or isinstance(trained, Mapping)):
            raise ValueError("adaptive guesses need the run of gradient canaries: give what plan.attach(...) returned")
        self.adaptive = adaptive
        values = self._scores_of(trained, loss, reference)
        if not np.isfinite(values).all():
            wrong = self.identifiers[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise ValueError(f"every canary needs a finite score, got another for {wrong}")
        self.scores = values

    def _scores_of(self, trained: Any, loss: str | LossOfItems, reference: Any) -> NDArray[np.float64]:
        if isinstance(trained, Mapping):
            return self._named_scores(trained)
        if isinstance(trained, Sequence) or hasattr(trained, "__array__"):  # a list, an array, a tensor
            raise ValueError(
                "scores must carry identifiers, so that none is paired with another's coin: give "
                "dict(zip(plan.identifiers, scores))"
            )
        if self.kind in GRADIENT_KINDS:
            if not hasattr(trained, "log_likelihood_ratios"):
                raise ValueError("gradient canaries are scored by their run: give what plan.attach(...) returned")
            values, self.independence = trained.log_likelihood_ratios(self, self.adaptive)
            self.steps = trained.steps
            return np.asarray(values)
        if self.dataset is None or not self.dataset.was_used:
            raise ValueError(
                "no canary was in this training: draw the plan first, train on plan.dataset, then score the model"
            )
        return self.dataset.scores(trained, loss, reference)

    def _named_scores(self, given: Mapping[str, float]) -> NDArray[np.float64]:
        missing, unknown = set(self.identifiers) - set(given), set(given) - set(self.identifiers)
        if missing or unknown:
            name, what = (min(missing), "is missing") if missing else (min(unknown), "is no canary of this plan")
            raise ValueError(f"scores must name each of the {len(self):,} canaries once: {name!r} {what}")
        return np.array([float(given[name]) for name in self.identifiers])

    def verdict(
        self,
        claimed: Training | Epsilon | None = None,
        *,
        delta: float | None = None,
        method: str | None = None,
        confidence: float = 0.95,
    ) -> VerdictResult:
        """Test the claim: violated, consistent, or cannot judge; with a lower bound on epsilon.

        - `claimed`: a `Training` (its exact curve is tested; `delta` names the epsilon that is shown) or an
          `Epsilon(bound, delta)`. Left out: the claim that was given before, or is in the file.
        - `method`: ``one-run-mechanism`` (default where the training is named) and ``one-run`` hold for every
          mechanism; ``order-statistics`` is sharper, and only for canaries that are independent of each other.

        Canaries that are records stand in the place of other records, so the claim is read for neighbours in which one
        record is replaced.
        """
        if self.scores is None:
            raise ValueError("there are no scores yet: train, then plan.score(...)")
        if claimed is not None:
            self.claim = claim_of(claimed, delta)
        if self.claim is None:
            raise ValueError("claimed is missing: name the training or the epsilon that is claimed")
        self._check_method(method)
        self._check_steps(self.claim)
        asked = self._ask(self.claim, method, confidence)
        return judge_scores(Scores.of(self.scores, self.coins), asked)

    def _check_method(self, method: str | None) -> None:
        """Refuse what is not proved for such canaries."""
        if method == "order-statistics" and (self.kind not in GRADIENT_KINDS or self.per_coordinate > 1):
            raise ValueError(
                "order-statistics needs independent canaries, which records in one model are not, nor gradients that "
                "share a coordinate"
            )
        if self.adaptive and method not in (None, "one-run"):
            raise ValueError(f"{method} is proved for guesses made at once, not for adaptive ones: take one-run")

    def _check_steps(self, claim: CanaryClaim) -> None:
        """Refuse a claim for steps that had no canaries."""
        if self.steps is not None and claim.steps is not None and self.steps < claim.steps:
            raise ValueError(
                f"the canaries were in {self.steps:,} of the {claim.steps:,} claimed steps, and do not show what the "
                f"others leak: attach the plan before the first step, or claim steps={self.steps}"
            )

    def _ask(self, claim: CanaryClaim, method: str | None, confidence: float) -> Asked:
        training, epsilon = training_of(claim), Epsilon(claim.epsilon, claim.delta)
        if self.records_per_person > 1 and training is not None:
            epsilon, training = claim_for_people(training, claim.delta, self.records_per_person), None
        if self.kind in RECORD_KINDS and claim.adjacency != Adjacency.REPLACE:
            training, epsilon = claim_for_replaced_records(training, epsilon)
        method = "one-run" if self.adaptive else method
        shown = (
            *self._shown_of_independence(method),
            *((_TOLD,) if self.adaptive else ()),
            *((_NEW_MODEL,) if self.steps is None else ()),
        )
        return Asked(epsilon, training, method, None, probability("confidence", confidence), "one-run", shown)

    def _shown_of_independence(self, method: str | None) -> tuple[Assumption, ...]:
        """What the run itself shows of the assumption that order statistics make."""
        if method != "order-statistics":
            return ()
        p_value = self.independence
        holds = None if p_value is None or p_value >= DEPENDENT_LEVEL else False
        text = "noise on the canaries' coordinates has nothing in common within a step, as the run shows it"
        return (Assumption(text, holds, p_value),)

    def save(self, path: Path | str) -> Path:
        """Write coins, scores and claim to one file, with a checksum; `deniable verdict FILE.json` judges it.

        The file tells who was in the data: keep it apart from the released model.
        """
        place = Path(path)
        found = CanaryFile(
            format=FORMAT,
            kind=self.kind,
            drawn=self.drawn,
            records=self.records,
            identifiers=self.identifiers,
            coins=tuple(self.coins.tolist()),
            carriers=tuple(self.carriers.tolist()),
            scores=None if self.scores is None else tuple(self.scores.tolist()),
            independence=self.independence,
            claim=self.claim,
            per_coordinate=self.per_coordinate,
            records_per_person=self.records_per_person,
            adaptive=self.adaptive,
            steps=self.steps,
        )
        write_document(place, plain(found))
        return place

    def _check_gradient_kind(self, call: str) -> None:
        if self.kind not in GRADIENT_KINDS:
            raise ValueError(f"plan.{call} is for gradient canaries; {self.kind} ones are records: use plan.dataset")


def read_plan(path: Path | str) -> CanaryPlan:
    """A plan from its file; refused, with the reason, where the file is damaged or of another kind."""
    if not Path(path).is_file():
        raise ValueError(f"there is no file {str(path)!r}: give the one that plan.save(...) wrote")
    document = read_document(Path(path))
    try:
        found = msgspec.convert(document, CanaryFile)
    except msgspec.ValidationError as error:
        raise UnreadableError(f"{path} is no file of a canary plan: {error}") from error
    if found.format != FORMAT:
        raise UnreadableError(f"{path} is a file of another version: {found.format!r} in place of {FORMAT!r}")
    carriers, odd = divmod(len(found.carriers), max(1, found.records_per_person))
    lengths = {len(found.identifiers), len(found.coins), carriers, len(found.scores or found.coins)}
    if len(lengths) > 1 or odd:
        raise UnreadableError(f"{path} must have as many coins and scores as canaries, got {sorted(lengths)}")
    return CanaryPlan(
        kind=found.kind,
        records=found.records,
        identifiers=found.identifiers,
        coins=np.array(found.coins, dtype=bool),
        carriers=np.array(found.carriers, dtype=np.int64),
        drawn=found.drawn,
        scores=None if found.scores is None else np.array(found.scores),
        independence=found.independence,
        claim=found.claim,
        per_coordinate=found.per_coordinate,
        records_per_person=found.records_per_person,
        adaptive=found.adaptive,
        steps=found.steps,
    )
