"""What every command found: frozen, typed, JSON both ways.

Inside the house a result is read by its fields; JSON is its edge, where `read_result` checks every field's type and a
document of another version is refused with a sentence. `json_schema` is made from the fields.
"""

from __future__ import annotations

from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditResult, ExposureResult
from deniable.results.base import Part, Result, UnreadableError
from deniable.results.compare_result import CompareResult
from deniable.results.explain_result import ChooseResult, ExplainResult
from deniable.results.frontier_result import FrontierResult
from deniable.results.reading import RESULTS, json_schema, read_result
from deniable.results.reproduce_result import ReproduceResult
from deniable.results.run_result import RunResult
from deniable.results.verdict_result import VerdictResult

__all__ = [
    "RESULTS",
    "AttackResult",
    "AuditResult",
    "ChooseResult",
    "CompareResult",
    "ExplainResult",
    "ExposureResult",
    "FrontierResult",
    "Part",
    "ReproduceResult",
    "Result",
    "RunResult",
    "UnreadableError",
    "VerdictResult",
    "json_schema",
    "read_result",
]
