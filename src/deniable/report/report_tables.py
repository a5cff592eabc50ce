"""Tables of the page: scores side by side, estimators, diagnostics, the exposed, where a run comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from deniable.formatting import (
    ALMOST_ALL,
    as_given,
    at_least,
    at_most,
    percent_as_given,
    percent_at_most,
    short,
    told_apart,
)
from deniable.report.chapters.chapter import Table
from deniable.report.words.amount_text import allowed_figure, allowed_share, figure, share
from deniable.report.words.assumptions import standing
from deniable.report.words.verdict_words import aim, deciding, rarely
from deniable.results.audit_result import AuditResult, Diagnostics, EpsilonMeasured, ExposureSummary, Test
from deniable.results.compare_result import CompareResult, LevelResult, RegionRow
from deniable.results.shared import Ends, EpsilonBound, MeasuredLimits, Spread
from deniable.results.verdict_result import BoundsOnEpsilon, TprLimits, VerdictResult

_LEAST_P = 1e-12
"""Smaller p-values are told as below it: what is smaller, rounding decides."""


def scores(document: AuditResult) -> Table:
    """Promised, exact for the noise, measured: one row a score."""
    confidence = f"{at_least(100 * document.game.epsilon.lower_bound.confidence, 4)} % limits"
    name = aim(document)
    head = ("Score", name.lower(), "exact", "measured", confidence)
    return Table(f"{name}, exact, measured", head, tuple(score_rows(document)))


def score_rows(document: AuditResult) -> Iterator[tuple[str, ...]]:
    """Promised, exact, measured and its limits of each score: beliefs and shares in per cent, as in the sentences."""
    claimed, exact, measured = document.claimed, document.exact, document.game
    belief, advantage = measured.belief, measured.advantage
    yield _row("Membership advantage", claimed.advantage, exact.advantage, advantage.value, _limits(advantage))
    promised = "-" if claimed.belief is None else percent_as_given(claimed.belief)
    yield belief_limit(document), promised, allowed_share(exact.belief), share(belief.max), "-"
    often = belief.violation_interval
    yield (
        f"{belief_above(belief.bound)}: share of trainings",
        *map(allowed_share, may_exceed(document)),
        share(belief.violation_rate),
        f"{share(often.low)} to {share(often.high)}",
    )
    shown = f"proven: at least {proven(document)}"
    yield _row(f"Epsilon at delta {short(exact.delta)}", claimed.epsilon, exact.epsilon, None, shown)


def belief_limit(document: AuditResult) -> str:
    """The name of the belief: promised and exact are limits that may be exceeded, measured is the largest."""
    return f"Belief (limits: but for {rarely(document)}; measured: the largest)"


def may_exceed(document: AuditResult) -> tuple[float | None, float | None]:
    """How often the belief may be exceeded: as promised, if a belief was; exactly, where the noise just allows it."""
    claimed, exact = document.claimed.belief, document.exact
    kept = claimed is None or exact.belief > claimed - 1e-6
    return exact.belief_delta if claimed is not None else None, exact.belief_delta if kept else None


def belief_above(bound: float) -> str:
    """The name of the share of trainings whose belief exceeded `bound`."""
    shown = percent_at_most(bound)
    return "Belief above the one allowed" if bound >= 1 or shown == ALMOST_ALL else f"Belief above {shown}"


def proven(document: AuditResult) -> str:
    """The epsilon that an audit proves, for people: the largest of those that its verdict rests on, the watch's too."""
    watched, by = document.watched, deciding(document)
    bounds = [by] if by is not None else []
    bounds += [watched.epsilon] if watched is not None and watched.epsilon.valid else []
    values = [document.game.epsilon.lower_bound.value, *(bound.value for bound in bounds)]
    return "any number" if None in values else at_least(max(value or 0.0 for value in values))


def least_proven(least: float | None, claimed: float | None) -> str:
    """A lower bound, rounded down; with as many digits as it takes to stand above the claim that it refutes."""
    if least is None:
        return "beyond all bounds"
    return told_apart(least, claimed)[0] if claimed is not None and least > claimed else at_least(least)


def reach(bound: EpsilonBound, claimed: float | None = None) -> str:
    """What an attack shows of epsilon, from a limit rounded down to one rounded up."""
    if bound.value is None:
        return "any number"
    return f"{least_proven(bound.value, claimed)} to {'any number' if bound.upper is None else at_most(bound.upper)}"


def lower_bound(epsilon: BoundsOnEpsilon, claimed: float | None = None) -> str:
    """The epsilon that scores prove, for people."""
    value = epsilon.lower_bound.value
    return "any number" if value is None else least_proven(value, claimed)


def _row(name: str, promised: Any, exact: Any, found: Any, limits: str = "-") -> tuple[str, ...]:
    return name, figure(promised), allowed_figure(exact), figure(found), limits


def _limits(found: MeasuredLimits | Ends | TprLimits) -> str:
    return f"{figure(found.low)} to {figure(found.high)}"


