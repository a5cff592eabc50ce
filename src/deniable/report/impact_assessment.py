"""A data-protection impact assessment, filled from runs: what is computed or measured stands, the rest is left open.

Its parts follow what Article 35(7) of the GDPR asks for: a description, necessity and proportionality, risks, measures.
It is evidence for an assessment, never the assessment itself: purposes, law and values are for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from deniable import __version__
from deniable.answers.glossary import GLOSSARY
from deniable.report.chapters.chapter import Chapter, Section
from deniable.report.law_table import law_of_answer, law_of_audit
from deniable.report.page import make_chapters
from deniable.report.plain_document import (
    Block,
    Heading,
    Listed,
    OpenPlace,
    Paragraph,
    Rows,
    write_docx,
    write_markdown,
)
from deniable.report.stored_runs import ReportedRun
from deniable.report.words.assumptions import AS_CLAIMED, audit_assumptions
from deniable.report.words.verdict_words import is_test_mode
from deniable.results.audit_result import AuditResult
from deniable.results.explain_result import ExplainResult
from deniable.results.frontier_result import FrontierResult
from deniable.store import replace_file

FORMATS = (".md", ".docx")
_NOTE = (
    "Filled in by deniable {version} from the runs that are named below. Every figure stands in their documents, too. "
    "What only a person can write is marked."
)


def write_assessment(runs: Sequence[ReportedRun], path: Path) -> Path:
    """Write it as Markdown (.md) or .docx, by the file's name."""
    if path.suffix not in FORMATS:
        raise ValueError(f"--out must be a file that ends in {' or '.join(FORMATS)}, got {str(path)!r}")
    blocks = assess(runs)
    replace_file(path, write_markdown(blocks).encode() if path.suffix == ".md" else write_docx(blocks))
    return path


def assess(runs: Sequence[ReportedRun]) -> list[Block]:
    """The document of one or several runs."""
    if not runs:
        raise ValueError("name at least one run: a folder that audit or frontier wrote, or a .json file")
    chapters = make_chapters(runs)
    both = list(zip(runs, chapters, strict=True))
    told = [(run, one) for run, one in both if not isinstance(run.result, FrontierResult)]
    protected = [one for _, one in told]
    return [
        Heading("Data-protection impact assessment", 1),
        Paragraph(_NOTE.format(version=__version__)),
        *_about(chapters, told),
        *_necessity(both),
        *_risks(told),
        *_measures(told),
        *_personal(chapters),
        *_decision(protected),
        *(block for chapter in chapters for block in _evidence(chapter)),
        Heading("Words"),
        Rows(("word", "meaning"), tuple(GLOSSARY.items())),
    ]


def _about(chapters: Sequence[Chapter], told: Sequence[tuple[ReportedRun, Chapter]]) -> Iterator[Block]:
    yield Heading("1. What is assessed")
    yield OpenPlace("who is responsible (controller), who wrote this, the version and the date")
    yield Rows(("Run", "what", "outcome"), tuple((one.name, one.title, one.verdict) for one in chapters))
    yield OpenPlace("purpose of the model, who uses it, who gets to see it, and on what legal basis")
    yield OpenPlace(
        "whose data it is, which kinds of data, how sensitive they are, where they come from, how long kept"
    )
    yield Heading("How the data are used", 3)
    yield from (Paragraph(f"{_standing(run)}{one.promise}") for run, one in told)


def _standing(run: ReportedRun) -> str:
    """What has become of a claim: a refuted one is no description of how data are used."""
    verdict = getattr(run.result, "verdict", None)
    if verdict is None or (isinstance(run.result, AuditResult) and is_test_mode(run.result)):
        return ""
    return {
        "consistent": "Claimed, and not refuted: ",
        "violated": "Claimed, and REFUTED: ",
        "other recipe": "Claimed, though the training is another: ",
    }.get(verdict, "Claimed, and not established: ")


def _necessity(told: Sequence[tuple[ReportedRun, Chapter]]) -> Iterator[Block]:
    yield Heading("2. Necessity and proportionality")
    yield OpenPlace("why this purpose needs these data, and why nothing less intrusive serves it")
    yield Heading("What the model can do", 3)
    found = [one.meaning if isinstance(run.result, FrontierResult) else one.quality for run, one in told]
    yield from (Paragraph(text) for text in dict.fromkeys(filter(None, found)))


