"""Naive twins of the exact theory: short, slow, and built by other means than the library.

- one step: mpmath quadrature of the densities themselves;
- two steps: H_2(k) = E_P[H_1(k - L)] by quadrature;
- many steps: the moment function on one vertical line with 30 digits, every line checked against half its points;
- many steps with rare, large losses: the loss on a grid, convolved, extrapolated;
- randomized response: explicit binomial and trinomial sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import mpmath as mp
import numpy as np
from mpmath import mpc, mpf
from scipy.stats import norm

DIGITS = 30
Density = Callable[[mpf], mpf]


# --- one step: densities of the dominating pairs, straight from their definitions ---


def gaussian_density(x: mpf, centre: float) -> mpf:
    return mp.npdf(x, mpf(centre), 1)


def sampled_densities(noise: float, rate: float, adjacency: str = "add-remove") -> tuple[Density, Density]:
    """P and Q of one Poisson-sampled Gaussian step; `add-remove` has the person in P."""
    q, mu = mpf(rate), 1 / mpf(noise)

    def mixed(x: mpf, centre: mpf) -> mpf:
        return (1 - q) * mp.npdf(x) + q * mp.npdf(x, centre, 1)

    if adjacency == "replace":
        return (lambda x: mixed(x, mu / 2)), (lambda x: mixed(x, -mu / 2))
    return (lambda x: mixed(x, mu)), mp.npdf


def laplace_densities(scale: float) -> tuple[Density, Density]:
    b = mpf(scale)
    return (lambda x: mp.exp(-abs(x - 1) / b) / (2 * b)), (lambda x: mp.exp(-abs(x) / b) / (2 * b))


def stick_by_quadrature(densities: tuple[Density, Density], k: float, marks: Sequence[float]) -> mpf:
    """sup P - e^k Q = integral of the positive part of p - e^k q; `marks` bound the pieces, ends included."""
    p, q = densities

    def gain(x: mpf) -> mpf:
        return p(x) - mp.exp(k) * q(x)

    with mp.workdps(DIGITS):
        points = sorted({mpf(mark) for mark in marks} | _sign_changes(gain, marks))
        pieces = itertools.pairwise(points)
        return mp.fsum(mp.quad(gain, [a, b]) for a, b in pieces if gain((a + b) / 2) > 0)


def _sign_changes(gain: Density, marks: Sequence[float]) -> set[mpf]:
    grid = np.linspace(min(marks), max(marks), 400)
    signs = [gain(mpf(x)) > 0 for x in grid]
    found = [i for i in range(len(grid) - 1) if signs[i] != signs[i + 1]]
    return {mp.findroot(gain, (grid[i], grid[i + 1]), solver="anderson", tol=1e-40, verify=False) for i in found}


def gaussian_stick(mu: float, k: float) -> mpf:
    """Phi(mu/2 - k/mu) - e^k Phi(-mu/2 - k/mu), erratum 3."""
    with mp.workdps(DIGITS + 30):
        m, kk = mpf(mu), mpf(k)
        return mp.ncdf(m / 2 - kk / m) - mp.exp(kk) * mp.ncdf(-m / 2 - kk / m)


def gaussian_tpr(mu: float, fpr: float) -> mpf:
    """Phi(mu + Phi^-1(fpr))."""
    with mp.workdps(DIGITS):
        quantile = mp.findroot(lambda z: mp.log(mp.ncdf(z) / mpf(fpr)), -mp.sqrt(-2 * mp.log(mpf(fpr))) + 1)
        return mp.ncdf(mpf(mu) + quantile)


# --- two steps: an integral over the first step's output ---


def two_step_stick(first: tuple[float, float], second: tuple[float, float], k: float, direction: str = "remove") -> mpf:
    """H(k) = E_P[H_second(k - L_first)] for two sampled Gaussian steps (noise, rate), by tanh-sinh quadrature."""
    with mp.workdps(20):
        noise, rate = first
        mu, q = 1 / mpf(noise), mpf(rate)

        def weighted(x: mpf) -> mpf:
            ratio = 1 - q + q * mp.exp(mu * x - mu * mu / 2)
            if direction == "remove":
                return ratio * mp.npdf(x) * one_step_stick(*second, k - mp.log(ratio), direction)
            return mp.npdf(x) * one_step_stick(*second, k + mp.log(ratio), direction)

        ends = [mpf(-10), mpf(10) + mu]
        return mp.quad(weighted, sorted({*ends, *_where_the_second_step_ends(mu, q, second[1], k, direction)}))


def _where_the_second_step_ends(mu: mpf, q: mpf, second_rate: float, k: float, direction: str) -> set[mpf]:
    """The output at which k - L is the least (or largest) loss of the second step: a steep place of the integrand."""
    ratio = mp.exp(k if direction == "remove" else -k) / (1 - mpf(second_rate))
    inside = (ratio - (1 - q)) / q
    x = (mp.log(inside) + mu * mu / 2) / mu if inside > 0 else mpf(0)
    return {x} if abs(x) < 9 else {mpf(0)}


def one_step_stick(noise: float, rate: float, k: mpf, direction: str = "remove") -> mpf:
    """P - e^k Q of the event that the loss exceeds k, from the normal distribution function."""
    mu, q = 1 / mpf(noise), mpf(rate)
    inside = (mp.exp(k if direction == "remove" else -k) - (1 - q)) / q  # e^{mu x - mu^2/2} where the loss is k
    if inside <= 0:
        return 1 - mp.exp(k) if direction == "remove" else mpf(0)
    x = (mp.log(inside) + mu * mu / 2) / mu
    if direction == "remove":  # outputs above x
        return (1 - q) * mp.ncdf(-x) + q * mp.ncdf(mu - x) - mp.exp(k) * mp.ncdf(-x)
    return mp.ncdf(x) - mp.exp(k) * ((1 - q) * mp.ncdf(x) + q * mp.ncdf(x - mu))


# --- many steps: moments on a line, 30 digits ---


@dataclass(frozen=True)
class GaussianTwin:
    mu: float
    count: int = 1

    def line(self, c: mpf, spacing: mpf, size: int) -> list[mpc]:
        points = (mpc(c, j * spacing) for j in range(size))
        return [mp.exp(self.count * mpf(self.mu) ** 2 * s * (s - 1) / 2) for s in points]


@dataclass(frozen=True)
class LaplaceTwin:
    """E_Q[e^{sL}] with L = eps below 0, -eps above 1 and eps (1 - 2x) for outputs x between."""

    epsilon: float
    count: int = 1

    def line(self, c: mpf, spacing: mpf, size: int) -> list[mpc]:
        return [self._moment(mpc(c, j * spacing)) ** self.count for j in range(size)]

    def _moment(self, s: mpc) -> mpc:
        e = mpf(self.epsilon)
        middle = e / 2 * (mp.exp((s - 1) * e) - mp.exp(-s * e)) / ((2 * s - 1) * e)
        return mp.exp(-s * e) / 2 + mp.exp((s - 1) * e) / 2 + middle


@dataclass(frozen=True)
class AtomsTwin:
    """Finite losses with their Q-masses."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    count: int = 1

    def line(self, c: mpf, spacing: mpf, size: int) -> list[mpc]:
        nodes = [(mpf(loss), mpf(mass)) for loss, mass in zip(self.losses, self.masses, strict=True)]
        return _powers(nodes, c, spacing, size, self.count)


