"""The pytest plugin of `deniable`: the fixture `privacy`, JUnit properties, SARIF.

A module of its own, so that pytest starts as fast as before: `deniable` and torch are imported by the first test that
uses the fixture. ``-p no:deniable`` turns it off.
"""

# ruff: noqa: PLC0415 (imports inside what needs them; see above)

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pytest

if TYPE_CHECKING:
    from deniable.mechanisms import Training
    from deniable.results.run_result import RunResult
    from deniable.testing.findings import Judged

__all__ = ["Privacy", "privacy"]

Unjudged = Literal["fail", "skip"]
_FOUND: pytest.StashKey[list[dict[str, Any]]] = pytest.StashKey()
Kind = TypeVar("Kind", bound="Judged")


class Privacy:
    """What the fixture `privacy` offers to a test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._found = item.stash.setdefault(_FOUND, [])

    def check(
        self,
        train: Callable[[], Any],
        *,
        claimed: Training,
        budget: str | float = "30 s",
        loss: Any = "cross-entropy",
        confidence: float | None = None,
        unjudged: Unjudged = "fail",
    ) -> RunResult:
        """Run `train` once, watched, and fail unless it does what is claimed; see `deniable.testing.check_training`.

        *Violated* and *other recipe* fail the test. *Cannot judge* fails it, too, as a test that shows nothing must not
        be green; with ``unjudged="skip"`` it skips the test, with the reason.
        """
        __tracebackhide__ = True
        from deniable.examination.recorded import CONFIDENCE_OF_A_RUN
        from deniable.testing.check_training import check_training

        sure = CONFIDENCE_OF_A_RUN if confidence is None else confidence
        result = check_training(train, claimed=claimed, budget=budget, loss=loss, confidence=sure)
        return self.require(result, at=train, unjudged=unjudged)

    def require(self, result: Kind, *, at: Callable[..., Any] | None = None, unjudged: Unjudged = "fail") -> Kind:
        """Fail unless a result's verdict is *consistent*: of `dn.examine`, `dn.verdict`, `plan.verdict`, `dn.audit`.

        `at` is the function to blame where the result knows no line.
        """
        __tracebackhide__ = True
        from deniable.checks import one_of
        from deniable.testing.cause_lines import line_of_function, place_at
        from deniable.testing.findings import false_alarm_rate, findings_of, message_of, sarif_result

        one_of("unjudged", unjudged, ("fail", "skip"))
        place = None if at is None else place_at(line_of_function(at))
        findings = findings_of(result, place)
        self._found += [sarif_result(finding, self._item.nodeid) for finding in findings]
        self._tell("verdict", result.verdict)
        self._tell("false_alarm_rate", f"{false_alarm_rate(result):.4g}")
        for finding in findings:
            self._tell("cause", finding.text)
            if finding.place is not None:
                self._tell("place", f"{finding.place.file}:{finding.place.line}")
        if not findings:
            return result
        if result.verdict == "cannot judge" and unjudged == "skip":
            pytest.skip(message_of(result, place))
        pytest.fail(message_of(result, place), pytrace=False)

    def _tell(self, name: str, value: str) -> None:
        """As a property of the test: JUnit's XML has it, also from xdist's workers."""
        self._item.user_properties.append((f"privacy.{name}", value))


@pytest.fixture
def privacy(request: pytest.FixtureRequest) -> Privacy:
    """Tests that a training keeps its privacy claim: ``privacy.check(train, claimed=dn.Training(...))``."""
    return Privacy(request.node)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file for code scanners."""
    group = parser.getgroup("deniable", "privacy tests")
    group.addoption("--privacy-sarif", metavar="FILE", help="Write what privacy tests found to FILE, in SARIF 2.1.0.")


def pytest_configure(config: pytest.Config) -> None:
    """The process that reports, which with xdist is none of its workers, writes the file."""
    place = config.getoption("--privacy-sarif")
    if place and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_SarifWriter(Path(place)), "deniable-sarif")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Findings travel with the report of the test, from workers, too."""
    report = yield
    if report.when == "call" and (found := item.stash.get(_FOUND, None)) is not None:
        report.privacy_findings = found
    return report


class _SarifWriter:
    """Collects findings and writes them at the end."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._results: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._results += getattr(report, "privacy_findings", [])

    def pytest_sessionfinish(self) -> None:
        from deniable.testing.findings import sarif_document

        self._place.parent.mkdir(parents=True, exist_ok=True)
        self._place.write_text(json.dumps(sarif_document(self._results), indent=2) + "\n", encoding="utf-8")