def _risks(told: Sequence[tuple[ReportedRun, Chapter]]) -> Iterator[Block]:
    yield Heading("3. Risks to people")
    for run, chapter in told:
        yield Heading(chapter.name, 3)
        if chapter.cautions:
            yield Listed(chapter.cautions)
        yield Paragraph(chapter.meaning)
        yield Paragraph(f"{chapter.labels[1]}: {chapter.measured}")
        if isinstance(run.result, ExplainResult):
            yield from _answer(run.result)
        elif isinstance(run.result, AuditResult):
            yield from _law(law_of_audit(run.result))
    yield OpenPlace("what would happen to a person about whom this came out: how likely and how severe")
    yield OpenPlace("risks that no figure here covers: errors of the model, unfair treatment, use for other purposes")


def _answer(result: ExplainResult) -> Iterator[Block]:
    """How strong it is, and which figure answers what is asked."""
    if result.strength is not None:
        yield Paragraph(f"Strength of the protection: {result.strength.name}. {result.strength.advice}")
        yield Listed(result.strength.reasons)
    yield from _law(law_of_answer(result))


def _law(section: Section) -> Iterator[Block]:
    """Which figure answers what regulators ask."""
    for table in section.tables:
        yield Rows(table.head, table.rows)
    yield from map(Paragraph, section.words)


def _measures(told: Sequence[tuple[ReportedRun, Chapter]]) -> Iterator[Block]:
    yield Heading("4. Measures")
    for run, chapter in told:
        if isinstance(run.result, AuditResult):
            noise = dict(audit_assumptions(run.result))["The noise"].removeprefix(AS_CLAIMED)
            yield Paragraph(f"{_whom_it_protects(run.result)}: {noise}")
        yield Paragraph(chapter.text)
    yield OpenPlace(
        "other measures: access, deletion, contracts, training of staff, handling of requests and incidents"
    )


def _whom_it_protects(document: AuditResult) -> str:
    if is_test_mode(document):
        return "Noise that protects nobody (test mode)"
    return {
        "consistent": "Noise that protects people, as far as the verdict below says",
        "violated": "Claimed noise, which does not protect as claimed",
    }.get(document.verdict, "Noise whose protection is not established")


def _personal(chapters: Sequence[Chapter]) -> Iterator[Block]:
    yield Heading("Personal data in the runs' documents", 3)
    yield from (Paragraph(f"{one.name}: {' '.join(one.personal)}") for one in chapters)


def _decision(chapters: Sequence[Chapter]) -> Iterator[Block]:
    yield Heading("5. What is left, and the decision")
    decided = [(one, one.decision) for one in chapters if one.decision is not None]
    for chapter, decision in decided:
        yield Heading(f"{chapter.name}: {decision.answer}", 3)
        yield Listed(decision.reasons)
        yield Paragraph(f"What would change it: {decision.would_change}")
        yield Listed(decision.next_steps)
    if not decided:
        yield Paragraph("No run here judges a training: what is promised was computed, and whether it is kept is open.")
    yield OpenPlace("views of the people concerned, or why they were not asked")
    yield OpenPlace("advice of the data-protection officer, and whether it is followed")
    yield OpenPlace("is what is left acceptable? must the authority be consulted before the start?")
    blank = ("", "", "")
    yield Rows(("Name", "role", "date and signature"), (blank, blank))


def _evidence(chapter: Chapter) -> Iterator[Block]:
    yield Heading(f"Annex: {chapter.name}")
    for part in chapter.parts:
        yield from _section(part)


def _section(part: Section) -> Iterator[Block]:
    yield Heading(part.title, 3)
    yield from (Paragraph(sentence) for sentence in part.words)
    if part.pictures:  # their words speak of curves and colours, which are not in this document
        drawn = "; ".join(picture.title for picture in part.pictures)
        yield Paragraph(f"Pictures, in the report that `deniable report` writes of the same run: {drawn}.")
    if part.code:
        yield Paragraph(part.code)
    for table in part.tables:
        yield Paragraph(table.caption)
        yield Rows(table.head, table.rows)
        if table.note:
            yield Paragraph(table.note)
    if part.terms:
        yield Rows(("", ""), part.terms)