@dataclass(frozen=True)
class SampledTwin:
    """Poisson-sampled Gaussian: a plain sum over outputs x, `remove`, `add` or `replace`."""

    noise: float
    rate: float
    count: int = 1
    direction: str = "remove"

    def line(self, c: mpf, spacing: mpf, size: int) -> list[mpc]:
        mu, q = 1 / mpf(self.noise), mpf(self.rate)
        reach = 12 + (abs(c) + 1) * mu
        step = min(mpf("0.2"), mpf("0.3") / mu)
        nodes = []
        for j in range(int(-reach / step), int(reach / step) + 1):
            x = j * step
            up = self._mixed(x, mu, q) if self.direction != "replace" else self._mixed(x, mu / 2, q)
            down = self._mixed(x, -mu / 2, q) if self.direction == "replace" else mpf(1)
            over, under = (down, up) if self.direction == "add" else (up, down)
            nodes.append((mp.log(over / under), under * mp.npdf(x) * step))
        return _powers(nodes, c, spacing, size, self.count)

    @staticmethod
    def _mixed(x: mpf, mu: mpf, q: mpf) -> mpf:
        return 1 - q + q * mp.exp(mu * x - mu * mu / 2)


def _powers(nodes: list[tuple[mpf, mpf]], c: mpf, spacing: mpf, size: int, count: int) -> list[mpc]:
    """(sum of mass e^{s loss})^count at s = c + i j spacing, turning every term by its own angle from j to j + 1."""
    terms = [mpc(mass * mp.exp(c * loss)) for loss, mass in nodes]
    turns = [mp.expj(spacing * loss) for loss, _ in nodes]
    sums = []
    for _ in range(size):
        sums.append(mp.fsum(terms) ** count)
        terms = [term * turn for term, turn in zip(terms, turns, strict=True)]
    return sums


def composed_stick(parts: Sequence, k: float, c: float, spacing: float, size: int) -> mpf:
    """E_Q[(e^L - e^k)^+] = 1/(2 pi i) int M(s) e^{-k(s-1)} / (s(s-1)) ds on Re s = c > 1."""
    return _inverted(parts, (c, spacing, size), lambda s: mp.exp(-mpf(k) * (s - 1)) / (s * (s - 1)))


def composed_tail(parts: Sequence, t: float, c: float, spacing: float, size: int) -> mpf:
    """P(L > t), c > 1."""
    return _inverted(parts, (c, spacing, size), lambda s: mp.exp(-mpf(t) * (s - 1)) / (s - 1))


