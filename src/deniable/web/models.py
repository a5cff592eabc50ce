"""What the planner's API takes and gives, with the ranges in which an answer costs less than a second.

Wider ranges, and all the time it takes, are the command line's.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "ChooseDocument",
    "ChooseQuery",
    "ChooseRequest",
    "CurvesDocument",
    "ExplainDocument",
    "ExplainQuery",
    "ExplainRequest",
    "Plan",
    "Problem",
    "Refusal",
    "Run",
    "Runs",
    "expected",
]


def _within(low: float, high: float, text: str) -> Any:
    return Field(ge=low, le=high, allow_inf_nan=False, description=text)


def _from(low: int, high: int, text: str) -> Any:
    return Field(ge=low, le=high, description=text)


def _share(text: str) -> Any:
    return _within(1e-9, 1 - 1e-9, text)


Fpr = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Asked(BaseModel):
    """The training, and what to answer about it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    rate: Annotated[float | None, _within(1e-7, 1, "Each record joins a step with this probability. Default 1.")] = None
    steps: Annotated[int | None, _from(1, 10**7, "Number of training steps.")] = None
    records: Annotated[int | None, _from(2, 10**9, "Number of training records; delta is 1/records unless given.")] = (
        None
    )
    batch: Annotated[int | None, _from(1, 10**9, "Expected batch size: the rate is batch / records.")] = None
    epochs: Annotated[
        int | None, _from(1, 10**5, "Passes over the data: there are epochs x ceil(records / batch) steps.")
    ] = None
    categories: Annotated[int | None, _from(2, 10**6, "Possible values of each randomized answer. Default 2.")] = None
    features: Annotated[int | None, _from(1, 2000, "Randomized answers per person. Default 1.")] = None
    delta: Annotated[float | None, _within(0, 1, "Delta, and the probability that the belief is exceeded.")] = None
    prior: Annotated[float | None, _share("Belief before the release; for one of k people 1/k. Default 0.5.")] = None
    fpr: Annotated[
        list[Fpr] | None, Field(min_length=1, max_length=4, description="False positive rates of an attack.")
    ] = None
    adjacency: Annotated[
        Literal["add-remove", "replace", "zero-out"] | None,
        Field(description="What neighbours are. Default add-remove."),
    ] = None


class ExplainRequest(_Asked):
    """What was released: exactly one of epsilon, tvd, gdp, noise, laplace and randomized_response."""

    epsilon: Annotated[float | None, _within(0, 100, "An (epsilon, delta)-DP guarantee.")] = None
    tvd: Annotated[float | None, _within(0, 1, "A total variation (membership advantage) of at most this.")] = None
    gdp: Annotated[float | None, _within(0, 100, "A mu-GDP guarantee.")] = None
    noise: Annotated[
        float | None, _within(0.2, 1e5, "Gaussian noise / sensitivity, of one release or of every step.")
    ] = None
    laplace: Annotated[float | None, _within(1e-2, 1e5, "Laplace noise: scale / sensitivity.")] = None
    randomized_response: Annotated[float | None, _within(1e-3, 100, "Randomized response: epsilon of each answer.")] = (
        None
    )


class ChooseRequest(_Asked):
    """The promise (exactly one of belief, advantage, accuracy, tpr, ppv and epsilon) and the training to keep it."""

    belief: Annotated[float | None, _share("Nobody becomes more than so sure, except with probability delta.")] = None
    advantage: Annotated[float | None, _share("No attack has TPR - FPR above this.")] = None
    accuracy: Annotated[float | None, _share("No attack guesses membership right more often.")] = None
    tpr: Annotated[float | None, _share("No attack finds a larger share of the members, at the one fpr given.")] = None
    ppv: Annotated[
        float | None, _share("At most this share of the accused are members, at the one fpr and the prior given.")
    ] = None
    epsilon: Annotated[float | None, _within(1e-3, 100, "(epsilon, delta)-DP.")] = None
    mechanism: Annotated[
        Literal["gaussian", "laplace", "randomized-response"] | None,
        Field(description="A training with Gaussian noise (default), or a local mechanism in its place."),
    ] = None


class ExplainQuery(ExplainRequest):
    """The same in an address, where every value is text."""

    model_config = ConfigDict(strict=False, extra="forbid")


class ChooseQuery(ChooseRequest):
    """The same in an address, where every value is text."""

    model_config = ConfigDict(strict=False, extra="forbid")


def expected(field: str | None, choosing: bool) -> str | None:
    """What a field must be, in words; None where there is no such field."""
    if field is None:
        return "a JSON object"
    form = ChooseRequest if choosing else ExplainRequest
    known = form.model_json_schema()["properties"].get(field)
    return None if known is None else _in_words(known["anyOf"][0])


def _in_words(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "items" in schema:
        return f"1 to {schema['maxItems']} of {_in_words(schema['items'])}"
    kind = "whole number" if schema["type"] == "integer" else "number"
    return f"a {kind} from {schema['minimum']:g} to {schema['maximum']:g}"


class Problem(BaseModel):
    """What was wrong: which field, with which value, and what would be right."""

    field: str | None
    value: Any
    message: str


class Refusal(BaseModel):
    """Why there is no answer."""

    error: Problem


class _Rate(BaseModel):
    fpr: float


class _Tpr(_Rate):
    tpr: float


class _Ppv(_Rate):
    prior: float
    ppv: float


class _Scores(BaseModel):
    epsilon: float | None
    delta: float
    belief: float
    belief_failure: float
    prior: float
    advantage: float
    accuracy: float
    tpr: list[_Tpr]
    ppv: list[_Ppv]


class _Method(BaseModel):
    name: str
    noise: float | None
    why: str | None = None
    proved: bool | None = None


class ExplainDocument(BaseModel):
    """The document of `deniable explain --json`."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    schema_: Annotated[str, Field(alias="schema")]
    input: dict[str, Any]
    scores: _Scores
    errors: dict[str, float | None]
    method: str
    bounds: dict[str, dict[str, Any]]
    notes: list[str]


class ChooseDocument(ExplainDocument):
    """The document of `deniable choose --json`."""

    noise: float
    methods: list[_Method]


class _Roc(BaseModel):
    fpr: list[float]
    tpr: list[float]


class _Beliefs(BaseModel):
    edges: list[float]
    inside: list[float]
    outside: list[float]


class CurvesDocument(BaseModel):
    """The best attack's ROC curve, and shares of releases by the observer's belief, the person inside or outside."""

    schema_: Annotated[str, Field(alias="schema")]
    input: dict[str, Any]
    roc: _Roc
    beliefs: _Beliefs


class Plan(BaseModel):
    """Everything the page shows of one plan."""

    document: ExplainDocument | ChooseDocument
    curves: CurvesDocument
    headline: str
    warning: str
    meaning: str
    kept: str
    engineering: str
    assessment: str
    setting: str
    figures: dict[str, str]
    scores: list[list[str]]
    demands: list[dict[str, str]]
    analyses: list[dict[str, str]]
    notes: list[str]
    command: str
    python: str


class Run(BaseModel):
    """An audit or a comparison in the folder."""

    name: str
    kind: str
    title: str
    verdict: str
    report: str | None


class Runs(BaseModel):
    """The folder's audits and comparisons."""

    folder: str | None
    runs: list[Run]
