"""`explain`: what a release means for a person, every score once and in full precision.

A value that is not a finite number is None, and `notes` say why: documents hold no NaN or Infinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from msgspec import UNSET, UnsetType, convert, structs

from deniable.answers.describe import describe_release
from deniable.answers.further_figures import epsilon_at_least, fit_gaussian, singling_out
from deniable.answers.strength import judge_strength
from deniable.bounds import METHODS, InapplicableError, any_release_belief, epsilon_to_belief, guarantee
from deniable.bounds.textbook import classic_is_proved
from deniable.formatting import at_least, short
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    GaussianDP,
    Mechanism,
    Shuffled,
    TotalVariation,
    named_adjacency,
    samplings_of,
)
from deniable.promises import SCORES, Promise, Question
from deniable.results.explain_result import Analysis, AnswerInput, ExplainResult, NumericalErrors
from deniable.results.shared import GaussianFit, ReleaseScores
from deniable.scores import PrivacyLoss, privacy_loss
from deniable.upper import Upper

TEXTBOOK = "Bernau et al. 2021, Theorem 2"
"""The source of the belief that is read off (epsilon, delta)."""
Asked = Question | AnswerInput
"""At which parameters scores are asked."""


def explain(
    mechanism: Mechanism,
    adjacency: Adjacency | str | None = None,
    *,
    delta: float | None = None,
    prior: float = 0.5,
    fpr: Sequence[float] = (0.001, 0.01),
    baseline: Sequence[float] = (),
) -> ExplainResult:
    """What a release means for a person: every score, its numerical error, and what weaker analyses say.

    Args:
        mechanism: the release, for example `Gaussian(1.0).subsampled(0.01).composed(1000)` or `ApproximateDP(1, 1e-5)`.
        adjacency: what neighbours are; may be left out where batches are not sampled.
        delta: at which epsilon is told, and how often the belief may be exceeded. Default: that of an (epsilon,
            delta) guarantee, else 1e-5.
        prior: the belief before the release.
        fpr: false positive rates at which members found (TPR) and predictive values (PPV) are told.
        baseline: successes without the release at which the success of an attack is told.

    Returns:
        Every score with its error; `summary()` says it in sentences.

    Examples:
        >>> import deniable as dn
        >>> found = dn.explain(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove", delta=1e-5)
        >>> round(found.scores.belief, 4)
        0.8919
    """
    if delta is None:
        delta = mechanism.delta if isinstance(mechanism, ApproximateDP) else 1e-5
    asked = {"delta": delta, "prior": prior, "fpr": tuple(fpr), "baseline": tuple(baseline)}
    question = Question.of(asked, named_adjacency(mechanism, adjacency))
    return explain_input(mechanism, describe_release(mechanism, question))


def explain_input(mechanism: Mechanism, given: AnswerInput) -> ExplainResult:
    """The same for a release that options describe; `given` is how, and what is asked."""
    return explain_loss(mechanism, privacy_loss(mechanism, given.adjacency), given)


def explain_loss(mechanism: Mechanism, loss: PrivacyLoss, given: AnswerInput) -> ExplainResult:
    """The same where the privacy loss is known."""
    values, belief = _single_scores(loss, given), _belief(mechanism, loss, given)
    errors = {name: _finite(value.error) for name, value in values.items()}
    least = epsilon_at_least(mechanism, given.delta, given.adjacency)
    scores = _scores(values, belief, loss, given)
    return ExplainResult(
        input=given,
        strength=judge_strength(scores, loss),
        scores=structs.replace(
            scores,
            epsilon_at_least=UNSET if least is None else least,
            singling_out=tuple(singling_out(loss, weight, given.records or 1) for weight in _weights(given)),
            gaussian=_known_fit(fit_gaussian(loss)),
        ),
        errors=NumericalErrors(**errors, belief=belief.error),
        method=loss.method,
        bounds=_weaker_analyses(mechanism, values["epsilon"], given),
        notes=(
            *_note_least(mechanism, least, given),
            *_note_infinite(values["epsilon"], given),
            *_note_bare(mechanism),
        ),
    )


def _known_fit(found: GaussianFit) -> GaussianFit | UnsetType:
    """Nothing where no finite mu holds."""
    return found if isfinite(found.mu) else UNSET


def _weights(given: AnswerInput) -> list[float]:
    """Shares of all people that a description may fit, where it is known among how many records it looks."""
    return [baseline for baseline in given.baseline if 0 < baseline < 1] if given.records is not None else []


def exact_scores(mechanism: Mechanism, question: Question) -> ReleaseScores:
    """Every score of `mechanism`, as `explain` tells them, without weaker analyses."""
    loss = privacy_loss(mechanism, question.adjacency)
    return _scores(_single_scores(loss, question), _belief(mechanism, loss, question), loss, question)


def _single_scores(loss: PrivacyLoss, asked: Asked) -> dict[str, Upper]:
    """The scores that have one value, but for the belief, which may be another for a bare guarantee."""
    single = {
        name: score for name, score in reversed(SCORES.items()) if score.list_parameter() is None and name != "belief"
    }
    return {name: score.ask(loss, _parameters(score, asked)) for name, score in single.items()}


def _parameters(score: type[Promise], asked: Asked) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in score.parameter_names()}


@dataclass(frozen=True)
class _Belief:
    """The belief that is exceeded with probability at most `delta`; no error is known where it is only a bound."""

    value: float
    delta: float
    error: float | None


def bare_delta(mechanism: Mechanism, delta: float) -> float | None:
    """Of a bare guarantee, how often the belief that is told may be exceeded; None where the loss itself is known.

    (epsilon, delta)-DP alone leaves room for Pr[loss > t] >= delta at every t, so that twice delta is taken (Lemma M3).
    """
    match mechanism:
        case ApproximateDP(_, bare) if 0 < bare < 0.5:
            return 2 * bare
        case ApproximateDP(_, bare) if bare > 0:
            return bare
        case GaussianDP() | TotalVariation() if delta > 0:
            return delta
    return None


def _belief(mechanism: Mechanism, loss: PrivacyLoss, asked: Asked) -> _Belief:
    """What holds for every release with this guarantee, or exactly for this mechanism where it is known."""
    delta = bare_delta(mechanism, asked.delta)
    if delta is not None:
        return _Belief(any_release_belief(loss.epsilon, delta, asked.prior), delta, None)
    exact = loss.belief(asked.delta, asked.prior)
    return _Belief(float(exact), asked.delta, _finite(exact.error))


def _scores(values: Mapping[str, Upper], belief: _Belief, loss: PrivacyLoss, asked: Asked) -> ReleaseScores:
    """Every score of the table at the parameters that are asked; one with many values is a list."""
    scores: dict[str, Any] = {"delta": asked.delta, "prior": asked.prior}
    for name, score in SCORES.items():
        at, listed = _parameters(score, asked), score.list_parameter()
        if name == "belief":
            scores |= {"belief": belief.value, "belief_delta": belief.delta}
        elif listed is None:
            scores[name] = _finite(values[name])
        else:
            rows = [{**at, listed: one} for one in at[listed]]
            scores[name] = [{**row, name: float(score.ask(loss, row))} for row in rows]
    return convert(scores, ReleaseScores)


def _weaker_analyses(mechanism: Mechanism, epsilon: float, asked: Asked) -> dict[str, Analysis]:
    """The named analyses; `theorem_2` reads the belief off (epsilon, delta), as textbooks do: it may be too low."""
    read_off = epsilon_to_belief(epsilon, asked.prior) if isfinite(epsilon) else 1.0
    named = {name: weaker_analysis(name, mechanism, asked) for name in METHODS}
    return {**named, "theorem_2": Analysis(belief=read_off, source=TEXTBOOK)}


def weaker_analysis(name: str, mechanism: Mechanism, asked: Asked) -> Analysis:
    """What the analysis of this name (one of `METHODS`) says of a release, or why it says nothing."""
    if asked.delta == 0:
        return _unknown(name, "needs a delta above 0")
    try:
        known = guarantee(name, mechanism, asked.delta, asked.adjacency)
    except InapplicableError as reason:
        return _unknown(name, short_reason(reason))
    if isinstance(known, TotalVariation):
        return Analysis(advantage=float(known.alpha))
    proved = classic_is_proved(known.epsilon) if name == "classic" else None
    return Analysis(epsilon=_finite(known.epsilon), proved=proved)


def _unknown(name: str, why: str) -> Analysis:
    return Analysis(advantage=None, why=why) if name == "kl" else Analysis(epsilon=None, why=why)


def _note_infinite(epsilon: float, asked: Asked) -> list[str]:
    """Whether none holds, or only none was found."""
    if isfinite(epsilon):
        return []
    if getattr(epsilon, "error", 0.0) > 0:
        return [f"No finite epsilon was found at delta {short(asked.delta)}: it is too small for this method."]
    return [f"Epsilon is infinite: no finite one holds at delta {short(asked.delta)}."]


def _note_bare(mechanism: Mechanism) -> list[str]:
    """A bare guarantee bounds every test, but not how often a belief is exceeded: say what was done about it."""
    match mechanism:
        case ApproximateDP(_, delta) if delta > 0:
            return [
                "The belief holds for every release with this guarantee. The one that textbooks read off epsilon and "
                f"delta ({TEXTBOOK}) may be too low: it is right only where the privacy loss exceeds epsilon with "
                "probability at most delta, which this guarantee does not promise."
            ]
        case GaussianDP() | TotalVariation():
            return ["The belief holds for every release with this guarantee; of a known mechanism it may be lower."]
    return []


def _note_least(mechanism: Mechanism, least: float | None, asked: Asked) -> list[str]:
    """Where only bounds are known, what is known from below."""
    if least is None:
        return []
    shown = (
        f"Epsilon at delta {short(asked.delta)} is at least {at_least(least)} for some data; the" if least else "The"
    )
    known = f"{shown} value for Poisson batches is not theirs."
    if any(isinstance(sampling, Shuffled) for sampling in samplings_of(mechanism)):
        return [
            "For shuffled batches nothing better than no sampling is proved: the figures are those of one release on "
            f"all records in every epoch. {known}"
        ]
    return [f"For batches of a fixed size the figures are bounds. {known}"]


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def short_reason(reason: InapplicableError) -> str:
    """The reason without the mechanism's description, which the document holds already."""
    return str(reason).partition(", got ")[0]
