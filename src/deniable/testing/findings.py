"""A verdict as findings: what is wrong, in which line, how sure that is; for people, and in SARIF for code scanners.

SARIF 2.1.0 is the format of the OASIS standard, which code hosts show beside the line.

"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from deniable import __version__
from deniable.formatting import as_given, at_most
from deniable.results.audit_result import AuditResult
from deniable.results.run_result import CodePlace, RunResult
from deniable.results.shared import VerdictName
from deniable.results.verdict_result import VerdictResult

Judged = RunResult | AuditResult | VerdictResult
"""Results with a verdict."""
Weight = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that is not as claimed, or that could not be judged."""

    verdict: VerdictName
    weight: Weight
    text: str
    part: str
    """Of the claim."""
    place: CodePlace | None
    p_value: float | None
    false_alarm_rate: float

    def shown(self) -> str:
        """With its line, as compilers write it."""
        where = "" if self.place is None else f"\n  {self.place.file}:{self.place.line}: {self.place.text}"
        return f"{self.verdict.capitalize()}: {self.text}{where}"


def findings_of(result: Judged, at: CodePlace | None = None) -> tuple[Finding, ...]:
    """All that a result has to say against the claim; nothing where it is consistent. `at`: a line for the rest."""
    if result.verdict == "consistent":
        return ()
    found = [
        Finding(result.verdict, _weight(result.verdict), text, part, place or at, p_value, false_alarm_rate(result))
        for part, text, place, p_value in _causes(result)
    ]
    return tuple(found)


def _weight(verdict: VerdictName) -> Weight:
    return "warning" if verdict == "cannot judge" else "error"


def _causes(result: Judged) -> list[tuple[str, str, CodePlace | None, float | None]]:
    """Part of the claim, sentence, line and p-value of each."""
    if isinstance(result, RunResult):
        wanted = {"violated": "less private", "other recipe": "another recipe"}.get(result.verdict, "not shown")
        causes = [(one.name, one.observed, one.place, one.p_value) for one in result.checks if one.outcome == wanted]
        return causes or [("the whole run", result.verdict_text.removesuffix("."), None, None)]
    if isinstance(result, AuditResult) and result.diagnostics is not None and result.diagnostics.findings:
        return [(one.name, one.sentence or one.name, None, one.p_value) for one in result.diagnostics.findings]
    return [("the whole claim", result.verdict_text.removesuffix("."), None, None)]


def false_alarm_rate(result: Judged) -> float:
    """How often, at most, a training that is as claimed is called violated, or another recipe."""
    if isinstance(result, RunResult):
        return 1 - result.input.confidence
    if isinstance(result, VerdictResult):
        return 1 - result.input.confidence
    if result.diagnostics is not None:
        from deniable.examination.trial_plan import GAME_SHARE  # noqa: PLC0415 (torch)

        return result.diagnostics.false_alarm_rate / (1 - GAME_SHARE)
    return 1 - result.game.epsilon.lower_bound.confidence


def message_of(result: Judged, at: CodePlace | None = None) -> str:
    """Why a test fails, or cannot be judged: causes with their lines, the claim, the rate of false alarms."""
    lines = [finding.shown() for finding in findings_of(result, at)]
    if isinstance(result, RunResult):
        given = result.input
        lines.append(
            f"Claimed: noise {as_given(given.noise)}, rate {as_given(given.rate)}, {given.steps:,} steps "
            f"({given.adjacency} neighbours); {result.steps:,} steps were seen, {result.examined_steps:,} recomputed."
        )
        if result.unfinished and result.verdict != "cannot judge":
            lines.append(f"{result.unfinished[0].upper()}{result.unfinished[1:]}.")
    if result.verdict == "other recipe":
        lines.append("Nothing shows that it is less private than claimed: claim what it does, or do what is claimed.")
    lines.append(alarm_sentence(false_alarm_rate(result)))
    return "\n".join(lines)


def alarm_sentence(rate: float) -> str:
    """What a failure may be worth."""
    return f"A training as claimed is called violated, or another recipe, with probability at most {at_most(rate, 2)}."


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
