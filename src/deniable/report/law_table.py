"""What regulators ask, and which figure answers it: a mapping, never a promise."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.answers import sentences
from deniable.formatting import at_most, chance, percent_at_most
from deniable.results.explain_result import ExplainResult

__all__ = ["LAW_WORDS", "law_rows"]

LAW_WORDS = (
    "A mapping, not a promise: which risk is small enough, and whether a release is anonymous, is decided by people "
    "and by law. The figures hold for the release as it is described above."
)


def law_rows(result: ExplainResult) -> Iterator[tuple[str, str, str]]:
    """A document, what it asks, and the figure that answers it."""
    scores = result.scores
    belief = f"belief at most {percent_at_most(scores.belief)} (from {percent_at_most(scores.prior)})"
    epsilon = "no finite epsilon" if scores.epsilon is None else f"epsilon at most {at_most(scores.epsilon)}"
    yield "WP216", "Singling out: isolate a person by a description that fits a share w", _at_baselines(result)
    yield "WP216", "Linkability: which of N candidates is the person", _at_baselines(result)
    yield "WP216", "Inference of an attribute, beyond the guess without the release", _gains(result)
    yield (
        "EDPB opinion 28/2024",
        "Extraction and queries: likelihood insignificant for any data subject, by all means reasonably likely",
        f"{belief}, for every record; evidence is an audit's verdict, which this computation is not",
    )
    yield (
        "NIST SP 800-226",
        "Epsilon, unit of privacy, correctness, trust model, side channels, data collection",
        f"{epsilon} at delta {sentences.delta_as_given(result)}; unit and sampling: {sentences.setting(result)}",
    )
    yield (
        "ISO/IEC 27559:2022",
        "Quantify identifiability; maximum or average risk; adversarial testing",
        f"advantage of any attack at most {percent_at_most(scores.advantage)}, a maximum over all records",
    )


def _at_baselines(result: ExplainResult) -> str:
    told = [f"{percent_at_most(at.success)} from {chance(at.baseline)}" for at in result.scores.success]
    return f"success at most {', '.join(told)}" if told else "not asked: name w or N with --baseline or --candidates"


def _gains(result: ExplainResult) -> str:
    most = f"at most {percent_at_most(result.scores.advantage)} more than any guess"
    told = [f"{percent_at_most(at.success - at.baseline)} from {chance(at.baseline)}" for at in result.scores.success]
    return f"{most}; {', '.join(told)}" if told else most
