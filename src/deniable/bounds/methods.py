"""Each named analysis turns a mechanism into a bare guarantee, which is scored like every other mechanism.

| name | gives | supports | known for |
|---|---|---|---|
| naive | (epsilon, delta) | everything | Erlingsson 2019 |
| advanced | (epsilon, delta) | everything | Erlingsson 2019 |
| zcdp | (epsilon, delta) | Gaussian, GaussianDP, pure DP; ignores sampling | Erlingsson 2019 |
| rdp | (epsilon, delta) | Gaussian, GaussianDP, pure DP, sampled too | Bernau 2021, Bernau 2021b, Erlingsson 2019 |
| kl | total variation | as rdp | Jia 2023, Theorem 7 |
| classic | (epsilon, delta) | Gaussian steps without sampling; proved up to epsilon 1 | Bernau 2021 |

Sampling under `replace` is supported for Gaussian and Laplace noise (zcdp ignores sampling, so it takes any).
Anything else raises `InapplicableError`, a ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log, log1p, sqrt

from deniable.bounds.divergences import (
    classic_conversion,
    kl_tvd,
    rdp_epsilon,
    rho,
    rho_to_epsilon_classic,
    zcdp_epsilon,
)
from deniable.bounds.numeric import InapplicableError
from deniable.bounds.runs import Tuning, gaussian_noise, runs, sampling
from deniable.bounds.textbook import advanced_epsilon, classic_epsilon, classic_is_proved, jumps, naive_epsilon
from deniable.checks import probability, refuse
from deniable.mechanisms import Adjacency, ApproximateDP, Mechanism, TotalVariation, named_adjacency

METHODS = ("naive", "advanced", "zcdp", "rdp", "kl", "classic")


@dataclass(frozen=True)
class NamedBound:
    """What one analysis says: its guarantee, and whether the guarantee is proved (the classic formula's may not be)."""

    name: str
    guarantee: ApproximateDP | TotalVariation
    proved: bool = True

    @property
    def score(self) -> str:
        """Which score `value` is: "epsilon" (at the delta asked for), or "advantage"."""
        return "epsilon" if isinstance(self.guarantee, ApproximateDP) else "advantage"

    @property
    def value(self) -> float:
        return self.guarantee.epsilon if isinstance(self.guarantee, ApproximateDP) else self.guarantee.alpha


def analyses(mechanism: Mechanism, delta: float, adjacency: Adjacency | str | None = None) -> dict[str, NamedBound]:
    """Every named analysis that applies, by name; those that do not are left out."""
    found: dict[str, NamedBound] = {}
    for name in METHODS:
        try:
            known = guarantee(name, mechanism, delta, adjacency)
        except InapplicableError:
            continue
        proved = name != "classic" or (isinstance(known, ApproximateDP) and classic_is_proved(known.epsilon))
        found[name] = NamedBound(name, known, proved)
    return found


def guarantee(
    name: str,
    mechanism: Mechanism,
    delta: float,
    adjacency: Adjacency | str | None = None,
    tuning: Tuning | None = None,
) -> ApproximateDP | TotalVariation:
    """The bare guarantee that analysis `name` proves: ApproximateDP(epsilon, delta), or TotalVariation for "kl".

    `tuning`, where many mechanisms are looked at in turn, spares most of the search for the best order or split.
    """
    probability("delta", delta, open_ends=True)
    kind = named_adjacency(mechanism, adjacency)
    match name:
        case "naive":
            return ApproximateDP(naive_epsilon(mechanism, delta, kind), delta)
        case "advanced":
            return ApproximateDP(advanced_epsilon(mechanism, delta, kind, tuning=tuning), delta)
        case "zcdp":
            return ApproximateDP(zcdp_epsilon(mechanism, delta, tuning), delta)
        case "rdp":
            return ApproximateDP(rdp_epsilon(mechanism, delta, kind, tuning=tuning), delta)
        case "kl":
            return TotalVariation(kl_tvd(mechanism, kind))
        case "classic":
            return ApproximateDP(_classic(mechanism, delta), delta)
    raise refuse("name", name, f"one of {', '.join(METHODS)}")


def loss_bound(
    name: str,
    mechanism: Mechanism,
    failure: float,
    adjacency: Adjacency | str | None = None,
    tuning: Tuning | None = None,
) -> float:
    """A value that the privacy loss exceeds with probability at most `failure`, by analysis `name`.

    `epsilon_to_belief(loss_bound(...), prior)` is then a belief bound in the strict sense of erratum 4, which an
    (epsilon, delta) guarantee read by Bernau 2021 (Theorem 2) is not. The classic conversions of rdp and zcdp bound the
    tail themselves (Markov), and so does the classic formula. For the rest, (epsilon, delta)-DP gives Pr[loss > t] <=
    delta / (1 - e^(epsilon - t)), so t = epsilon - ln(1 - delta/failure) for any delta < failure; the best of some is
    taken. `tuning` as for `guarantee`.
    """
    kind, tuning = named_adjacency(mechanism, adjacency), tuning or Tuning()
    match name:
        case "rdp":
            return rdp_epsilon(mechanism, failure, kind, classic_conversion, tuning)
        case "zcdp":
            return rho_to_epsilon_classic(rho(mechanism), failure)
        case "classic":
            return _classic(mechanism, failure)
        case "kl":  # the same at every delta
            return _tail(guarantee(name, mechanism, failure, kind), failure)

    inner = replace(tuning)

    def at(log_share: float) -> float:
        share = exp(log_share)
        if tuning.level is not None:
            inner.level = tuning.level + log1p(-share)  # the guarantee's own part of it
        return _tail(guarantee(name, mechanism, share * failure, kind, inner), failure)

    corners = jumps(mechanism, failure, kind) if name == "naive" else []
    least = tuning.least("share", at, [log(delta / failure) for delta in corners])
    tuning.slack = inner.slack
    return least


def _tail(known: ApproximateDP | TotalVariation, failure: float) -> float:
    epsilon, delta = (0.0, known.alpha) if isinstance(known, TotalVariation) else (known.epsilon, known.delta)
    if delta >= failure:
        raise InapplicableError(
            f"failure must be above the total variation {delta:g} that is known here, got {failure!r}"
        )
    return epsilon - log1p(-delta / failure)


def _classic(mechanism: Mechanism, delta: float) -> float:
    """Gaussian steps of noises z_i are together one step of noise 1 / sqrt(sum 1/z_i^2)."""
    for part, _ in runs(mechanism):
        if gaussian_noise(part) is None or sampling(part) < 1:
            raise InapplicableError(f"classic: the formula is for Gaussian steps without sampling, got {part}")
    total = rho(mechanism)
    return classic_epsilon(1 / sqrt(2 * total), delta) if total > 0 else 0.0
