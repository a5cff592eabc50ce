"""An answer in plain words: what a person can be told, in sentences. Every sentence is computed from the figures."""

from __future__ import annotations

from math import floor

from msgspec import UNSET

from deniable import __version__
from deniable.answers.batches import tell_batches
from deniable.answers.choose import LEAST_NOISE
from deniable.answers.strength import from_even, weakness
from deniable.formatting import (
    ALMOST_ALL,
    as_given,
    at_least,
    at_most,
    chance,
    percent_as_given,
    percent_at_most,
    rounded_percent,
)
from deniable.promises import promise_in, promised_bound
from deniable.results.explain_result import AnswerInput, ChooseResult, ExplainResult
from deniable.results.shared import ReleaseScores

_ADJACENCIES = {
    "add-remove": ("one record more or less", "C"),
    "replace": ("one record exchanged for another", "2C"),
    "zero-out": ("one record blanked out", "C"),
}
_PROTECTED = {
    "add-remove": "Protects the presence or absence of one record.",
    "replace": "Protects one record against being told from any other in its place.",
    "zero-out": "Protects the content of one record against being told from a blank one.",
}
NOT_RARE = 0.01
"""Where a belief may be exceeded with a larger chance, this is warned of."""
_OFTEN = 0.05
_NOT_TRIED = "Less noise was not tried; a stricter promise protects more."
_TOLD_ERROR = 1e-3  # of the noise, from which on it is said


def meaning(result: ExplainResult) -> str:
    """The paragraph that comes first: how sure an observer can become, and how well the best attack guesses."""
    return f"{belief_sentence(result)} {guess_sentence(result)}"


def caution(result: ExplainResult) -> str:
    """What is to be read first: why the value of another sampling is not this one's; empty where all is exact."""
    return "" if result.scores.epsilon_at_least is UNSET else result.notes[0]


def belief_sentence(result: ExplainResult) -> str:
    """How sure an observer can become."""
    return f"{_observer(result.input, result.scores.prior)} {_ending(result)}."


def guess_sentence(result: ExplainResult) -> str:
    """How well the best attack guesses."""
    scores = result.scores
    accuracy = percent_at_most(scores.accuracy, known=promised_bound(result.input, "accuracy"))
    blind = percent_at_most(max(scores.prior, 1 - scores.prior))
    often = {"100 %": "always", ALMOST_ALL: f"nearly always ({ALMOST_ALL})"}.get(accuracy)
    if often:
        return f"The best attack may guess right {often}; blind guessing is right {blind} of the time."
    return f"The best attack guesses right at most {accuracy} of the time; blind guessing does {blind}."


def risk_sentences(result: ExplainResult) -> str:
    """What singling out, re-identification, attribute inference and reconstruction reach, at every baseline asked."""
    return " ".join(_risk(found.baseline, found.success) for found in result.scores.success)


def _risk(baseline: float, success: float) -> str:
    people = round(1 / baseline) if baseline > 1e-300 else 0
    if people > 1 and abs(people * baseline - 1) < 1e-9:
        return (
            f"One of {as_given(people)} people could be picked out with probability at most {chance(success)} "
            f"(guessing: 1 in {as_given(people)}). An attribute or a record that is guessed as rarely is inferred or "
            "reconstructed no more often."
        )
    return (
        f"Whoever singles out, re-identifies, infers or reconstructs with a chance of {percent_as_given(baseline)} "
        f"without the release does so with at most {percent_at_most(success)}."
    )


def protection(result: ExplainResult) -> str | None:
    """How weak the protection is, if it is: see `strength.weakness`."""
    return weakness(result.scores.advantage, from_even(result.scores.belief, result.scores.prior))


def warning(result: ExplainResult) -> str:
    """What must be said of a weak protection, or of a large delta; empty where there is nothing to warn of."""
    said = " ".join(filter(None, (_weak(result.scores), _not_rare(result))))
    return said and f"Warning: {said[0].lower()}{said[1:]}"


def _weak(scores: ReleaseScores) -> str:
    belief = from_even(scores.belief, scores.prior)
    found = weakness(scores.advantage, belief)
    if found is None:
        return ""
    right = percent_at_most((1 + scores.advantage) / 2)
    sure = "certain" if belief >= 1 else f"{percent_at_most(belief)} sure"
    return (
        f"This is {found} protection. Someone who starts at 50 % may become {sure}, and the best attack may then be "
        f"right {right} of the time."
    )


