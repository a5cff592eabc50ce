"""A_MI: the loss threshold of Yeom, Giacomelli, Fredrikson and Jha 2018.

Bernau 2021, Section 5.3; Erlingsson 2019, Section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from torch import nn

from deniable.adversaries.membership import Scored, best_threshold, halves
from deniable.adversaries.model_observation import losses
from deniable.data import Dataset
from deniable.training.engine import one_thread

Rule = Literal["average", "free"]


@dataclass(frozen=True)
class LossThreshold:
    """A record with a small loss is a member; the score is the loss, negated.

    The `average` rule calls members those with at most the average training loss, as Yeom does; the average is that of
    the known members, so that the tested ones have no part in it. The `free` rule takes the threshold with the largest
    advantage on the known half, which Erlingsson 2019 (Section 5.4) takes on the tested records themselves.
    """

    rule: Rule = "average"

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ValueError(f"rule must be one of {', '.join(get_args(Rule))}, got {self.rule!r}")

    def __call__(self, model: nn.Module, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """Minus the loss of each tested record."""
        known, tested = halves(members, non_members, seed)
        with one_thread():
            seen, asked = (-losses(model, half.records) for half in (known, tested))
        average = float(np.mean(seen[known.member]))
        return tested.with_scores(asked, average if self.rule == "average" else best_threshold(seen, known.member))
