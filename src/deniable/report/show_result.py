"""How a result shows itself in Python: its words, its pictures, its page."""

from __future__ import annotations

from matplotlib.figure import Figure

from deniable.answers import sentences
from deniable.report.chapters.chapter import Chapter
from deniable.report.page import CHAPTERS, page_of
from deniable.report.pictures.picture import inline
from deniable.report.stored_runs import Reported, ReportedRun
from deniable.report.words import attack_words, verdict_words
from deniable.report.words.amount_text import allowed_figure
from deniable.results import (
    AttackResult,
    AuditResult,
    ChooseResult,
    CompareResult,
    ExplainResult,
    ExposureResult,
    FrontierResult,
    ReproduceResult,
    Result,
    RunResult,
    VerdictResult,
)


def summary(result: Result) -> str:  # noqa: PLR0911 (one for each kind of result)
    """The same sentences with which page and command line begin."""
    match result:
        case AuditResult():
            badge = verdict_words.badge(
                result.verdict, verdict_words.protection(result), verdict_words.is_test_mode(result)
            )
            text = verdict_words.headline(result) if result.diagnostics is None else result.verdict_text
            return "\n".join([f"{badge}. {text}", *verdict_words.cautions(result)])
        case VerdictResult():
            badge = verdict_words.badge(result.verdict, verdict_words.claimed_protection(result))
            return "\n".join([f"{badge}. {result.verdict_text}", *verdict_words.scored_cautions(result)])
        case FrontierResult():
            return "\n".join([" ".join(result.knee.sentences), result.tuning_text])
        case RunResult():
            return f"{result.verdict.capitalize()}. {result.verdict_text}"
        case CompareResult():
            return " ".join(result.recommendation.sentences)
        case AttackResult():
            parts = (
                result.warning,
                attack_words.meaning(result),
                attack_words.attack_sentence(result),
                attack_words.shadow_sentence(result),
                attack_words.proven_sentence(result),
                attack_words.shadow_caution(result),
            )
            return "\n".join(filter(None, parts))
        case ExposureResult(exposure=found):
            return (
                f"The strongest observer has an advantage of {found.most_exposed[0].advantage:.3g} over the most "
                f"exposed record; the noise allows {allowed_figure(result.exact.advantage)}.\n{found.note}"
            )
        case ExplainResult():
            kept = [sentences.promise_kept(result)] if isinstance(result, ChooseResult) else []
            told = sentences.caution(result), *kept, sentences.meaning(result), sentences.risk_sentences(result)
            return "\n".join(filter(None, (*told, sentences.warning(result))))
        case ReproduceResult(missed=missed, items=items):
            said = f"{len(missed)} of {len(items)} miss what was stated: {', '.join(missed)}" if missed else "All hold"
            return f"{said}. See {result.out}/RESULTS.md."
    raise TypeError(f"{type(result).__name__} has no summary")


def pictures(result: Result) -> list[str]:
    """The names of the pictures of a result's chapter."""
    return [picture.name for picture in _chapter(result).pictures]


def plot(result: Result, name: str | None = None) -> Figure:
    """The picture of this name, or the first."""
    found = {picture.name: picture for picture in _chapter(result).pictures}
    if not found:
        raise ValueError("there is no picture: the release is known by name alone")
    if name is not None and name not in found:
        raise ValueError(f"name must be one of {', '.join(found)}, got {name!r}")
    return (found[name] if name is not None else next(iter(found.values()))).drawing


def draw_svg(result: Result) -> str:
    """The first picture as an <svg> element; nothing where there is none. Its texts are escaped."""
    found = _chapter(result).pictures
    return inline(found[0], "result") if found else ""


def page(result: Result, name: str) -> str:
    """The page of one result."""
    return page_of(_as_reported(result), name)


def _chapter(result: Result) -> Chapter:
    return CHAPTERS[result.kind](ReportedRun("result", _as_reported(result)))


def _as_reported(result: Result) -> Reported:
    assert isinstance(result, Reported), f"{result.kind} has no chapter"
    return result
