"""The audit's JSON document: claimed, exact and measured side by side; and `audit`, which makes it from settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from deniable.audit.campaign import Plan, Progress, Trials, play
from deniable.audit.evidence import Measured, measure
from deniable.audit.promise import CalibratedBy, Promise
from deniable.audit.verdict import verdict
from deniable.document import Document, Question, explain
from deniable.mechanisms import Adjacency
from deniable.store import Store

__all__ = ["SCHEMA", "audit", "judge", "run"]

SCHEMA = "deniable/audit/1"
LOCAL = (
    "Local sensitivity: the noise is an instrument that shows whether bounds are tight; this training has no "
    "differential privacy guarantee, since the noise's scale depends on the data."
)


def audit(
    data: str | Path | Callable[[], Any],
    *,
    belief: float | None = None,
    advantage: float | None = None,
    epsilon: float | None = None,
    noise: float | None = None,
    delta: float | None = None,
    calibration: CalibratedBy = "exact",
    model: str | Callable[[], torch.nn.Module] | None = None,
    records: int = 100,
    measure: str | None = None,
    label: str | None = None,
    trials: int = 1000,
    steps: int = 30,
    clip: float = 3.0,
    learning_rate: float = 0.005,
    optimizer: str = "sgd",
    rate: float = 1.0,
    sensitivity: str = "global",
    adjacency: Adjacency | str = Adjacency.REPLACE,
    trials_per_block: int = 50,
    seed: int = 0,
    confidence: float = 0.95,
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Document:
    """Play the strongest observer against your own training `trials` times and say how close it comes.

    `data` is a name, file or function (`deniable.data.load`); D is `records` of it. Exactly one of `belief`,
    `advantage`, `epsilon` and `noise` is the claim; `delta` is also the belief's failure probability (default
    1/records). With `out`, every finished block is kept there and `resume` continues. The result depends on the
    settings alone but for `seconds` and `trials_per_second`. A script needs ``if __name__ == "__main__":`` around it,
    or ``processes=1``.
    """
    given = {"belief": belief, "advantage": advantage, "epsilon": epsilon, "noise": noise}
    promise = Promise.only(given, 1 / records if delta is None else delta, calibration)
    training = {"steps": steps, "clip": clip, "learning_rate": learning_rate, "optimizer": optimizer, "rate": rate}
    blocks = {"sensitivity": sensitivity, "adjacency": adjacency, "trials_per_block": trials_per_block}
    chosen = {"records": records, "trials": trials, "seed": seed, "model": model, "measure": measure, "label": label}
    plan = Plan.of(data, promise, **chosen, **training, **blocks)  # type: ignore[arg-type]
    return run(plan, out, resume=resume, processes=processes, progress=progress, confidence=confidence)[0]


def run(
    plan: Plan,
    out: Path | str | None = None,
    *,
    resume: bool = False,
    processes: int | None = None,
    progress: Progress | None = None,
    confidence: float = 0.95,
) -> tuple[Document, Trials]:
    """Play the plan's trials, kept in `out` if given, and judge them."""
    if resume and out is None:
        raise ValueError("resume needs out, the directory of the campaign to go on with")
    started = perf_counter()
    with nullcontext() if out is None else Store(out, plan.settings, resume) as store:
        played = 0 if store is None else len(store.finished()) * plan.training.trials_per_block
        trials = play(plan, store, processes=processes, progress=progress)
    seconds = perf_counter() - started
    speed = max(0, len(trials) - played) / seconds
    return {**judge(plan, trials, confidence), "seconds": seconds, "trials_per_second": speed}, trials


def judge(plan: Plan, trials: Trials, confidence: float = 0.95) -> Document:
    """What is claimed, what is exact for the claimed noise, what the trials show, and the verdict."""
    training, promise = plan.training, plan.promise
    question = Question(delta=promise.delta, adjacency=training.adjacency)
    exact = explain(plan.mechanism, question, {})["scores"]
    claimed = promise.claimed()
    bound = claimed["belief"] or exact["belief"]
    shown = measure(trials, delta=promise.delta, belief_bound=bound, rate=training.rate, confidence=confidence)
    found = verdict(shown, claimed, exact)
    return {
        "schema": SCHEMA,
        "input": plan.settings,
        "claimed": claimed,
        "exact": exact,
        "measured": _measured(shown),
        "verdict": found.name,
        "verdict_text": found.text,
        "notes": list(_notes(plan, shown)),
    }


def _measured(shown: Measured) -> Document:
    return {
        "trials": shown.trials,
        "advantage": shown.advantage._asdict(),
        "belief": {
            "max": shown.largest_belief,
            "bound": shown.belief_bound,
            "violation_rate": shown.violations.value,
            "violation_interval": {"low": shown.violations.low, "high": shown.violations.high},
            "quantiles": shown.quantiles,
        },
        "epsilon": {
            "sensitivity": shown.epsilon_from_sensitivity,
            "belief": shown.epsilon_from_belief,
            "advantage": shown.epsilon_from_advantage,
            "advantage_theorem_3": shown.epsilon_by_theorem_3,
            "lower_bound": {
                "value": shown.epsilon_lower_bound,
                "confidence": shown.confidence,
                "method": "Clopper-Pearson on both error rates, threshold fixed at belief = prior",
            },
        },
    }


def _notes(plan: Plan, shown: Measured) -> list[str]:
    notes = [LOCAL] if not plan.training.differentially_private else []
    if shown.epsilon_from_sensitivity is None:
        notes.append("Epsilon from local sensitivities is for full batches (rate 1) and is left out.")
    return [*notes, "Epsilon from the largest belief and from the advantage are estimates without confidence."]
