"""A privacy card: what a release promises, for a registry of deployments, for a model card, or to read.

The registry's record has the fields of the Differential Privacy Deployments Registry (OpenDP; Nanayakkara 2025), whose
schema admits no others: it is a draft of tier 3 as YAML reads it. What a result does not know, such as who curates the
data and what for, is empty, for people to fill in; figures that the schema has no field for stand in its notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import UNSET, json

from deniable import __version__
from deniable.answers import sentences
from deniable.answers.strength import from_even, weakness
from deniable.formatting import ALMOST_ALL, as_given, at_most, chance, percent_at_most, short
from deniable.results import AuditResult, ExplainResult, Result
from deniable.results.base import encode
from deniable.results.shared import ReleaseScores

_UNITS = {
    "add-remove": "presence or absence of one record",
    "replace": "one record exchanged for another",
    "zero-out": "content of one record",
}


_ANSWERS = "all answers of one person, before they are collected (local)"
_PRODUCTS = {True: "Machine learning model", False: "Summary statistics"}
_NO_DATE = "1900-01-01"  # as in the registry's template: a date is needed, and none is known
_OWN_FIELDS = ("Unit of privacy", "Epsilon", "Computed with")


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
    unit = _ANSWERS if _is_local(result) else _UNITS[result.input.adjacency]
    return unit if records == 1 else f"{unit}, for all {records} records of one person"


def _why_broken(result: Carded) -> str:
    """Why the figures of a claim must not be told as a release's own; empty where they may."""
    if not isinstance(result, AuditResult):
        return ""
    if result.verdict == "violated":
        return "refuted by an audit"
    return "" if result.input.sensitivity == "global" else "none: noise was fitted to this data set, as a test"


def _registry(result: Carded) -> str:
    """A draft for deployments/NAME.yaml of the registry: JSON is YAML."""
    card: dict[str, Any] = {
        "url_slug": "",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": "",
                "data_curators": [""],
                "intended_use": "",
                "data_product_type": _PRODUCTS[_is_training(result)],
                "data_product_region": "",
                "description": "",
                "publication_date": _NO_DATE,
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if _scores(result).delta else "Pure DP",
                "data_domain": "",
                "unprotected_quantities": "",
            },
            "privacy_loss": _privacy_loss(result),
            "deployment_model": {"model_name": "Local" if _is_local(result) else "Central", "actors": ""},
            "accounting": {"post_processing": "", "composition": _composition(result)},
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "",
                "mechanisms": f"{_mechanism(result)} Computed with deniable {__version__}.",
                "justification": "",
            },
            "administrative": {"sources": "", "notes": _notes(result), "registry_authors": [""]},
        },
    }
    return json.format(encode(card), indent=2).decode()


def _privacy_loss(result: Carded) -> dict[str, Any]:
    """What is infinite has no number in the schema and is told in words, as is what an audit refutes."""
    scores = _scores(result)
    broken = _why_broken(result)
    unknown = scores.epsilon is None or broken
    return {
        "privacy_unit": _unit(result),
        "privacy_unit_details": f"Neighbouring data sets: {_neighbours(result)}.",
        "privacy_parameters": {} if unknown else {"epsilon": scores.epsilon, "delta": scores.delta},
        "privacy_parameters_details": broken or ("Epsilon is infinite." if unknown else "Rounded up."),
    }


def _neighbours(result: Carded) -> str:
    if _is_local(result):
        return "any two records of one person"
    return f"{result.input.adjacency} ({_UNITS[result.input.adjacency]})"


def _is_local(result: Carded) -> bool:
    return isinstance(result, ExplainResult) and result.input.is_response


def _is_training(result: Carded) -> bool:
    return isinstance(result, AuditResult) or result.input.is_training


def _composition(result: Carded) -> str:
    steps, method = result.input.steps, getattr(result, "method", "exact privacy loss")
    return f"All {as_given(steps)} steps are composed: {method}." if steps and steps > 1 else f"{method}."


def _mechanism(result: Carded) -> str:
    return _audited_mechanism(result) if isinstance(result, AuditResult) else sentences.mechanism_sentence(result)


def _audited_mechanism(result: AuditResult) -> str:
    given = result.input
    return (
        f"DP-SGD: Gaussian noise of {as_given(given.noise)} x the {given.sensitivity} sensitivity in each of "
        f"{as_given(given.steps)} steps, Poisson samples at rate {as_given(given.rate)}."
    )


