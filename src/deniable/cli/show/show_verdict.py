"""The document of `deniable verdict` as text for people: the verdict first, then two tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import structs
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable.cli.common import print_parts
from deniable.evidence.bound import INDEPENDENT
from deniable.formatting import as_given, at_least, at_most, count_of, short
from deniable.report.report_tables import least_proven
from deniable.report.words import verdict_words
from deniable.report.words.amount_text import figure
from deniable.report.words.assumptions import standing
from deniable.results.shared import EpsilonBound, MeasuredLimits
from deniable.results.verdict_result import TprLimits, VerdictResult


def show(document: VerdictResult, *, every_estimator: bool = False) -> None:
    """Print `document` for a person, on standard output; `every_estimator` adds those that decide nothing."""
    print_parts(_parts(document, every_estimator))


def _parts(document: VerdictResult, every_estimator: bool) -> Iterator[RenderableType]:
    badge = verdict_words.badge(document.verdict, verdict_words.claimed_protection(document))
    yield Text(f"{badge}. {document.verdict_text}\n", style="bold")
    for caution in verdict_words.scored_cautions(document):
        yield Text(caution + "\n", style="bold")
    yield Text(_method_text(document) + "\n")
    yield Text(_epsilon_line(document) + "\n")
    if every_estimator:
        yield Padding(estimators(document.measured.epsilon.estimators), (0, 0, 1, 2), expand=False)
    yield Padding(_achieved_table(document), (0, 0, 1, 2), expand=False)
    for note in document.notes:
        yield Text(note, style="dim")


def _method_text(document: VerdictResult) -> str:
    given, measured = document.input, document.measured
    rule = f"threshold {given.threshold:g} fixed in advance" if given.threshold is not None else f"rule {given.rule}"
    at_thresholds = measured.epsilon.lower_bound.rule == given.rule and given.rows_from != "one-run"
    how = f"{given.method} ({rule})" if at_thresholds else given.method
    rows = {"one-run": "canaries of one training", "trainings": "a training each"}
    taken = rows.get(given.rows_from or "", "taken for a training each")
    members = count_of(measured.members, "score")
    return f"{members} of members and {measured.others:,} of others ({taken}), examined by {how}."


def _epsilon_line(document: VerdictResult) -> str:
    """The one line about epsilon: claimed, exact where the noise is known, proven, and what that assumes."""
    given, bound = document.input, document.measured.epsilon.lower_bound
    exact = document.exact.epsilon if document.exact else None
    parts = [f"claimed {as_given(given.claimed_epsilon)}"]
    parts += [f"exact {at_most(exact)} (of the claimed noise)"] if exact is not None else []
    parts += [
        f"proven lower bound {least_proven(bound.value, given.claimed_epsilon)}"
        if bound.valid
        else "no proven lower bound"
    ]
    sure = f"{100 * given.confidence:.4g} % confidence"
    trusted = [one.text for one in bound.assumptions if one.holds is None]
    rests = f"{sure}, if {'; and if '.join(trusted)}" if trusted else sure
    return f"Epsilon at delta {short(given.delta)}: {', '.join(parts)}" + (f" ({rests})." if bound.valid else ".")


HEADINGS = (
    ("Estimator", "left"),
    ("proven lower bound", "right"),
    ("most this estimator could show (no limit on the true epsilon)", "right"),
    ("", "left"),
)


def estimators(bounds: Sequence[EpsilonBound]) -> Table:
    """One row an estimator: what it shows, how sure, and whether its assumptions stand."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in HEADINGS:
        table.add_column(heading, justify=justify, max_width=24 if justify == "right" else None)  # type: ignore[arg-type]
    for bound in bounds:
        low = "-" if not bound.valid else _least(bound.value)
        high = "-" if not bound.valid else _most(bound.upper)
        table.add_row(bound.name, low, high, standing(_without_shared(bound)))
    return table


def _without_shared(bound: EpsilonBound) -> EpsilonBound:
    """The bound without what all of them assume, which is said once."""
    rest = tuple(one for one in bound.assumptions if one.text != INDEPENDENT.text)
    return structs.replace(bound, assumptions=rest)


def _achieved_table(document: VerdictResult) -> Table:
    measured = document.measured
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("What the attack achieves")
    table.add_column("measured", justify="right")
    table.add_column(f"{100 * document.input.confidence:.4g} % limits", justify="right")
    where = "" if document.input.threshold is not None else " at the best threshold"
    rows: dict[str, MeasuredLimits | TprLimits] = {
        f"Membership advantage{where}": measured.advantage,
        "AUC": measured.auc,
        "Average precision": measured.average_precision,
        **{f"TPR at FPR {as_given(row.fpr)}": row for row in measured.tpr},
    }
    for name, found in rows.items():
        table.add_row(name, figure(found.value), f"{figure(found.low)} to {figure(found.high)}")
    return table


def _least(value: float | None) -> str:
    return "beyond all bounds" if value is None else at_least(value)


def _most(value: float | None) -> str:
    return "no limit" if value is None else at_most(value)
