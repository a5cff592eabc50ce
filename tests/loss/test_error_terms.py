"""Every term of a line's error (docs/theory/contour.md): each is large enough, and a smaller one would be seen."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, pi

import mpmath as mp
import numpy as np
import pytest

import deniable as dn
from deniable.loss.arrays import log1p
from deniable.loss.compose.cells import put_on_grid
from deniable.loss.compose.cumulants import AXIS_SLACK_NATS, EPS, TINY, Composition
from deniable.loss.compose.inversion import Inversion, Line
from deniable.loss.moments import analytic_noise
from deniable.loss.moments.analytic_noise import NodeRule
from deniable.loss.moments.nodes import log_fall
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.pair import STICK, TAIL, Functional
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplaceSum


def exact_moment(step: SubsampledRemove | SubsampledReplaceSum, s: complex) -> mp.mpc:
    """E_Q[e^{sL}] to 30 digits, by the trapezoidal rule on a lifted line."""
    mu = step.mu if isinstance(step, SubsampledReplaceSum) else step.base.mu  # type: ignore[attr-defined]
    rate, shift, at = mp.mpf(step.rate), mp.mpf(mu), mp.mpc(s.real, s.imag)
    lift = mp.mpf(min(1.0, pi / (2 * mu)))
    end = 11.5 + max(0.0, s.real * mu) + mu

    def mixture(x: mp.mpc, half: int) -> mp.mpc:
        return 1 - rate + rate * mp.exp(shift * x / half - shift**2 / (2 * half**2))

    def value(x: mp.mpc) -> mp.mpc:
        if isinstance(step, SubsampledRemove):
            return mp.exp(at * mp.log(mixture(x, 1)) - x * x / 2)
        up, down = mixture(x, 2), mixture(-x, 2)
        return mp.exp(at * (mp.log(up) - mp.log(down)) - x * x / 2) * down

    with mp.workdps(32):
        spacing, low = lift / 10, -end if isinstance(step, SubsampledReplaceSum) else -11.5
        total = sum(value(low + j * spacing + 1j * lift) for j in range(int((end - low) / spacing)))
        return total * spacing / mp.sqrt(2 * mp.pi)


def drawn_step(generator: np.random.Generator) -> tuple[SubsampledRemove | SubsampledReplaceSum, float, float]:
    """A step, a real part and a frequency of up to 4.5 deviations."""
    mu, rate = float(np.exp(generator.uniform(-2, 1.2))), float(10 ** generator.uniform(-4, -0.05))
    step = SubsampledReplaceSum(mu, rate) if generator.random() < 0.3 else SubsampledRemove(GaussianStep(mu), rate)
    c = float(generator.choice([-8, -2, -0.5, 0.5, 1.5, 4, 12]) * generator.uniform(0.5, 1.5)) / max(1, mu)
    spread = float(np.sqrt(step.tilted_moments(np.array([c]))[2, 0]))
    return step, c, float(np.exp(generator.uniform(-3, 1.5))) / spread


@pytest.mark.parametrize("seed", range(9))
def test_moments_have_the_stated_roundoff(seed):
    """Lemma C7's rho_1 against 30 digits. In 600 draws the error was at most .55 of it."""
    step, c, omega = drawn_step(np.random.default_rng(seed))
    found = step.cumulant(c + 1j * np.linspace(0, omega, 130))[[0, -1]]  # of a line, by products of few exponentials
    value, mean, variance = step.tilted_moments(np.array([c]))[:, 0].tolist()
    loss = (variance + mean * mean) ** 0.5
    truths = [exact_moment(step, complex(c, frequency)) for frequency in (0.0, omega)]
    for frequency, k, truth in zip((0.0, omega), found.tolist(), truths, strict=True):
        error = abs(mp.exp(mp.mpc(k)) - truth) / abs(truths[0])
        assert error <= EPS * (2 + 4 * (abs(c) + frequency) * loss)
    assert abs(mp.log(abs(truths[0])) - value) < 40 * EPS * (1 + abs(value)) < AXIS_SLACK_NATS


def test_a_small_moment_keeps_its_digits():
    """|1 + x|^2 - 1 has none left where 1 + x is small: 1e-7 of this moment was wrong."""
    step, s = SubsampledReplaceSum(0.19, 0.376), np.array([-1.61, -1.61 + 62.7j])
    truth = exact_moment(step, complex(s[1]))
    assert abs(mp.exp(mp.mpc(complex(step.cumulant(s)[1]))) - truth) < 1e-11 * abs(truth)
    x = np.array([-1 + 3e-9 + 4e-9j])
    assert np.exp(log1p(x).real)[0] == pytest.approx(5e-9, rel=1e-14)


