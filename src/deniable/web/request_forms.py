"""What the planner's API takes and gives, with the ranges in which an answer costs less than a second.

Wider ranges, and all the time it takes, are the command line's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, create_model
from pydantic import Field as Limits

from deniable.answers.batches import BATCHES, PERSON, POISSON, REPLACEMENT, SAMPLINGS, SamplingKind
from deniable.answers.glossary import GLOSSARY
from deniable.answers.parse import COUNTED, LOCAL, MECHANISMS, RELEASES, SAMPLED
from deniable.answers.strength import NAMES, compare_deployments
from deniable.answers.written import WRITTEN
from deniable.fields import Field
from deniable.formats.opacus_history import OPACUS_SAMPLINGS
from deniable.promises import PARAMETERS, SCORES, SPELLINGS
from deniable.results.base import plain
from deniable.utility.expected_quality import BUILT_IN

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


_Rate = Annotated[float, Limits(gt=0, lt=1, allow_inf_nan=False)]
_COMMON = (*(SAMPLED | COUNTED | BATCHES | LOCAL | PARAMETERS | SPELLINGS).values(), PERSON)
_ADJACENCY: Attributes = {
    "adjacency": (
        Literal["add-remove", "replace", "zero-out"] | None,
        Limits(None, description="What neighbours are. Default add-remove."),
    )
}
_BATCHES: Attributes = {
    "sampling": (
        Literal[tuple(dict.fromkeys((POISSON, *SAMPLINGS, *OPACUS_SAMPLINGS)))] | None,
        Limits(None, description="How batches are drawn. Default poisson; unknown goes with opacus alone."),
    ),
    REPLACEMENT: (bool | None, Limits(None, description="Of batches of a fixed size: a record may be drawn again.")),
}
_DOCUMENTS: Attributes = {
    name: (dict[str, Any] | list[Any] | None, Limits(None, description=text)) for name, text in WRITTEN.items()
}
"""In the body of a request alone."""
_MECHANISM: Attributes = {
    "mechanism": (
        Literal[MECHANISMS] | None,
        Limits(None, description="A training with Gaussian noise (default), or a local mechanism in its place."),
    )
}
_EXPLAIN = (
    f"What was released: exactly one of {', '.join(RELEASES)}.",
    (*(release.field for release in RELEASES.values()), *_COMMON),
    {**_ADJACENCY, **_BATCHES},
)
_CHOOSE = (
    f"The promise (exactly one of {', '.join(SCORES)}) and the training to keep it.",
    (*(score.field for score in SCORES.values()), *_COMMON),
    {**_ADJACENCY, **_BATCHES, **_MECHANISM},
)
ExplainRequest = _request("ExplainRequest", *_EXPLAIN[:2], {**_EXPLAIN[2], **_DOCUMENTS}, strict=True)
ChooseRequest = _request("ChooseRequest", *_CHOOSE, strict=True)
ExplainQuery = _request("ExplainQuery", *_EXPLAIN, strict=False)
ChooseQuery = _request("ChooseQuery", *_CHOOSE, strict=False)


def page_fields() -> dict[str, Any]:
    """What the page's form is made of: every field that has a slider, and what can be promised or given."""
    promised = {name: score.field for name, score in SCORES.items()}
    released = {name: release.field for name, release in RELEASES.items()}
    fields = promised | released | COUNTED | SAMPLED | BATCHES | LOCAL | PARAMETERS | {PERSON.name: PERSON}
    return {
        "fields": {name: _as_shown(field) for name, field in fields.items()},
        "promises": {name: score.kind for name, score in SCORES.items()},
        "releases": {name: RELEASES[name].kind for name in sorted(RELEASES, key=lambda name: name != "noise")},
        "written": {"opacus": "a history of Opacus (file)", "dp_event": "an event of dp-accounting (file)"},
        "samplings": {
            "poisson": {"label": "each record by itself (Poisson)", "fields": list(COUNTED)},
            **{name: {"label": kind.label, "fields": _on_page(kind)} for name, kind in SAMPLINGS.items()},
        },
        "person": PERSON.name,
        "lists": [name for name, field in PARAMETERS.items() if field.repeatable],
        "glossary": GLOSSARY,
        "deployments": [plain(one) for one in compare_deployments()],
        "frontiers": BUILT_IN,
        "strengths": NAMES,
        "parameters": sorted(PARAMETERS, key=lambda name: _as_shown(fields[name])["stops"] is None),
    }


def _on_page(kind: SamplingKind) -> list[str]:
    """What describes batches on the page: epochs where steps could be given, too."""
    extra = [name for name in ("epochs", REPLACEMENT) if name in kind.may]
    return [*kind.needs, *extra]


def _as_shown(field: Field) -> dict[str, Any]:
    slider = field.slider
    assert slider is not None
    shown = {"label": slider.label, "help": slider.hint, "unit": "%" if slider.percent else "", "usual": slider.usual}
    return {
        **shown,
        "quick": slider.quick,
        "stops": slider.stops,
        "scale": slider.scale,
        "whole": field.kind == "whole",
    }


def expected_text(field: str | None, choosing: bool) -> str | None:
    """What a field must be, in words; None where there is no such field."""
    if field is None:
        return "a JSON object"
    form = ChooseRequest if choosing else ExplainRequest
    known = form.model_json_schema()["properties"].get(field)
    return None if known is None else _in_words(known["anyOf"][0])


def _in_words(schema: dict[str, Any]) -> str:
    if schema["type"] in ("object", "boolean"):
        return "true or false" if schema["type"] == "boolean" else "an object or a list"
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "items" in schema:
        return f"1 to {schema['maxItems']} of {_in_words(schema['items'])}"
    kind = "whole number" if schema["type"] == "integer" else "number"
    return f"a {kind} from {schema['minimum']:g} to {schema['maximum']:g}"


class CostsRequest(BaseModel):
    """A frontier (a built-in one's name, run:NAME, or the document itself) and the promise in whose unit it is told."""

    model_config = ConfigDict(strict=True, extra="forbid")
    frontier: str | dict[str, Any]
    promise: Annotated[str, Limits(pattern=f"^({'|'.join(SCORES)})$")]
    delta: _Rate = 1e-5
    prior: _Rate = 0.5
    fpr: _Rate = 0.01
    baseline: _Rate = 0.01
    adjacency: Literal["add-remove", "replace", "zero-out"] = "add-remove"
    records_per_person: Annotated[int, Limits(ge=1, le=1000)] = 1


class Problem(BaseModel):
    """What was wrong: which field, with which value, and what would be right."""

    field: str | None
    value: Any
    message: str


class Refusal(BaseModel):
    """Why there is no answer."""

    error: Problem


class ListedRun(BaseModel):
    """An audit or a comparison in the folder."""

    name: str
    kind: str
    title: str
    verdict: str
    report: str | None


class RunList(BaseModel):
    """The folder's runs."""

    folder: str | None
    runs: list[ListedRun]
