"""Singling out as it follows from (epsilon, delta) alone."""

from __future__ import annotations

from math import exp, log1p

from deniable.checks import positive, probability, whole


def predicate_singling_out(epsilon: float, delta: float, weight: float, people: int) -> float:
    """The most that an (epsilon, delta)-DP release adds to untargeted predicate singling out (Cohen 2020).

    e^epsilon n w + n delta - n w (1 - w)^(n - 1), of descriptions that fit a share w of all people, n in the data.
    """
    positive("epsilon", epsilon, zero=True)
    probability("delta", delta)
    probability("weight", weight, open_ends=True)
    whole("people", people)
    blind = people * weight * exp((people - 1) * log1p(-weight))
    return min(1.0, exp(min(epsilon, 700.0)) * people * weight + people * delta - blind)
