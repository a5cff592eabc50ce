"""What bounds and audits rest on, in words; for the page and for the command line."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.report.words import verdict_words
from deniable.report.words.amount_text import figure
from deniable.results.audit_result import AuditInput, AuditResult
from deniable.results.shared import EpsilonBound

AS_CLAIMED = "As claimed: "
"""Before what is known of somebody else's training by its claim alone."""
ADJACENCIES = {
    "replace": "D and D' are equally large and differ in one record, which is exchanged for another (replace, or "
    "bounded). One person's influence is then at most twice the clipping norm C.",
    "add-remove": "D' is D without one record (add-remove, or unbounded). One person's influence is then at most the "
    "clipping norm C.",
    "zero-out": "D' is D with one record blanked out (zero-out). One person's influence is then at most the clipping "
    "norm C.",
}


def standing(bound: EpsilonBound) -> str:
    """Whether an estimator's assumptions stand, and what its bound then is."""
    failed = [assumption.text for assumption in bound.assumptions if assumption.holds is False]
    if failed:
        return f"does not apply; it assumes what does not hold here: {failed[0]}"
    if bound.kind == "credible":
        return f"{100 * (bound.credible or 0):.4g} % credible, no confidence statement"
    trusted = [assumption.text for assumption in bound.assumptions if assumption.holds is None]
    return f"if {'; and if '.join(trusted)}" if trusted else f"{100 * (bound.confidence or 0):.4g} % confidence"


def audit_assumptions(document: AuditResult) -> Iterator[tuple[str, str]]:
    """(subject, plain words) of an audit."""
    given = document.input
    yield "Neighbours", ADJACENCIES[given.adjacency]
    yield "The observer", _observer(document)
    claimed = "" if document.diagnostics is None else AS_CLAIMED
    yield "Sampling", f"{claimed}{_sampling(given)}"
    yield (
        "The noise",
        f"{claimed}Gaussian, fresh in every step, {figure(given.noise)} times the {given.sensitivity} sensitivity, on "
        f"the sum of gradients that were clipped, each by itself, to norm C = {figure(given.clip)}.",
    )
    if verdict_words.is_test_mode(document):
        yield (
            "Local sensitivity",
            f"{verdict_words.TEST_MODE} (This has nothing to do with local differential privacy.)",
        )
    yield "What a verdict is not", _limits_of_verdict(document)
    yield (
        "Left out",
        "Floating-point attacks on the noise, side channels such as timing, and everything that is done with the data "
        "besides this training.",
    )


def _observer(document: AuditResult) -> str:
    """Who guesses; of somebody else's training it knows the claimed noise alone, and its belief may be too small."""
    tossed = "A fair coin decided before every training whether D or D' was used."
    if document.diagnostics is None:
        return (
            "The strongest there can be: it knows D, D', the model and the noise, sees the noisy gradient of every "
            f"step, and starts at 50 %. {tossed} Any real attacker knows less."
        )
    return (
        "It knows D, D' and the model, sees the noisy gradient of every step, and starts at 50 %. Its beliefs are "
        f"computed as if the noise were as claimed: one who knows that it is not may be surer. {tossed}"
    )


def _limits_of_verdict(document: AuditResult) -> str:
    sure = document.confidence
    if sure is None and document.measured.trials and document.watched is None and document.diagnostics is None:
        sure = document.game.epsilon.lower_bound.confidence
    wrong = "" if sure is None else f' "Violated" is wrong in at most {100 * (1 - sure):.3g} % of cases.'
    return (
        '"Consistent" does not prove privacy: one pair of data sets (the most different that was found) and one model '
        f"were tested.{wrong}"
    )


def _sampling(given: AuditInput) -> str:
    if given.rate < 1:
        return (
            f"Every record joins {_each_step(given.steps)} with probability {figure(given.rate)}, "
            "independently (Poisson). For shuffled batches of fixed size this does not hold."
        )
    return f"None: every record takes part in {_each_step(given.steps)}, so sampling hides nobody."


def _each_step(steps: int) -> str:
    return "the only step" if steps == 1 else f"each of the {steps:,} steps"
