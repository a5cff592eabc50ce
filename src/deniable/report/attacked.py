"""An attack's chapter: what a user's own trained model gives away of its training data."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.report.chapter import Chapter, Part, Table
from deniable.report.comparison import attack_pictures
from deniable.report.given_away import TONES, attack_sentence, meaning, outcome, rows
from deniable.report.origins import rerun
from deniable.report.runs import Run, title
from deniable.report.scale import attack_scale
from deniable.report.words import ATTACKS
from deniable.results.attack_result import AttackResult

__all__ = ["attack_chapter"]


def attack_chapter(run: Run) -> Chapter:
    """Everything that is said and shown of an attack on a trained model."""
    document = run.result
    assert isinstance(document, AttackResult)
    found = outcome(document)
    given, precision = document.input, document.average_precision
    attack = ATTACKS.get(given.attack, given.attack)
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=found.capitalize(),
        tone=TONES[found],
        sure=f"{100 * given.confidence:.4g} % confidence",
        promise="None is known here: the model is attacked as it is.",
        measured=f"The {attack} attack has an average precision of {precision.mean:.3f}; guessing has 0.5.",
        meaning=meaning(document),
        text=attack_sentence(document),
        cautions=(document.warning,) if document.warning else (),
        scale=attack_scale(document),
        parts=tuple(_parts(document)),
    )


def _parts(document: AttackResult) -> Iterator[Part]:
    table = Table("What the attack achieves", ("Score", "value"), tuple(rows(document)))
    yield Part("What the model gives away", pictures=tuple(attack_pictures(document)), tables=(table,))
    yield Part("What this rests on", terms=tuple(_assumptions()))
    yield rerun(document)


def _assumptions() -> Iterator[tuple[str, str]]:
    yield (
        "The attacker",
        "It knows half of the members and as many non-members, and is tested on the others. The white-box attack sees "
        "the model's gradients, the loss-threshold attack its losses alone. A stronger attack may achieve more.",
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
