"""A privacy loss distribution (PLD): losses and their probabilities, as dp-accounting and others compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.checks import RefusedError, refuse
from deniable.mechanisms import Mechanism, PmfPair

_MOST_LOSSES = 2_000_000
_SUM_ERROR = 1e-9
_MEAN_ERROR = 1e-6
"""By which the mean of e^-loss may exceed 1, as it does after cutting tails; losses are then raised, which is safe."""


def from_pld(losses: Any, masses: Sequence[float] | None = None, infinite: float | None = None) -> Mechanism:
    """The release whose privacy loss has these values with these probabilities, the person's data being the true ones.

    On the safe side: probability that is missing counts as an infinite loss, and what the other data set has left is
    put where the loss is minus infinity. Both directions are looked at; for those PLDs that come in two, the one of a
    removed record dominates both.

    Args:
        losses: ln P(output) / Q(output), one for each mass; or a `PrivacyLossDistribution` of dp-accounting; or an
            object with the keys losses, masses and perhaps infinite.
        masses: their probabilities under P.
        infinite: the probability of an infinite loss. Default: what the masses lack to 1.

    Returns:
        The release as a mechanism, to be asked by `privacy_loss` and `explain`.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.from_pld([0.5, -1.0], [0.75, 0.15])).advantage(), 4)
        0.3951
    """
    if masses is None:
        losses, masses, infinite = _parts(losses)
    at, mass = _numbers("losses", losses), _numbers("masses", masses)
    if len(at) != len(mass) or not 0 < len(at) <= _MOST_LOSSES:
        raise refuse("masses", len(mass), f"as many as there are losses ({len(at)}), from 1 to {_MOST_LOSSES:,}")
    return _pair(at, mass, infinite)


def _pair(losses: NDArray[np.float64], masses: NDArray[np.float64], infinite: float | None) -> Mechanism:
    if not np.all(masses >= 0) or np.isnan(losses).any() or (losses == -np.inf).any():
        raise RefusedError("{masses} must be probabilities, and {losses} numbers or inf", "masses")
    finite = np.isfinite(losses)
    losses, masses = losses[finite & (masses > 0)], masses[finite & (masses > 0)]
    total = float(masses.sum())
    if total > 1 + _SUM_ERROR or (infinite is not None and total + infinite > 1 + _SUM_ERROR):
        raise refuse("masses", total + (infinite or 0.0), "probabilities that sum to at most 1")
    masses = masses / max(total, 1.0)
    with np.errstate(over="ignore"):
        others = masses * np.exp(-losses)
    left = float(others.sum())
    if not left <= 1 + _MEAN_ERROR:
        raise refuse("masses", left, "a privacy loss, whose mean of e^-loss is at most 1")
    others = others / max(left, 1.0)
    beside = max(0.0, 1 - float(masses.sum())), max(0.0, 1 - float(others.sum()))
    return PmfPair([*masses.tolist(), beside[0], 0.0], [*others.tolist(), 0.0, beside[1]])


def _parts(source: Any) -> tuple[Any, Any, Any]:
    """Losses, masses and the mass at infinity of what has all of them."""
    if isinstance(source, Mapping) and {"losses", "masses"} <= source.keys():
        return source["losses"], source["masses"], source.get("infinite")
    pmf = getattr(source, "_pmf_remove", None)
    if pmf is None:
        raise refuse("masses", None, "given, unless {losses} is a PrivacyLossDistribution")
    if not pmf._pessimistic_estimate:
        raise RefusedError("{losses}: an optimistic PLD bounds nothing from above; make it with pessimistic_estimate")
    dense = pmf.to_dense_pmf()
    place = dense._lower_loss + np.arange(len(dense._probs))
    return place * dense._discretization, np.maximum(dense._probs, 0.0), dense._infinity_mass


def _numbers(field: str, values: Any) -> NDArray[np.float64]:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as refused:
        raise refuse(field, values if len(repr(values)) < 60 else "...", "a list of numbers") from refused
    if found.ndim != 1:
        raise refuse(field, found.shape, "a list of numbers")
    return found