@pytest.mark.parametrize(
    "step",
    [
        SubsampledRemove(GaussianStep(1.0), 0.01),
        SubsampledRemove(GaussianStep(2.5), 0.3),
        SubsampledReplaceSum(1.5, 0.1),
    ],
)
@pytest.mark.parametrize("c", [-3.0, 0.5, 2.0])
@pytest.mark.parametrize("omega", [0.5, 20.0])
def test_the_strip_bound_holds_and_is_needed(step, c, omega, monkeypatch):
    """Lemma C5 with few nats: the error is below the bound, and not far below it, so that too few nodes are seen."""
    nats, s, sums = 14.0, np.array([c, c + 1j * omega]), []
    for asked in (nats, 60.0):
        monkeypatch.setattr(analytic_noise, "_STRIP_NATS", asked)
        law = step._law
        sums.append(_sum(NodeRule(law.loss, law.log_density, law.reach, law.lift), s))
    error = np.abs(sums[0] - sums[1]).max() / abs(sums[1][0])
    assert exp(-3 * nats) < error <= exp(-nats)


def _sum(rule: NodeRule, s: np.ndarray) -> np.ndarray:
    nodes = rule.nodes(s)
    return np.exp(nodes.log_weights + s[:, None] * nodes.losses).sum(axis=1)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_above_the_envelope_farther_out(seed):
    """Lemma C4: a bound for all frequencies from one on, with the decay that one pole needs, and of use."""
    step, c, omega = drawn_step(np.random.default_rng(100 + seed))
    farther = omega * np.linspace(1, 60, 400)
    seen = step.cumulant(c + 1j * farther).real
    for share in (0.0, 1e-3, 0.5):
        bound = float(step.envelope(c, np.array([omega]), share)[0])
        assert (seen + share * np.log(farther / omega) <= bound + 1e-12).all()
    assert step.envelope(c, np.array([40 * omega]), 1e-3)[0] < step.tilted_moments(np.array([c]))[0, 0]


def test_the_fall_of_a_power():
    t = np.linspace(1, 200, 20001)
    for turned, share in ((0.01, 0.3), (0.3, 0.01), (2.0, 0.5), (0.0, 0.0)):
        seen = (share * np.log(t) - t * turned).max()
        assert seen <= float(log_fall(np.array([turned]), share)[0]) <= seen + 1e-6


def _line(step: Step, count: int, k: float, functional: Functional) -> tuple[Inversion, Line]:
    law = Inversion(Composition([(step, count)]), TINY)
    law.value(functional, k)
    (line,) = law.lines.values()
    assert line is not None
    return law, line


def _redrawn(line: Line, law: Inversion, last: float, period: float) -> Line:
    """The same line with another last frequency and period."""
    frequencies = 2 * pi / period * np.arange(int(last * period / (2 * pi)) + 1)
    weights = np.full(frequencies.size, 2 * pi / period)
    weights[0] /= 2
    cumulants = law.composition.cumulant(line.saddle.c + 1j * frequencies)
    found = replace(line, frequencies=frequencies, weights=weights, cumulants=cumulants, period=period, integrands={})
    beyond = exp(float(law.composition.log_height(line.saddle.c, frequencies[-1:])[0]) - line.saddle.value)
    return replace(found, beyond=beyond, noises=law._noises(line.saddle, frequencies, cumulants))


@pytest.mark.parametrize("functional", [STICK, TAIL])
@pytest.mark.parametrize("training", [(1.0, 0.01, 1000), (0.7, 0.2, 20), (2.0, 0.1, 100)])
def test_a_line_that_ends_too_early_says_so(training, functional):
    """What is left out is within the stated error, and more than all other terms, so that these do not hide it."""
    noise, rate, steps = training
    law, line = _line(SubsampledRemove(GaussianStep(1 / noise), rate), steps, 0.5, functional)
    truth, own = line.integral(functional, 0.5)
    last = float(line.frequencies[-1])
    missing = 0.0
    for share in (0.1, 0.2, 0.4):
        early = _redrawn(line, law, share * last, line.period)
        value, error = early.integral(functional, 0.5)
        assert abs(value - truth) <= error + own
        missing = max(missing, abs(value - truth))
    assert missing > 1e3 * own


