"""What is claimed of a training with canaries, for the neighbours that the canaries make."""

from __future__ import annotations

from dataclasses import replace
from math import expm1, isfinite

from deniable.formatting import at_most
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, Poisson, Training
from deniable.promises import Epsilon
from deniable.results.canary_result import CanaryClaim
from deniable.scores import privacy_loss

_CLAIM_DIGITS = 6
"""To which the epsilon of a claimed training is rounded, upwards."""


def claim_of(claimed: Training | Epsilon, delta: float | None) -> CanaryClaim:
    """The claim as it is kept in the file: an epsilon, and the training where it is named."""
    if isinstance(claimed, Epsilon):
        return CanaryClaim(epsilon=claimed.bound, delta=claimed.delta)
    if delta is None:
        raise ValueError("delta is missing: name that of the claim, such as 1e-5")
    return CanaryClaim(
        epsilon=_epsilon_of(claimed.mechanism, claimed.adjacency, delta),
        delta=delta,
        noise=claimed.noise,
        rate=claimed.rate,
        steps=claimed.steps,
        adjacency=claimed.adjacency,
    )


def _epsilon_of(mechanism: Mechanism, adjacency: Adjacency, delta: float) -> float:
    """Exact, rounded upwards."""
    exact = privacy_loss(mechanism, adjacency).epsilon(delta)
    return float(at_most(exact, _CLAIM_DIGITS).replace(",", "")) if isfinite(exact) else float(exact)


def training_of(claim: CanaryClaim) -> Training | None:
    """The training that is claimed, where it is named."""
    if claim.noise is None or claim.rate is None or claim.steps is None or claim.adjacency is None:
        return None
    return Training(claim.noise, claim.rate, claim.steps, claim.adjacency)


def claim_for_replaced_records(training: Training | None, epsilon: Epsilon) -> tuple[Training | None, Epsilon]:
    """The claim for neighbours with one record in the place of another: sensitivity 2C, or twice the guarantee."""
    if training is None:
        doubled = 2 * epsilon.bound, epsilon.delta * (2 + expm1(min(epsilon.bound, 700.0)))
        return None, Epsilon(doubled[0], min(doubled[1], 1 - 1e-9))
    replaced = replace(training, noise=training.noise / 2, adjacency=Adjacency.REPLACE)
    return replaced, Epsilon(_epsilon_of(replaced.mechanism, replaced.adjacency, epsilon.delta), epsilon.delta)


def claim_for_people(training: Training, delta: float, records: int) -> Epsilon:
    """What a training of single records means for a person with several: its exact epsilon.

    `records` of the person are drawn each by its own coin, and all of their gradients may point the same way.
    """
    if training.adjacency == Adjacency.REPLACE:
        raise ValueError(
            "a training claimed for replaced records is not known for a person with several: claim "
            "dn.Epsilon(bound, delta) for a person"
        )
    sampling = Poisson(training.rate, records_per_person=records)
    mechanism = Gaussian(training.noise).subsampled(sampling).composed(training.steps)
    return Epsilon(_epsilon_of(mechanism, training.adjacency, delta), delta)
