"""JSON to results: every field's type is checked, and what is wrong is said with its place."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditResult, ExposureResult
from deniable.results.base import Result, UnreadableError
from deniable.results.compare_result import CompareResult
from deniable.results.explain_result import ChooseResult, ExplainResult
from deniable.results.frontier_result import FrontierResult
from deniable.results.reproduce_result import ReproduceResult
from deniable.results.run_result import RunResult
from deniable.results.verdict_result import VerdictResult

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
        ReproduceResult,
        RunResult,
        FrontierResult,
    )
}
"""By the kind of result that a schema names."""
_RENAMED = {f"deniable/{kind}/1": f"deniable/{kind}/2" for kind in ("audit", "exposure", "explain", "choose")}
_VERSION = re.compile("[0-9]{1,9}")
_MISSING = re.compile(r"missing required field `(\w+)`")
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}


def schema_name(result: type[Result]) -> str:
    """As JSON documents carry it: deniable/KIND/VERSION."""
    return str(msgspec.inspect.type_info(result).tag)  # type: ignore[attr-defined]


def read_result(document: Any) -> Result:
    """The result whose JSON values these are; UnreadableError says what is missing, wrong or of another version."""
    document = rename_fields(document)
    found = RESULTS[kind_of(document)]
    try:
        return msgspec.convert(document, found)
    except msgspec.ValidationError as unlike:
        raise UnreadableError(_place_first(str(unlike))) from unlike


def rename_fields(document: Any) -> Any:
    """A document as it is written today, where only names were others: in audit/1, delta of a belief was failure."""
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or schema not in _RENAMED:
        return document
    text = msgspec.json.encode(document).replace(b'"belief_failure":', b'"belief_delta":')
    plain = msgspec.json.decode(text.replace(b'"at_failure":', b'"at_delta":'))
    return {**plain, "schema": _RENAMED[schema]}


def kind_of(document: Any, kinds: Collection[str] = RESULTS) -> str:
    """Which of `kinds` this is, of the version that this deniable reads."""
    schema = document.get("schema") if isinstance(document, dict) else None
    house, kind, number = [*str(schema).split("/"), "", ""][:3]
    if house != "deniable" or kind not in kinds or not _VERSION.fullmatch(number):
        wanted = ", ".join(schema_name(RESULTS[name]) for name in kinds)
        raise UnreadableError(f"has schema {str(schema)[:60]!r}; wanted is one of {wanted}")
    newest = int(schema_name(RESULTS[kind]).rpartition("/")[2])
    if int(number) != newest:
        age = "a newer" if int(number) > newest else "an older"
        raise UnreadableError(f"has schema {schema}, of {age} version of deniable: use that one, or run it again")
    return kind


def _place_first(text: str) -> str:
    """What msgspec found, with the place first: `measured.trials must be int, got str`."""
    what, _, rest = text.partition(" - at `$")
    place = rest.rstrip("`").lstrip(".")
    missing = _MISSING.search(what)
    if missing:
        return f"{place}.{missing[1]} is missing".lstrip(".")
    if not what.startswith("Expected"):
        return f"{place or 'the document'}: {what[0].lower()}{what[1:]}"
    return f"{place or 'the document'} must be {_expected_words(what)}"


def _expected_words(what: str) -> str:
    """Types as people call them."""
    plain = what.removeprefix("Expected ").replace("`", "")
    for name, words in _WORDS.items():
        plain = re.sub(rf"\b{name}\b", words, plain)
    return plain.replace(" | ", " or ")


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind of result, made from its fields."""
    return msgspec.json.schema(RESULTS[kind])
