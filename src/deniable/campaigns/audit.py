"""The audit's JSON document: claimed, exact and measured side by side; and `audit`, which makes it from settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from msgspec import convert, structs

from deniable.answers.explain import exact_scores
from deniable.campaigns.campaign import CalibratedBy, Ground, Plan, Progress, play
from deniable.campaigns.final_model import observe_final, refuse_fitted_noise
from deniable.campaigns.plot_data import course
from deniable.campaigns.progress import show_progress
from deniable.campaigns.provenance import audit_command, now, with_final_model
from deniable.checks import one_of, whole
from deniable.data.encoding import tell_statistics
from deniable.engines import Engine, choose_engine, open_store
from deniable.evidence.anytime.watch import STOPS, Stop, Watch, WatchEvidence, limits_confidence, looks
from deniable.evidence.measured import Measured, Trials, measure
from deniable.evidence.verdict import verdict, with_watch
from deniable.formatting import at_most, percent_at_most
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Question, claimed_scores
from deniable.results import audit_result as results
from deniable.results.audit_result import AuditInput, AuditResult
from deniable.results.shared import Ends, Watched
from deniable.scores import privacy_loss
from deniable.store import CampaignStore
from deniable.training.settings import Optimizer, Sensitivity

SAMPLED = (
    "The neighbour is the most unlike one of a sample: D is too large to compare every pair. It may not be the most "
    "unlike of all; what is said about it holds."
)
LOCAL = (
    "Test mode. Noise was fitted to this data set (to its local sensitivity) to check the theory. A model trained this "
    "way is NOT private."
)
UNDECIDED = (
    "Epsilon from local sensitivities is left out: with sampled batches and replace neighbours the distance between "
    "two records' gradients does not decide the loss. Full batches (rate 1) or add-remove neighbours have it."
)
BARE = "Epsilon from local sensitivities is left out: it is infinite, since a step went without noise."


def audit(
    data: str | Path | Callable[[], Any],
    *,
    belief: float | None = None,
    advantage: float | None = None,
    epsilon: float | None = None,
    noise: float | None = None,
    delta: float | None = None,
    calibration: CalibratedBy = "exact",
    records: int | None = None,
    label: str | None = None,
    measure: str | None = None,
    model: str | Callable[[], torch.nn.Module] | None = None,
    steps: int = 30,
    clip: float = 3.0,
    learning_rate: float = 0.005,
    optimizer: Optimizer = "sgd",
    rate: float = 1.0,
    sensitivity: Sensitivity = "global",
    adjacency: Adjacency | str = Adjacency.REPLACE,
    loss: str | Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = "cross-entropy",
    trials: int = 1000,
    trials_per_block: int | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    stop: Stop = "never",
    final_model: bool = False,
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    engine: Engine | str = "local",
    progress: Progress | None = None,
) -> AuditResult:
    """Play the strongest observer against your own training, many times, and say how close it comes.

    ``audit("digits", belief=0.9, delta=0.01, trials=1000)``. The result depends on the settings alone but for
    `seconds`, `trials_per_second` and `finished`. Workers are spawned: a script needs ``if __name__ == "__main__":``,
    or ``processes=1``.

    The promise is exactly one of `belief`, `advantage`, `epsilon` and `noise`.

    Args:
        data: A name, a file, or a function (`deniable.data.load`).
        belief: Nobody becomes more than so sure, except with probability `delta`.
        advantage: No attack has TPR - FPR above it.
        epsilon: The training is (epsilon, delta)-DP.
        noise: The noise multiplier itself; what it implies is tested.
        delta: Default 1/records.
        calibration: How the noise is found: exact, or rdp as in the papers (more noise).
        records: Of D, drawn at random. Default 100, or half of the data if that is less.
        label: The label's column of a .csv file.
        measure: How unlike neighbours are: ssim, euclidean, hamming, manhattan or cosine. Default: by the data.
        model: logistic, mlp:64,32, cnn, "module:function", or a function that returns an nn.Module. Default: by the
            data.
        steps: Of the training.
        clip: The norm to which each record's gradient is clipped.
        learning_rate: Of the optimizer.
        optimizer: sgd (DP-SGD) or adam (DP-Adam).
        rate: The probability of each record to be in a step's batch; 1: full batches.
        sensitivity: global, or local: an instrument to test the theory, without any privacy.
        adjacency: replace (sensitivity 2 x clip) or add-remove (clip).
        loss: cross-entropy, "module:function", or a function of (outputs, targets) to one loss an example.
        trials: Trainings, half of them on D, half on its neighbour.
        seed: What everything random follows from.
        confidence: Of limits, bounds and the verdict.
        trials_per_block: Default: what suits the model.
        stop: certain ends the campaign at the block after which the claim is refuted for certain; the watch takes half
            of the risk 1 - confidence, and limits are wider. never plays all trials.
        final_model: Play observers of the final model alone, too (crafted gradients, worst and usual initial weights),
            as many trainings for each: what hiding the steps buys.
        out: A directory in which every finished block is kept.
        resume: Go on with the campaign in `out`.
        processes: Workers. Default: one a core.
        engine: Where the blocks are played (`deniable.engines`); the result is the same everywhere.
        progress: Hears (trials done, trials in all); without it, a bar is shown on a terminal.

    Returns:
        Verdict, limits and bounds; `summary()` says them, `report(path)` writes the page.

    Examples:
        >>> import deniable as dn
        >>> dn.audit("digits", noise=3.0, records=10, steps=2, trials=8, processes=1).verdict
        'cannot judge'
    """
    given = {"belief": belief, "advantage": advantage, "epsilon": epsilon, "noise": noise}
    chosen_engine = choose_engine(engine, processes)
    whole("trials", trials)
    with open_store(chosen_engine, out, resume) as store:
        ground = Ground.of(
            data,
            {name: bound for name, bound in given.items() if bound is not None},
            adjacency=adjacency,
            delta=delta,
            calibration=calibration,
            records=records,
            seed=seed,
            model=model,
            label=label,
            steps=steps,
            clip=clip,
            learning_rate=learning_rate,
            optimizer=optimizer,
            rate=rate,
            sensitivity=sensitivity,
            loss=loss,
            trials_per_block=trials_per_block,
        )
        plan = Plan.on(ground, trials, measure)
        if final_model:
            refuse_fitted_noise(plan)  # before the trials are played
        with show_progress(progress, "Playing the first block", "Trials", "trials/s") as told:
            found = run(plan, store, engine=chosen_engine, progress=told, confidence=confidence, stop=stop)[0]
            if not final_model:
                return found
            return add_final_model(found, plan, chosen_engine, confidence, progress=told, store=store)


def add_final_model(
    found: AuditResult,
    plan: Plan,
    engine: Engine,
    confidence: float,
    *,
    progress: Progress | None = None,
    store: CampaignStore | None = None,
) -> AuditResult:
    """The result with what observers of the final model alone reach, and with the command that asks for it."""
    source = found.provenance
    if source is not None and source.command is not None:
        source = structs.replace(source, command=with_final_model(source.command))
    seen = observe_final(plan, engine, confidence, progress, store)
    return found.replace(final_model=seen, provenance=source)


def run(
    plan: Plan,
    store: CampaignStore | None = None,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    confidence: float = 0.95,
    stop: Stop = "never",
) -> tuple[AuditResult, Trials]:
    """Play the plan's trials that `store` lacks, keep them there, and judge all, or those up to a certain answer."""
    started, played = perf_counter(), 0
    watch = None if one_of("stop", stop, STOPS) == "never" else watch_over(plan, confidence)
    if store is not None:
        store.begin(plan.settings)
        finished = sum(number < plan.blocks for number in store.finished_blocks())
        played = finished * plan.training.trials_per_block
    certain = None if watch is None else watch.add
    trials = play(plan, store, engine=engine, progress=progress, certain=certain)
    seconds = perf_counter() - started
    speed = max(0, len(trials) - played) / seconds
    found = judge(plan, trials, confidence, None if watch is None else watch.evidence())
    return found.replace(seconds=seconds, trials_per_second=speed, finished=now()), trials


