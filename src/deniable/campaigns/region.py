"""The region of privacy (Erlingsson 2019, Section 5.3): the truth lies between best analysis and best attack."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from deniable.bounds import analyses
from deniable.mechanisms import Adjacency, Mechanism
from deniable.results.compare_result import NamedEpsilons, RegionRow
from deniable.scores import privacy_loss

NAMED = ("naive", "advanced", "rdp")
"""The analyses of Erlingsson et al. 2019, Tables 1 and 2, from loose to tight."""
_LARGEST = 1e100
"""An epsilon from here on says nothing, and no picture can hold it."""


def region(
    rows: Iterable[tuple[float, Mechanism, float | None]], delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> list[RegionRow]:
    """From (noise, release, the attack's lower bound), sorted from little noise to much (Erlingsson et al. 2019)."""
    found = []
    for noise, mechanism, lower in sorted(rows, key=lambda row: row[0]):
        known = {name: bound.value for name, bound in analyses(mechanism, delta, adjacency).items()}
        named = {name: value if (value := known.get(name, inf)) < _LARGEST else None for name in NAMED}
        exact = float(privacy_loss(mechanism, adjacency).epsilon(delta))
        found.append(RegionRow(noise=noise, exact=exact, named=NamedEpsilons(**named), lower=lower))
    return found
