"""Rarely sampled steps: tapered lines, honest rates, and questions that end (FAULTS B)."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.effort import UnresolvedError, limit_effort, share_of, spend, still_affordable
from deniable.loss.compose import inversion
from deniable.loss.compose.grid import Grid
from deniable.loss.pairs.pair import STICK
from twins import gridded_stick, one_step_stick

TRAININGS = [(0.2616, 1.4588e-4, 136), (0.1458, 3.4372e-6, 2955), (0.5811, 1.434e-4, 700), (0.94, 1.05e-4, 38272)]


def loss_of(noise: float, rate: float, steps: int, adjacency: str = "add-remove") -> dn.PrivacyLoss:
    return dn.privacy_loss(dn.Gaussian(noise).subsampled(rate).composed(steps), adjacency)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("k", [0.01, 1.0])
def test_tapered_lines_agree_with_bands(training, k, adjacency, monkeypatch):
    """Bands take the law apart by its largest jump and need no taper; both state an interval, and these overlap."""
    tapered = loss_of(*training, adjacency).delta(k)
    monkeypatch.setattr(inversion, "_MANY_POINTS", 1e300)
    apart = loss_of(*training, adjacency).delta(k)
    assert tapered.least <= apart * (1 + 1e-14)
    assert apart.least <= tapered * (1 + 1e-14)


def test_a_taper_that_is_too_narrow_is_seen(monkeypatch):
    """The error is the distance to a taper of half the width: a line cut too early says so."""
    law = loss_of(*TRAININGS[0]).pair._whole
    monkeypatch.setattr(inversion, "_TAPER_RADIANS", 4.0)
    _, error = law.value(STICK, 1.0)
    assert error > 1e-7


def test_advantage_of_rare_large_losses():
    """It was .0101 +- .0101. The grid of `twins` is another route to about three digits."""
    advantage = loss_of(0.14575693811921084, 3.437242318924611e-06, 2955).advantage()
    assert advantage.error < 1e-9
    assert advantage == pytest.approx(0.0099240879, rel=1e-6)
    coarse = gridded_stick((0.14575693811921084, 3.437242318924611e-06), 2955, (-20.0, 200.0), 2**17)
    assert advantage == pytest.approx(coarse, rel=0.05)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "fpr"),
    [(1.0, 0.01, 100, 1e-300), (0.05, 1e-4, 1000, 1e-3), (0.03, 1e-2, 10, 1e-3), (1.0, 1e-20, 1000, 1e-3)],
)
def test_rates_at_the_extremes(noise, rate, steps, fpr):
    """No exception, nothing below what some attack has: blind guessing, and one step's own attack."""
    tpr = loss_of(noise, rate, steps).tpr(fpr)
    assert fpr <= tpr <= 1
    assert 0 <= tpr.least <= tpr
    variation = -np.expm1(steps * np.log1p(-rate))
    assert tpr <= fpr + variation + 1e-12


def test_rate_of_no_sampling_to_speak_of():
    assert dn.privacy_loss(dn.Gaussian(1.0).subsampled(1e-200).composed(10), adjacency="add-remove").tpr(
        1e-3
    ) == pytest.approx(1e-3)


@pytest.mark.parametrize("k", [0.0, 0.3])
def test_what_lines_cannot_resolve_is_bracketed_by_the_grid(k, monkeypatch):
    """With no effort to spend the answer is the grid's; the truth of one step lies inside."""
    monkeypatch.setattr(inversion, "_MOST_POINTS", 0)
    monkeypatch.setattr(inversion, "_MANY_POINTS", 1e300)
    pair = loss_of(1.0, 0.2, 2).pair
    with limit_effort(0):
        found = pair.hockey_stick(k)
    truth = float(Grid(pair.composition, 2**18).hockey_stick(k))
    assert found.least <= truth <= found + 1e-12
    assert 0 < found.error < 0.01
    assert found >= float(one_step_stick(1.0, 0.2, k))


def test_effort_is_counted_and_shared():
    with limit_effort(10_000):
        still_affordable()
        with share_of(2_000):
            spend(5_000)
            with pytest.raises(UnresolvedError):
                still_affordable()
        still_affordable()
        spend(10_000)
        with pytest.raises(UnresolvedError):
            still_affordable()
    still_affordable()


def test_a_sampled_atom_too_rare_for_a_number_is_kept():
    """Its Q-mass e^-1000 underflows, its P-mass is a quarter: it was left out, and the divergence came out as .25."""
    mechanism = dn.compose(dn.ApproximateDP(1000.0, 0.5).subsampled(0.5), dn.Gaussian(1.0))
    assert dn.privacy_loss(mechanism, "zero-out").pair.hockey_stick(19.6) == pytest.approx(0.5, abs=1e-6)


def test_a_rate_is_never_below_blind_guessing():
    assert dn.privacy_loss(dn.TotalVariation(0.0)).tpr(1e-5) >= 1e-5
