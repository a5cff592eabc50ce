"""Well-known deployments of differential privacy on the scale of `strength`, for comparison.

Figures follow from what was published, by our own computation. A published epsilon and delta alone allow more than the
noise behind them usually does; where that noise is not published, both readings are told, the one that always holds
first. Units differ from row to row: a person's whole record is more than a sequence of text or one day of a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from deniable.answers.strength import BASELINE, grade
from deniable.bounds import any_release_belief
from deniable.calibration import calibrate
from deniable.formatting import percent_at_most
from deniable.mechanisms import Adjacency, ApproximateDP, Gaussian, Mechanism
from deniable.promises import Epsilon
from deniable.results.base import Part
from deniable.scores import privacy_loss


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
