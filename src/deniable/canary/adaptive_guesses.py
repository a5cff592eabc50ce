"""What the likelihoods of canaries that share coordinates say of each: at once, or one after the other.

A coordinate has k canaries, alike but for their coins. `likelihoods[s, c]` is the log-likelihood of what was seen on
coordinate s if c of its canaries were in the training, up to a constant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]
_TIE = 1e-9
"""Between the scores of canaries that nothing but their number tells apart; relative to one unit of log-likelihood."""


def guess_at_once(likelihoods: Array) -> Array:
    """The log-likelihood ratio of every canary, in or out, with fair coins for all others; shape (coordinates x k).

    Canaries of one coordinate have the same one: they are put in the order of their numbers, which know of no coin.
    """
    coordinates, counts = likelihoods.shape
    each = _log_odds(likelihoods, counts - 1, 0)
    order = np.arange(coordinates * (counts - 1)) % (counts - 1)
    return np.asarray(np.repeat(each, counts - 1) - _TIE * order)


def guess_adaptively(likelihoods: Array, coins: NDArray[np.bool_]) -> Array:
    """Scores that stand for guesses one after the other, each knowing the coins of those before, and never its own.

    By turns the likeliest canary of all is called a member and the unlikeliest is not; then its coin is shown. The
    first guess has the score +M, the second -(M - 1), and so on: the first r guesses are the ceil(r/2) highest scores
    and the floor(r/2) lowest, which is how `evidence.one_run` counts guesses (Lemma E6 holds for them).
    """
    coordinates, counts = likelihoods.shape
    size = counts - 1
    truth = coins.reshape(coordinates, size)
    left, inside = np.full(coordinates, size), np.zeros(coordinates, dtype=int)
    known = {(m, n): _log_odds(likelihoods, m, n) for m in range(1, size + 1) for n in range(size - m + 1)}
    odds, scores = known[size, 0].copy(), np.empty((coordinates, size))
    for turn in range(truth.size):
        sign = 1 if turn % 2 == 0 else -1
        place = int(np.where(left > 0, sign * odds, -np.inf).argmax())
        canary = size - left[place]
        scores[place, canary] = sign * (truth.size - turn)
        left[place] -= 1
        inside[place] += truth[place, canary]
        if left[place]:
            odds[place] = known[int(left[place]), int(inside[place])][place]
    return scores.ravel()


def _log_odds(likelihoods: Array, left: int, inside: int) -> Array:
    """Of a canary whose coin is unknown like that of `left` - 1 others, `inside` being the known ones that are in."""
    others = np.arange(left)
    ways = gammaln(left) - gammaln(others + 1) - gammaln(left - others)
    member = np.logaddexp.reduce(ways + likelihoods[:, inside + 1 + others], axis=1)
    return np.asarray(member - np.logaddexp.reduce(ways + likelihoods[:, inside + others], axis=1))
