"""An audit's chapter: our own training or somebody else's, seen by the strongest observer."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.document import Document
from deniable.numbers import short
from deniable.report import words
from deniable.report.chapter import Chapter, Part
from deniable.report.epsilons import epsilon_picture, region_data, region_picture
from deniable.report.exposed import exposure_picture
from deniable.report.observed import course_pictures
from deniable.report.origins import rerun
from deniable.report.runs import Run, title
from deniable.report.scale import Row, Scale, epsilon_axis, promise_scale, share_axis
from deniable.report.tables import diagnostics, estimates, estimators, exposed, reach, scores

__all__ = ["audit_chapter"]


def audit_chapter(run: Run) -> Chapter:
    """Everything that is said and shown of an audit."""
    document = run.document
    verdict, weak, test_mode = document["verdict"], words.protection(document), words.is_test_mode(document)
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=words.badge(verdict, weak, test_mode),
        tone=words.audit_tone(document),
        sure=(_alarm(document) or _sure(document)) if verdict == "violated" else "",
        promise=words.promise(document),
        measured=words.measured(document),
        meaning=words.meaning(document),
        text=words.headline(document) if "diagnostics" not in document else document["verdict_text"],
        cautions=tuple(words.cautions(document)),
        scale=_scale(document),
        parts=tuple(_parts(document)),
        finished=document.get("finished"),
        last=test_mode,
    )


def _alarm(document: Document) -> str:
    """How sure a diagnostic's finding is; nothing where none was found, or where it is no matter of chance."""
    found = document.get("diagnostics", {})
    rate = found.get("false_alarm_rate") if found.get("cause") else None
    return f"{100 * (1 - rate):.4g} % confidence" if rate else ""


def _sure(document: Document) -> str:
    bound = document["measured"].get("epsilon", {}).get("lower_bound")
    return "" if bound is None else f"{100 * bound['confidence']:.4g} % confidence"


def _scale(document: Document) -> Scale:
    """On the scale of what was promised: how sure, how often right, or epsilon."""
    claimed, exact, measured = document["claimed"], document["exact"], document["measured"]
    played, sure = measured["trials"] > 0, _sure(document)
    if claimed["advantage"] is not None:
        axis = share_axis("How often the strongest observer guesses right; a coin does 50 % of the time")
        found = _right(measured["advantage"]) if played else None
        return promise_scale(axis, (1 + claimed["advantage"]) / 2, exact["accuracy"], found, f"Measured with {sure}.")
    if claimed["epsilon"] is not None and claimed["belief"] is None:
        return _epsilon_scale(document, played, sure)
    axis = share_axis("How sure the strongest observer becomes, starting from 50 %")
    limits = measured["belief"].get("at_delta") if played else None
    found = limits and Row("Measured", "measured", limits["low"], limits["high"], limits["value"], interval=True)
    note = f"The belief that is exceeded with probability {words.rarely(document)}; measured with {sure}."
    return promise_scale(axis, claimed["belief"], exact["belief"], found or None, note)


def _right(advantage: Document) -> Row:
    low, high, value = ((1 + advantage[key]) / 2 for key in ("low", "high", "value"))
    return Row("Measured", "measured", low, high, value, interval=True)


def _epsilon_scale(document: Document, played: bool, sure: str) -> Scale:
    claimed, exact = document["claimed"]["epsilon"], document["exact"]["epsilon"]
    bound = words.deciding(document) if played else None
    shown = [claimed, exact, *((bound["value"], bound["upper"]) if bound else ())]
    delta = short(document["exact"]["delta"])
    axis = epsilon_axis(f"Epsilon at delta {delta}: 0 gives nothing away", shown)
    found = bound and Row(
        "Shown by this attack", "measured", bound["value"], bound["upper"], interval=True, told=reach(bound)
    )
    return promise_scale(axis, claimed, exact, found or None, f"Measured: what this attack shows, with {sure}.")


def _parts(document: Document) -> Iterator[Part]:
    if document["measured"]["trials"] > 0:
        if document.get("course"):
            yield Part("What the observer saw", pictures=tuple(course_pictures(document)))
        yield _epsilon_part(document)
    if "diagnostics" in document:
        yield Part("Is the training what it claims to be?", tables=(diagnostics(document["diagnostics"]),))
    if "exposure" in document:
        yield _exposure_part(document)
    yield Part("What this rests on", tuple(document["notes"]), terms=tuple(words.assumptions(document)))
    yield rerun(document)


def _epsilon_part(document: Document) -> Part:
    measured, exact = document["measured"]["epsilon"], document["exact"]
    picture = epsilon_picture(document, document["claimed"]["epsilon"], exact["epsilon"], exact["delta"])
    deciding = words.deciding(document)
    lower = deciding["value"] if deciding else measured["lower_bound"]["value"]
    pictures = [picture]
    rows = region_data(document, lower)
    if rows:
        pictures.append(region_picture(rows, exact["delta"], "audit"))
    tables = (scores(document), estimators(measured["estimators"]), estimates(measured))
    return Part("Promised, exact, measured", pictures=tuple(pictures), tables=tables)


def _exposure_part(document: Document) -> Part:
    found = document["exposure"]
    said = (
        f"How far the noise hides each of the {found['records']:,} records by itself, {found['method']}.",
        found["note"],
    )
    pictures = (exposure_picture(found, document["exact"]["advantage"]),) if "distribution" in found else ()
    return Part("Who is exposed", said, pictures, (exposed(found),))
