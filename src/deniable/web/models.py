"""What the planner's API takes and gives, with the ranges in which an answer costs less than a second.

Wider ranges, and all the time it takes, are the command line's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, create_model
from pydantic import Field as Limits

from deniable.answers.parse import COUNTED, LOCAL, RELEASES, SAMPLED
from deniable.fields import Field
from deniable.promises import PARAMETERS, SCORES, SPELLINGS, Promise

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
    "page_fields",
]


Attributes = dict[str, Any]
"""Of a form: types and defaults by name, as `create_model` takes them."""


def _quick(field: Field) -> tuple[Any, None]:
    """A field within the range that is quick, as an attribute that may be left out."""
    assert field.slider is not None
    (low, high), text = field.slider.quick, f"{field.letter}: {field.help_text(str)}"
    if field.kind == "whole":
        return Annotated[int | None, Limits(ge=int(low), le=int(high), description=text)], None
    limits: dict[str, Any] = {"ge": low, "le": high, "allow_inf_nan": False}
    if field.repeatable:
        one = Annotated[float, Limits(**limits)]
        return Annotated[list[one] | None, Limits(min_length=1, max_length=4, description=text)], None
    return Annotated[float | None, Limits(**limits, description=text)], None


def _request(name: str, text: str, fields: Iterable[Field], words: Attributes, *, strict: bool) -> type[BaseModel]:
    """A form with these fields; strict where values have types, as in a JSON body, and not where all are text."""
    attributes: Attributes = {**words, **{field.name: _quick(field) for field in fields}}
    return create_model(name, __config__=ConfigDict(strict=strict, extra="forbid"), __doc__=text, **attributes)


_COMMON = (*(SAMPLED | COUNTED | LOCAL | PARAMETERS | SPELLINGS).values(),)
_ADJACENCY: Attributes = {
    "adjacency": (
        Literal["add-remove", "replace", "zero-out"] | None,
        Limits(None, description="What neighbours are. Default add-remove."),
    )
}
_MECHANISM: Attributes = {
    "mechanism": (
        Literal["gaussian", "laplace", "randomized-response"] | None,
        Limits(None, description="A training with Gaussian noise (default), or a local mechanism in its place."),
    )
}
_EXPLAIN = (
    f"What was released: exactly one of {', '.join(RELEASES)}.",
    (*(release.field for release in RELEASES.values()), *_COMMON),
    _ADJACENCY,
)
_CHOOSE = (
    f"The promise (exactly one of {', '.join(SCORES)}) and the training to keep it.",
    (*(score.field for score in SCORES.values()), *_COMMON),
    {**_ADJACENCY, **_MECHANISM},
)
ExplainRequest = _request("ExplainRequest", *_EXPLAIN, strict=True)
ChooseRequest = _request("ChooseRequest", *_CHOOSE, strict=True)
ExplainQuery = _request("ExplainQuery", *_EXPLAIN, strict=False)
ChooseQuery = _request("ChooseQuery", *_CHOOSE, strict=False)


def page_fields() -> dict[str, Any]:
    """What the page's form is made of: every field that has a slider, and what can be promised or given."""
    promised = {name: score.field for name, score in SCORES.items()}
    released = {name: release.field for name, release in RELEASES.items()}
    fields = promised | released | COUNTED | LOCAL | PARAMETERS
    return {
        "fields": {name: _as_shown(field) for name, field in fields.items()},
        "promises": {name: score.kind for name, score in SCORES.items()},
        "releases": {name: RELEASES[name].kind for name in sorted(RELEASES, key=lambda name: name != "noise")},
        "parameters": sorted(PARAMETERS, key=lambda name: _as_shown(fields[name])["stops"] is None),
    }


def _as_shown(field: Field) -> dict[str, Any]:
    slider = field.slider
    assert slider is not None
    shown = {"label": slider.label, "help": slider.hint, "unit": "%" if slider.percent else "", "usual": slider.usual}
    return {**shown, "stops": slider.stops, "scale": slider.scale, "whole": field.kind == "whole"}


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


def _score(name: str, score: type[Promise]) -> tuple[Any, Any]:
    """The form of a score in a document: a number, null where it is infinite, or a list of them with parameters."""
    if score.list_parameter() is None:
        return (float if score.field.kind == "share" else float | None), ...
    numbers: dict[str, Any] = dict.fromkeys((*score.parameter_names(), name), (float, ...))
    row = create_model(f"_{name.title()}", **numbers)
    return list[row], []  # type: ignore[valid-type]


_FORMS: Attributes = {name: _score(name, score) for name, score in SCORES.items()}
_PARAMETERS: Attributes = dict.fromkeys(("delta", "prior", "belief_delta"), (float, ...))
_Scores = create_model("_Scores", **_PARAMETERS, **_FORMS)


class _Method(BaseModel):
    name: str
    noise: float | None
    why: str | None = None
    proved: bool | None = None


class ExplainDocument(BaseModel):
    """The document of `deniable explain --json`."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    schema_: Annotated[str, Limits(alias="schema")]
    input: dict[str, Any]
    scores: _Scores  # type: ignore[valid-type]
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

    schema_: Annotated[str, Limits(alias="schema")]
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
