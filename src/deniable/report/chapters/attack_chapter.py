"""An attack's chapter: what a user's own trained model gives away of its training data."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.formatting import begin_sentence
from deniable.report.chapters.chapter import Chapter, Section, Table
from deniable.report.page_notes import rerun
from deniable.report.pictures.comparison_pictures import attack_pictures
from deniable.report.pictures.exposure_pictures import member_picture
from deniable.report.pictures.scale_chart import attack_scale
from deniable.report.stored_runs import ReportedRun, title
from deniable.report.words.attack_words import (
    TONES,
    attack_sentence,
    exposed_rows,
    exposure_sentence,
    judged_name,
    meaning,
    outcome,
    proven_sentence,
    rows,
    shadow_caution,
    shadow_sentence,
    side_by_side,
)
from deniable.results.attack_result import AttackResult


def attack_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of an attack on a trained model."""
    document = run.result
    assert isinstance(document, AttackResult)
    found = outcome(document)
    given, precision, attack = document.input, document.average_precision, judged_name(document)
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=begin_sentence(found),
        tone=TONES[found],
        sure=f"{100 * given.confidence:.4g} % confidence",
        promise=proven_sentence(document) or "None is known here: the model is attacked as it is.",
        measured=f"The {attack} attack has an average precision of {precision.mean:.3f}{_mean_of(given.repeats)}; "
        "guessing has 0.5.",
        meaning=meaning(document),
        text=" ".join(filter(None, (attack_sentence(document), shadow_sentence(document)))),
        cautions=tuple(filter(None, (document.warning, shadow_caution(document)))),
        scale=attack_scale(document),
        parts=tuple(_parts(document)),
    )


def _mean_of(repeats: int) -> str:
    return "" if repeats == 1 else f" (mean of {repeats} times)"


HEAD = ("Attack", "AUC", "TPR at 0.1 % FPR", "TPR at 1 % FPR", "Advantage", "Epsilon at least")
NOTE = (
    "* judged above: of several, it did best on the known half. First repeat; each limit holds by itself with the "
    "stated confidence. Thresholds of advantage and epsilon were chosen on the known half."
)


EXPOSED_HEAD = ("Member (number from 0)", "Belief that it was trained on", "An observer of every step: at most")
EXPOSED_NOTE = (
    "From 50 % before the model was seen, by Bayesian LiRA's own likelihoods of this record with and without it: an "
    "estimate, which may be wrong, and no limit."
)


def _parts(document: AttackResult) -> Iterator[Section]:
    table = Table("What the attack achieves", ("Score", "value"), tuple(rows(document)))
    yield Section("What the model gives away", pictures=tuple(attack_pictures(document)), tables=(table,))
    if len(document.attacks) > 1:
        beside = Table("Attacks side by side", HEAD, tuple(side_by_side(document)), note=NOTE)
        yield Section("Every attack", tables=(beside,))
    if document.most_exposed:
        yield _exposed_part(document)
    yield Section("What this rests on", terms=tuple(_assumptions()))
    yield rerun(document)


def _exposed_part(document: AttackResult) -> Section:
    found, people = document.exposure, tuple(exposed_rows(document))
    title, head = "The members that Bayesian LiRA is surest of", EXPOSED_HEAD[: len(people[0])]
    table = Table(title, head, people, note=EXPOSED_NOTE)
    if found is None:
        return Section("Who is exposed", tables=(table,))
    return Section("Who is exposed", (exposure_sentence(document),), (member_picture(found),), (table,))


def _assumptions() -> Iterator[tuple[str, str]]:
    yield (
        "The attacker",
        "It knows half of the members and as many non-members, and is tested on the others. LiRA, RMIA and Bayesian "
        "LiRA compare the model with shadow models that were trained with and without each record; the white-box "
        "attack sees the model's gradients, the loss-threshold and quantile-regression attacks its losses alone. A "
        "stronger attack may achieve more.",
    )
    yield (
        "The records",
        "Members and non-members must come from the same source: an attack that never sees the model is played as "
        "well, and where it tells them apart, nothing is said about the model.",
    )
    yield (
        "Epsilon at least",
        "A training with a smaller epsilon would rarely give this much away. Records of one model share its noise, "
        "which the limit does not cover.",
    )
