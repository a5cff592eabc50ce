"""Named bounds: analyses that know less than the privacy loss itself, and the seeds' theorems by name.

`analyses` and `guarantee` serve `explain` and `choose`; the modules hold the theorems, one subject each. Nothing here
depends on `deniable.loss`: a bound is an independent witness, and must never be below the exact value.
"""

from deniable.bounds.divergences import (
    classic_conversion,
    improved_conversion,
    kl_divergence,
    kl_to_tvd,
    kl_tvd,
    rdp_epsilon,
    renyi_curve,
    rho_to_epsilon,
    rho_to_epsilon_classic,
    zcdp_epsilon,
)
from deniable.bounds.methods import METHODS, NamedBound, analyses, guarantee, loss_bound
from deniable.bounds.numeric import InapplicableError
from deniable.bounds.risk_bounds import any_release_belief, belief_to_epsilon, epsilon_to_belief, predicate_singling_out
from deniable.bounds.runs import Tuning
from deniable.bounds.textbook import advanced_composition, advanced_epsilon, naive_composition, naive_epsilon

__all__ = [
    "METHODS",
    "InapplicableError",
    "NamedBound",
    "Tuning",
    "advanced_composition",
    "advanced_epsilon",
    "analyses",
    "any_release_belief",
    "belief_to_epsilon",
    "classic_conversion",
    "epsilon_to_belief",
    "guarantee",
    "improved_conversion",
    "kl_divergence",
    "kl_to_tvd",
    "kl_tvd",
    "loss_bound",
    "naive_composition",
    "naive_epsilon",
    "predicate_singling_out",
    "rdp_epsilon",
    "renyi_curve",
    "rho_to_epsilon",
    "rho_to_epsilon_classic",
    "zcdp_epsilon",
]
