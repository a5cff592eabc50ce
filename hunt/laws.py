"""One run of a mechanism as a cloud of losses, from the description alone: nothing of `deniable.loss` is used.

A *law* is the privacy loss L = ln dP/dQ of one step under P, as panels: `loss` is the mean of L in a panel, `log_mass`
its probability, `width` how wide the panel is (0 for an atom), `escape` the probability of L = inf. The difference
between L and its panel's mean has mean 0 and is at most `width`: what rigorous brackets need (hunt.composed).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

import deniable as dn
from hunt import releases
from hunt.releases import Masses

__all__ = ["Description", "Law", "Side", "describe", "laws_of"]

Floats = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
_LEAST_RATE = 1e-290  # products below underflow
_DENSE_SIGMAS, _FAR_SIGMAS = 9.0, 37.5
Side = Literal["exact", "gaussian below", "answer below", "above"]
"""Releases that are known by brackets only are described by one that tells less, or by one that tells more."""


@dataclass(frozen=True)
class Law:
    """The loss of one step under P."""

    loss: Floats
    log_mass: Floats
    width: Floats
    escape: float = 0.0
    nodes: tuple[Floats, Floats] = (np.empty(0), np.empty(0))  # Gauss-Legendre: losses and logarithms of their masses


# --- a mechanism as base steps: (kind, parameters), rate, runs ---


@dataclass(frozen=True)
class Base:
    """`gaussian` (mu), `laplace` (epsilon), `range` (epsilon), `atoms` (epsilon, up, still, down, hidden), `masses`
    (the largest finite loss), `several` (mu, rate, records) or `numbers` (mu); a bare guarantee or not.
    """

    kind: str
    values: tuple[float, ...]
    bare: bool = False
    cut: tuple[int, int] | None = None  # size at which batches are cut, and number of records
    masses: Masses = ((), 0.0, 0.0)
    numbers: tuple[tuple[int, float], ...] = ()  # of a person's records in the batch, which is told, with their chances
    exchanges: bool = False  # a record left out makes room for another one: as under replace for all neighbours

    @property
    def lopsided(self) -> bool:
        """Whether the release with P and Q exchanged is another one, also without sampling."""
        return self.kind in ("masses", "several")


@dataclass(frozen=True)
class Description:
    """One kind of step: a base at a Poisson rate, and how often it is run."""

    base: Base
    rate: float
    runs: int


def describe(mechanism: dn.Mechanism, adjacency: str, side: Side = "exact") -> list[Description]:
    """The steps of a release; unsampled Gaussians are one, steps that say nothing are left out."""
    found: dict[tuple[Base, float], int] = {}
    for part, count in mechanism.parts if isinstance(mechanism, dn.Composed) else ((mechanism, 1),):
        if not count:
            continue
        base, rate, turns = _sampled_base(part, adjacency, side)
        runs = count * turns
        if rate > 0 and runs > 0 and base.values[0] + base.values[-1] > 0:
            found[base, rate] = found.get((base, rate), 0) + runs
    together = sum(runs * base.values[0] ** 2 for (base, rate), runs in found.items() if _plain_gaussian(base, rate))
    kept = [Description(base, rate, runs) for (base, rate), runs in found.items() if not _plain_gaussian(base, rate)]
    return [*kept, *([Description(Base("gaussian", (together**0.5,)), 1.0, 1)] if together > 0 else [])]


def _sampled_base(mechanism: dn.Mechanism, adjacency: str, side: Side) -> tuple[Base, float, int]:
    """A sample of a sample is one, at the product of their rates; and how often it runs."""
    if isinstance(mechanism, dn.Sampled):
        return _other_sampling(mechanism, adjacency, side)
    rate = 1.0
    while isinstance(mechanism, dn.Subsampled):
        rate = max(rate * mechanism.rate, _LEAST_RATE) if rate > 0 < mechanism.rate else 0.0
        mechanism = mechanism.mechanism
    return _base(mechanism, side), rate, 1


def _other_sampling(  # noqa: PLR0911 (a table of kinds)
    mechanism: dn.Sampled, adjacency: str, side: Side
) -> tuple[Base, float, int]:
    """Cyclic: one round is one sample; shuffled: no sampling; a fixed size under replace: as little as is known."""
    base, sampling = _base(mechanism.mechanism, side), mechanism.sampling
    (mu, *_), person = base.values, sampling.records_per_person
    match sampling:
        case dn.CyclicPoisson(rate, bands):
            return Base("gaussian", (person**0.5 * mu,)), rate * bands, person
        case dn.Shuffled():
            return Base("gaussian", (person * mu,)), 1.0, 1
        case dn.RandomAllocation(steps, times):
            return _allocation(person**0.5 * mu, steps // times, side), 1.0, times * person
        case dn.TruncatedPoisson(rate, cap, records):
            return Base(base.kind, base.values, cut=(cap, records) if cap < records else None), rate, 1
        case dn.Poisson(rate) if rate in (0.0, 1.0) or adjacency != "replace":
            several = Base("several", (mu, rate, float(person)))
            return several if 0 < rate < 1 else Base("gaussian", (person * mu,)), float(rate > 0), 1
        case dn.FixedSize(batch, records, False) if person == 1:
            shift = 2 * mu if adjacency == "zero-out" else mu
            return Base("gaussian", (shift,), bare=True, exchanges=True), batch / records, 1
        case dn.FixedSize() | dn.Poisson():
            presence, numbers = releases.numbers_drawn(sampling)
            shift = 2 * mu if isinstance(sampling, dn.FixedSize) and adjacency == "zero-out" else mu
            return Base("numbers", (shift,), bare=True, numbers=numbers, exchanges=True), presence, 1
    raise TypeError(f"no description of {mechanism!r}")


def _allocation(mu: float, steps: int, side: Side) -> Base:
    if side == "exact":
        raise TypeError("random allocation is known by brackets")
    return Base("gaussian", (mu,)) if steps == 1 else _of_masses(releases.allocated(mu, steps, side == "above"))


def _of_masses(masses: Masses) -> Base:
    return Base("masses", (max(abs(loss) for loss, _ in masses[0]) if masses[0] else 1.0,), masses=masses)


def _plain_gaussian(base: Base, rate: float) -> bool:
    return base.kind == "gaussian" and rate == 1 and base.cut is None


def _base(mechanism: dn.Mechanism, side: Side) -> Base:  # noqa: PLR0911 (a table of kinds)
    match mechanism:
        case dn.DiscreteGaussian() | dn.DiscreteLaplace():
            return _of_masses(releases.integer_noise(mechanism))
        case dn.PmfPair(own, null):
            return _of_masses(releases.pair_masses(np.array(own), np.array(null)))
        case dn.ExponentialMechanism(epsilon):
            return Base("range", (float(epsilon),))
        case dn.ConcentratedDP() | dn.RenyiDP() if side.endswith("below"):
            mu, epsilon = releases.renyi_witnesses(mechanism)
            kept = dn.RandomizedResponse(epsilon) if epsilon > 0 else dn.TotalVariation(0.0)
            return Base("gaussian", (mu,), bare=True) if side == "gaussian below" else _base(kept, side)
        case dn.RepeatAndSelect() if side.endswith("below"):
            return _of_masses(releases.selected(mechanism))
        case dn.Gaussian():
            return Base("gaussian", (1 / mechanism.noise,))
        case dn.GaussianDP():
            return Base("gaussian", (float(mechanism.mu),), bare=True)
        case dn.Laplace():
            return Base("laplace", (1 / mechanism.scale,))
        case dn.Pixelization():
            return Base("laplace", (float(mechanism.epsilon),))
        case dn.RandomizedResponse():
            fall = exp(-mechanism.epsilon)
            total = 1 + (mechanism.categories - 1) * fall
            still = (mechanism.categories - 2) * fall / total
            return Base("atoms", (float(mechanism.epsilon), 1 / total, still, fall / total, 0.0))
        case dn.ApproximateDP():
            return _guarantee(float(mechanism.epsilon), float(mechanism.delta))
        case dn.TotalVariation():
            return _guarantee(0.0, float(mechanism.alpha))
    raise TypeError(f"no description of {mechanism!r}")


def _guarantee(epsilon: float, delta: float) -> Base:
    """The four outcomes of (epsilon, delta)-DP (Kairouz, Oh, Viswanath 2015)."""
    up = (1 - delta) / (1 + exp(-epsilon))
    return Base("atoms", (epsilon, up, 0.0, (1 - delta) / (1 + exp(min(epsilon, 700.0))), delta))


# --- a base as panels of base losses under P0 and Q0 ---


@dataclass(frozen=True)
class _Panels:
    """Base losses: ends of each panel, masses under P0 and Q0, nodes inside with their shares of either mass."""

    low: Floats
    high: Floats
    p: Floats
    q: Floats
    nodes: Floats
    p_share: Floats
    q_share: Floats
    hidden: float = 0.0  # P0-mass that Q0 cannot produce
    null_hidden: float = 0.0


def _shares(log_density: Floats) -> Floats:
    weighted = _WEIGHTS * np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def _between(edges: Floats) -> Floats:
    """Gauss-Legendre nodes of every panel."""
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    return middle[:, None] + half[:, None] * _NODES


def _edges_around(centres: tuple[float, ...], panels: int) -> Floats:
    """Outputs x: dense within 9 standard deviations of every centre, coarser as far as doubles tell anything apart."""
    far = (_FAR_SIGMAS - _DENSE_SIGMAS) * np.linspace(0, 1, panels // 4)[1:]
    dense = np.linspace(-_DENSE_SIGMAS, _DENSE_SIGMAS, panels)
    around = np.concatenate([-_DENSE_SIGMAS - far[::-1], dense, _DENSE_SIGMAS + far])
    return np.unique(np.concatenate([*(centre + around for centre in centres), [sum(centres) / 2]]))


def _normal_mass(edges: Floats, centre: float) -> Floats:
    """Mass of N(centre, 1) between the edges, by the smaller tail."""
    z = edges - centre
    below, above = ndtr(z), ndtr(-z)
    return np.asarray(np.where(z[1:] <= 0, below[1:] - below[:-1], above[:-1] - above[1:]).clip(min=0.0))


def _gaussian_panels(mu: float, panels: int) -> _Panels:
    edges = _edges_around((0.0, mu), panels)
    x = _between(edges)
    p, q = _normal_mass(edges, mu), _normal_mass(edges, 0.0)
    losses = mu * edges - mu * mu / 2
    return _Panels(
        losses[:-1], losses[1:], p, q, mu * x - mu * mu / 2, _shares(-((x - mu) ** 2) / 2), _shares(-(x**2) / 2)
    )


def _laplace_panels(epsilon: float, panels: int) -> _Panels:
    """P0: atoms 1/2 at epsilon, e^-epsilon / 2 at -epsilon, density e^{(l - epsilon)/2} / 4 between; Q0 mirrored."""
    near = min(2 * epsilon, 1400.0)
    ends = -epsilon + near * np.linspace(0, 1, panels)
    bridge = np.linspace(-epsilon, epsilon, panels // 4)
    edges = np.unique(np.concatenate([ends, -ends, bridge, [-epsilon, 0.0, epsilon]]))
    nodes = _between(edges)
    half = np.minimum((edges[1:] - edges[:-1]) / 2, 1e6)
    p = 0.5 * np.exp(np.minimum(edges[1:] - epsilon, 0.0) / 2) * -np.expm1(-half)
    q = 0.5 * np.exp(-np.maximum(edges[:-1] + epsilon, 0.0) / 2) * -np.expm1(-half)
    atoms = np.array([-epsilon, epsilon])
    heavy, light = 0.5, 0.5 * exp(-min(epsilon, 1400.0)) if epsilon < 745 else 0.0
    flat = np.full((2, _NODES.size), 1 / _NODES.size)
    return _Panels(
        np.concatenate([edges[:-1], atoms]),
        np.concatenate([edges[1:], atoms]),
        np.concatenate([p, [light, heavy]]),
        np.concatenate([q, [heavy, light]]),
        np.concatenate([nodes, np.repeat(atoms[:, None], _NODES.size, axis=1)]),
        np.concatenate([_shares(nodes / 2), flat]),
        np.concatenate([_shares(-nodes / 2), flat]),
    )


def _atom_panels(epsilon: float, up: float, still: float, down: float, hidden: float) -> _Panels:
    losses = np.array([epsilon, 0.0, -epsilon])
    flat = np.full((3, _NODES.size), 1 / _NODES.size)
    nodes = np.repeat(losses[:, None], _NODES.size, axis=1)
    p, q = np.array([up, still, down]), np.array([down, still, up])
    return _Panels(losses, losses, p, q, nodes, flat, flat, hidden, hidden)


def _mass_panels(masses: Masses) -> _Panels:
    atoms, hidden, null_hidden = masses
    losses, logs = np.array(atoms).reshape(-1, 2).T
    flat = np.full((losses.size, _NODES.size), 1 / _NODES.size)
    nodes = np.repeat(losses[:, None], _NODES.size, axis=1)
    q = np.exp(np.minimum(logs - losses, 0.0))
    return _Panels(losses, losses, np.exp(logs), q, nodes, flat, flat, hidden, null_hidden)


def _range_panels(epsilon: float, panels: int) -> _Panels:
    """Laplace noise's density without its atoms."""
    laplace, share = _laplace_panels(epsilon, panels), 2 / -np.expm1(-epsilon)
    inner = laplace.low < laplace.high
    kept = {name: getattr(laplace, name)[inner] for name in ("low", "high", "nodes", "p_share", "q_share")}
    return _Panels(**kept, p=share * laplace.p[inner], q=share * laplace.q[inner])


