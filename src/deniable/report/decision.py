"""What a verdict means for a release: release, do not release, or not enough evidence; computed, with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Answer = Literal["Release", "Do not release", "Not enough evidence"]
TONES: dict[Answer, str] = {"Release": "good", "Do not release": "bad", "Not enough evidence": "open"}
_BY_PRIVACY_ALONE = "This speaks of the privacy of people in the training data alone, not of law, use or quality."


@dataclass(frozen=True)
class Decision:
    """What follows for those who decide; a place for their names comes with it on the page."""

    answer: Answer
    reasons: tuple[str, ...]
    would_change: str
    next_steps: tuple[str, ...]

    @property
    def tone(self) -> str:
        """How it is coloured."""
        return TONES[self.answer]


def decide(
    verdict: str,
    tone: str,
    weak: str | None,
    reasons: Sequence[str],
    *,
    enough: bool = True,
    test_mode: bool = False,
    cause_named: bool = False,
    missing: str = "",
) -> Decision:
    """The decision that follows from a verdict, its colour and how weak the promise is.

    Guarantee: "Release" only where the verdict is consistent, the promise is not weak, the page shows it green and the
    evidence is `enough`: scores of one attack that did not refute a claim never are, nor is a training whose final
    weights were not shown. "Do not release" where a claim is refuted, or what is claimed protects little, whether or
    not it is kept. `cause_named`: whether the report says what is wrong.
    `missing`: what would decide it, as the verdict says.
    """
    why = (*reasons, _BY_PRIVACY_ALONE)
    if test_mode:
        return Decision(
            "Do not release",
            ("Noise was fitted to this data set, as a test: it protects nobody.", *why),
            "A training whose noise is relative to the global sensitivity: its promise holds for every data set.",
            ("Train again with global sensitivity.", "Audit that training."),
        )
    if verdict == "violated":
        return Decision(
            "Do not release",
            why,
            "A mended training whose own audit is consistent; more trials of this one cannot take the finding back.",
            (
                "Withdraw the claim.",
                "Mend the cause that the report names." if cause_named else "Find the cause, and mend it.",
                "Audit again.",
            ),
        )
    if verdict in ("consistent", "cannot judge") and weak is not None:
        return Decision(
            "Do not release",
            (*reasons, f"Even if the promise is kept, it gives {weak} protection.", _BY_PRIVACY_ALONE),
            f"A stricter promise: even if it is kept, this one gives {weak} protection.",
            (
                "Choose a stricter promise and its noise (`deniable choose`).",
                "See what it costs (`deniable frontier`).",
            ),
        )
    if verdict == "consistent" and tone == "good" and enough:
        return Decision(
            "Release",
            why,
            "An attack that achieves more than was promised, another training code, or other data than was audited.",
            ("Keep this report with the model.", "Release only the model that was trained as described here."),
        )
    if verdict == "other recipe":
        return Decision(
            "Not enough evidence",
            why,
            "A claim that describes the training as it is, or a training that is as it was claimed.",
            ("Find out which of the two is meant.", "State the claim anew, and audit it."),
        )
    return Decision(
        "Not enough evidence",
        why,
        missing or "More trials, a stronger attack, or what the report says is missing.",
        (
            "Gather what is missing, and judge again; where nothing practical would do, examine the training itself "
            "(`deniable examine`).",
            "Until then treat the promise as unproven.",
        ),
    )
