"""One step on a grid of losses."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, inf, log, log1p

import numpy as np

from deniable.loss.arrays import EPS, Floats, log_mixture
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.masses import MassStep
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledAdd, SubsampledRemove

_ON_GRID = 1e-9  # share of a cell within which an atom counts as lying on its edge
_LOSS_ROUNDOFF = 16 * EPS  # relative, of a step's losses


@dataclass(frozen=True)
class Cells:
    """One step on the grid: logarithms of masses at the losses (first + j) * spacing."""

    first: int
    log_masses: Floats
    """Of P where the loss is at least 0, of Q where it is below: the other one is e^-loss or e^loss times it."""
    log_true: Floats
    """What truly arrives there under P, in the same unit."""
    lost: float
    """P-mass above the grid."""
    moved: float
    """Variance of the move, the larger of both under P and Q."""
    drift: float
    """How far round-off may have put a loss that counts as lying on the grid."""

    def tilt_masses(self, logs: Floats, spacing: float, c: float) -> Floats:
        """Logarithms of Q-mass times e^{c loss}."""
        losses = (self.first + np.arange(logs.size)) * spacing
        return logs + (c - (losses >= 0)) * losses


def put_on_grid(step: Step, spacing: float, low: float, high: float) -> Cells:
    """The chord discretisation of one step on [low, high].

    An atom on an edge belongs to the cell below it. Round-off could place it above for one tail and below for another,
    so cells are cut a little above their edges; losses in between move by no more, which counts as drift.
    """
    if is_atomic(step):
        return _cells_of_atoms(step, *_atoms(step), spacing)
    first, last = floor(low / spacing), floor(high / spacing) + 1
    edges = np.arange(first, last + 1) * spacing
    shift = 0.0 if step.smooth else max(_ON_GRID * spacing, _LOSS_ROUNDOFF * float(np.abs(edges[[0, -1]]).max()))
    cuts = edges + shift
    masses = _cell_masses(step, edges, cuts, spacing)
    ends, trues, drift = _halves(masses, edges[:-1], edges[1:], spacing)
    logs, log_true = (_join_edges(*part) for part in (ends, trues))
    back = step.reverse()
    with np.errstate(divide="ignore"):
        below, unit = float(np.log(back.tails(-cuts[:1]) - back.escape)[0]), max(float(edges[0]), 0.0)
    logs[0] = np.logaddexp(logs[0], below + unit)
    log_true[0] = np.logaddexp(log_true[0], float(back.log_null_tails(-cuts[:1])[0]) - float(edges[0]) + unit)
    moved = 2 * _variance(masses, spacing)  # the move's own variance, and the loss's within its cell (Lemma G3)
    return Cells(first, logs, log_true, float(step.tails(cuts[-1:])[0]), moved, drift + shift)


def _cells_of_atoms(step: Step, losses: Floats, log_null: Floats, spacing: float) -> Cells:
    """The same of a few losses, each moved by itself."""
    places = np.ceil(losses / spacing - _ON_GRID) - 1
    first, lower = int(places.min()), places * spacing
    with np.errstate(over="ignore"):
        p, q = np.exp(log_null + losses), np.exp(log_null)
    log_base = np.where(lower >= 0, log_null + losses, log_null)
    masses = _Masses(p, q, log_base, losses - lower, 4 * EPS * np.abs(losses))
    ends, trues, drift = _halves(masses, lower, (places + 1) * spacing, spacing)
    index = (places - first).astype(np.int64)
    logs, log_true = np.full((2, int(index.max()) + 2), -inf)
    for found, (at_lower, at_upper) in ((logs, ends), (log_true, trues)):
        np.logaddexp.at(found, index, at_lower)
        np.logaddexp.at(found, index + 1, at_upper)
    some = np.flatnonzero(np.maximum(logs, log_true) > -inf)  # an atom on an edge leaves its cell's other end empty
    kept = slice(some[0], some[-1] + 1)
    return Cells(first + int(some[0]), logs[kept], log_true[kept], step.escape, _variance(masses, spacing), drift)


def _atoms(step: Step) -> tuple[Floats, Floats]:
    """Finite losses of a step that has a few, and the logarithms of their Q-masses."""
    if isinstance(step, SubsampledAdd):
        losses, log_null = _atoms(step.mirror)
        return -losses, log_null + losses
    if isinstance(step, SubsampledRemove):
        losses, log_null = _atoms(step.base)
        hidden = step.base.reverse().escape  # of Q where the base's loss is -inf
        losses = log_mixture(step.rate, losses).real
        if hidden == 0:
            return losses, log_null
        return np.append(losses, log1p(-step.rate)), np.append(log_null, log(hidden))
    assert isinstance(step, AtomStep | MassStep)
    return step.losses, step.log_null_masses


Ends = tuple[Floats, Floats]


def _halves(masses: _Masses, lower: Floats, upper: Floats, spacing: float) -> tuple[Ends, Ends, float]:
    """Logarithms of what goes to the lower and the upper end: what dominates, what truly goes; and the drift."""
    least, most, drift = _rises(masses, spacing)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        up = lower >= 0
        top = _null_share(most, spacing)
        own_top = np.where(up, np.expm1(-most) / np.expm1(-spacing), top)
        true = masses.log_base + np.where(up, 0.0, least)
        # an end at or above 0 has the unit P, one below it Q; only the upper end of the cell below 0 changes its unit
        turned = np.where(up | (upper < 0), 0.0, upper)
        ends = masses.log_base + np.log(1 - own_top), masses.log_base + np.log(own_top) + turned
        trues = true + np.log(1 - top), true + np.log(top) - np.where(up, 0.0, spacing) + turned
    return ends, trues, drift


def _null_share(rise: Floats, spacing: float) -> Floats:
    """The share of a cell's Q-mass that goes to its upper end."""
    return np.where(rise < spacing, np.exp(rise - spacing) * np.expm1(-rise) / np.expm1(-spacing), 1.0)


