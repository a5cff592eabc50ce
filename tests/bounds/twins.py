"""Slow, plain twins of the fast paths: mpmath quadrature, published series, direct sums."""

from __future__ import annotations

from math import erf, exp, sqrt

import mpmath as mp
import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr


def renyi_by_quadrature(order, noise, rate, replace=False):
    """D_order(P||Q) of one sampled Gaussian step from the densities, in 30 digits."""
    with mp.workdps(30):
        p, q = _densities(noise, rate, replace)
        moment = mp.quad(
            lambda x: p(x) ** order * q(x) ** (1 - mp.mpf(order)), _pieces(noise, order), method="gauss-legendre"
        )
        return float(mp.log(moment) / (order - 1))


def kl_by_quadrature(noise, rate, replace=False):
    """(KL(P||Q), KL(Q||P)) from the densities, in 30 digits."""
    with mp.workdps(30):
        p, q = _densities(noise, rate, replace)
        pieces = _pieces(noise, 2)
        forward = mp.quad(lambda x: p(x) * mp.log(p(x) / q(x)), pieces, method="gauss-legendre")
        backward = mp.quad(lambda x: q(x) * mp.log(q(x) / p(x)), pieces, method="gauss-legendre")
        return float(forward), float(backward)


def _densities(noise, rate, replace):
    z, r = mp.mpf(noise), mp.mpf(rate)

    def mixture(mean):
        return lambda x: (1 - r) * mp.npdf(x, 0, z) + r * mp.npdf(x, mean, z)

    if replace:
        return mixture(mp.mpf(1) / 2), mixture(-mp.mpf(1) / 2)
    return mixture(mp.mpf(1)), lambda x: mp.npdf(x, 0, z)


def _pieces(noise, order):
    low, high = -1 - 12 * noise, max(order, 2) + 12 * noise
    count = int((high - low) / (4 * noise)) + 2
    return list(mp.linspace(low, high, count))


def renyi_by_series(order, noise, rate, terms=400):
    """Mironov, Talwar and Zhang 2019, Section 3.3: the integral split where both parts of the mixture are equal."""
    with mp.workdps(40):
        a, z, q = mp.mpf(order), mp.mpf(noise), mp.mpf(rate)
        split = z**2 * mp.log(1 / q - 1) + mp.mpf(1) / 2
        total = mp.mpf(0)
        for k in range(terms):
            j = a - k
            left = mp.erfc((k - split) / (mp.sqrt(2) * z)) * (1 - q) ** j * q**k * mp.exp((k * k - k) / (2 * z**2))
            right = mp.erfc((split - j) / (mp.sqrt(2) * z)) * (1 - q) ** k * q**j * mp.exp((j * j - j) / (2 * z**2))
            total += mp.binomial(a, k) * (left + right) / 2
        return float(mp.log(total) / (a - 1))


def renyi_by_binomial(order, noise, rate):
    """Whole orders: sum of C(order, k) (1-q)^(order-k) q^k e^(k(k-1)/(2 z^2))."""
    with mp.workdps(60):
        z, q = mp.mpf(noise), mp.mpf(rate)
        terms = (
            mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp(k * (k - 1) / (2 * z**2))
            for k in range(order + 1)
        )
        return float(mp.log(mp.fsum(terms)) / (order - 1))


def gaussian_delta(epsilon, mu):
    """erratum 3's exact delta(epsilon) of a Gaussian with mu = sensitivity / sigma."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def gaussian_epsilon(delta, mu):
    """The exact epsilon at delta of a Gaussian; 0 where the total variation is below delta."""
    if erf(mu / 2 / sqrt(2)) <= delta:
        return 0.0
    return brentq(lambda e: gaussian_delta(e, mu) - delta, 0.0, mu**2 / 2 + 40 * mu + 1, xtol=1e-13)


def theorem_18_delta(alpha, steps, i):
    """delta_i of Jia 2023, Theorem 18 as printed, with (1 + e^eps)^k (erratum 12), in 60 digits."""
    with mp.workdps(60):
        eps = mp.log((1 + mp.mpf(alpha)) / (1 - mp.mpf(alpha)))
        total = mp.fsum(
            mp.binomial(steps, low) * (mp.exp((steps - low) * eps) - mp.exp((steps - 2 * i + low) * eps))
            for low in range(i)
        )
        return float(total / (1 + mp.exp(eps)) ** steps)


def binomial_tvd(alpha, steps):
    """Half the L1 distance of the two binomials of Jia 2023, Theorem 18, in 60 digits."""
    with mp.workdps(60):
        p, s = (1 + mp.mpf(alpha)) / 2, (1 - mp.mpf(alpha)) / 2
        return float(
            mp.fsum(
                mp.binomial(steps, j) * abs(p**j * s ** (steps - j) - s**j * p ** (steps - j)) for j in range(steps + 1)
            )
            / 2
        )


def hockey_stick(gamma, noise, rate, x, y):
    """sup over events of P - gamma Q for sampled records at x and y on the line, by a fine Riemann sum."""
    t = np.linspace(-14 * noise - 1, 14 * noise + 1, 20001)

    def density(mean):
        return np.exp(-((t - mean) ** 2) / (2 * noise**2)) / (noise * sqrt(2 * np.pi))

    p = (1 - rate) * density(0) + rate * density(x)
    q = (1 - rate) * density(0) + rate * density(y)
    return float(np.maximum(p - gamma * q, 0).sum() * (t[1] - t[0]))


def laplace_renyi_by_quadrature(order, scale):
    """D_order of Laplace(0, scale) from Laplace(1, scale)."""
    with mp.workdps(30):
        b = mp.mpf(scale)
        p = lambda x: mp.exp(-abs(x) / b) / (2 * b)  # noqa: E731
        moment = mp.quad(lambda x: p(x) ** order * p(x - 1) ** (1 - mp.mpf(order)), [-mp.inf, 0, 1, mp.inf])
        return float(mp.log(moment) / (order - 1))


def improved(order, divergence, delta):
    return divergence + np.log1p(-1 / order) - (np.log(delta) + np.log(order)) / (order - 1)


def sigmoid(x):
    return 1 / (1 + exp(-x))
