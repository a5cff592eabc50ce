"""A privacy card: what a release promises, for a registry of deployments, for a model card, or to read.

The registry's fields follow the tiers of the Differential Privacy Deployments Registry (Nanayakkara 2025): who and what
for; kind of differential privacy, unit, loss, deployment; accounting and implementation. What a result does not know
stays null, for people to fill in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, json

from deniable import __version__
from deniable.answers import sentences
from deniable.formatting import at_most, percent_at_most
from deniable.results import AuditResult, ExplainResult, Result
from deniable.results.base import encode
from deniable.results.explain_result import ChooseResult
from deniable.results.shared import ReleaseScores

__all__ = ["FORMATS", "write_card"]

_UNITS = {
    "add-remove": "presence or absence of one record",
    "replace": "one record exchanged for another",
    "zero-out": "content of one record",
}


def write_card(result: Result, form: str = "markdown") -> str:
    """The card of an explanation, a choice or an audit; `form` is one of `FORMATS`."""
    if not isinstance(result, ExplainResult | AuditResult):
        raise ValueError(f"a card needs a result of explain, choose or audit, got one of {type(result).kind}")
    return FORMATS[form](result)


Carded = ExplainResult | AuditResult


def _scores(result: Carded) -> ReleaseScores:
    return result.exact if isinstance(result, AuditResult) else result.scores


def _unit(result: Carded) -> str:
    records = getattr(result.input, "records_per_person", None) or 1
    unit = _UNITS[result.input.adjacency]
    return unit if records == 1 else f"{unit}, for all {records} records of one person"


def _noise(result: Carded) -> float | None:
    return result.noise if isinstance(result, ChooseResult) else result.input.noise


def _registry(result: Carded) -> str:
    scores, given = _scores(result), result.input
    local = isinstance(result, ExplainResult) and result.input.is_response
    card: dict[str, Any] = {
        "schema": "deniable/card/1",
        "tier_1": {"data_curator": None, "intended_use": None, "data_product": None, "publication_date": None},
        "tier_2": {
            "dp_flavor": "approximate differential privacy" if scores.delta else "pure differential privacy",
            "privacy_unit": _unit(result),
            "privacy_loss": {"epsilon": scores.epsilon, "delta": scores.delta, "mu": _mu(scores)},
            "deployment_model": "local" if local else "central",
        },
        "tier_3": {
            "neighbouring_data_sets": str(given.adjacency),
            "accounting": {"method": getattr(result, "method", "exact"), "advantage": scores.advantage},
            "belief": {"at_most": scores.belief, "from": scores.prior, "except_with_probability": scores.belief_delta},
            "success_at_baseline": [{"baseline": at.baseline, "success": at.success} for at in scores.success],
            "mechanism": {"noise_multiplier": _noise(result), "rate": given.rate, "steps": given.steps},
            "audit_verdict": result.verdict if isinstance(result, AuditResult) else None,
            "implementation": {"software": f"deniable {__version__}", "side_channels": None, "code": None},
        },
    }
    return json.format(encode(card), indent=2).decode()


def _mu(scores: ReleaseScores) -> float | None:
    return None if scores.gaussian is UNSET else scores.gaussian.mu


def _lines(result: Carded) -> list[tuple[str, str]]:
    scores = _scores(result)
    epsilon = "infinite" if scores.epsilon is None else f"at most {at_most(scores.epsilon)}"
    lines = [
        ("Unit of privacy", _unit(result)),
        ("Epsilon", f"{epsilon} at delta {scores.delta:g}"),
        (
            "How sure an observer becomes",
            f"at most {percent_at_most(scores.belief)} from {percent_at_most(scores.prior)}, except with probability "
            f"{scores.belief_delta:g}",
        ),
        ("Advantage of any attack on membership", f"at most {percent_at_most(scores.advantage)}"),
        *(
            ("Success of singling out, re-identification, inference, reconstruction", _success(at.baseline, at.success))
            for at in scores.success
        ),
    ]
    if isinstance(result, AuditResult):
        lines.append(("Audit", f"{result.verdict}: {result.verdict_text}"))
    else:
        lines.append(("Assumptions", sentences.setting(result)))
    return [*lines, ("Computed with", f"deniable {__version__}, rounded to the safe side")]


def _success(baseline: float, success: float) -> str:
    return f"at most {percent_at_most(success)}, where {baseline:g} is reached without the release"


def _markdown(result: Carded) -> str:
    rows = "\n".join(f"| {label} | {_cell(text)} |" for label, text in _lines(result))
    return f"## Privacy\n\n| | |\n|---|---|\n{rows}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _huggingface(result: Carded) -> str:
    """Metadata in YAML, which JSON texts are part of, and the table below it."""
    scores = _scores(result)
    found = {"epsilon": scores.epsilon, "delta": scores.delta, "unit": _unit(result), "advantage": scores.advantage}
    block = "\n".join(f"  {name}: {encode(value).decode()}" for name, value in found.items())
    return f"---\ntags:\n- differential-privacy\ndifferential_privacy:\n{block}\n---\n\n{_markdown(result)}"


FORMATS: dict[str, Callable[[Carded], str]] = {
    "markdown": _markdown,
    "huggingface": _huggingface,
    "registry": _registry,
}
"""How a card is written, by name."""