def _not_rare(result: ExplainResult) -> str:
    """Where the limit on the belief may be exceeded often, or for more than one of the records on average."""
    often, records = result.scores.belief_delta, result.input.records
    many = records is not None and result.input.delta * records > 1 + 1e-9
    if result.scores.belief >= 1 or not (many or often > NOT_RARE):
        return ""
    people = f" (on average, for up to {at_most(often * records)} of {as_given(records)} records)" if records else ""
    larger = "the belief may be larger than stated; a smaller delta shows how large."
    return f"With a chance of {chance(often)}{people} {larger}"


def assessment(result: ExplainResult) -> str:
    """A paragraph for a data-protection impact assessment: what is done, what it means, and in which terms."""
    scores, given = result.scores, result.input
    known = {name: promised_bound(given, name) for name in ("epsilon", "advantage")}
    epsilon = "no finite epsilon"
    if scores.epsilon is not None:
        epsilon = f"epsilon {at_most(scores.epsilon, known=known['epsilon'])}"
    advantage = percent_at_most(scores.advantage, known=known["advantage"])
    neighbours = "any two records of one person" if given.is_response else _differ(given)
    terms = (
        f"In the terms of differential privacy this is {epsilon} at delta {delta_as_given(result)} for neighbours "
        f"that differ by {neighbours}, and a membership advantage of at most {advantage}."
    )
    exact = f"Computed with deniable {__version__}; every figure is rounded to the safe side."
    notes = [note for note in result.notes if note != caution(result)]
    said = [
        caution(result),
        mechanism_sentence(result),
        meaning(result),
        risk_sentences(result),
        warning(result),
        terms,
        *notes,
        exact,
    ]
    return " ".join(filter(None, said))


def _differ(given: AnswerInput) -> str:
    """By what neighbours differ."""
    one, records = _ADJACENCIES[given.adjacency][0], given.records_per_person or 1
    return one if records == 1 else f"{as_given(records)} records of one person, each as {one}"


def _who_is_protected(given: AnswerInput) -> str:
    records = given.records_per_person or 1
    several = f" This holds for all {as_given(records)} records of one person together." if records > 1 else ""
    return _PROTECTED[given.adjacency] + several


def _sensitivity(given: AnswerInput) -> str:
    """Of one step's sum; of banded noise, of all steps of a round together (Choquette-Choo 2023)."""
    one = _ADJACENCIES[given.adjacency][1]
    return f"{one} x the largest column norm of the matrix" if given.sampling == "cyclic" else one


def mechanism_sentence(result: ExplainResult) -> str:
    """What protects the person, as a statement."""
    given = result.input
    chosen = result.noise if isinstance(result, ChooseResult) else None
    if given.sampling is not None:
        size = f"{at_most(chosen or given.noise or 0.0, 5)} x {_sensitivity(given)}"
        return (
            f"The model is trained with differential privacy in {tell_batches(given)}. Every record's gradient is "
            f"clipped to norm C, and Gaussian noise of standard deviation {size} is {_how_added(given)}."
        )
    if given.rate is not None and given.steps is not None:
        return _gaussian_done(given, given.rate, given.steps, chosen or given.noise or 0.0)
    if given.is_response:
        epsilon = given.randomized_response if chosen is None else 1 / chosen
        answers = "answer" if given.features == 1 else f"{as_given(given.features or 1)} answers"
        return (
            f"Every person's {answers} with {as_given(given.categories or 2)} possible values passes randomized "
            f"response with epsilon {at_least(epsilon or 0.0, 5)} an answer before it leaves the person's device."
        )
    if given.is_laplace:
        scale = at_most(chosen or given.laplace or 0.0, 5)
        return f"The release carries Laplace noise of scale {scale} x its sensitivity."
    return _release_done(given, delta_as_given(result))


def _how_added(given: AnswerInput) -> str:
    correlated = "multiplied by the matrix's inverse and " if given.sampling == "cyclic" else ""
    return f"{correlated}added to each step's sum"


