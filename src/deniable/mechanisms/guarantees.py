"""A bare guarantee: all that is known of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from deniable.checks import loss_size, positive, probability, refuse
from deniable.mechanisms.mechanism import Mechanism

_SUM_ERROR = 1e-9  # by which given probabilities may miss 1


@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """A bare (epsilon, delta) guarantee: all that is known of the release.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.ApproximateDP(1.0, 1e-5)).advantage(), 4)
        0.4621
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, zero=True)  # weaker analyses state any number
        probability("delta", self.delta)


@dataclass(frozen=True)
class TotalVariation(Mechanism):
    """A bare alpha-TVD guarantee (Jia 2023, Definition 3).

    Examples:
        >>> import deniable as dn
        >>> dn.privacy_loss(dn.TotalVariation(0.2)).advantage()
        0.2
    """

    alpha: float

    def __post_init__(self) -> None:
        probability("alpha", self.alpha)


@dataclass(frozen=True)
class GaussianDP(Mechanism):
    """A bare mu-GDP guarantee: at least as hard to attack as telling N(0, 1) from N(mu, 1), whatever the query.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.GaussianDP(0.5)).advantage(), 4)
        0.1974
    """

    mu: float

    def __post_init__(self) -> None:
        loss_size("mu", self.mu, zero=True)


@dataclass(frozen=True)
class ConcentratedDP(Mechanism):
    """A bare rho-zCDP guarantee: Renyi divergences of every order a > 1 are at most rho a (Bun, Steinke 2016).

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.ConcentratedDP(0.1)).epsilon(1e-6), 3)
        2.142
    """

    rho: float

    def __post_init__(self) -> None:
        positive("rho", self.rho, zero=True)


@dataclass(frozen=True)
class RenyiDP(Mechanism):
    """A bare Renyi guarantee: divergences of these `orders`, all above 1, are at most `epsilons` (Mironov 2017).

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.RenyiDP([2.0, 8.0], [0.1, 0.5])).epsilon(1e-5), 3)
        1.71
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __init__(self, orders: Sequence[float] | float, epsilons: Sequence[float] | float) -> None:
        object.__setattr__(self, "orders", _floats(orders))
        object.__setattr__(self, "epsilons", _floats(epsilons))
        if not self.orders or len(self.orders) != len(self.epsilons):
            raise refuse("epsilons", epsilons, "one number for each of the orders")
        for order, epsilon in zip(self.orders, self.epsilons, strict=True):
            positive("epsilons", epsilon, zero=True)
            if positive("orders", order) <= 1:
                raise refuse("orders", order, "numbers above 1")


@dataclass(frozen=True)
class PmfPair(Mechanism):
    """Two probability mass functions over the same outputs that are the hardest neighbours of a release to hide.

    `with_person[i]` and `without_person[i]` are the probabilities of output i. Both directions are looked at.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.PmfPair([0.6, 0.4], [0.4, 0.6])).epsilon(0), 4)
        0.4055
    """

    with_person: tuple[float, ...]
    without_person: tuple[float, ...]

    def __init__(self, with_person: Sequence[float], without_person: Sequence[float]) -> None:
        object.__setattr__(self, "with_person", _probabilities("with_person", with_person))
        object.__setattr__(self, "without_person", _probabilities("without_person", without_person))
        if len(self.with_person) != len(self.without_person):
            raise refuse("without_person", len(self.without_person), f"{len(self.with_person)} probabilities")


def _floats(values: Sequence[float] | float) -> tuple[float, ...]:
    return (float(values),) if isinstance(values, int | float) else tuple(float(value) for value in values)


def _probabilities(name: str, values: Sequence[float]) -> tuple[float, ...]:
    found = tuple(probability(name, float(value)) for value in values)
    if abs(fsum(found) - 1) > _SUM_ERROR:
        raise refuse(name, fsum(found), "probabilities that sum to 1")
    return found
