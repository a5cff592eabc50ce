"""What a person is told: the promise, the verdict, what was measured, and what all of it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.document import Document
from deniable.numbers import as_given, percent_as_given, percent_at_most
from deniable.report.amounts import figure, share

__all__ = ["ATTACKS", "assumptions", "cautions", "meaning", "measured", "promise", "rarely", "tone"]

OBSERVER = "an observer who knows everyone else's records and watches every step"
MEANINGS = {
    "consistent, tight": "Nothing contradicts the promise, and the observer comes as close to what the noise allows as "
    "these trainings can tell.",
    "consistent, loose": "Nothing contradicts the promise. On this data even the strongest observer stays clearly "
    "below what the noise allows.",
    "consistent": "Nothing contradicts the promise.",
    "violated": "The promise is broken: more was shown than it allows. Do not rely on it until the cause is found.",
    "other recipe": "The training is not the one that is claimed, though nothing shows that it is less private.",
    "cannot judge": "These trainings cannot tell: the promise is neither contradicted nor supported.",
}
"""What each verdict means for somebody who has to decide."""
TONES = {"consistent": "good", "violated": "bad", "other recipe": "odd", "cannot judge": "open"}
ATTACKS = {"whitebox": "white-box", "shadow": "shadow-model", "threshold": "loss-threshold"}
ADJACENCIES = {
    "replace": "D and D' are equally large and differ in one record, which is exchanged for another (replace, or "
    "bounded). One person's influence is then at most twice the clipping norm C.",
    "add-remove": "D' is D without one record (add-remove, or unbounded). One person's influence is then at most the "
    "clipping norm C.",
    "zero-out": "D' is D with one record blanked out (zero-out). One person's influence is then at most the clipping "
    "norm C.",
}
INSTRUMENT = (
    "Not a protection: the noise follows the local sensitivity, which depends on the data. It shows whether the bound "
    "is tight; a training like this has no differential privacy guarantee."
)
LOCAL_NOISE = (
    "Noise scaled to the local sensitivity is an instrument to test bounds. It is not differential privacy and "
    "protects nobody: its scale itself tells something about the data."
)


def tone(verdict: str) -> str:
    """How the page colours a verdict."""
    return TONES.get(verdict, "open")


def meaning(verdict: str, closeness: str | None, cause: str | None = None) -> str:
    """A verdict for somebody who has to decide; `cause` is what a diagnostic found."""
    if verdict == "violated" and cause:
        return "The promise is broken: the training does not do what it claims. Do not rely on it until it is mended."
    return MEANINGS.get(", ".join(filter(None, (verdict, closeness))), MEANINGS["cannot judge"])


def promise(document: Document) -> str:
    """An audit's promise in a sentence."""
    claimed, given, exact = document["claimed"], document["input"], document["exact"]
    failure = rarely(document)
    if claimed["belief"] is not None:
        most = percent_as_given(claimed["belief"])
        return (
            f"Nobody becomes more than {most} sure whether a person is in the data: not even {OBSERVER}, starting from "
            f"50 %, except with probability {failure}."
        )
    if claimed["advantage"] is not None:
        right = percent_at_most((1 + claimed["advantage"]) / 2)
        return (
            f"Nobody guesses right more than {right} of the time whether a person is in the data: not even {OBSERVER}. "
            f"A coin is right 50 % of the time (membership advantage {as_given(claimed['advantage'])})."
        )
    if claimed["epsilon"] is not None:
        return (
            f"The training is differentially private with epsilon {as_given(claimed['epsilon'])} at delta "
            f"{as_given(claimed['delta'])}: whether a person is in the data makes hardly a difference to {OBSERVER}."
        )
    return (
        f"Noise of {figure(given['noise'])} times the sensitivity in each of {given['steps']:,} steps. It allows "
        f"{OBSERVER}, starting from 50 %, to become at most {percent_at_most(exact['belief'])} sure, except with "
        f"probability {failure}."
    )


def measured(document: Document) -> str:
    """What an audit's trainings showed, in a sentence or two."""
    found = document["measured"]
    if not found["trials"]:
        return "Nothing was trained, so nothing was measured."
    right, belief = [(1 + found["advantage"][name]) / 2 for name in ("value", "low", "high")], found["belief"]
    text = (
        f"In {found['trials']:,} trainings the observer guessed right {share(right[0])} of the time (limits "
        f"{share(right[1])} to {share(right[2])}); a coin is right 50 % of the time."
    )
    often = share(belief["violation_rate"]) if belief["violation_rate"] else "none"
    return (
        f"{text} In {often} of them it became more than {share(belief['bound'])} sure; {rarely(document)} is allowed."
    )


def rarely(document: Document) -> str:
    """How often a promised belief may be exceeded, as a person would write it: 1 %, or 1/60,000 of the records."""
    failure, records = document["exact"]["belief_failure"], document["input"]["records"]
    return f"1/{records:,}" if records > 100 and failure == 1 / records else percent_at_most(failure)


def cautions(document: Document) -> list[str]:
    """What must stand beside an audit's verdict, so that nobody takes it for more or less than it is."""
    cause = document.get("diagnostics", {}).get("cause")
    found = [f"The cause: {cause}."] if cause else []
    return [*found, INSTRUMENT] if document["input"]["sensitivity"] != "global" else found


def assumptions(document: Document) -> Iterator[tuple[str, str]]:
    """(subject, plain words) of an audit."""
    given = document["input"]
    yield "Neighbours", ADJACENCIES[given["adjacency"]]
    yield (
        "The observer",
        "The strongest there can be: it knows D, D', the model and the noise, sees the noisy gradient of every step, "
        "and starts at 50 %. A fair coin decided before every training whether D or D' was used. Any real attacker "
        "knows less.",
    )
    yield "Sampling", _sampling(given)
    yield (
        "The noise",
        f"Gaussian, fresh in every step, {figure(given['noise'])} times the {given['sensitivity']} sensitivity, on the "
        f"sum of gradients that were clipped, each by itself, to norm C = {figure(given['clip'])}.",
    )
    yield "What local-sensitivity noise is not", LOCAL_NOISE
    yield (
        "What a verdict is not",
        "Consistent is no proof: it speaks of this pair of data sets, the most unlike that was found, and of this "
        "model. Violated is wrong with probability at most one minus the confidence.",
    )
    yield (
        "Left out",
        "Floating-point attacks on the noise, side channels such as timing, and everything that is done with the data "
        "besides this training.",
    )


def _sampling(given: Document) -> str:
    if given["rate"] < 1:
        return (
            f"Every record joins each of the {given['steps']:,} steps with probability {figure(given['rate'])}, "
            "independently (Poisson). For shuffled batches of fixed size this does not hold."
        )
    return f"None: every record takes part in each of the {given['steps']:,} steps, so sampling hides nobody."