def _variance(masses: _Masses, spacing: float) -> float:
    """Of the move, the larger of both under P and Q: P weighs a cell's upper end up to e^spacing times as much.

    Where the spacing is above 1, a loss may vary in its cell under P by another such factor (Lemma G3).
    """
    top = _null_share(_rises(masses, spacing)[1], spacing)
    variance = top * (1 - top) * spacing**2 * exp(min(spacing if spacing <= 1 else 2 * spacing, 600.0))
    return max(float((masses.p * variance).sum()), float((masses.q * variance).sum()))


def _join_edges(lower: Floats, upper: Floats) -> Floats:
    """Logarithms of the masses at all edges from those at both ends of every cell."""
    return np.asarray(np.logaddexp(np.append(lower, -inf), np.append(-inf, upper)))


@dataclass(frozen=True)
class _Masses:
    """Of every cell: P- and Q-mass, the loss between them above the cell's lower edge, and that loss's round-off."""

    p: Floats
    q: Floats
    log_base: Floats
    """Of the P-mass where the lower edge is at least 0, else of the Q-mass."""
    rise: Floats
    doubt: Floats


def _cell_masses(step: Step, edges: Floats, cuts: Floats, spacing: float) -> _Masses:
    """Masses of the cells (cut_j, cut_j+1], with relative accuracy where they lie far out."""
    back = step.reverse()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        p, p_doubt = _between(step.tails(cuts), back.null_tails(-cuts))
        q, q_doubt = _between(step.null_tails(cuts), back.tails(-cuts) - back.escape)
        log_q, log_q_doubt = _log_between(step.log_null_tails(cuts))
        log_p, log_p_doubt = _log_between(back.log_null_tails(-cuts)[::-1])
        log_p, log_p_doubt = log_p[::-1], log_p_doubt[::-1]
        up = edges[:-1] >= 0
        rise = np.where(up, np.log(p) - log_q, log_p - np.log(q)) - edges[:-1]
        doubt = np.where(up, p_doubt + log_q_doubt, q_doubt + log_p_doubt) + 4 * EPS * np.abs(edges[:-1])
        log_base = np.log(np.where(up, p, q))
        some = log_base > -inf
    rise, doubt = np.where(some & np.isfinite(rise), rise, 0.0), np.where(some & np.isfinite(doubt), doubt, spacing)
    return _Masses(p, q, log_base, rise, doubt)


def _between(above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """Mass of every cell, by whichever tail is the smaller one, and its relative round-off."""
    lower = below[1:] < above[:-1]
    mass = np.where(lower, np.diff(below), above[:-1] - above[1:]).clip(min=0.0)
    return mass, 8 * EPS * np.where(lower, below[1:], above[:-1]) / mass


def _log_between(log_above: Floats) -> tuple[Floats, Floats]:
    """The same in logarithms, from the upper tail's."""
    lost = -np.expm1(np.minimum(log_above[1:] - log_above[:-1], 0.0))
    return log_above[:-1] + np.log(lost), 4 * EPS * (2 + np.abs(log_above[:-1])) / lost


def _rises(masses: _Masses, spacing: float) -> tuple[Floats, Floats, float]:
    """Lower and upper bounds of the rise, nearly 0 or a cell taken for it, and how far round-off may move losses."""
    least, most = (np.clip(masses.rise + sign * masses.doubt, 0.0, spacing) for sign in (-1, 1))
    apart = np.clip(masses.rise, 0.0, spacing)
    snapped = np.where(apart < 0.5 * spacing, 0.0, spacing)
    near = np.abs(masses.rise - snapped) <= _ON_GRID * spacing
    some = (masses.p > 0) | (masses.q > 0)
    drift = float(np.where(near & some, np.abs(masses.rise - snapped) + masses.doubt, 0.0).max(initial=0.0))
    least, most = np.where(near, snapped, least), np.where(near, snapped, most)
    drift += max(float((mass * (most - least)).sum()) for mass in (masses.p, masses.q))  # mass that was moved up
    return least, most, min(drift, spacing)


def is_atomic(step: Step) -> bool:
    """Whether the loss takes a few values only."""
    base = (
        step.mirror.base
        if isinstance(step, SubsampledAdd)
        else step.base
        if isinstance(step, SubsampledRemove)
        else step
    )
    return isinstance(base, AtomStep | MassStep)
