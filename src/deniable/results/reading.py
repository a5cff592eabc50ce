"""JSON to results: every field's type is checked, and what is wrong is said with its place."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditResult, ExposureResult
from deniable.results.base import Result, UnreadableError
from deniable.results.compare_result import CompareResult
from deniable.results.explain_result import ChooseResult, ExplainResult
from deniable.results.verdict_result import VerdictResult

__all__ = ["RESULTS", "json_schema", "read_result", "schema_name"]

RESULTS: dict[str, type[Result]] = {
    result.kind: result
    for result in (
        ExplainResult,
        ChooseResult,
        AuditResult,
        ExposureResult,
        VerdictResult,
        CompareResult,
        AttackResult,
    )
}
"""By the kind of result that a schema names."""
_PLACE = re.compile(r" - at `\$\.?(.*)`$")


def schema_name(result: type[Result]) -> str:
    """As JSON documents carry it: deniable/KIND/VERSION."""
    return str(msgspec.inspect.type_info(result).tag)  # type: ignore[attr-defined]


def read_result(document: Any) -> Result:
    """The result whose JSON values these are; UnreadableError says what is missing, wrong or of another version."""
    found = RESULTS[_kind(document)]
    try:
        return msgspec.convert(document, found)
    except msgspec.ValidationError as unlike:
        raise UnreadableError(_placed(str(unlike))) from unlike


def _kind(document: Any) -> str:
    """Which result this is, of the version that this deniable reads."""
    schema = document.get("schema") if isinstance(document, dict) else None
    house, kind, number = [*str(schema).split("/"), "", ""][:3]
    if house != "deniable" or kind not in RESULTS or not number.isdecimal():
        wanted = ", ".join(schema_name(result) for result in RESULTS.values())
        raise UnreadableError(f"has schema {str(schema)[:60]!r}; the results of this version are {wanted}")
    newest = int(schema_name(RESULTS[kind]).rpartition("/")[2])
    if int(number) != newest:
        age = "a newer" if int(number) > newest else "an older"
        raise UnreadableError(f"has schema {schema}, of {age} version of deniable: use that one, or run it again")
    return kind


def _placed(text: str) -> str:
    """msgspec's words with the place in front."""
    place = _PLACE.search(text)
    if place is None:
        return text
    what = text[: place.start()]
    return f"{place[1]}: {what[0].lower()}{what[1:]}"


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind of result, made from its fields."""
    return msgspec.json.schema(RESULTS[kind])
