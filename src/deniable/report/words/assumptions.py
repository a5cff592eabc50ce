"""Whether what a bound rests on stands, in words; for the page and for the command line."""

from __future__ import annotations

from deniable.results.shared import EpsilonBound

__all__ = ["standing"]


def standing(bound: EpsilonBound) -> str:
    """Whether an estimator's assumptions stand, and what its bound then is."""
    failed = [assumption.text for assumption in bound.assumptions if assumption.holds is False]
    if failed:
        return f"does not apply; it assumes what does not hold here: {failed[0]}"
    if bound.kind == "credible":
        return f"{100 * (bound.credible or 0):.4g} % credible, no confidence statement"
    trusted = [assumption.text for assumption in bound.assumptions if assumption.holds is None]
    return f"if {'; and if '.join(trusted)}" if trusted else f"{100 * (bound.confidence or 0):.4g} % confidence"
