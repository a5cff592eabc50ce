"""Evidence that is watched: no false alarms however long one looks, broken claims caught, order of blocks moot."""

from __future__ import annotations

from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtrc, ndtr

from deniable.evidence.anytime.sequential import (
    SIDES,
    SLOPES,
    STAKES,
    THRESHOLDS,
    Tally,
    growth,
    hockey_sticks,
    largest_refuted,
    log_wealth,
)
from deniable.evidence.anytime.watch import Watch, WatchEvidence, expected_trials, looks, observer_tally
from deniable.evidence.bound import epsilon_of_mu
from deniable.evidence.measured import Trials
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    Training,
)
from deniable.scores import privacy_loss
from draws import when


def claim_gaussian(mu):
    return hockey_sticks(privacy_loss(GaussianDP(mu)))


def draw_gaussian(mu, size, generator):
    """Fair coins, and log-likelihood ratios of a Gaussian release."""
    on_d = generator.random(size) < 0.5
    return np.where(on_d, 0.5, -0.5) * mu * mu + mu * generator.standard_normal(size), on_d


def draw_response(epsilon, size, generator):
    """Randomized response: hard labels, all of them ties."""
    on_d = generator.random(size) < 0.5
    return np.where(on_d == (generator.random(size) < 1 / (1 + exp(-epsilon))), epsilon, -epsilon), on_d


def draw_laplace(epsilon, size, generator):
    """The loss of Laplace noise with sensitivity epsilon, with atoms at both ends.

    Clipped, since the low bits of the sum tell the two data sets apart (Mironov 2012): the watch finds that.
    """
    on_d = generator.random(size) < 0.5
    output = on_d * epsilon + generator.laplace(size=size)
    return np.clip(np.abs(output) - np.abs(output - epsilon), -epsilon, epsilon), on_d


def draw_unrelated(mu, size, generator):
    """Hard labels that say nothing about the coins."""
    return np.sign(draw_gaussian(mu, size, generator)[0]), generator.random(size) < 0.5


def tallies_of(log_odds, on_d, every=1):
    parts = [Tally.of(log_odds[i : i + every], on_d[i : i + every]) for i in range(0, len(on_d), every)]
    total, found = Tally.of([], []), []
    for part in parts:
        total += part
        found.append(total)
    return found


def evidence_of(looked, loss):
    deltas = hockey_sticks(loss)
    return WatchEvidence(looked, log_wealth(looked, deltas), deltas, 0.05)


def block(log_odds, on_d):
    return Trials(on_d, log_odds[:, None], log_odds[:, None], log_odds[:, None])


def naive_log_wealth(log_odds, on_d, deltas):
    """The mean over all bets of the product over trials, one at a time."""
    weights = [1 / (1 + np.array(grid)) / sum(1 / (1 + np.array(grid))) for grid in (THRESHOLDS, SLOPES)]
    mean = 0.0
    bets = product(enumerate(THRESHOLDS), enumerate(SLOPES), STAKES, SIDES.items())
    for (i, threshold), (j, slope), stake, (side, share) in bets:
        cost = deltas[j] / (1 if side == "both" else 2)
        wealth = 1.0
        for odds, truth in zip(log_odds, on_d, strict=True):
            named = True if odds > threshold and side != "D'" else False if odds < -threshold and side != "D" else None
            gain = -cost if named is None else 1 - cost if named == truth else -exp(slope) - cost
            wealth *= 1 + stake / (exp(slope) + cost) * gain
        mean += weights[0][i] * weights[1][j] / len(STAKES) * share * wealth
    return log(mean)


@pytest.mark.parametrize("draw", [draw_gaussian, draw_response, draw_laplace])
def test_the_wealth_is_the_mean_of_all_bets(draw):
    log_odds, on_d = draw(1.5, 12, np.random.default_rng(3))
    deltas = hockey_sticks(privacy_loss(GaussianDP(0.7)))
    for looked in (1, 5, 12):
        found = log_wealth(tallies_of(log_odds, on_d), deltas)[looked - 1]
        assert found == pytest.approx(naive_log_wealth(log_odds[:looked], on_d[:looked], deltas), abs=1e-12)