def watch_over(plan: Plan, confidence: float) -> Watch:
    """A watch over the plan's claim: that the training has its noise."""
    training = Training.of(plan.training)
    return Watch.beside_limits(privacy_loss(training.mechanism, training.adjacency), plan.trials, confidence)


def judge(plan: Plan, trials: Trials, confidence: float = 0.95, evidence: WatchEvidence | None = None) -> AuditResult:
    """What is claimed, what is exact for the claimed noise, what the trials show, and the verdict.

    With the `evidence` of a watch, either may find a violation; together they err with at most 1 - `confidence`.
    """
    training = Training.of(plan.training)
    ends = looks(plan.trials, plan.training.trials_per_block)
    sure = confidence if evidence is None else limits_confidence(confidence, len(trials), ends)
    exact = exact_scores(training.mechanism, Question(training.adjacency, plan.delta))
    promised = claimed_scores(plan.promise, plan.delta)
    bound = promised.belief or exact.belief
    shown = measure(trials, training, delta=plan.delta, belief_bound=bound, confidence=sure)
    found, watched = verdict(shown, promised, exact), None
    if evidence is not None:
        watched = evidence.result(evidence.mechanism_bound(training, plan.delta), training=training)
        found = with_watch(found, watched)
    return AuditResult(
        input=convert(plan.settings, AuditInput),
        claimed=promised,
        exact=exact,
        measured=as_measured(shown),
        verdict=found.name,
        closeness=found.closeness,
        verdict_text=found.text,
        notes=(*_notes(plan, shown, exact.epsilon), *watch_notes(watched), *_say_early_end(len(trials), plan.trials)),
        confidence=confidence,
        watched=watched,
        course=course(trials),
        provenance=structs.replace(
            plan.source,
            command=audit_command(plan.settings, plan.source, confidence, "never" if evidence is None else "certain"),
        ),
    )


