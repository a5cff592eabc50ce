"""The Poisson-sampled Gaussian mechanism: its Renyi and Kullback-Leibler divergences by one quadrature.

Pairs (noise z relative to the sensitivity, rate q; N(m) is a normal law of mean m and deviation z):

* `add-remove` and `zero-out`: P = (1-q) N(0) + q N(1) against Q = N(0). P against Q has the larger Renyi divergence
  of the two directions (Mironov, Talwar and Zhang 2019, Theorem 5).
* `replace`, sensitivity 2C: P = (1-q) N(0) + q N(1/2) against Q = (1-q) N(0) + q N(-1/2). No other pair of records
  is easier to tell apart. For gamma >= 1 the hockey-stick divergence of records x, y is the supremum over events S of
  q N_x(S) - (gamma-1)(1-q) N_0(S) - gamma q N_y(S). Fix N_x(S) = p. By Neyman and Pearson N_0(S) and N_y(S) are
  at least Phi(Phi^-1(p) - d/z) with d = |x| <= 1/2 and d = |x-y| <= 1, and at x = 1/2, y = -1/2 a half-line attains
  both least values at once. For gamma < 1 exchange P and Q, which is a reflection. Renyi and KL divergences grow
  with all hockey-stick divergences, so they too are largest for this pair.

With L = ln P/Q, a = order - 1 and excess(x) = e^x - 1 - x >= 0:

    e^(a D_order(P||Q)) - 1 = E_P[excess(a L) + a excess(-L)],   KL(P||Q) = E_P[excess(-L)],   KL(Q||P) = E_Q[excess(L)]

because E_P[e^-L] = 1. The integrands are analytic in a strip of half-width pi z^2 (where P first vanishes), so the
trapezoidal rule with step 0.4 z min(1, z) errs by about e^-45 (relative); rounding is covered by `_ROUNDING`.
"""

from __future__ import annotations

from math import inf, log

import numpy as np

from deniable.bounds.numeric import Array, gaussian_rho, log_excess, log_mixture
from deniable.mechanisms import Adjacency

__all__ = ["sampled_gaussian_kl", "sampled_gaussian_renyi"]

_STEP = 0.4
_TAIL = 12.0  # standard deviations beyond the outermost bump; e^-72 is left out
_MOST_NODES = 50_000
_ROUNDING = 1 + 1e-11


def sampled_gaussian_renyi(order: float, noise: float, rate: float, adjacency: Adjacency) -> float:
    """Renyi divergence of `order` > 1 of one step; never below the truth.

    Where the quadrature would need too many nodes (noise below about .012, or an order far above any useful one)
    convexity serves: e^(aD) <= 1 - rate + rate e^(aD of the unsampled Gaussian).
    """
    a = order - 1
    if _nodes_needed(noise, order) > _MOST_NODES:
        return float(log_mixture(rate, a * order * gaussian_rho(noise))) / a
    loss, log_q = _loss(noise, rate, order, adjacency)
    excess = np.logaddexp(log_excess(a * loss), log(a) + log_excess(-loss))
    return float(np.logaddexp(0, _log_sum(log_q + loss + excess))) / a * _ROUNDING


def sampled_gaussian_kl(noise: float, rate: float, adjacency: Adjacency) -> tuple[float, float]:
    """(KL(P||Q), KL(Q||P)) of one step, to about 1e-12 relative, rounded up (002 Section 5.1)."""
    if _nodes_needed(noise, 2) > _MOST_NODES:
        return rate * gaussian_rho(noise), rate * gaussian_rho(noise)
    loss, log_q = _loss(noise, rate, 2, adjacency)
    forward = np.exp(_log_sum(log_q + loss + log_excess(-loss)))
    backward = np.exp(_log_sum(log_q + log_excess(loss)))
    return float(forward) * _ROUNDING, float(backward) * _ROUNDING


def _log_sum(logs: Array) -> float:
    """ln of the sum of e^logs; SciPy's logsumexp takes longer to find out what it was given than to sum it."""
    top = float(logs.max())
    if top == -inf:
        return -inf
    return top + log(float(np.exp(logs - top).sum()))


def _nodes_needed(noise: float, order: float) -> float:
    return (max(order, 2) / noise + 0.5 / noise + 2 * _TAIL) / (_STEP * min(1.0, noise))


def _loss(noise: float, rate: float, order: float, adjacency: Adjacency) -> tuple[Array, Array]:
    """The loss L at the nodes, and ln of Q's density times the step."""
    step = _STEP * min(1.0, noise)
    t = np.arange(-_TAIL - 0.5 / noise, max(order, 2) / noise + _TAIL, step)
    log_normal = log(step) - 0.5 * log(2 * np.pi) - t**2 / 2
    if adjacency is not Adjacency.REPLACE:
        return log_mixture(rate, t / noise - gaussian_rho(noise)), log_normal
    upper = log_mixture(rate, 0.5 * t / noise - gaussian_rho(noise) / 4)
    lower = log_mixture(rate, -0.5 * t / noise - gaussian_rho(noise) / 4)
    return upper - lower, log_normal + lower
