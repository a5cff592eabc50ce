"""An answer's figures as people read them: labels and rounded texts, for the terminal and for the planner's page."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from deniable.answers.choose import LEAST_NOISE
from deniable.answers.further_figures import POOR_FIT
from deniable.answers.sentences import chosen_noise, delta_as_given
from deniable.formatting import as_given, at_most, chance, percent_at_most
from deniable.promises import SCORES, Epsilon, promised_bound
from deniable.results.explain_result import Analysis, ChooseResult, Demand, ExplainResult

_NAMES = {
    "exact": "exact",
    "naive": "naive composition",
    "advanced": "advanced composition",
    "zcdp": "zCDP",
    "rdp": "RDP",
    "kl": "KL",
    "classic": "classic formula",
}
_BOUND = "this bound"
_SAME_NOISE = 1e-6
"""A ratio this close to 1 is the precision of the searches."""


def figures(result: ExplainResult) -> dict[str, str]:
    """The figures that stand out: the noise that was chosen, and the scores that have one value."""
    noise, given = {"noise": chosen_noise(result)} if isinstance(result, ChooseResult) else {}, result.input
    single = {name: getattr(result.scores, name) for name, score in SCORES.items() if score.list_parameter() is None}
    known = {name: promised_bound(given, name) for name in single}
    return noise | {name: SCORES[name].format_score(value, known[name]) for name, value in single.items()}


def score_rows(result: ExplainResult) -> Iterator[tuple[str, str]]:
    """What the strongest attack can reach: a label, and at most what."""
    scores, delta = result.scores, delta_as_given(result)
    for name, score in SCORES.items():
        rows = [scores] if score.list_parameter() is None else getattr(scores, name)
        for row in rows:
            at = {parameter: getattr(row, parameter) for parameter in score.parameter_names()}
            if name == "belief":
                at["delta"] = scores.belief_delta
            known = promised_bound(result.input, name, at)
            if name == "belief" and scores.belief >= 1:
                at["delta"] = 0.0  # there is no chance of more than certainty
            yield score.row(at, delta), score.format_score(getattr(row, name), known)
        if name == "belief":
            yield from _other_beliefs(result)
    yield from _of_risks(result)


def _of_risks(result: ExplainResult) -> Iterator[tuple[str, str]]:
    """What the release adds to singling out, and the tightest Gaussian DP where one fits."""
    for found in result.scores.singling_out:
        fits = f"by what fits {chance(found.weight)}"
        yield f"Added to singling out a person {fits}", percent_at_most(found.targeted)
        yield f"Added to singling out anybody of {as_given(found.people)} {fits}", percent_at_most(found.untargeted)
    fit = result.scores.gaussian
    if fit is not UNSET and fit.regret <= POOR_FIT:
        yield f"Mu of the tightest Gaussian DP (false alarms from {as_given(fit.least_rate)} on)", at_most(fit.mu)


def demand_rows(result: ChooseResult) -> Iterator[dict[str, str]]:
    """The noise that each analysis demands for the promise, the least first; "-" where it has no answer.

    Where no weaker one has an answer, there is nothing to compare: `reasons` says why.
    """
    alone = all(method.noise is None for method in result.methods if method.name != "exact")
    for method in sorted(result.methods[:1] if alone else result.methods, key=_price):
        yield {
            "name": method.name,
            "label": _label(result, method.name) + _mark(method),
            "noise": "-" if method.noise is None else _noise(method.noise),
            "ratio": "-" if method.noise is None else _ratio(method.noise, result.noise),
        }


def _label(result: ExplainResult, name: str) -> str:
    """Of samplings of which only bounds are known, no value is called exact."""
    return _BOUND if name == "exact" and result.scores.epsilon_at_least is not UNSET else _NAMES[name]


def _noise(noise: float) -> str:
    """The search begins at the least noise: what keeps the promise there may do so with less."""
    return f"<= {at_most(noise, 5)}" if _is_floor(noise) else at_most(noise, 5)


def _ratio(noise: float, least: float) -> str:
    """To three digits, the nearest: a comparison, not a bound; only 1 is told as 1, and nothing beside the least."""
    if _is_floor(least):
        return "-"
    value = noise / least
    shown = float(f"{value:.3g}")
    return "just over 1" if shown == 1 and value > 1 + _SAME_NOISE else as_given(shown)


def _is_floor(noise: float) -> bool:
    return noise <= LEAST_NOISE * (1 + 1e-9)


def _price(method: Demand) -> tuple[bool, float]:
    """Exact comes first, also where another is as good within the precision of its search."""
    return method.name != "exact", method.noise or float("inf")


def analysis_rows(result: ExplainResult) -> Iterator[dict[str, str]]:
    """What weaker analyses say of the same release, where more than a bare guarantee is known."""
    scores = result.scores
    exact = {"epsilon": Epsilon.format_score(scores.epsilon), "advantage": percent_at_most(scores.advantage)}
    yield {"name": "exact", "label": _label(result, "exact"), **exact}
    for name, bound in result.bounds.items():
        if name in _NAMES and bound.why is None:
            epsilon = "" if bound.epsilon is UNSET else Epsilon.format_score(bound.epsilon)
            advantage = "" if bound.advantage is UNSET else percent_at_most(bound.advantage or 0.0)
            yield {"name": name, "label": _NAMES[name] + _mark(bound), "epsilon": epsilon, "advantage": advantage}


def reasons(result: ExplainResult) -> Iterator[str]:
    """Why analyses demand nothing that could be shown, each reason once."""
    names: dict[str, list[str]] = {}
    for method in result.methods if isinstance(result, ChooseResult) else ():
        if method.why is not None:
            names.setdefault(method.why.removeprefix(f"{method.name}: "), []).append(_NAMES[method.name])
    for why, analyses in names.items():
        yield f"{', '.join(analyses)}: {why}."


def is_mechanism(result: ExplainResult) -> bool:
    """Whether more is known than a bare guarantee."""
    return isinstance(result, ChooseResult) or not result.input.is_bare


def has_analyses(result: ExplainResult) -> bool:
    """Whether a weaker analysis says something of the release."""
    return is_mechanism(result) and len(list(analysis_rows(result))) > 1


def _other_beliefs(result: ExplainResult) -> Iterator[tuple[str, str]]:
    """The belief that textbooks read off epsilon and delta, where it is another: it may be too low."""
    read_off = result.bounds["theorem_2"].belief
    if read_off is not UNSET and percent_at_most(read_off) != percent_at_most(result.scores.belief):
        yield "  textbook reading of epsilon and delta: may be too low", percent_at_most(read_off)


def _mark(entry: Analysis | Demand) -> str:
    return " (not proved)" if entry.proved is False else ""
