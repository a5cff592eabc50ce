"""What every estimator returns: a lower bound on epsilon, what it means, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from scipy.special import ndtri

from deniable.checks import LEAST_NOISE, MOST_NOISE
from deniable.mechanisms import GaussianDP
from deniable.results.shared import Assumed, EpsilonBound
from deniable.scores import privacy_loss


@dataclass(frozen=True)
class Assumption:
    """What a bound rests on; `holds` is None where it is taken on trust, False where the scores speak against it."""

    text: str
    holds: bool | None = None
    p_value: float | None = None

    def result(self) -> Assumed:
        return Assumed(text=self.text, holds=self.holds, p_value=_number(self.p_value))


GAUSSIAN = Assumption("the release is Gaussian without sampling")
INDEPENDENT = Assumption("each row comes from a training of its own, independent of the others")


@dataclass(frozen=True)
class Bound:
    """A lower bound on epsilon at `delta`.

    Guarantee, where `kind` is confidence and the assumptions hold: `value` is above the true epsilon with probability
    at most 1 - `confidence`. A credible bound makes no such statement, and no verdict rests on it.
    """

    method: str
    value: float
    delta: float
    confidence: float
    upper: float = inf
    """Guarantee: what this attack shows of epsilon, at its fixed threshold or at the best of all, is above it with
    probability at most 1 - `confidence`. It limits this attack, not the true epsilon; infinite where nothing is known.
    """
    kind: Literal["confidence", "credible"] = "confidence"
    rule: str | None = None
    mu: float | None = None
    """The lower bound as a shift of unit Gaussians, where the estimator has one."""
    most_mu: float | None = None
    """The counterpart of `upper`."""
    noise: float | None = None
    """The noise multiplier that the training is shown not to reach, where the estimator has one."""
    least_noise: float | None = None
    """The counterpart of `upper`: this attack shows no more than it would of a training with this noise."""
    assumptions: tuple[Assumption, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing speaks against the assumptions."""
        return all(assumption.holds is not False for assumption in self.assumptions)

    @property
    def decides(self) -> bool:
        """Whether a verdict may rest on it."""
        return self.kind == "confidence" and self.valid

    def result(self) -> EpsilonBound:
        """As results show it; None stands for infinite or for nothing to say."""
        sure = self.kind == "confidence"
        return EpsilonBound(
            name=self.method,
            method=DESCRIPTIONS[self.method],
            rule=self.rule,
            value=_finite(self.value),
            upper=_finite(self.upper),
            delta=self.delta,
            mu=_finite(self.mu),
            noise=_finite(self.noise),
            confidence=self.confidence if sure else None,
            credible=None if sure else self.confidence,
            kind=self.kind,
            assumptions=tuple(assumption.result() for assumption in self.assumptions),
            valid=self.valid,
        )


DESCRIPTIONS = {
    "region": "Clopper-Pearson on both error rates jointly, (epsilon, delta) region",
    "gaussian": "Clopper-Pearson on both error rates jointly, Gaussian trade-off curve",
    "mechanism": "Clopper-Pearson on both error rates jointly, exact curve of the claimed training with less noise",
    "advantage": "Clopper-Pearson on both error rates jointly, from the advantage alone (weaker than region)",
    "credible": "joint Bayesian: Beta posteriors of both error rates (credible, not a confidence statement)",
    "separation": "separation of the log-likelihood ratios, noncentral t",
    "likelihood": "mean log-likelihood ratio",
    "watch": "bets against the claim, watched from the first trial on; holds whenever the watch ends",
    "one-run": "one run: right guesses about canaries, randomized response",
    "one-run-gaussian": "one run: right guesses about canaries, Gaussian trade-off curve",
    "one-run-mechanism": "one run: right guesses about canaries, exact curve of the claimed training with less noise",
    "order-statistics": "one run: errors of the most confident guesses about independent canaries, exact curve",
}
"""What each estimator does, by its name."""

_LEAST_MU, _MOST_MU = 1 / MOST_NOISE, 1 / LEAST_NOISE  # what a GaussianDP may have


def epsilon_of_mu(mu: float, delta: float, *, at_most: bool = False) -> float:
    """Epsilon at `delta` of a shift of unit Gaussians by `mu`, rounded down (up if it is to be `at_most`).

    A shift beyond what a `GaussianDP` may have counts as the largest one, or as infinite if it is to be `at_most`.
    """
    if mu <= 0 or mu == inf or (at_most and mu > _MOST_MU):
        return 0.0 if mu <= 0 else inf
    epsilon = privacy_loss(GaussianDP(min(max(mu, _LEAST_MU), _MOST_MU))).epsilon(delta)
    if at_most:
        return float(epsilon)
    return 0.0 if mu < _LEAST_MU else max(0.0, float(epsilon) - epsilon.error)


def one_sided_z(confidence: float) -> float:
    """The standard normal quantile."""
    return float(ndtri(confidence))


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and isfinite(value) else None


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
