"""What a training claims: a promise about a score, or the bare noise; and the noise that the promise needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from deniable.bounds.belief import belief_to_epsilon, epsilon_to_belief
from deniable.bounds.gaussian import noise_for_belief
from deniable.calibration import Advantage, Belief, Epsilon, Target, calibrate
from deniable.checks import positive, probability
from deniable.mechanisms import Adjacency, Gaussian, Mechanism

__all__ = ["CalibratedBy", "Promise", "training_mechanism"]

CalibratedBy = Literal["exact", "rdp"]
NAMES = ("belief", "advantage", "epsilon", "noise")


def training_mechanism(noise: float, rate: float, steps: int) -> Mechanism:
    """DP-SGD as a mechanism; full batches where the rate is 1."""
    step: Mechanism = Gaussian(noise)
    return (step if rate == 1 else step.subsampled(rate)).composed(steps)


@dataclass(frozen=True)
class Promise:
    """`name` is the promised score, `bound` its value; `noise` promises what the noise multiplier itself implies."""

    name: str
    bound: float
    delta: float
    calibration: CalibratedBy = "exact"

    def __post_init__(self) -> None:
        probability("delta", self.delta, open_ends=True)
        if self.name not in NAMES:
            raise ValueError(f"the promise must be one of {', '.join(NAMES)}, got {self.name!r}")
        if self.calibration not in get_args(CalibratedBy):
            allowed = ", ".join(get_args(CalibratedBy))
            raise ValueError(f"calibration must be one of {allowed}, got {self.calibration!r}")
        if self.name == "noise":
            positive("noise", self.bound)
        else:
            self._target()
        object.__setattr__(self, "bound", float(self.bound))

    @classmethod
    def only(cls, given: dict[str, float | None], delta: float, calibration: CalibratedBy = "exact") -> Promise:
        """From the one score that is given."""
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            found = " and ".join(named) or "none"
            raise ValueError(f"give exactly one of {', '.join(NAMES)}, got {found}")
        ((name, bound),) = named.items()
        return cls(name, bound, delta, calibration)

    def noise(self, rate: float, steps: int, adjacency: Adjacency) -> float:
        """The least noise multiplier that keeps the promise; by Renyi DP as in Bernau 2021 (Section 5) if asked for."""
        if self.name == "noise":
            return self.bound
        if self.calibration == "rdp":
            return self._renyi_noise(rate, steps)
        found = calibrate(lambda noise: training_mechanism(noise, rate, steps), self._target(), adjacency)
        return found.value

    def claimed(self) -> dict[str, Any]:
        """The promised scores; None where nothing is promised.

        A belief that is exceeded with probability at most delta is a loss that exceeds logit(belief) as rarely, which
        implies (logit(belief), delta)-DP; the reverse is not true (erratum 4), so epsilon promises no belief.
        """
        belief, advantage, epsilon = (self.bound if self.name == name else None for name in NAMES[:3])
        if belief is not None:
            epsilon = belief_to_epsilon(belief)
        return {"belief": belief, "advantage": advantage, "epsilon": epsilon, "delta": self.delta}

    def _target(self) -> Target:
        match self.name:
            case "belief":
                return Belief(self.bound, self.delta)
            case "advantage":
                return Advantage(self.bound)
            case _:
                return Epsilon(self.bound, self.delta)

    def _renyi_noise(self, rate: float, steps: int) -> float:
        if rate < 1 or self.name == "advantage":
            raise ValueError("calibration 'rdp' is for a belief or epsilon and full batches (rate 1): use 'exact'")
        belief = self.bound if self.name == "belief" else epsilon_to_belief(self.bound)
        return noise_for_belief(belief, self.delta, steps)
