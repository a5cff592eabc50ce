"""How a result shows itself in Python: its words, its pictures, its page."""

from __future__ import annotations

from matplotlib.figure import Figure

from deniable.report import given_away, words
from deniable.report.chapter import Chapter
from deniable.report.page import CHAPTERS, page_of
from deniable.report.picture import inline
from deniable.report.runs import Reported, Run
from deniable.results import AttackResult, AuditResult, CompareResult, ExposureResult, Result, VerdictResult

__all__ = ["draw_svg", "page", "pictures", "plot", "summary"]


def summary(result: Result) -> str:
    """The same sentences with which page and command line begin."""
    match result:
        case AuditResult():
            badge = words.badge(result.verdict, words.protection(result), words.is_test_mode(result))
            text = words.headline(result) if result.diagnostics is None else result.verdict_text
            return "\n".join([f"{badge}. {text}", *words.cautions(result)])
        case VerdictResult():
            badge = words.badge(result.verdict, words.claimed_protection(result))
            return "\n".join([f"{badge}. {result.verdict_text}", *words.scored_cautions(result)])
        case CompareResult():
            return " ".join(result.recommendation.sentences)
        case AttackResult():
            warning = [result.warning] if result.warning else []
            return "\n".join([*warning, given_away.meaning(result), given_away.attack_sentence(result)])
        case ExposureResult(exposure=found):
            return (
                f"The strongest observer has an advantage of {found.most_exposed[0].advantage:.3g} over the most "
                f"exposed record; the noise allows {result.exact.advantage:.3g}.\n{found.note}"
            )
    raise TypeError(f"{type(result).__name__} has no summary")


def pictures(result: Result) -> list[str]:
    """The names of the pictures of a result's chapter."""
    return [] if isinstance(result, ExposureResult) else [picture.name for picture in _chapter(result).pictures]


def plot(result: Result, name: str | None = None) -> Figure:
    """The picture of this name, or the first."""
    found = {picture.name: picture for picture in _chapter(result).pictures}
    if name is not None and name not in found:
        raise ValueError(f"name must be one of {', '.join(found)}, got {name!r}")
    return (found[name] if name is not None else next(iter(found.values()))).drawing


def draw_svg(result: Result) -> str:
    """The first picture as an <svg> element; nothing where there is none. Its texts are escaped."""
    found = [] if isinstance(result, ExposureResult) else _chapter(result).pictures
    return inline(found[0], "result") if found else ""


def page(result: Result, name: str) -> str:
    """The page of one result."""
    return page_of(_as_reported(result), name)


def _chapter(result: Result) -> Chapter:
    return CHAPTERS[result.kind](Run("result", _as_reported(result)))


def _as_reported(result: Result) -> Reported:
    if not isinstance(result, Reported):
        raise TypeError(f"a report is made of an audit, a verdict, a comparison or an attack, not of {result.kind}")
    return result