def watch_notes(watched: Watched | None) -> Iterator[str]:
    """What a watch found, where the verdict does not say it, and what it cost."""
    if watched is not None:
        if watched.refuted_after is None:
            yield watched.text
        yield f"Of the risk of a wrong verdict, {watched.risk:.3g} is the watch's; limits have the rest."


def _say_early_end(played: int, planned: int) -> Iterator[str]:
    if played < planned:
        yield f"The campaign ended after {played:,} of {planned:,} trials, when the answer was certain."


def as_measured(shown: Measured) -> results.MeasuredScores:
    """What the trials show, as the result has it."""
    return results.MeasuredScores(
        trials=shown.trials,
        advantage=shown.advantage.result(),
        belief=results.BeliefMeasured(
            max=shown.largest_belief,
            bound=shown.belief_bound,
            violation_rate=shown.violations.value,
            violation_interval=Ends(low=shown.violations.low, high=shown.violations.high),
            at_delta=shown.belief_at_delta.result(),
            quantiles=shown.quantiles,
        ),
        epsilon=results.EpsilonMeasured(
            sensitivity=shown.epsilon_from_sensitivity,
            belief=shown.epsilon_from_belief,
            advantage=shown.epsilon_from_advantage,
            advantage_theorem_3=shown.epsilon_by_theorem_3,
            lower_bound=results.FixedBound(
                value=shown.epsilon_lower_bound,
                confidence=shown.confidence,
                method="Clopper-Pearson on both error rates jointly, threshold fixed at belief = prior",
            ),
            estimators=tuple(bound.result() for bound in shown.estimators),
        ),
    )


def _notes(plan: Plan, shown: Measured, allowed: float | None) -> list[str]:
    notes = [] if plan.training.differentially_private else [LOCAL]
    if plan.source.usual_model is not None:
        notes.append(f"The network is {plan.source.usual_model}, usual for such data; --model names another.")
    if plan.source.by_statistics:
        notes.append(tell_statistics(plan.source.by_statistics, "all records"))
    if plan.origin.get("search") == "sampled":
        notes.append(SAMPLED)
    real = shown.epsilon_from_sensitivity
    if real is None:
        notes.append(UNDECIDED if plan.training.rate < 1 else BARE)
    elif plan.training.differentially_private and allowed:
        notes.append(
            f"Relative to what these records really change, the noise gives epsilon {at_most(real)}, "
            f"{_share(real / allowed)} of the {at_most(allowed)} that it allows in the worst case. Other data may "
            "reach more."
        )
    return notes


def _share(part: float) -> str:
    return percent_at_most(part, 2) if part < 1 else f"{at_most(100 * part)} %"
