"""A document's figures as people read them: labels and rounded texts, for the terminal and for the planner's page."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.answers.explain import Document
from deniable.answers.sentences import chosen, delta_as_given
from deniable.formatting import as_given, at_most, percent_at_most
from deniable.promises import SCORES, Epsilon, promised_bound

__all__ = ["analysis_rows", "demand_rows", "figures", "is_mechanism", "reasons", "score_rows"]

_NAMES = {
    "exact": "exact",
    "naive": "naive composition",
    "advanced": "advanced composition",
    "zcdp": "zCDP",
    "rdp": "RDP",
    "kl": "KL",
    "classic": "classic formula",
}


def figures(document: Document) -> dict[str, str]:
    """The figures that stand out."""
    noise, given = {"noise": chosen(document)} if "noise" in document else {}, document["input"]
    shown = _single(document)
    return noise | {name: SCORES[name].format_score(value, promised_bound(given, name)) for name, value in shown}


def _single(document: Document) -> Iterator[tuple[str, float | None]]:
    """The scores that have one value."""
    scores = document["scores"]
    yield from ((name, scores[name]) for name in SCORES if name in scores and not isinstance(scores[name], list))


def score_rows(document: Document) -> Iterator[tuple[str, str]]:
    """What the strongest attack can reach: a label, and at most what."""
    scores, delta = document["scores"], delta_as_given(document)
    for name, score in SCORES.items():
        found = scores.get(name, [])
        own_delta = {"delta": scores.get(f"{name}_delta", scores["delta"])}
        listed = found if isinstance(found, list) else [scores | own_delta]
        for row in listed:
            at = {parameter: row[parameter] for parameter in score.parameter_names()}
            known = promised_bound(document["input"], name, **at)
            yield score.row(at, delta), score.format_score(row[name], known)
        if name == "belief":
            yield from _other_beliefs(document)


def demand_rows(document: Document) -> Iterator[dict[str, str]]:
    """The noise that each analysis demands for the promise, the least first; "-" where it has no answer."""
    for method in sorted(document["methods"], key=_price):
        noise = method["noise"]
        yield {
            "name": method["name"],
            "label": _NAMES[method["name"]] + _mark(method),
            "noise": "-" if noise is None else at_most(noise, 5),
            "ratio": "-" if noise is None else _ratio(noise / document["noise"]),
        }


def _ratio(value: float) -> str:
    """To three digits, the nearest: a comparison, not a bound."""
    return as_given(float(f"{value:.3g}"))


def _price(method: Document) -> tuple[bool, float]:
    """Exact comes first, also where another is as good within the precision of its search."""
    return method["name"] != "exact", method["noise"] or float("inf")


def analysis_rows(document: Document) -> Iterator[dict[str, str]]:
    """What weaker analyses say of the same release, where more than a bare guarantee is known."""
    scores = document["scores"]
    exact = {"epsilon": Epsilon.format_score(scores["epsilon"]), "advantage": percent_at_most(scores["advantage"])}
    yield {"name": "exact", "label": _NAMES["exact"], **exact}
    for name, bound in _analysed(document):
        if "why" not in bound:
            advantage = percent_at_most(bound["advantage"]) if "advantage" in bound else ""
            epsilon = Epsilon.format_score(bound["epsilon"]) if "epsilon" in bound else ""
            yield {"name": name, "label": _NAMES[name] + _mark(bound), "epsilon": epsilon, "advantage": advantage}


def reasons(document: Document) -> Iterator[str]:
    """Why an analysis demands nothing that could be shown."""
    for entry in document.get("methods", ()):
        if "why" in entry:
            yield f"{_NAMES[entry['name']]}: {entry['why'].removeprefix(entry['name'] + ': ')}."


def is_mechanism(document: Document) -> bool:
    """Whether more is known than a bare guarantee."""
    return not {"epsilon", "tvd", "gdp"} & document["input"].keys() or "noise" in document


def _other_beliefs(document: Document) -> Iterator[tuple[str, str]]:
    """The belief that textbooks read off epsilon and delta, where it is another: it may be too low."""
    read_off, told = document["bounds"]["theorem_2"]["belief"], document["scores"]["belief"]
    if percent_at_most(read_off) != percent_at_most(told):
        yield "  textbook reading of epsilon and delta: may be too low", percent_at_most(read_off)


def _analysed(document: Document) -> Iterator[tuple[str, Document]]:
    yield from ((name, entry) for name, entry in document["bounds"].items() if name in _NAMES)


def _mark(entry: Document) -> str:
    return "" if entry.get("proved", True) else " (not proved)"