def _gaussian_done(given: AnswerInput, rate: float, steps: int, noise: float) -> str:
    size = f"{at_most(noise, 5)} x {_ADJACENCIES[given.adjacency][1]}"
    if not given.is_training:
        return f"The release carries Gaussian noise of standard deviation {size}, where C bounds one record's part."
    sampled = f"a Poisson sample of {rounded_percent(rate)} of the records" if rate < 1 else "all records"
    records = "" if given.records is None else f" on {as_given(given.records)} records"
    return (
        f"The model is trained{records} with differential privacy: in each of {as_given(steps)} steps, on "
        f"{sampled}, every record's gradient is clipped to norm C and Gaussian noise of standard deviation {size} "
        "is added to their sum."
    )


def _release_done(given: AnswerInput, delta: str) -> str:
    if given.release is not None:
        return f"The release is {given.release}."
    if given.tvd is not None:
        return f"The release promises a total variation of at most {percent_as_given(given.tvd)}."
    if given.gdp is not None:
        return f"The release promises {as_given(given.gdp)}-GDP (Gaussian differential privacy)."
    return f"The release promises ({as_given(given.epsilon or 0.0)}, {delta})-differential privacy."


def promise_kept(result: ChooseResult) -> str:
    """The sentence that comes first for `choose`: with what the promise is kept."""
    noise, kind = chosen_noise(result), result.input.mechanism
    what = {
        "laplace": f"Laplace noise of scale {noise} x sensitivity",
        "randomized-response": f"Randomized response with epsilon {noise} an answer",
    }.get(kind or "", f"Noise multiplier {noise}" if result.input.release is None else f"Noise {noise}")
    if _is_least(result):
        what = f"Even {what[0].lower()}{what[1:]} (less noise is not tried)"
    about = "which record it is" if result.input.is_response else "that a person is in the data"
    return f"{what} keeps your promise: {promise_in(result.input).say(about, delta_as_given(result))}."


def engineering(result: ChooseResult) -> str:
    """What to do, for those who write the code."""
    noise, given = chosen_noise(result), result.input
    if given.is_response:
        most = _NOT_TRIED if _is_least(result) else "A larger epsilon is too much."
        return f"For engineers: report the true value e^{noise} times as often as any other. {most}"
    least = _NOT_TRIED if _is_least(result) else _what_is_too_little(result)
    if given.mechanism == "laplace":
        return f"For engineers: add Laplace noise of scale {noise} x sensitivity to the release. {least}"
    if given.release is not None:
        return f"For engineers: release {given.release} with noise {noise}. {least}"
    where = "each step's sum of gradients clipped to norm C" if given.is_training else "the release"
    return f"For engineers: {_noise_to_add(given, noise)} to {where}. {least}"


def _noise_to_add(given: AnswerInput, noise: str) -> str:
    """Of banded noise, the independent numbers that the matrix's inverse correlates (Choquette-Choo 2023)."""
    size = f"Gaussian noise of standard deviation {noise} x {_sensitivity(given)}"
    if given.sampling == "cyclic":
        return f"draw {size}, multiply it by the matrix's inverse, and add it"
    return f"add {size}"


def _what_is_too_little(result: ChooseResult) -> str:
    """From where on noise surely breaks the promise, where the numerical error leaves that open."""
    if caution(result):
        return "Less is not proved to be enough."
    surely = result.noise - (result.noise_error or 0.0)
    if surely >= (1 - _TOLD_ERROR) * result.noise:
        return "Less is too little."
    return f"Below {at_least(surely, 3)} it is too little; what lies between could not be told within the time."


def _is_least(result: ChooseResult) -> bool:
    """Whether the search for the noise ended where it begins, so that less may keep the promise, too."""
    return bool(result.noise <= LEAST_NOISE * (1 + 1e-9))


def chosen_noise(result: ChooseResult) -> str:
    """What was chosen, rounded to the safe side: the noise up, or the epsilon of a randomized answer down."""
    noise = result.noise
    return at_least(1 / noise, 5) if result.input.is_response else at_most(noise, 5)