def _notes(result: Carded) -> str:
    """Every figure of the card that the schema has no field for, as Markdown."""
    told = [f"- {label}: {text}" for label, text in _lines(result) if label not in _OWN_FIELDS]
    fitted = _scores(result).gaussian
    if fitted is not UNSET and not _why_broken(result):
        rates = f"for false alarms from {as_given(fitted.least_rate)} on"
        told.append(f"- Gaussian DP: mu at most {at_most(fitted.mu)} {rates}, regret {at_most(fitted.regret)}")
    return "\n".join(told)


def _lines(result: Carded) -> list[tuple[str, str]]:
    """Label and text; of a claim that does not hold, no figure but the claim's own."""
    scores = _scores(result)
    epsilon = "infinite" if scores.epsilon is None else at_most(scores.epsilon)
    unit, made = (
        ("Unit of privacy", _unit(result)),
        ("Computed with", f"deniable {__version__}, rounded to the safe side"),
    )
    if isinstance(result, AuditResult):
        audit = ("Audit", f"{result.verdict}: {result.verdict_text}")
        if broken := _why_broken(result):
            was = "was claimed" if result.input.sensitivity == "global" else "was tested"
            return [
                *_weakness(result),
                audit,
                unit,
                ("Epsilon", f"{broken}; {epsilon} at delta {short(scores.delta)} {was}"),
                made,
            ]
        return [unit, *_weakness(result), *_figures(scores, epsilon), audit, made]
    assumed = f"{sentences.caution(result)} {sentences.setting(result)}".strip()
    return [unit, *_weakness(result), *_figures(scores, epsilon), ("Assumptions", assumed), made]


def _figures(scores: ReleaseScores, epsilon: str) -> Iterator[tuple[str, str]]:
    most = epsilon if scores.epsilon is None else f"at most {epsilon}"
    yield "Epsilon", f"{most} at delta {short(scores.delta)}"
    yield "How sure an observer becomes", _belief(scores)
    yield "Advantage of any attack on membership", f"at most {percent_at_most(scores.advantage)}"
    for at in scores.success:
        yield "Success of singling out, re-identification, inference, reconstruction", _success(at.baseline, at.success)


def _belief(scores: ReleaseScores) -> str:
    start, rare = f"from {percent_at_most(scores.prior)}", scores.belief_delta
    if scores.belief >= 1:
        aside = f", also if cases with a chance of {chance(rare)} are left aside" if rare else ""
        return f"possibly certain, {start}{aside}"
    shown = percent_at_most(scores.belief)
    most = f"possibly almost certain ({shown})" if shown == ALMOST_ALL else f"at most {shown}"
    return f"{most}, {start}; the chance of more is at most {chance(rare)}" if rare else f"{most}, {start}"


def _weakness(result: Carded) -> Iterator[tuple[str, str]]:
    """Where it protects little, or nobody, this is said."""
    scores = _scores(result)
    if isinstance(result, AuditResult) and result.input.sensitivity != "global":
        yield "Warning", "test mode: a model trained this way is NOT private"
    elif found := weakness(scores.advantage, from_even(scores.belief, scores.prior)):
        yield "Warning", f"this is {found} protection"


def _success(baseline: float, success: float) -> str:
    return f"at most {percent_at_most(success)}, where {chance(baseline)} is reached without the release"


def _markdown(result: Carded) -> str:
    rows = "\n".join(f"| {label} | {_cell(text)} |" for label, text in _lines(result))
    return f"## Privacy\n\n| | |\n|---|---|\n{rows}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _huggingface(result: Carded) -> str:
    """Metadata in YAML, which JSON texts are part of, and the table below it."""
    scores = _scores(result)
    held = not _why_broken(result)
    found = {
        "epsilon": scores.epsilon if held else None,
        "delta": scores.delta,
        "unit": _unit(result),
        "advantage": scores.advantage if held else None,
    }
    block = "\n".join(f"  {name}: {encode(value).decode()}" for name, value in found.items())
    return f"---\ntags:\n- differential-privacy\ndifferential_privacy:\n{block}\n---\n\n{_markdown(result)}"


FORMATS: dict[str, Callable[[Carded], str]] = {
    "markdown": _markdown,
    "huggingface": _huggingface,
    "registry": _registry,
}
"""How a card is written, by name."""
