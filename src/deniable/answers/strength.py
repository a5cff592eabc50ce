"""How strong a promise is, on a scale of four names, with the reasons: the worst of three figures decides.

The limits are chosen, not derived: `docs/which-promise.md` says why. What is weak is decided in one place, `weakness`,
for answers and audits alike.

Well-known deployments stand on the same scale. Their figures follow from what was published, by our own computation. A
published epsilon and delta alone allow more than the noise behind them usually does; where that noise is not published,
both readings are told, the one that always holds first. Units differ from row to row: a person's whole record is more
than a sequence of text or one day of a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import log, log1p

from scipy.special import expit

from deniable.bounds import any_release_belief
from deniable.calibration import calibrate
from deniable.formatting import percent_as_given, percent_at_most
from deniable.mechanisms import Adjacency, ApproximateDP, Gaussian, Mechanism
from deniable.promises import Epsilon
from deniable.results.base import Part
from deniable.results.explain_result import Strength, StrengthName
from deniable.results.shared import ReleaseScores
from deniable.scores import PrivacyLoss, privacy_loss

NAMES: tuple[StrengthName, ...] = ("strong", "moderate", "weak", "hardly any")
"""From the best on."""
WEAK_ADVANTAGE, HARDLY_ANY_ADVANTAGE = 0.5, 0.9
"""From these membership advantages on a protection is called weak, and hardly any: right 75 % and 95 % of the time."""
WEAK_BELIEF = 0.99
"""From this belief on, which an observer who starts at 50 % may reach, a protection is called weak, too."""
STRONG_BELIEF = 0.8
"""Up to this belief, from 50 %, a protection may be called strong: odds of four to one at most."""
BASELINE, STRONG_SUCCESS = 0.01, 0.02
"""A guess that is right 1 time in 100 may become right at most twice as often, where a protection is called strong."""
ADVICE: dict[StrengthName, str] = {
    "strong": "Whoever is in the data can plausibly deny it. Look at what it costs.",
    "moderate": "Whoever is in the data can still deny it, but guesses about a person get noticeably better. For "
    "sensitive data take a stricter promise.",
    "weak": "Somebody may come close to certainty about a person. Take a stricter promise, unless being in the data is "
    "no secret.",
    "hardly any": "This hides hardly anybody. Do not rely on it for data about people.",
}
"""What follows from each name, for those who decide."""
RARE = 0.01
"""Where a belief may be exceeded with a larger chance, the one that is exceeded with this chance is judged."""
_NOISE_OF_SEARCH = 1e-6  # a noise chosen for a belief keeps it with a little to spare


def weakness(advantage: float, belief: float) -> str | None:
    """ "weak" or "hardly any" where the protection is no better, else None; `belief` is that of one who starts at 50 %.

    The limits are `WEAK_ADVANTAGE`, `HARDLY_ANY_ADVANTAGE` and `WEAK_BELIEF`; they are chosen, not derived.
    """
    if advantage >= HARDLY_ANY_ADVANTAGE - _NOISE_OF_SEARCH:
        return "hardly any"
    return (
        "weak" if advantage >= WEAK_ADVANTAGE - _NOISE_OF_SEARCH or belief >= WEAK_BELIEF - _NOISE_OF_SEARCH else None
    )


def grade(advantage: float, belief: float, success: float) -> StrengthName:
    """The name on the scale; `belief` from 50 %, `success` where `BASELINE` is reached without the release."""
    found = weakness(advantage, belief)
    if found is not None:
        return "hardly any" if found == "hardly any" else "weak"
    is_strong = belief <= STRONG_BELIEF + _NOISE_OF_SEARCH and success <= STRONG_SUCCESS + _NOISE_OF_SEARCH
    return "strong" if is_strong else "moderate"


def judge_strength(scores: ReleaseScores, loss: PrivacyLoss) -> Strength:
    """The strength of a release with these scores and this privacy loss."""
    known = next((at.tpr for at in scores.tpr if at.fpr == BASELINE), None)  # the same point of the trade-off curve
    belief, success = _rarely_exceeded(scores, loss), known or float(loss.success(BASELINE))
    name = grade(scores.advantage, belief, success)
    return Strength(
        name=name,
        advice=ADVICE[name],
        belief=belief,
        baseline=BASELINE,
        success=success,
        reasons=_reasons(scores.advantage, belief, success),
    )


def _rarely_exceeded(scores: ReleaseScores, loss: PrivacyLoss) -> float:
    """The belief from 50 % that is exceeded with a chance of `RARE` at most, also where a larger delta is asked."""
    if scores.belief_delta <= RARE:
        return from_even(scores.belief, scores.prior)
    return max(from_even(scores.belief, scores.prior), float(loss.belief(RARE)))


def _reasons(advantage: float, belief: float, success: float) -> tuple[str, ...]:
    """A sentence a figure, with the name that it alone would give and where the next one begins.

    Success is the rate of an attack that is wrong about `BASELINE` of the others, so that it bounds the advantage from
    below; an advantage that is not weak says nothing of being strong.
    """
    right, surely = percent_at_most((1 + advantage) / 2), percent_at_most(belief)
    return (
        f"Someone who starts at 50 % may become {surely} sure: {grade(0, belief, 0)} (strong up to "
        f"{percent_as_given(STRONG_BELIEF)}, weak from {percent_as_given(WEAK_BELIEF)} on).",
        f"A guess that is right 1 time in 100 without the release may be right {percent_at_most(success)} of the time: "
        f"{grade(success - BASELINE, 0.5, success)} (strong up to {percent_as_given(STRONG_SUCCESS)}).",
        f"The best attack on membership may be right {right} of the time: "
        f"{weakness(advantage, 0.5) or 'not weak'} (weak from "
        f"{percent_as_given((1 + WEAK_ADVANTAGE) / 2)} on, hardly any from "
        f"{percent_as_given((1 + HARDLY_ANY_ADVANTAGE) / 2)}).",
    )


def from_even(belief: float, prior: float) -> float:
    """The belief of one who starts at 50 %, where one who starts at `prior` ends with `belief`."""
    if not 0 < belief < 1:
        return 1.0 if belief >= 1 else 0.5
    loss = log(belief) - log1p(-belief) - log(prior) + log1p(-prior)
    return float(expit(loss))


@dataclass(frozen=True)
class Deployment:
    """What was published: epsilon and delta, the unit that they protect, and the noise where it is known."""

    name: str
    unit: str
    epsilon: float
    delta: float
    source: str
    mu: float | None = None
    """Of Gaussian DP, where the noise itself is published."""


DEPLOYMENTS = (
    Deployment(
        "VaultGemma 1B (2025)",
        "a sequence of 1,024 tokens in the training data",
        2.0,
        1.1e-10,
        "model card",
    ),
    Deployment(
        "US Census 2020, state level",
        "a person's answers, as the tables of one state tell them",
        9.619,
        1e-10,
        "published zCDP budget: rho 3.65, of which .274 for states; ten discrete Gaussians",
        mu=1.4143,
    ),
    Deployment(
        "Apple, popular emojis",
        "what one device sends in a day (local)",
        4.0,
        0.0,
        "Apple's overview of its local differential privacy",
    ),
)


class ComparedDeployment(Part, frozen=True, kw_only=True):
    """A deployment on the scale; `strength_if_gaussian` where only epsilon and delta are published."""

    name: str
    unit: str
    promise: str
    source: str
    strength: str
    right: str
    """How often the best attack may be right."""
    belief: str
    strength_if_gaussian: str | None = None
    right_if_gaussian: str | None = None


@cache
def compare_deployments() -> tuple[ComparedDeployment, ...]:
    """Every deployment with its place on the scale."""
    return tuple(_compare(one) for one in DEPLOYMENTS)


def _compare(given: Deployment) -> ComparedDeployment:
    known: Mechanism = ApproximateDP(given.epsilon, given.delta) if given.mu is None else Gaussian(1 / given.mu)
    strength, right, belief = _place(known, given.delta)
    both: tuple[str | None, float | None] = (None, None)
    if given.mu is None and given.delta > 0:
        noise = calibrate(Gaussian, Epsilon(given.epsilon, given.delta), Adjacency.ADD_REMOVE).value
        both = _place(Gaussian(float(noise)), given.delta)[:2]
    return ComparedDeployment(
        name=given.name,
        unit=given.unit,
        promise=_promise(given),
        source=given.source,
        strength=strength,
        right=percent_at_most(right),
        belief=percent_at_most(belief),
        strength_if_gaussian=both[0],
        right_if_gaussian=None if both[1] is None else percent_at_most(both[1]),
    )


def _promise(given: Deployment) -> str:
    """What was published; with its noise, less than epsilon and delta alone allow."""
    known = "; noise published" if given.mu is not None else ""
    return f"epsilon {given.epsilon:g}{f' at delta {given.delta:g}' if given.delta else ''}{known}"


def _place(mechanism: Mechanism, delta: float) -> tuple[str, float, float]:
    """Its name on the scale, how often the best attack is right, and the belief from 50 %."""
    loss = privacy_loss(mechanism, Adjacency.ADD_REMOVE)
    bare = isinstance(mechanism, ApproximateDP) and delta > 0
    belief = any_release_belief(loss.epsilon, 2 * delta) if bare else float(loss.belief(delta))
    advantage = float(loss.advantage())
    return grade(advantage, belief, float(loss.success(BASELINE))), (1 + advantage) / 2, belief
