"""The training of Erlingsson 2019, Tables 1 and 2 under three analyses and exactly."""

from __future__ import annotations

from collections.abc import Callable

from deniable.bounds import advanced_epsilon, classic_conversion, naive_epsilon, rdp_epsilon
from deniable.bounds.textbook import classic_epsilon
from deniable.experiments.statements import Known
from deniable.mechanisms import Adjacency, Gaussian, Mechanism
from deniable.results.base import Part
from deniable.scores import privacy_loss

NOISES = (136.67, 13.76, 6.99, 1.06, 0.44)
RATE, STEPS, DELTA = 0.02, 5000, 1e-5
PRINTED = {
    "naive": ("4.07", "51.2", "125", "8421", "44770"),
    "advanced": ("0.31", "4.23", "12.3", "37722", "3.5e8"),
    "rdp": ("0.05", "0.5", "1", "10", "100"),
}
MISPRINT = {
    "naive.0": Known("4.27", "The formula that gives the other four gives 4.27; no rounding of 136.67 bridges that.")
}


NEIGHBOURS = Adjacency.ADD_REMOVE


def training(noise: float) -> Mechanism:
    """The training of Erlingsson 2019, Section 4, at the rate and steps that reproduce its tables."""
    return Gaussian(noise).subsampled(RATE).composed(STEPS)


ANALYSES: dict[str, Callable[[Mechanism], float]] = {
    "naive": lambda release: naive_epsilon(release, DELTA, NEIGHBOURS, gaussian_step=classic_epsilon),
    "advanced": lambda release: advanced_epsilon(release, DELTA, NEIGHBOURS, gaussian_step=classic_epsilon),
    "rdp": lambda release: rdp_epsilon(release, DELTA, NEIGHBOURS, conversion=classic_conversion),
}


class UpperBounds(Part, frozen=True, kw_only=True):
    """Each analysis over the rounding of the printed noises, and at them; the exact epsilon at them."""

    noise: list[float]
    naive: list[tuple[float, float]]
    advanced: list[tuple[float, float]]
    rdp: list[tuple[float, float]]
    at_noise: dict[str, list[float]]
    exact: list[float]


def upper_bounds() -> UpperBounds:
    """All analyses of all noises."""
    rounded = {
        name: [(epsilon(training(noise + 0.005)), epsilon(training(noise - 0.005))) for noise in NOISES]
        for name, epsilon in ANALYSES.items()
    }
    return UpperBounds(
        noise=list(NOISES),
        **rounded,
        at_noise={name: [epsilon(training(noise)) for noise in NOISES] for name, epsilon in ANALYSES.items()},
        exact=[float(privacy_loss(training(noise), NEIGHBOURS).epsilon(DELTA)) for noise in NOISES],
    )
