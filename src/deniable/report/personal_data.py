"""What in a report may be personal data: told to whoever passes the file on."""

from __future__ import annotations

from deniable.formatting import count_of
from deniable.results.attack_result import AttackResult
from deniable.results.audit_result import AuditResult, ExposureResult
from deniable.results.base import Result
from deniable.results.frontier_result import FrontierResult

NONE = "No record of the data, and nothing about one person, is in it: figures are about the release as a whole."


def tell_personal_data(result: Result) -> tuple[str, ...]:
    """Sentences about what of the people in the data is in the document; `NONE` alone where nothing is."""
    found: list[str] = []
    if isinstance(result, AuditResult):
        numbers = [number for number in (result.input.record, result.input.replacement) if number is not None]
        if numbers:
            found.append(
                f"Numbers of records of the data ({', '.join(map(str, numbers))}), whose presence the observer guessed."
            )
    exposure = getattr(result, "exposure", None) if isinstance(result, AuditResult | ExposureResult) else None
    if exposure is not None:
        count = count_of(len(exposure.most_exposed), "record")
        found.append(
            f"Numbers and labels of the most exposed records ({count}), and how exposed each is: whoever has the data "
            "can tell whose they are. For those who hold the data alone."
        )
    if isinstance(result, AttackResult) and result.most_exposed:
        count = count_of(len(result.most_exposed), "member")
        found.append(
            f"Numbers of the members that the attack is surest of ({count}): whoever holds the data can tell who they "
            "are. For those who hold the data alone."
        )
    if isinstance(result, AttackResult) and result.exposure is not None:
        count = count_of(len(result.exposure.lira), "member")
        found.append(f"How sure two observers are of every member ({count}), in the order of the data.")
    if isinstance(result, FrontierResult):
        found.append(
            "Measured on the data without protection: accuracies, also of classes and groups, and how columns were "
            "encoded. For those who may see the data."
        )
    if isinstance(result, AuditResult | AttackResult) and not found:
        found.append("What was measured rests on trainings on the data; no record of it is named.")
    return tuple(found) or (NONE,)