def composed_null_tail(parts: Sequence, t: float, c: float, spacing: float, size: int) -> mpf:
    """Q(L > t), c > 0."""
    return _inverted(parts, (c, spacing, size), lambda s: mp.exp(-mpf(t) * s) / s)


def _inverted(parts: Sequence, line: tuple[float, float, int], weight: Callable[[mpc], mpc]) -> mpf:
    c, spacing, size = line
    with mp.workdps(DIGITS):
        points = [mpc(c, j * mpf(spacing)) for j in range(size)]
        moments = _line(tuple(parts), *line)
        terms = [(moment * weight(s)).real for moment, s in zip(moments, points, strict=True)]
        whole = (mp.fsum(terms) - terms[0] / 2) * mpf(spacing) / mp.pi
        half = (mp.fsum(terms[::2]) - terms[0] / 2) * 2 * mpf(spacing) / mp.pi
        assert abs(whole - half) <= 1e-13 * abs(whole), f"aliases: {whole} {half}"
        assert abs(terms[-1]) <= 1e-14 * abs(terms[0]), f"truncated: {terms[-1] / terms[0]}"
        return whole


@cache
def _line(parts: tuple, c: float, spacing: float, size: int) -> list[mpc]:
    moments = [mpc(1)] * size
    for part in parts:
        moments = [a * b for a, b in zip(moments, part.line(mpf(c), mpf(spacing), size), strict=True)]
    return moments


# --- many steps with rare, large losses: a grid of losses ---


def gridded_stick(step: tuple[float, float], steps: int, window: tuple[float, float], size: int) -> float:
    """H(0) of a sampled Gaussian (noise, rate): the loss on a grid that keeps its mean, composed by FFT.

    The grid only widens the loss a little, in proportion to the square of the spacing: extrapolated away.
    """
    coarse, fine = (_gridded(step, steps, window, points) for points in (size, 2 * size))
    return fine + (fine - coarse) / 3


def _gridded(step: tuple[float, float], steps: int, window: tuple[float, float], size: int) -> float:
    mu, rate = 1 / step[0], step[1]
    x = np.linspace(-10.0, 11.0 + mu, 400_001)
    ratio = 1 - rate + rate * np.exp(mu * x - mu * mu / 2)
    mass = norm.pdf(x) * ratio
    mass /= mass.sum()
    spacing = (window[1] - window[0]) / size
    place = np.log(ratio) / spacing
    below = np.floor(place).astype(int)
    part = place - below
    circle = np.bincount(below % size, mass * (1 - part), size) + np.bincount((below + 1) % size, mass * part, size)
    first = round(window[0] / spacing)
    composed = np.roll(np.fft.irfft(np.fft.rfft(circle) ** steps, size), -first)
    losses = (first + np.arange(size)) * spacing
    return float(composed @ -np.expm1(np.minimum(-losses, 0.0)))


# --- randomized response ---


def response_stick(epsilon: float, runs: int, k: float, hidden: float = 0.0) -> mpf:
    """`runs` of two-answer randomized response (with `hidden` mass at infinity each), by the binomial."""
    with mp.workdps(DIGITS):
        truth = (1 - mpf(hidden)) / (1 + mp.exp(-mpf(epsilon)))
        lie = (1 - mpf(hidden)) - truth
        total, mass = 1 - (1 - mpf(hidden)) ** runs, truth**runs
        for j in range(runs, -1, -1):  # truths told; the mass of j - 1 follows from that of j
            loss = (2 * j - runs) * mpf(epsilon)
            if loss > k:
                total += mass * (1 - mp.exp(k - loss))
            mass *= j * lie / ((runs - j + 1) * truth)
        return total


def response_null_tail(epsilon: float, runs: int, t: float) -> mpf:
    with mp.workdps(DIGITS):
        lie = 1 / (1 + mp.exp(mpf(epsilon)))
        return mp.fsum(
            comb(runs, j) * lie**j * (1 - lie) ** (runs - j)
            for j in range(runs + 1)
            if (2 * j - runs) * mpf(epsilon) > t
        )


def many_answers_stick(epsilon: float, categories: int, runs: int, k: float) -> mpf:
    """Randomized response over more than two answers, by the trinomial: truth, the rival's value, any other."""
    with mp.workdps(DIGITS):
        lie = mp.exp(-mpf(epsilon)) / (1 + (categories - 1) * mp.exp(-mpf(epsilon)))
        truth, other = lie * mp.exp(mpf(epsilon)), (categories - 2) * lie
        total = mpf(0)
        for up in range(runs + 1):
            for down in range(runs + 1 - up):
                loss = (up - down) * mpf(epsilon)
                if loss > k:
                    still = runs - up - down
                    ways = comb(runs, up) * comb(runs - up, down)
                    total += ways * truth**up * lie**down * other**still * (1 - mp.exp(k - loss))
        return total
