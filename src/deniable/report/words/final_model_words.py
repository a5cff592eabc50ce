"""What hiding the steps buys, in words and rows; for the page and for the command line."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.formatting import at_least, at_most, short
from deniable.report.words.amount_text import figure, share
from deniable.results.audit_result import AuditResult, FinalModel, FinalObserver

NAMES = {
    "crafted": "Crafted gradients, final weights",
    "worst-weights": "Worst initial weights, final loss",
    "usual-weights": "Usual initial weights, final loss",
}
"""What each observer has chosen, and what it sees."""
FINAL_NOTE = (
    "The heuristic is no bound: it takes losses for linear, and some trainings give more away. Each measured row rests "
    "on trainings of its own; limits of a column hold for all rows together."
)
SLIGHT = 0.1
"""Of the bound: less than this hidden is told as nearly nothing."""


def final_head(found: FinalModel) -> tuple[str, str, str]:
    """Over the columns of `final_rows`."""
    return "Only the final model is seen", "advantage", f"epsilon at {short(found.delta)}"


def final_rows(document: AuditResult, found: FinalModel) -> Iterator[tuple[str, str, str]]:
    """The bound that holds, the heuristic, and what each observer reached: advantage, epsilon."""
    exact = document.exact
    bound = "infinite" if exact.epsilon is None else f"<= {at_most(exact.epsilon)}"
    yield "Bound for all steps; holds here, too", f"<= {at_most(exact.advantage)}", bound
    linear = found.linear
    yield "Heuristic: if losses were linear", figure(linear.advantage), figure(linear.epsilon)
    for one in found.observers:
        limits = f"{figure(one.advantage.value)} ({figure(one.advantage.low)} to {figure(one.advantage.high)})"
        least = one.epsilon_lower_bound.value
        yield NAMES.get(one.name, one.name), limits, "-" if least is None else f">= {at_least(least)}"


def final_sentences(document: AuditResult, found: FinalModel) -> str:
    """What the observers of the final model reached of what the bound allows, and what follows."""
    strongest = max(found.observers, key=lambda one: one.advantage.low)
    shown, allowed = strongest.advantage, document.exact.advantage
    told = (
        f"Of an advantage of {at_most(allowed)} that all steps allow, the strongest observer of the final model alone "
        f"({NAMES.get(strongest.name, strongest.name).split(',')[0].lower()}) reaches {figure(shown.value)}, limits "
        f"{figure(shown.low)} to {figure(shown.high)}{_mu_text(strongest, found)}: "
    )
    return told + _conclusion(document, found, strongest)


def _conclusion(document: AuditResult, found: FinalModel, strongest: FinalObserver) -> str:
    low, high = _share_reached(document, found, strongest)
    of = "of it" if strongest.mu is None or found.mu is None else "of that mu"
    if _exceeds(document, found):
        return "more than the bound. The training does not have the noise that it claims."
    if low == 0:
        return f"these {strongest.trials:,} trainings cannot tell it from guessing. More may."
    if low >= 1 - SLIGHT:
        return f"at least {share(min(low, 1.0))} {of}. In the worst case, hiding the steps buys nearly nothing."
    if high < 1:
        return (
            f"between {share(low)} and {share(high)} {of}. This observer gains less from the final model than all "
            "steps would allow; a stronger one may gain more."
        )
    return (
        f"at least {share(low)} {of}, and perhaps all. What hiding the steps buys cannot be told closer from "
        f"{strongest.trials:,} trainings; count on nothing."
    )


def _share_reached(document: AuditResult, found: FinalModel, one: FinalObserver) -> tuple[float, float]:
    """Which share of the bound an observer reaches, at least and at most: of mu where it has one, it is sharper."""
    if one.mu is not None and found.mu is not None:
        return one.mu.low / found.mu, one.mu.high / found.mu
    return one.advantage.low / document.exact.advantage, one.advantage.high / document.exact.advantage


def _exceeds(document: AuditResult, found: FinalModel) -> bool:
    """Whether a bound that holds for all observers together lies above what is proven."""
    shown, most = (one.epsilon_lower_bound.value for one in found.observers), document.exact.epsilon
    return most is not None and any(least is None or least > most for least in shown)


def _mu_text(one: FinalObserver, found: FinalModel) -> str:
    if one.mu is None or found.mu is None:
        return ""
    return f" (mu {figure(one.mu.value)}, limits {figure(one.mu.low)} to {figure(one.mu.high)}, of {figure(found.mu)})"
