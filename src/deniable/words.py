"""A document in plain words: what a person can be told, in sentences."""

from __future__ import annotations

from deniable.document import Document
from deniable.numbers import as_given, at_least, at_most, percent_as_given, percent_at_most

__all__ = ["failure", "meaning", "noise_to_add", "setting"]

_PROMISES = ("belief", "advantage", "accuracy", "tpr", "ppv", "epsilon")
_ADJACENCIES = {
    "add-remove": ("one record more or less", "C"),
    "replace": ("one record exchanged for another", "2C"),
    "zero-out": ("one record blanked out", "C"),
}


def meaning(document: Document) -> str:
    """The paragraph that comes first: how sure an observer can become, and how well the best attack guesses."""
    scores = document["scores"]
    start = f"{_observer(document['input'])}, and starts at {percent_as_given(scores['prior'])}, {_ending(document)}."
    accuracy, blind = percent_at_most(scores["accuracy"]), percent_at_most(max(scores["prior"], 1 - scores["prior"]))
    return f"{start} No attack guesses right more than {accuracy} of the time; blind guessing does {blind}."


def noise_to_add(document: Document) -> str:
    """The paragraph that comes first for `choose`: what to do, and what it is the least for."""
    noise, given = at_most(document["noise"], 5), document["input"]
    if "mechanism" in given:
        return f"{_local_noise(document)} It is the least with which {_promise(document)}."
    sensitivity = _ADJACENCIES[given["adjacency"]][1]
    where = "each step's sum of gradients clipped to norm C" if _is_training(given) else "the release"
    return (
        f"Choose noise {noise}: add Gaussian noise of standard deviation {noise} x {sensitivity} to {where}. "
        f"It is the least with which {_promise(document)}."
    )


def _local_noise(document: Document) -> str:
    noise, given = document["noise"], document["input"]
    if given["mechanism"] == "laplace":
        scale = at_most(noise, 5)
        return f"Choose scale {scale}: add Laplace noise of scale {scale} x sensitivity."
    epsilon = at_least(1 / noise, 5)
    return f"Choose epsilon {epsilon} for each answer: report the true value e^{epsilon} times as often as any other."


def _promise(document: Document) -> str:
    given = document["input"]
    name = next(name for name in _PROMISES if name in given)
    bound, fpr, prior = (percent_as_given(share) for share in (min(given[name], 1), given["fpr"][0], given["prior"]))
    return {
        "belief": f"nobody becomes more than {bound} sure (except as said below)",
        "advantage": f"no attack has a membership advantage above {bound}",
        "accuracy": f"no attack guesses right more than {bound} of the time",
        "tpr": f"an attack with a false positive rate of {fpr} finds at most {bound} of the members",
        "ppv": f"at most {bound} of those whom an attack with a false positive rate of {fpr} accuses are members, "
        f"where {prior} of all are",
        "epsilon": f"the release is ({as_given(given[name])}, {failure(document)})-DP",
    }[name]


def failure(document: Document) -> str:
    """The failure probability as a person wrote or would write it: 1/60,000, not 1.6666666666666667e-5."""
    delta, records = document["input"]["delta"], document["input"].get("records")
    return f"1/{as_given(records)}" if records and delta == 1 / records else as_given(delta)


def setting(document: Document) -> str:
    """What was composed, and what neighbours and noise mean here."""
    given = document["input"]
    if _is_response(given):
        return "Neighbours are any two records of one person: local privacy."
    neighbours, sensitivity = _ADJACENCIES[given["adjacency"]]
    text = f"Neighbours are {given['adjacency']}: {neighbours}."
    if "rate" in given:
        unit = f"Noise is sigma / sensitivity; with clipping norm C the sensitivity is {sensitivity}."
        return f"{_steps(given)} {text} {unit}"
    return f"{text} Noise is scale / sensitivity." if "laplace" in given or "mechanism" in given else text


def _steps(given: Document) -> str:
    steps = "1 step" if given["steps"] == 1 else f"{as_given(given['steps'])} steps"
    sampling = f"of a Poisson sample at rate {given['rate']:.4g}" if given["rate"] < 1 else "of all records"
    return f"Composed: {steps} {sampling}."


def _is_response(given: Document) -> bool:
    return "randomized_response" in given or given.get("mechanism") == "randomized-response"


def _is_training(given: Document) -> bool:
    return bool(given.get("rate", 1) < 1 or given.get("steps", 1) > 1)


def _observer(given: Document) -> str:
    if _is_response(given):
        return "An observer who sees a person's randomized answers, knows that they stem from one of two records"
    return f"An observer who knows everyone else and {_watches(given)}"


def _watches(given: Document) -> str:
    return "watches every training step" if _is_training(given) else "sees the release"


def _ending(document: Document) -> str:
    scores = document["scores"]
    about = "which record it is" if _is_response(document["input"]) else "that a person is in the data"
    if scores["belief"] >= 1:
        certain = f"may become certain {about}"
        return f"{certain}, with a probability above {failure(document)}" if scores["belief_failure"] else certain
    most = f"ends at most {percent_at_most(scores['belief'])} sure {about}"
    reading = " (as Theorem 2 reads epsilon and delta)" if "any_release" in document["bounds"] else ""
    return f"{most}, except with probability {failure(document)}{reading}" if scores["belief_failure"] else most