def _number_panels(mu: float, numbers: tuple[tuple[int, float], ...], panels: int) -> _Panels:
    """Each number of records in the batch is told; where none is ever there, no law is asked for."""
    if not numbers:
        return _gaussian_panels(mu, panels)
    parts = [(_gaussian_panels(number * mu, max(panels // len(numbers), 300)), share) for number, share in numbers]
    joined = {
        name: np.concatenate([getattr(part, name) for part, _ in parts])
        for name in ("low", "high", "nodes", "p_share", "q_share")
    }
    p, q = (np.concatenate([share * getattr(part, side) for part, share in parts]) for side in "pq")
    return _Panels(**joined, p=p, q=q)


def _several_panels(mu: float, rate: float, records: int, panels: int) -> _Panels:
    """The mixture over the number of records in the batch against none of them."""
    weights = binom.pmf(np.arange(records + 1), records, rate)
    edges = _edges_around(tuple(mu * m for m in range(records + 1) if weights[m] > 0), panels)
    x = _between(edges)
    with np.errstate(divide="ignore"):
        logs = np.log(weights)

    def loss(x: Floats) -> Floats:
        m = np.arange(records + 1.0)
        exponents = np.multiply.outer(x, m * mu) - (m * mu) ** 2 / 2
        gained = (weights * np.expm1(np.minimum(exponents, 30.0))).sum(axis=-1)
        near = (exponents.max(axis=-1) < 30.0) & (gained > -0.5)  # below, of none of the records no digits are left
        return np.where(near, np.log1p(np.where(near, gained, 0.0)), np.logaddexp.reduce(exponents + logs, axis=-1))

    ends, inside = loss(edges), loss(x)
    p = sum(weight * _normal_mass(edges, m * mu) for m, weight in enumerate(weights))
    null = -(x**2) / 2
    return _Panels(
        ends[:-1], ends[1:], np.asarray(p), _normal_mass(edges, 0.0), inside, _shares(null + inside), _shares(null)
    )


def _panels(base: Base, panels: int) -> _Panels:  # noqa: PLR0911 (a table of kinds)
    match base.kind:
        case "gaussian":
            return _gaussian_panels(base.values[0], panels)
        case "laplace":
            return _laplace_panels(base.values[0], panels)
        case "range":
            return _range_panels(base.values[0], panels)
        case "masses":
            return _mass_panels(base.masses)
        case "numbers":
            return _number_panels(base.values[0], base.numbers, panels)
        case "several":
            mu, rate, records = base.values
            return _several_panels(mu, rate, int(records), panels)
    return _atom_panels(*base.values)


# --- a step as a law, in both directions ---


def mixed(rate: float, loss: Floats) -> Floats:
    """ln(1 - rate + rate e^loss) without overflow, exact for small rates and small losses."""
    if rate in (0, 1):
        return rate * loss
    with np.errstate(over="ignore"):
        small = np.log1p(np.maximum(rate * np.expm1(np.minimum(loss, 30.0)), -1.0))
    return np.where(loss < 30.0, small, np.logaddexp(log1p(-rate), log(rate) + loss))


def _law(loss: Floats, mass: Floats, share: Floats, ends: tuple[Floats, Floats], escape: float = 0.0) -> Law:
    kept = mass > 0
    mean = (share * loss).sum(axis=1)
    low, high = np.minimum(*ends), np.maximum(*ends)
    with np.errstate(divide="ignore"):
        nodes = loss[kept].ravel(), (np.log(mass[kept])[:, None] + np.log(share[kept])).ravel()
    return Law(np.clip(mean, low, high)[kept], np.log(mass[kept]), (high - low)[kept], escape, nodes)


def laws_of(step: Description, adjacency: str, fineness: int = 12_000) -> tuple[Law, Law]:
    """The step's loss with the person's data set first (P), and with the other one first."""
    if step.base.cut is not None:
        return _truncated(step, adjacency, fineness)
    panels, rate = _panels(step.base, fineness), step.rate
    if rate == 1:
        law = _law(panels.nodes, panels.p, panels.p_share, (panels.low, panels.high), panels.hidden)
        if not step.base.lopsided:
            return law, law
        back = _law(-panels.nodes, panels.q, panels.q_share, (-panels.low, -panels.high), panels.null_hidden)
        return law, back
    if adjacency == "replace" and step.base.kind == "gaussian" and not step.base.bare:
        law = _exchanged(step.base.values[0], rate, fineness)
        return law, law
    forward, backward = _removed(panels, rate)
    if adjacency == "replace" or step.base.exchanges:
        law = _replaced(forward, backward)
        return law, law
    return forward, backward


def _truncated(step: Description, adjacency: str, fineness: int) -> tuple[Law, Law]:
    """It is told whether the batch was cut (Ganesh 2025): if so, the record may push another one out of it."""
    (mu,), (cap, records) = step.base.values, step.base.cut or (0, 0)
    plain = laws_of(Description(Base("gaussian", (mu,)), step.rate, 1), adjacency, fineness)
    cut = float(binom.sf(cap - 1, records - 1, step.rate))
    if cut == 0:
        return plain
    kept = min(float(binom.sf(cap, records, step.rate)) * cap / (records * cut), 1 - 1e-16)
    pushed = _exchanged((2 if adjacency == "replace" else 4) * mu, kept, fineness)
    return (_blend(cut, pushed, plain[0]), _blend(cut, pushed, plain[1])) if cut < 1 else (pushed, pushed)


def _blend(share: float, one: Law, other: Law) -> Law:
    """The first with this probability, else the second."""
    logs = log(share), log1p(-share)
    masses = np.concatenate([law.log_mass + weight for law, weight in zip((one, other), logs, strict=True)])
    nodes = np.concatenate([law.nodes[1] + weight for law, weight in zip((one, other), logs, strict=True)])
    losses, widths = np.concatenate([one.loss, other.loss]), np.concatenate([one.width, other.width])
    return Law(losses, masses, widths, 0.0, (np.concatenate([one.nodes[0], other.nodes[0]]), nodes))


def _removed(panels: _Panels, rate: float) -> tuple[Law, Law]:
    """(1 - rate) Q0 + rate P0 against Q0, and the other way round; what Q0 alone produces has loss ln(1 - rate)."""
    loss, ends = mixed(rate, panels.nodes), (mixed(rate, panels.low), mixed(rate, panels.high))
    mass = (1 - rate) * panels.q + rate * panels.p
    ratio = np.divide(rate * panels.p, mass, out=np.zeros_like(mass), where=mass > 0)[:, None]
    share = ratio * panels.p_share + (1 - ratio) * panels.q_share
    forward = _law(loss, mass, share, ends, rate * panels.hidden)
    backward = _law(-loss, panels.q, panels.q_share, (-ends[0], -ends[1]))
    if panels.null_hidden == 0:
        return forward, backward
    least, hidden = log1p(-rate), panels.null_hidden
    return _with_atom(forward, least, (1 - rate) * hidden), _with_atom(backward, -least, hidden)


def _with_atom(law: Law, loss: float, mass: float) -> Law:
    nodes = np.append(law.nodes[0], loss), np.append(law.nodes[1], log(mass))
    loss_too, mass_too = np.append(law.loss, loss), np.append(law.log_mass, log(mass))
    return Law(loss_too, mass_too, np.append(law.width, 0.0), law.escape, nodes)


def _replaced(forward: Law, backward: Law) -> Law:
    """Losses above 0 as in `forward`, losses below 0 their mirror image, the rest at 0, as `SubsampledReplace`."""
    up, down = forward.loss > 0, backward.loss < 0
    loss = np.concatenate([forward.loss[up], backward.loss[down]])
    log_mass = np.concatenate([forward.log_mass[up], backward.log_mass[down]])
    width = np.concatenate([forward.width[up], backward.width[down]])
    still = 1 - float(np.exp(log_mass).sum()) - forward.escape
    kept, mirrored = forward.nodes[0] > 0, backward.nodes[0] < 0
    nodes = (
        np.concatenate([forward.nodes[0][kept], backward.nodes[0][mirrored]]),
        np.concatenate([forward.nodes[1][kept], backward.nodes[1][mirrored]]),
    )
    law = Law(loss, log_mass, width, forward.escape, nodes)
    return _with_atom(law, 0.0, still) if still > 0 else law


def _exchanged(mu: float, rate: float, panels: int) -> Law:
    """(1-rate) N(0) + rate N(mu/2) against (1-rate) N(0) + rate N(-mu/2)."""
    edges = _edges_around((0.0, mu / 2), panels)
    x = _between(edges)

    def loss(x: Floats) -> Floats:
        return mixed(rate, mu * x / 2 - mu * mu / 8) - mixed(rate, -mu * x / 2 - mu * mu / 8)

    still, moved = (1 - rate) * _normal_mass(edges, 0.0), rate * _normal_mass(edges, mu / 2)
    mass = still + moved
    ratio = np.divide(moved, mass, out=np.zeros_like(mass), where=mass > 0)[:, None]
    share = ratio * _shares(-((x - mu / 2) ** 2) / 2) + (1 - ratio) * _shares(-(x**2) / 2)
    ends = loss(edges)
    return _law(loss(x), mass, share, (ends[:-1], ends[1:]))
