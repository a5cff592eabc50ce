"""The seeds' printed numbers that named bounds must give, copied from reference/seed_numbers.json with their source."""

from __future__ import annotations

from math import ceil, log, sqrt

import pytest
from scipy.optimize import brentq

from deniable.bounds import (
    advanced_epsilon,
    belief_to_epsilon,
    classic_conversion,
    kl_tvd,
    naive_epsilon,
    rdp_epsilon,
)
from deniable.bounds.risk_bounds import accuracy_from_dp, accuracy_from_tvd
from deniable.bounds.textbook import classic_epsilon, epsilon_to_advantage, noise_for_belief, renyi_to_advantage
from deniable.bounds.variation import gaussian_tvd, laplace_tvd
from deniable.mechanisms import Gaussian


def sgd(noise, rate, steps):
    return Gaussian(noise).subsampled(rate).composed(steps)


# vldb_table_3: Bernau 2021, Table 3 (MNIST; Purchase-100 and Adult have the same row).
@pytest.mark.parametrize(
    ("delta", "beliefs", "epsilons", "advantages"),
    [
        (0.01, [0.52, 0.75, 0.9, 0.99], [0.08, 1.1, 2.2, 4.6], [0.01, 0.14, 0.28, 0.54]),
        (0.001, [0.53, 0.75, 0.9, 0.99], [0.12, 1.1, 2.2, 4.6], [0.01, 0.12, 0.23, 0.46]),
    ],
)
def test_vldb_table_3(delta, beliefs, epsilons, advantages):
    for belief, epsilon, advantage in zip(beliefs, epsilons, advantages, strict=True):
        exact = belief_to_epsilon(belief)
        assert exact == pytest.approx(epsilon, abs=0.005 if epsilon < 1 else 0.05)
        assert epsilon_to_advantage(exact, delta) == pytest.approx(advantage, abs=0.0051)


# d53_advantage_under_rdp: Bernau 2020, Section 5.2 prints .2562; .2168 at delta .001 is the same formula, for
# regression.
@pytest.mark.parametrize(("delta", "advantage"), [(0.01, 0.2562), (0.001, 0.2168)])
@pytest.mark.parametrize("steps", [1, 30, 10_000])
def test_d53_advantage_under_rdp(delta, advantage, steps):
    noise = noise_for_belief(0.9, delta, steps)
    assert gaussian_tvd(noise / sqrt(steps)) == pytest.approx(advantage, abs=5e-5)
    assert renyi_to_advantage(7.0, 7.0 * steps / (2 * noise**2)) == pytest.approx(advantage, abs=5e-5)
    by_search = rdp_epsilon(Gaussian(noise).composed(steps), delta, conversion=classic_conversion)
    assert by_search == pytest.approx(log(9), rel=1e-8, abs=0)


# tvd_experiment_2: Jia 2023, Section 3. Laplace scale 1; Gaussian of variance 2 (erratum 13).
def test_tvd_experiment_2():
    assert accuracy_from_tvd(laplace_tvd(1.0)) == pytest.approx(0.697, abs=5e-4)
    assert accuracy_from_tvd(gaussian_tvd(sqrt(2))) == pytest.approx(0.639, abs=1e-3)  # exactly .6382
    assert accuracy_from_dp(1.0) == pytest.approx(0.73, abs=0.005)
    epsilon = classic_epsilon(sqrt(2), 1e-5)
    assert epsilon == pytest.approx(3.4, abs=0.05)
    assert accuracy_from_dp(epsilon, 1e-5) == pytest.approx(0.97, abs=0.005)


def up_to_one_decimal(noise):
    return ceil(round(noise * 10, 9)) / 10


# tvd_figure_4: Jia 2023, Figure 4, DP column; 60,000 records, batch 300, 6000 steps, delta 1e-5, improved conversion.
@pytest.mark.parametrize(("accuracy", "noise"), [(0.8, 1.4), (0.7, 2.0), (0.6, 3.7), (0.55, 7.0)])
def test_tvd_figure_4_from_dp(accuracy, noise):
    def excess(z):
        return accuracy_from_dp(rdp_epsilon(sgd(z, 0.005, 6000), 1e-5, adjacency="add-remove"), 1e-5) - accuracy

    assert up_to_one_decimal(brentq(excess, 0.5, 20, xtol=1e-6)) == noise