MECHANISMS = [
    GaussianDP(0.3),
    GaussianDP(3.0),
    Laplace(0.4),
    Gaussian(1.0).subsampled(0.1).composed(20),
    Gaussian(0.8).subsampled(0.5).composed(3),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_no_bet_gains_on_average_under_the_claim(mechanism):
    """Lemma E11 from the tails of the loss, not by simulation: the loss is the strongest score that there is."""
    loss = privacy_loss(mechanism, Adjacency.ADD_REMOVE)
    gain, lose, keep = (np.exp(factor) for factor in growth(hockey_sticks(loss) / 2))
    for threshold in THRESHOLDS:
        right, wrong = (float(tail(threshold)) / 2 for tail in (loss.pair.tail, loss.pair.null_tail))
        mean = right * gain + wrong * lose + (1 - right - wrong) * keep
        assert mean.max() <= 1 + 1e-12
        if threshold in SLOPES and loss.pair.reverse() == loss.pair:  # fair at its own slope
            assert mean[SLOPES.index(threshold)] == pytest.approx(1, abs=1e-12)


CLAIMS = st.floats(0.05, 4.0)


@given(CLAIMS, CLAIMS, st.integers(0, 2**32 - 1))
def test_a_larger_claim_is_harder_to_refute(one, other, seed):
    low, high = sorted((one, other))
    odds, on_d = draw_gaussian(2.0, 40, np.random.default_rng(seed))
    weaker, stronger = (
        log_wealth([Tally.of(odds, on_d)], hockey_sticks(privacy_loss(GaussianDP(m)))) for m in (low, high)
    )
    assert stronger <= weaker + 1e-9
    if when(high > 1.1 * low):
        assert stronger < weaker


def count_refuted(draw, truth, claim, *, rounds, trials, every):
    """In how many campaigns the claim is ever refuted."""
    generator, deltas = np.random.default_rng(0), hockey_sticks(privacy_loss(claim, Adjacency.ADD_REMOVE))
    refuted = 0
    for _ in range(rounds):
        wealth = log_wealth(tallies_of(*draw(truth, trials, generator), every), deltas)
        refuted += bool(wealth.max() >= log(20))
    return refuted


KEPT = [
    (draw_gaussian, 0.3, GaussianDP(0.3)),
    (draw_gaussian, 1.0, GaussianDP(1.0)),
    (draw_gaussian, 3.0, GaussianDP(3.0)),
    (draw_response, 1.0, RandomizedResponse(1.0)),
    (draw_laplace, 1.0, Laplace(1.0)),
    (draw_response, 1.0, ApproximateDP(1.0, 1e-5)),
    (draw_unrelated, 1.0, ApproximateDP(0.0, 0.0)),
]


@pytest.mark.parametrize(("draw", "truth", "claim"), KEPT, ids=lambda one: getattr(one, "__name__", str(one)))
def test_a_kept_claim_is_rarely_ever_refuted(draw, truth, claim):
    """5,000 trials: at most 5 %, as far as 40 campaigns show (`hunt statistics` simulates more)."""
    refuted = count_refuted(draw, truth, claim, rounds=40, trials=5000, every=50)
    assert not refuted or bdtrc(refuted - 1, 40, 0.05) > 1e-3


@pytest.mark.parametrize(
    ("claim", "truth", "most"), [(1.0, 2.0, 150), (1.0, 1.5, 350), (0.5, 1.0, 350), (2.0, 4.0, 100)]
)
def test_a_broken_claim_is_caught_soon(claim, truth, most):
    generator, deltas, needed = np.random.default_rng(5), hockey_sticks(privacy_loss(GaussianDP(claim))), []
    for _ in range(40):
        wealth = log_wealth(tallies_of(*draw_gaussian(truth, 3 * most, generator), 5), deltas)
        refuted = np.flatnonzero(wealth >= log(20))
        needed.append(5 * (refuted[0] + 1) if refuted.size else inf)
    forecast = expected_trials(observer_tally(truth), deltas, 0.05)
    assert np.median(needed) <= most
    assert np.median(needed) <= forecast <= 1.8 * np.median(needed)


def test_scores_of_another_scale_catch_it_too():
    """An observer that believes in the claimed noise underrates its log-odds where there is less."""
    generator, deltas, needed = np.random.default_rng(6), hockey_sticks(privacy_loss(GaussianDP(1.0))), []
    for _ in range(40):
        odds, on_d = draw_gaussian(2.0, 400, generator)
        refuted = np.flatnonzero(log_wealth(tallies_of(odds / 4, on_d, 5), deltas) >= log(20))
        needed.append(5 * (refuted[0] + 1) if refuted.size else inf)
    assert np.median(needed) <= 150


@given(st.integers(0, 2**32 - 1), st.permutations(range(6)))
def test_neither_order_nor_blocks_matter(seed, order):
    """Lemma E12: bit for bit the same, however the trials are cut and in whatever order the parts arrive."""
    odds, on_d = draw_gaussian(1.5, 60, np.random.default_rng(seed))
    deltas = hockey_sticks(privacy_loss(GaussianDP(1.0)))
    parts = [Tally.of(odds[i::6], on_d[i::6]) for i in range(6)]
    joined = sum((parts[i] for i in order), Tally.of([], []))
    assert joined.trials == 60
    assert log_wealth([joined], deltas)[0] == log_wealth([Tally.of(odds, on_d)], deltas)[0]


def test_a_watch_ends_at_the_first_block_that_decides():
    odds, on_d = draw_gaussian(2.0, 400, np.random.default_rng(1))
    loss = privacy_loss(GaussianDP(1.0))
    watch = Watch(loss, 390, 0.05)
    answers = [watch.add(block(odds[i : i + 20], on_d[i : i + 20])) for i in range(0, 400, 20)]
    first = answers.index(True)
    found, wealth = watch.evidence(), log_wealth(tallies_of(odds[:380], on_d[:380], 20), hockey_sticks(loss))
    assert found.refuted_after == 20 * (first + 1) == found.trials_in_sight
    assert all(answers[first:])
    assert wealth[first] >= log(20) > wealth[:first].max()
    assert found.trials == 390  # what the last block has more is left out
    assert found.wealth >= 20


@pytest.mark.parametrize("per_block", [1, 7, 64, 2000])
def test_looks_are_where_the_watch_looks(per_block):
    odds, on_d = draw_gaussian(1.0, 1000, np.random.default_rng(2))
    watch = Watch(privacy_loss(GaussianDP(1.0)), 1000, 0.05)
    for i in range(0, 1000, per_block):
        watch.add(block(odds[i : i + per_block], on_d[i : i + per_block]))
    assert [tally.trials for tally in watch.evidence().looked] == looks(1000, per_block)


def test_bounds_hold_at_every_time():
    """Lemma E13: the bound, the best of all looks, is above the truth in at most 5 % of the campaigns."""
    generator, above = np.random.default_rng(8), 0
    for _ in range(30):
        looked = tuple(tallies_of(*draw_gaussian(1.0, 1500, generator), 100))
        mu = largest_refuted(looked, claim_gaussian, 40.0, 0.05)
        above += mu > 1.0
        assert mu > 0.5
    assert not above or bdtrc(above - 1, 30, 0.05) > 1e-3


def test_a_bound_is_the_last_claim_that_is_refuted():
    looked = tallies_of(*draw_gaussian(2.0, 300, np.random.default_rng(4)), 20)
    grid = np.arange(0.0, 3.0, 0.01)
    refuted = [log_wealth(looked, claim_gaussian(float(mu))).max() >= log(20) for mu in grid]
    least = grid[np.argmin(refuted)]  # the first that is not
    assert least - 0.02 < largest_refuted(looked, claim_gaussian, 40.0, 0.05) <= least


def test_bounds_of_one_watch_agree():
    """The bare bound assumes least and shows least; of full batches noise and mu are one thing."""
    training = Training(1.0, 1.0, 4, Adjacency.ADD_REMOVE)
    loss = privacy_loss(training.mechanism, training.adjacency)
    looked = tuple(tallies_of(*draw_gaussian(4.0, 300, np.random.default_rng(4)), 20))
    found = evidence_of(looked, loss)
    bare, mechanism = found.bare_bound(1e-5), found.mechanism_bound(training, 1e-5)
    gaussian = epsilon_of_mu(largest_refuted(looked, claim_gaussian, 40.0, 0.05), 1e-5)
    assert found.refuted_after is not None
    assert 0 < bare.value < gaussian
    assert mechanism.value == pytest.approx(gaussian, rel=1e-3)
    assert mechanism.value > loss.epsilon(1e-5)  # refuted, and so is every epsilon up to the bound


def test_nothing_seen_shows_nothing():
    found = Watch(privacy_loss(GaussianDP(1.0)), 10, 0.05).evidence()
    assert (found.trials, found.wealth, found.refuted_after, found.trials_in_sight) == (0, 1.0, None, None)
    assert found.bare_bound(1e-5).value == 0
    assert "0 trials" in found.result(found.bare_bound(1e-5)).text


def test_words_follow_the_evidence():
    generator, loss = np.random.default_rng(9), privacy_loss(GaussianDP(1.0))
    texts = {}
    for truth in (0.0001, 1.8, 3.0):
        looked = tuple(tallies_of(*draw_gaussian(truth, 60, generator), 30))
        found = evidence_of(looked, loss)
        texts[truth] = found.result(found.bare_bound(1e-5)).text
    assert "not grown" in texts[0.0001]
    assert "trials in all" in texts[1.8]
    assert "was refuted" in texts[3.0]


def test_the_observers_tally_is_that_of_its_trials():
    drawn = Tally.of(*draw_gaussian(1.5, 200_000, np.random.default_rng(10)))
    expected = observer_tally(1.5, 200_000)
    assert np.abs(drawn.named - expected.named).max() < 6 * np.sqrt(200_000 / 4)
    assert expected.named[0, 0] == pytest.approx(100_000 * ndtr(0.75))
