"""Nodes for the density of a sampled Laplace loss, whatever the frequency.

A Laplace loss l has the Q0-density e^{-(epsilon + l)/2} / 4 between -epsilon and epsilon. On a Poisson sample it
becomes x = ln(1 - rate + rate e^l), whose density is

    f(x) = sqrt(rate) e^{x - epsilon/2} / (4 u^{3/2}),     u = e^x - (1 - rate) = rate e^l.

A faint Gaussian beside it lets the moments matter up to frequencies where e^{i omega x} turns thousands of times over
the range. f is analytic for Re x > ln(1 - rate), so the path of integration is lifted: up from the lower end a to
a + i Y, across to b + i Y, and down to b. On the way up e^{i omega x} dies out instead of turning, and where the path
runs across only frequencies below 45 / Y are left of it. A few hundred nodes serve every frequency.
"""

from __future__ import annotations

from math import ceil, exp, inf, log, log2

import numpy as np
from numpy.polynomial.legendre import leggauss

from deniable.effort import UnresolvedError
from deniable.loss.arrays import Floats, Numbers, log_mixture
from deniable.loss.moments.nodes import panel_rule

_NODES, _WEIGHTS = leggauss(16)
_HIGHEST = 2.0  # Y: f is analytic there and u has not turned half-way round
_TURNS = 20.0  # radians by which e^{icY} may turn on the way up
_GONE = 45.0  # e^-45 is nothing
_MOST_DOUBLINGS = 120  # of the distance from an end, from where f or e^{i omega x} begin to change
_FEW_RADIANS = 400.0  # over the whole range: up to there nodes on the real axis are cheaper


def sampled_density(epsilon: float, rate: float, low: float, s: Numbers) -> tuple[Numbers, Numbers]:
    """Losses x and the logarithms of their Q0-weights for base losses from `low` to `epsilon`.

    For moments at the points s, which lie on the real axis or on one vertical line upwards.
    """
    range_ = float(log_mixture(rate, np.array([epsilon]))[0] - log_mixture(rate, np.array([low]))[0])
    if not np.iscomplexobj(s) or float(np.abs(s).max()) * range_ < _FEW_RADIANS:
        slope = 1 / (1 + (1 / rate - 1) * exp(-epsilon))
        x, w = panel_rule(low, epsilon, float(np.abs(s).max()) * slope)
        return log_mixture(rate, x), np.log(0.25 * w) - 0.5 * (epsilon + x)
    return _lift_nodes(epsilon, rate, low, s, range_)


def _lift_nodes(epsilon: float, rate: float, low: float, s: Numbers, range_: float) -> tuple[Numbers, Numbers]:
    c, top = abs(float(s[0].real)), float(s.imag.max())
    height = min(_HIGHEST, _TURNS / max(c, 1e-300))
    a, b = (float(log_mixture(rate, np.array([end]))[0]) for end in (low, epsilon))
    log_near = log(rate) + low  # of u at the lower end; e^a is the distance of u's other parts from it
    up, up_weights = rising_panels(height, min(exp(log_near - a), 1 / top))
    across, across_weights = panel_rule(0.0, range_, max(_GONE / height + c, 16 / height))
    log_u_up = np.log(exp(log_near) + exp(a) * np.expm1(1j * up))
    log_u_down = epsilon + np.log(rate + exp(b - epsilon) * np.expm1(1j * up))
    shifted = across + 1j * height
    log_u_across = a + shifted + np.log1p(-np.exp(-shifted) * -np.expm1(log_near - a))
    x = np.concatenate([a + 1j * up, a + shifted, b + 1j * up])
    log_u = np.concatenate([log_u_up, log_u_across, log_u_down])
    signs = np.concatenate([np.full(up.size, 0.5j * np.pi), np.zeros(across.size), np.full(up.size, -0.5j * np.pi)])
    weights = np.log(np.concatenate([up_weights, across_weights, up_weights]))
    return x, weights + signs + x - 1.5 * log_u + (0.5 * log(rate) - 0.5 * epsilon - log(4))


def rising_panels(height: float, finest: float) -> tuple[Floats, Floats]:
    """Panels from 0 to `height` that double in width, the first a quarter of `finest` wide."""
    doublings = ceil(log2(height / finest)) + 2 if finest > 0 else inf
    if doublings > _MOST_DOUBLINGS:
        raise UnresolvedError("the density is too steep at its lower end")
    edges = np.append(0.0, height * 0.5 ** np.arange(max(doublings, 0), -1, -1))
    half = 0.5 * np.diff(edges)
    return (edges[:-1, None] + half[:, None] * (1 + _NODES)).ravel(), (half[:, None] * _WEIGHTS).ravel()


def mirror_measure(losses: Numbers, log_weights: Numbers) -> tuple[Numbers, Numbers]:
    """The same measure under P, of -x: nodes off the axis stay above it."""
    return -losses.conj(), (log_weights + losses).conj()