# tvd_figure_4: TVD column. The bound of Jia 2023's own formula (and of its authors' published code) is met by 1.2 and
# 2.1 where the figure prints 1.4 and 2.4: those noises keep the promise but are not the least that do.
@pytest.mark.parametrize(
    ("accuracy", "printed", "least"), [(0.8, 0.7, 0.7), (0.7, 0.8, 0.8), (0.6, 1.4, 1.2), (0.55, 2.4, 2.1)]
)
def test_tvd_figure_4_from_kl(accuracy, printed, least):
    def excess(z):
        return accuracy_from_tvd(kl_tvd(sgd(z, 0.005, 6000), adjacency="add-remove")) - accuracy

    assert excess(printed) <= 0
    assert up_to_one_decimal(brentq(excess, 0.5, 20, xtol=1e-6)) == least


# exact_subsampled_gaussian: kl_pinsker_bound_on_the_first_two (erratum 14), beside the exact total variation.
@pytest.mark.parametrize(("noise", "bound", "exact"), [(0.7, 0.4828, 0.364698), (2.4, 0.0843, 0.067146)])
def test_kl_pinsker_bound(noise, bound, exact):
    found = kl_tvd(sgd(noise, 0.005, 6000), adjacency="add-remove")
    assert found == pytest.approx(bound, abs=5e-5)
    assert found > exact


# erlingsson_table_1: Erlingsson 2019, Table 1; rate .02, 5000 steps, delta 1e-5. The noise is printed to two decimals,
# so a printed epsilon must lie between those of the noise rounded up and down (and be rounded itself).
TABLE_1 = [
    (136.67, None, 0.31, 0.05),
    (13.76, 51.2, 4.23, 0.5),
    (6.99, 125, 12.3, 1),
    (1.06, 8421, 37722, 10),
    (0.44, 44770, 3.5e8, 100),
]


def lies_within(printed, at_noise, noise, rounding):
    low, high = at_noise(noise + 0.005), at_noise(noise - 0.005)
    return low - rounding <= printed <= high + rounding


@pytest.mark.parametrize(("noise", "naive", "advanced", "rdp"), TABLE_1)
def test_erlingsson_table_1(noise, naive, advanced, rdp):
    if naive is not None:
        assert lies_within(
            naive,
            lambda z: naive_epsilon(sgd(z, 0.02, 5000), 1e-5, gaussian_step=classic_epsilon, adjacency="add-remove"),
            noise,
            0.05 if naive < 100 else 0.5,
        )
    assert lies_within(
        advanced,
        lambda z: advanced_epsilon(sgd(z, 0.02, 5000), 1e-5, gaussian_step=classic_epsilon, adjacency="add-remove"),
        noise,
        {0.31: 0.005, 4.23: 0.005, 12.3: 0.05, 37722: 0.5, 3.5e8: 0.5e7}[advanced],
    )
    assert lies_within(
        rdp,
        lambda z: rdp_epsilon(sgd(z, 0.02, 5000), 1e-5, conversion=classic_conversion, adjacency="add-remove"),
        noise,
        0.005 * rdp + 0.0005,
    )


def test_erlingsson_table_1_first_naive_value_is_a_misprint():
    """4.07 is printed where the formula of the other four rows gives 4.27; no rounding of 136.67 bridges that."""
    found = naive_epsilon(sgd(136.67, 0.02, 5000), 1e-5, gaussian_step=classic_epsilon, adjacency="add-remove")
    assert found == pytest.approx(4.27, abs=0.005)


# dbsec_table_2_central_epsilon: Bernau 2021b, Table 2; 8000 records, batch 128, 200 epochs, delta 1/8000, an older
# accountant: within 10 % of the interval that the printed decimal stands for.
@pytest.mark.parametrize(("noise", "epsilon"), [(0.5, 88.1), (2, 4.1), (4, 1.8), (6, 1.2), (16, 0.4)])
def test_dbsec_table_2(noise, epsilon):
    found = rdp_epsilon(sgd(noise, 128 / 8000, 200 * 8000 // 128), 1 / 8000, adjacency="add-remove")
    assert (epsilon - 0.05) * 0.9 <= found <= (epsilon + 0.05) * 1.1


def test_dbsec_table_2_largest_by_the_classic_conversion():
    found = rdp_epsilon(
        sgd(0.5, 128 / 8000, 200 * 8000 // 128), 1 / 8000, conversion=classic_conversion, adjacency="add-remove"
    )
    assert found == pytest.approx(88.1, rel=0.01, abs=0)
