"""One release: noise on a query, randomized answers, a random choice, the best of several runs, or a bare guarantee.

Noise is always relative to the sensitivity: ``noise = sigma / sensitivity`` and ``scale = b / sensitivity``. A bare
guarantee is all that is known of a release.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, log

from deniable.checks import amount_of_noise, loss_size, positive, probability, refuse, whole
from deniable.mechanisms.mechanism import Mechanism, check_mechanism


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Adds Gaussian noise of standard deviation `noise` times the sensitivity.

    On a Poisson sample under `replace` it stands for a sum of vectors clipped in norm, as in DP-SGD: the sensitivity
    is 2C, and a record that is left out contributes 0, half-way between any record and its opposite. For a count, a
    bounded mean or any other query, where a record left out may look like the other record, this would promise too
    much: write `Gaussian(noise).for_any_query()`. Without sampling, and for the other neighbours, both are the same.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.Gaussian(2.0)).advantage(), 4)
        0.1974
        >>> round(dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove").epsilon(1e-5), 3)
        1.828
    """

    noise: float

    def __post_init__(self) -> None:
        amount_of_noise("noise", self.noise)

    def for_any_query(self) -> GaussianDP:
        """The same noise on any query of that sensitivity: the bare (1 / noise)-GDP guarantee."""
        return GaussianDP(1 / self.noise)


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Adds Laplace noise of scale `scale` times the sensitivity; pure (1 / scale)-DP.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.Laplace(2.0)).epsilon(0), 4)
        0.5
    """

    scale: float

    def __post_init__(self) -> None:
        amount_of_noise("scale", self.scale)


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Reports one of `categories` values: the true one e^epsilon times as likely as each other one.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.RandomizedResponse(1.0)).advantage(), 4)
        0.4621
    """

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        loss_size("epsilon", self.epsilon)
        whole("categories", self.categories, low=2)

    @classmethod
    def from_retention(cls, retention: float, categories: int = 2) -> RandomizedResponse:
        """Keep the true value with probability `retention`, else draw uniformly (Bernau 2021b, Eq. 1, two coins)."""
        probability("retention", retention, open_ends=True)
        whole("categories", categories, low=2)
        lie = (1 - retention) / categories
        return cls(log((retention + lie) / lie), categories)


@dataclass(frozen=True)
class Pixelization(Mechanism):
    """Averages cells of `cell` x `cell` pixels and adds Laplace noise of scale 255 pixels / (cell^2 epsilon).

    Hides any change of up to `pixels` pixels of an image (Bernau 2021b, Section 2.1, after Fan 2018; erratum 17).

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.Pixelization(epsilon=1.0, pixels=4, cell=2)).advantage(), 4)
        0.3935
    """

    epsilon: float
    pixels: int
    cell: int

    def __post_init__(self) -> None:
        loss_size("epsilon", self.epsilon)
        whole("pixels", self.pixels)
        whole("cell", self.cell)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise that is added to every cell's mean, in grey levels 0..255."""
        return 255 * self.pixels / (self.cell**2 * self.epsilon)


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Adds an integer z with probability proportional to e^{-z^2 / (2 sigma^2)} to one integer (Canonne 2020).

    `sigma` is in units of the query, not of its sensitivity, the largest change of the integer between neighbours:
    the lattice has a size of its own. Numbers of a vector that are noised apart are a composition.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.DiscreteGaussian(4.0)).epsilon(1e-5), 3)
        0.927
    """

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        amount_of_noise("sigma", self.sigma)
        whole("sensitivity", self.sensitivity)


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Adds an integer z with probability proportional to e^{-|z| / scale} to one integer; the geometric mechanism.

    Pure (sensitivity / scale)-DP; `scale` is in units of the query (Ghosh, Roughgarden, Sundararajan 2009).

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.DiscreteLaplace(2.0)).epsilon(0), 3)
        0.5
    """

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        amount_of_noise("scale", self.scale)
        whole("sensitivity", self.sensitivity)


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """Chooses y with probability proportional to e^{epsilon u(y) / (2 D)}, D the most that u(y) changes by.

    Where no neighbour raises one utility and lowers another one, e^{epsilon u(y) / D} has the same guarantee: losses
    lie within a range of width epsilon (bounded range, Dong, Durfee, Rogers 2020).

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.ExponentialMechanism(1.0)).advantage(), 4)
        0.2449
    """

    epsilon: float

    def __post_init__(self) -> None:
        loss_size("epsilon", self.epsilon)


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


@dataclass(frozen=True)
class RepeatAndSelect(Mechanism):
    """Runs `mechanism` a random number of times, `mean` on average, and releases the best run alone (Papernot 2022).

    The number is drawn in secret from a truncated negative binomial law with this `shape`: 1 is geometric, 0
    logarithmic, infinity a Poisson law (which may be no run at all). What is best may be judged by any rule on the
    runs' outputs. A fixed number of runs has no such guarantee: all of them must be paid for.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.RepeatAndSelect(dn.Gaussian(4.0), mean=10), "add-remove").epsilon(1e-5), 3)
        2.154
    """

    mechanism: Mechanism
    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        positive("mean", self.mean)
        if self.shape != inf:
            positive("shape", self.shape, zero=True)
            if self.mean <= 1:
                raise refuse("mean", self.mean, "above 1", "at least one run is made")

    @property
    def samples(self) -> bool:
        return self.mechanism.samples
