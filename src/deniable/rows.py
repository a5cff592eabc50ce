"""A document's figures as people read them: labels and rounded texts, for the terminal and for the planner's page."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.document import Document
from deniable.numbers import as_given, at_most, chance, percent_as_given, percent_at_most
from deniable.words import chosen, failure

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
    scores = document["scores"]
    noise = {"noise": chosen(document)} if "noise" in document else {}
    shares = {name: percent_at_most(scores[name]) for name in ("belief", "advantage", "accuracy")}
    return {**noise, **shares, "epsilon": _epsilon(scores["epsilon"])}


def score_rows(document: Document) -> Iterator[tuple[str, str]]:
    """What the strongest attack can reach: a label, and at most what."""
    scores = document["scores"]
    prior, delta = percent_as_given(scores["prior"]), failure(document)
    rare = scores["belief_failure"]
    exception = f" (chance of more: {chance(rare)})" if rare else ""
    yield f"Belief, starting from {prior}{exception}", percent_at_most(scores["belief"])
    for label, belief in _other_beliefs(document):
        yield label, percent_at_most(belief)
    yield "Membership advantage (TPR - FPR; total variation)", percent_at_most(scores["advantage"])
    yield f"Right guesses of an attack, where {prior} are members", percent_at_most(scores["accuracy"])
    for row in scores["tpr"]:
        yield f"Members found (TPR), at {percent_as_given(row['fpr'])} false alarms (FPR)", percent_at_most(row["tpr"])
    for row in scores["ppv"]:
        label = f"If flagged (at {percent_as_given(row['fpr'])} false alarms): chance to be a member (PPV)"
        yield label, percent_at_most(row["ppv"])
    yield f"Epsilon at delta {delta}", _epsilon(scores["epsilon"])


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
    exact = {"epsilon": _epsilon(scores["epsilon"]), "advantage": percent_at_most(scores["advantage"])}
    yield {"name": "exact", "label": _NAMES["exact"], **exact}
    for name, bound in _analysed(document):
        if "why" not in bound:
            advantage = percent_at_most(bound["advantage"]) if "advantage" in bound else ""
            epsilon = _epsilon(bound["epsilon"]) if "epsilon" in bound else ""
            yield {"name": name, "label": _NAMES[name] + _mark(bound), "epsilon": epsilon, "advantage": advantage}


def reasons(document: Document) -> Iterator[str]:
    """Why an analysis demands nothing that could be shown."""
    for entry in document.get("methods", ()):
        if "why" in entry:
            yield f"{_NAMES[entry['name']]}: {entry['why'].removeprefix(entry['name'] + ': ')}."


def is_mechanism(document: Document) -> bool:
    """Whether more is known than a bare guarantee."""
    return not {"epsilon", "tvd", "gdp"} & document["input"].keys() or "noise" in document


def _other_beliefs(document: Document) -> Iterator[tuple[str, float]]:
    """The belief that textbooks read off epsilon and delta, where it is another: it may be too low."""
    read_off, told = document["bounds"]["theorem_2"]["belief"], document["scores"]["belief"]
    if percent_at_most(read_off) != percent_at_most(told):
        yield "  textbook reading of epsilon and delta: may be too low", read_off


def _analysed(document: Document) -> Iterator[tuple[str, Document]]:
    yield from ((name, entry) for name, entry in document["bounds"].items() if name in _NAMES)


def _mark(entry: Document) -> str:
    return "" if entry.get("proved", True) else " (not proved)"


def _epsilon(value: float | None) -> str:
    return "infinite" if value is None else at_most(value)
