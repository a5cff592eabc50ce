"""A_DI: the observer that differential privacy assumes, who knows D, D', the model, the noise, and sees every step.

Bernau 2021, Algorithm 1. The training engine keeps the observer's running log-likelihood ratio ``ln p(seen | D) /
p(seen | D')`` while it trains; here it becomes beliefs and decisions. Its naive twin stands in tests/adversaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from deniable.adversaries.membership import Scored
from deniable.checks import probability, whole
from deniable.engines import Local
from deniable.scores import beliefs
from deniable.training.engine import run_block
from deniable.training.settings import Neighbours, TrainingSettings

__all__ = ["Identifiability", "beliefs", "decisions"]


def decisions(log_likelihood_ratio: ArrayLike, prior: float = 0.5) -> NDArray[np.bool_]:
    """True where the observer names D: its belief in D is the larger (Algorithm 1, step 14; a tie names D')."""
    start = logit(probability("prior", prior, open_ends=True))
    return np.asarray(start + np.asarray(log_likelihood_ratio, dtype=np.float64) > 0)


@dataclass(frozen=True)
class Identifiability:
    """A_DI as the upper reference of membership attacks: by Bernau 2021 (Proposition 1) none of them does better.

    Its "records" are trainings: a member is a training on D, a non-member one on D', and the score is the observer's
    log-likelihood ratio after the last step. The threshold is Algorithm 1's, a belief above 1/2.
    """

    settings: TrainingSettings
    neighbours: Neighbours
    trials: int

    def play_scores(self, seed: int, processes: int | None = 1) -> Scored:
        """Scores of about `trials` trainings; the surplus of one kind is left out."""
        blocks = range(-(-whole("trials", self.trials, low=2) // self.settings.trials_per_block))
        played = dict(Local(processes).run(partial(run_block, self.settings, self.neighbours, seed), blocks))
        ratios = np.concatenate([played[number].log_likelihood_ratio[:, -1] for number in blocks])[: self.trials]
        on_d = np.concatenate([played[number].trained_on_d for number in blocks])[: self.trials]
        count = min(int(on_d.sum()), int((~on_d).sum()))
        return Scored(ratios[on_d][:count], ratios[~on_d][:count], float(np.nextafter(0, 1)))
