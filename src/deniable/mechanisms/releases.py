"""One release: noise on a query, randomized answers, or a random choice.

Noise is always relative to the sensitivity: ``noise = sigma / sensitivity`` and ``scale = b / sensitivity``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from deniable.checks import amount_of_noise, loss_size, probability, whole
from deniable.mechanisms.guarantees import GaussianDP
from deniable.mechanisms.mechanism import Mechanism


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
