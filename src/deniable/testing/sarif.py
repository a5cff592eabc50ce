"""Findings in SARIF 2.1.0, the format of the OASIS standard, which code hosts show beside the line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from deniable import __version__
from deniable.testing.findings import Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "violated": "The training is less private than it claims.",
    "other recipe": "The training is as private as it claims, and does something else.",
    "cannot judge": "The training showed too little to be judged.",
}


def sarif_result(finding: Finding, test: str = "") -> dict[str, Any]:
    """One finding; `test` names the test that found it."""
    rule = _rule(finding.verdict)
    found: dict[str, Any] = {
        "ruleId": rule,
        "level": finding.weight,
        "message": {"text": f"{finding.text[0].upper()}{finding.text[1:]}."},
        "properties": {
            "verdict": finding.verdict,
            "part": finding.part,
            "falseAlarmRate": finding.false_alarm_rate,
            **({} if finding.p_value is None else {"pValue": finding.p_value}),
            **({"test": test} if test else {}),
        },
    }
    if finding.place is not None:
        location = {"uri": PurePath(finding.place.file).as_posix()}
        if not PurePath(finding.place.file).is_absolute():
            location["uriBaseId"] = "%SRCROOT%"
        region = {"startLine": finding.place.line, "snippet": {"text": finding.place.text}}
        found["locations"] = [{"physicalLocation": {"artifactLocation": location, "region": region}}]
    return found


def sarif_document(results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One run of this tool with these results; none at all means that nothing was found."""
    rules = [{"id": _rule(name), "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "deniable", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": list(results)}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(verdict: str) -> str:
    return f"privacy/{verdict.replace(' ', '-')}"