@pytest.mark.parametrize("functional", [STICK, TAIL])
@pytest.mark.parametrize("training", [(1.0, 0.01, 1000), (0.7, 0.2, 20), (2.0, 0.1, 100)])
def test_a_line_whose_period_is_too_short_says_so(training, functional):
    noise, rate, steps = training
    law, line = _line(SubsampledRemove(GaussianStep(1 / noise), rate), steps, 0.5, functional)
    truth, own = line.integral(functional, 0.5)
    missing = 0.0
    for share in (0.15, 0.3, 0.5):
        short = _redrawn(line, law, float(line.frequencies[-1]), share * line.period)
        value, error = short.integral(functional, 0.5)
        assert abs(value - truth) <= error + own
        missing = max(missing, abs(value - truth))
    assert missing > 1e3 * own


def test_aliases_are_summed_as_a_series():
    """Lemma C3: where a rival is so near that e^{-turns} is above 1/2, twice the first term is too little."""
    law, line = _line(SubsampledRemove(GaussianStep(1.0), 0.01), 1000, 0.0, STICK)
    rival = line.saddle.c + 0.1 / line.period
    near = np.array([rival]), np.array([law.composition.saddle(rival).value])
    alone = replace(line, rivals=near, integrands={})
    at_zero, _, left = alone._aliases(STICK)
    assert left == 0
    first = near[1][0] - 0.1
    assert at_zero[0] == pytest.approx(first + log(1 / (1 - exp(-0.1))), abs=1e-9)
    assert at_zero[0] > first + log(2)


def test_a_moment_function_that_comes_back_is_not_cut_off():
    """Losses near multiples of 1250: |e^K| returns to 1e-7 beyond its first fall (truth: 300 terms, 40 digits)."""
    found = dn.privacy_loss(dn.Gaussian(0.01).subsampled(0.5).composed(1000), "replace").epsilon(1e-5)
    assert found.least <= 709336.851496837383 <= found
    assert found.error < 1e-4


def test_the_worked_example():
    """Every number of docs/theory/contour.md, "Worked example"."""
    law = Inversion(Composition([(SubsampledRemove(GaussianStep(1.0), 0.01), 1000)]), TINY)
    value, error = law.value(STICK, 0.0)
    (line,) = law.lines.values()
    assert line.saddle.c == pytest.approx(-3.44007, abs=1e-5)
    assert line.saddle.value == pytest.approx(1.164736, abs=1e-6)
    assert (line.saddle.slope, line.saddle.bend) == pytest.approx((-0.5786, 0.13085), abs=1e-4)
    assert exp(line.saddle.value) / pi == pytest.approx(1.0202, abs=1e-4)
    assert (line.period, 2 * pi / line.period) == pytest.approx((15.3550, 0.40920), abs=1e-4)
    assert line.frequencies.size == 94
    assert log(line.beyond) == pytest.approx(-45.8, abs=0.1)
    integrand = line._integrand(STICK)
    assert line._aliasing_error(0.0, integrand) == pytest.approx(1.15e-23, rel=0.1)
    assert integrand.size == pytest.approx(0.1717, abs=1e-4)
    assert value == pytest.approx(0.161017619697925, abs=3e-15)
    rule = law.composition.parts[0][0]._law._rule
    low, high, peak = rule._range(line.saddle.c)
    assert (low, high, peak) == pytest.approx((-9.72, 9.79, -2.52), abs=0.01)
    assert rule._spacing(line.saddle.c, peak) == pytest.approx(0.1141, abs=1e-4)
    assert rule.nodes(np.array([line.saddle.c, line.saddle.c + 1j])).losses.size == 172
    stated = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove").advantage()
    assert stated == pytest.approx(value + error, abs=5e-15)
    assert 2 * error <= stated.error + 1e-17 < 2.02 * error


@pytest.mark.parametrize("spacing", [0.02, 0.1])
def test_a_move_on_the_grid_varies_no_more_than_stated(spacing):
    """Lemma G3: the move's own variance and the loss's within its cell, under Q; the move's own alone is too little."""
    step = LaplaceStep(1.0)
    stated = put_on_grid(step, spacing, -1.0, 1.0).moved
    x = np.linspace(-1.0, 1.0, 200_001)[1:-1]
    density = 0.25 * np.exp(-(1 + x) / 2) * (x[1] - x[0])  # of Q between the atoms
    cell = np.floor(x / spacing)
    total = 0.0
    for place in np.unique(cell):
        inside, mass = x[cell == place] - place * spacing, density[cell == place]
        share = float((mass * np.expm1(inside)).sum() / mass.sum()) / np.expm1(spacing)
        mean = float((mass * inside).sum() / mass.sum())
        total += float((mass * (inside - mean) ** 2).sum() + mass.sum() * share * (1 - share) * spacing**2)
    assert stated / 2 < total < stated