def signal(result: ExplainResult) -> str:
    """The signal-to-noise ratio of one step of a training: what its records can say at most, beside the noise.

    A batch of B records gives a sum of clipped gradients of length at most B C; noise has standard deviation z S in
    every direction, with S the sensitivity, and length z S sqrt(d) over d weights. Empty where B is not known.
    """
    given = result.input
    noise = result.noise if isinstance(result, ChooseResult) else given.noise
    batch = given.batch or (given.records or 0) * (given.rate or 0.0)
    if not (given.is_training and noise and batch):
        return ""
    deviation = noise * (2 if given.adjacency == "replace" else 1)
    ratio, count = batch / deviation, as_given(float(f"{batch:.4g}"))
    weights = as_given(_two_digits(ratio**2))
    return (
        f"Signal to noise of a step: at most {at_most(ratio)}. A batch of {count} clipped gradients sums to at most "
        f"{count} C, beside noise of {at_most(deviation, 5)} C in every direction. In a model with more than about "
        f"{weights} weights the noise of a step is longer than the whole sum, and only many steps together can learn."
    )


def _two_digits(value: float) -> float:
    return float(f"{floor(value):.2g}") if value >= 10 else float(f"{value:.2g}")


def delta_as_given(result: ExplainResult) -> str:
    """Delta as a person wrote or would write it: 1/60,000, not 1.6666666666666667e-5."""
    delta, records = result.input.delta, result.input.records
    return f"1/{as_given(records)}" if records and delta == 1 / records else as_given(delta)


def setting(result: ExplainResult) -> str:
    """What is assumed of the training, what is protected, and what noise means here."""
    given = result.input
    if given.is_response:
        unit = " Noise is 1 / epsilon of an answer." if given.mechanism else ""
        return (
            "Protects all answers of one person against everybody, also against those who collect them (local "
            f"differential privacy).{unit}"
        )
    protected, sensitivity = _who_is_protected(given), _sensitivity(given)
    unit = f"Noise is standard deviation / sensitivity; with clipping norm C the sensitivity is {sensitivity}."
    if given.sampling is not None:
        return f"Assumes {tell_batches(given)}. {protected} {unit}"
    if given.rate is not None and given.steps is not None:
        return f"{_steps(given.rate, given.steps)} {protected} {unit}"
    if given.release is not None:
        return f"Assumes {given.release}. {protected}"
    return f"{protected} Noise is scale / sensitivity." if given.is_laplace else protected


def _steps(rate: float, steps: int) -> str:
    if rate >= 1 and steps == 1:
        return "Assumes one release."
    counted = "1 step" if steps == 1 else f"{as_given(steps)} steps"
    if rate >= 1:
        return f"Assumes {counted}, each on all records."
    drawn = f"every record is drawn independently with probability {rounded_percent(rate)}"
    return f"Assumes {counted}; in {'it' if steps == 1 else 'each'}, {drawn}."


def _observer(given: AnswerInput, prior: float) -> str:
    if given.is_response:
        start = "no idea which (50:50)" if prior == 0.5 else f"{percent_as_given(prior)} belief in the true one"
        return (
            "Someone who sees a person's randomized answers, knows that they stem from one of two records and has "
            f"{start} is afterwards"
        )
    start = (
        "has no idea about a person (50:50)"
        if prior == 0.5
        else f"believes beforehand with {percent_as_given(prior)} that a person is in the data"
    )
    return f"Someone who knows every other record, {_watches(given)} and {start} is afterwards"


def _watches(given: AnswerInput) -> str:
    return "sees every training step" if given.is_training else "sees the release"


def _ending(result: ExplainResult) -> str:
    scores = result.scores
    about = "which record it is" if result.input.is_response else "that this person is in the data"
    rare = scores.belief_delta
    if scores.belief >= 1:
        certain = f"possibly certain {about}"
        return f"{certain}, also if cases with a chance of {chance(rare)} are left aside" if rare else certain
    shown = percent_at_most(scores.belief, known=promised_bound(result.input, "belief"))
    most = f"at most {shown} sure {about}" if shown != ALMOST_ALL else f"possibly almost certain ({shown}) {about}"
    if rare >= _OFTEN:
        return f"{most}, except in up to {percent_at_most(rare)} of cases, where it may be more"
    return f"{most}; the chance of more is at most {chance(rare)}" if rare else most
