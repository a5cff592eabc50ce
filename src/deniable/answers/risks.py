"""Singling out, re-identification, attribute inference and reconstruction: one point of the trade-off curve each."""

from __future__ import annotations

from math import exp, log1p

from deniable.checks import of_kind, probability, whole
from deniable.results.shared import SinglingOut
from deniable.scores import PrivacyLoss


def singling_out(loss: PrivacyLoss, weight: float, people: int) -> SinglingOut:
    """By how much the release helps to single out: predicates that fit a share `weight` of all people (Cohen 2020).

    Targeted, at one person: success(weight) - weight. Untargeted, at anybody among the `people` in the data, by a union
    over them: people * success(weight) - b, where b = people * weight * (1 - weight)^(people - 1) is what a predicate
    that is chosen without the release isolates. For neighbours that differ by one record exchanged.

    Args:
        loss: Of the release.
        weight: The share of all people that a description fits.
        people: How many people are in the data.

    Returns:
        What the release adds, `targeted` and `untargeted`, both at most.

    Examples:
        >>> import deniable as dn
        >>> round(dn.singling_out(dn.privacy_loss(dn.Gaussian(4.0)), weight=1e-3, people=1000).targeted, 5)
        0.00125
    """
    of_kind("loss", loss, PrivacyLoss, "a privacy loss", "for example deniable.privacy_loss(deniable.Gaussian(1.0))")
    probability("weight", weight, open_ends=True)
    whole("people", people)
    success = float(loss.success(weight))
    blind = people * weight * exp((people - 1) * log1p(-weight))
    return SinglingOut(
        weight=weight,
        people=people,
        targeted=success - weight,
        untargeted=min(1.0, max(people * success - blind, 0.0)),
    )
