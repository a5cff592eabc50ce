"""The chapter of an exposure without a campaign: who is exposed, without naming anybody's data."""

from __future__ import annotations

from deniable.report.chapters.chapter import Chapter, Section
from deniable.report.pictures.exposure_pictures import exposure_picture
from deniable.report.report_tables import exposed_table
from deniable.report.stored_runs import ReportedRun, title
from deniable.report.words.amount_text import allowed_figure, figure
from deniable.results.audit_result import ExposureResult


def exposure_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of an exposure."""
    result = run.result
    assert isinstance(result, ExposureResult)
    given, found, possible = result.input, result.exposure, result.exact.advantage
    worst = found.most_exposed[0].advantage
    spread = found.distribution
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=f"Advantage up to {figure(worst)}",
        tone="open",
        sure="",
        promise=f"Noise {given.noise:.4g} x sensitivity, which allows an advantage of {allowed_figure(possible)} at "
        "worst.",
        measured=f"One training on {given.data} ({given.records:,} records), and what each record changes in it. No "
        "trials were played, so there is no verdict on a claim.",
        meaning=f"The strongest observer has an advantage of {figure(worst)} over the most exposed record, and of "
        f"{figure(found.median_advantage)} over half of them at most.",
        text=found.note,
        cautions=(),
        scale=None,
        parts=(
            Section(
                "Who is exposed",
                pictures=() if spread is None else (exposure_picture(found, spread, possible),),
                tables=(exposed_table(found),),
            ),
        ),
        finished=result.finished,
    )