def achieved_table(document: VerdictResult) -> Table:
    """What an attack's scores achieve, each with its limits."""
    measured = document.measured
    named: dict[str, MeasuredLimits | TprLimits] = {"Membership advantage": measured.advantage, "AUC": measured.auc}
    named |= {"Average precision": measured.average_precision}
    named |= {f"Members found (TPR) at FPR {as_given(row.fpr)}": row for row in measured.tpr}
    rows = tuple((name, figure(found.value), _limits(found)) for name, found in named.items())
    confidence = f"{100 * document.input.confidence:.4g} % limits"
    return Table("What the attack achieves", ("Score", "measured", confidence), rows)


def estimators(bounds: Iterable[EpsilonBound]) -> Table:
    """One row an estimator: what it shows, how sure, and whether its assumptions stand."""
    rows = tuple(
        (
            bound.name,
            ("any number" if bound.value is None else at_least(bound.value)) if bound.valid else "-",
            (at_most(bound.upper) if bound.upper is not None else "any") if bound.valid else "-",
            f"{bound.method}; {standing(bound)}",
        )
        for bound in bounds
    )
    head = ("Estimator", "proven lower bound", "most it could show", "how, and how sure")
    note = "The most that an estimator could show is no limit on the true epsilon: another attack may show more."
    return Table("Epsilon by every estimator", head, rows, note, wordy=True)


def estimates(epsilon: EpsilonMeasured) -> Table:
    """Epsilons that are read off the trainings and prove nothing."""
    named = {
        "from the local sensitivities": epsilon.sensitivity,
        "from the largest belief": epsilon.belief,
        "from the advantage, exact for a Gaussian": epsilon.advantage,
        "from the advantage, classic formula (Bernau et al. 2021)": epsilon.advantage_theorem_3,
    }
    rows = tuple((name, figure(value)) for name, value in named.items())
    return Table("Epsilon as others estimate it, without confidence", ("Estimate", "epsilon"), rows)


def diagnostics(found: Diagnostics) -> Table:
    """Every test of somebody else's training."""
    rows = tuple(
        (
            test.name,
            "not applicable" if not test.checked else "passed" if test.passed else "FAILED",
            _p_value(test),
            test.sentence or f"seen: {_plain(test.observed)}; expected: {_plain(test.expected)}",
        )
        for test in found.tests
    )
    note = f"A training as claimed fails any of them with probability at most {at_most(found.false_alarm_rate, 2)}."
    return Table("Diagnostics", ("Test", "result", "p-value", "what was found"), rows, note, wordy=True)


def _p_value(test: Test) -> str:
    if not test.checked:
        return "-"
    return f"< {_LEAST_P:.0e}" if test.p_value < _LEAST_P else f"{test.p_value:.2g}"


def _plain(value: Any) -> str:
    return figure(value) if isinstance(value, int | float) else str(value)


def exposed_table(found: ExposureSummary) -> Table:
    """The most exposed records."""
    rows = tuple(
        (
            f"#{one.record}",
            "not shown" if one.label is None else str(one.label),
            figure(one.change),
            figure(one.advantage),
            share(one.belief),
        )
        for one in found.most_exposed
    )
    head = ("Record", "label", "what it changes", "advantage over it", "belief about it")
    return Table("The most exposed records", head, rows, found.note)


def levels(document: CompareResult) -> Table:
    """A comparison's levels."""
    rows = tuple(tuple(_level(row)) for row in document.levels)
    head = ("Level", "epsilon", "accuracy", "attack's AP", "blind AP", "attack shows epsilon of at least", "phi")
    note = (
        f"Central epsilon: exact, at delta {short(document.delta)}, of the steps really taken; local: the sum "
        "over a record's values. ±: standard deviation of one repeat. AP: average precision, 0.5 is guessing; blind: "
        "without the model."
    )
    return Table("Every level", head, rows, note)


def _level(row: LevelResult) -> Iterator[str]:
    yield {"original": "no protection", "central": "central, ", "local": "local, "}[row.kind] + (
        "" if row.value is None else row.name
    )
    promised = row.epsilon
    yield "none" if promised is None else at_most(promised.value if promised.record is None else promised.record)
    yield from (_with_spread(found) for found in (row.test_accuracy, row.average_precision))
    yield f"{row.blind_average_precision:.3f}"
    lower = row.epsilon_lower_bound.value
    yield "-" if lower is None else at_least(lower)
    yield "-" if row.phi is None or row.value is None else f"{row.phi:.2f}"


def _with_spread(found: Spread) -> str:
    spread = "" if found.deviation is None else f" ± {found.deviation:.3f}"
    return f"{found.mean:.3f}{spread}"


def regions(rows: Iterable[RegionRow]) -> Table:
    """The region of privacy in figures."""
    shown = tuple(
        (
            figure(row.noise),
            "-" if row.lower is None else at_least(row.lower),
            at_most(row.exact),
            *("-" if at is None else at_most(at) for at in (row.named.rdp, row.named.advanced, row.named.naive)),
        )
        for row in rows
    )
    head = ("Noise", "attack: at least", "exact: at most", "Renyi DP", "advanced", "naive")
    return Table("The region of privacy", head, shown)


def origin(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Where a run comes from: names and values, what is missing left out."""
    rows = tuple((name, str(value)) for name, value in pairs if value not in (None, ""))
    return Table("Where it comes from", ("What", "value"), rows, wordy=True)
