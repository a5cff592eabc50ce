"""A document in plain words: what a person can be told, in sentences."""

from __future__ import annotations

from deniable import __version__
from deniable.document import Document
from deniable.numbers import as_given, at_least, at_most, percent_as_given, percent_at_most

__all__ = ["assessment", "chosen", "failure", "guessed", "meaning", "noise_to_add", "observed", "setting"]

_PROMISES = ("belief", "advantage", "accuracy", "tpr", "ppv", "epsilon")
_ADJACENCIES = {
    "add-remove": ("one record more or less", "C"),
    "replace": ("one record exchanged for another", "2C"),
    "zero-out": ("one record blanked out", "C"),
}


def meaning(document: Document) -> str:
    """The paragraph that comes first: how sure an observer can become, and how well the best attack guesses."""
    return f"{observed(document)} {guessed(document)}"


def observed(document: Document) -> str:
    """How sure an observer can become."""
    prior = percent_as_given(document["scores"]["prior"])
    return f"{_observer(document['input'])}, and starts at {prior}, {_ending(document)}."


def guessed(document: Document) -> str:
    """How well the best attack guesses."""
    scores = document["scores"]
    accuracy, blind = percent_at_most(scores["accuracy"]), percent_at_most(max(scores["prior"], 1 - scores["prior"]))
    return f"No attack guesses right more than {accuracy} of the time; blind guessing does {blind}."


def assessment(document: Document) -> str:
    """A paragraph for a data-protection impact assessment: what is done, what it means, and in which terms."""
    scores, given = document["scores"], document["input"]
    epsilon = "no finite epsilon" if scores["epsilon"] is None else f"epsilon {at_most(scores['epsilon'])}"
    neighbours = "any two records of one person" if _is_response(given) else _ADJACENCIES[given["adjacency"]][0]
    terms = (
        f"In the terms of differential privacy this is {epsilon} at delta {failure(document)} for neighbours that "
        f"differ by {neighbours}, and a membership advantage of at most {percent_at_most(scores['advantage'])}."
    )
    exact = f"Computed with deniable {__version__}; every figure is rounded to the safe side."
    return " ".join([_done(document), meaning(document), terms, *document["notes"], exact])


def _done(document: Document) -> str:
    """What protects the person, as a statement."""
    given = document["input"]
    noise = document.get("noise", given.get("noise"))
    if "rate" in given:
        size = f"{at_most(noise, 5)} x {_ADJACENCIES[given['adjacency']][1]}"
        if not _is_training(given):
            return f"The release carries Gaussian noise of standard deviation {size}, where C bounds one record's part."
        sampled = f"a Poisson sample of the records (rate {given['rate']:.4g})" if given["rate"] < 1 else "all records"
        records = f" on {as_given(given['records'])} records" if "records" in given else ""
        return (
            f"The model is trained{records} with differential privacy: in each of {as_given(given['steps'])} steps, on "
            f"{sampled}, every record's gradient is clipped to norm C and Gaussian noise of standard deviation {size} "
            "is added to their sum."
        )
    if _is_response(given):
        epsilon = given.get("randomized_response") or 1 / document["noise"]
        answers = "answer" if given["features"] == 1 else f"{as_given(given['features'])} answers"
        return (
            f"Every person's {answers} with {as_given(given['categories'])} possible values passes randomized response "
            f"with epsilon {at_least(epsilon, 5)} an answer before it leaves the person's device."
        )
    if "laplace" in given or given.get("mechanism") == "laplace":
        scale = given.get("laplace") or document["noise"]
        return f"The release carries Laplace noise of scale {at_most(scale, 5)} x its sensitivity."
    return _guaranteed(document)


def _guaranteed(document: Document) -> str:
    given = document["input"]
    if "tvd" in given:
        return f"The release promises a total variation of at most {percent_as_given(given['tvd'])}."
    if "gdp" in given:
        return f"The release promises {as_given(given['gdp'])}-GDP (Gaussian differential privacy)."
    return f"The release promises ({as_given(given['epsilon'])}, {failure(document)})-differential privacy."


def noise_to_add(document: Document) -> str:
    """The paragraph that comes first for `choose`: what to do, and what it is the least for."""
    noise, given = chosen(document), document["input"]
    if "mechanism" in given:
        most = "largest" if _is_response(given) else "least"
        return f"{_local_noise(document)} It is the {most} with which {_promise(document)}."
    sensitivity = _ADJACENCIES[given["adjacency"]][1]
    where = "each step's sum of gradients clipped to norm C" if _is_training(given) else "the release"
    return (
        f"Choose noise {noise}: add Gaussian noise of standard deviation {noise} x {sensitivity} to {where}. "
        f"It is the least with which {_promise(document)}."
    )


def chosen(document: Document) -> str:
    """What was chosen, rounded to the safe side: the noise up, or the epsilon of a randomized answer down."""
    noise = document["noise"]
    return at_least(1 / noise, 5) if _is_response(document["input"]) else at_most(noise, 5)


def _local_noise(document: Document) -> str:
    noise, given = chosen(document), document["input"]
    if given["mechanism"] == "laplace":
        return f"Choose scale {noise}: add Laplace noise of scale {noise} x sensitivity."
    return f"Choose epsilon {noise} for each answer: report the true value e^{noise} times as often as any other."


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
        unit = " Noise is 1 / epsilon of an answer." if "mechanism" in given else ""
        return f"Neighbours are any two records of one person: local privacy.{unit}"
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
