"""An accountant for Opacus: after `import deniable.opacus`, write `PrivacyEngine(accountant="deniable")`.

`get_epsilon` and `get_noise_multiplier` are then exact, on the safe side; `belief`, `advantage` and `explain` say what
has been released so far in words for a person. This module needs Opacus 1.6 or later; nothing else here imports it.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from math import inf, lgamma, log, log1p
from typing import Any

from opacus.accountants import IAccountant, register_accountant
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler, UniformWithReplacementSampler
from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler

from deniable.answers.explain import explain
from deniable.checks import one_of
from deniable.formats import from_opacus
from deniable.formats.opacus_history import OPACUS_SAMPLINGS, check_history
from deniable.mechanisms import Adjacency, Mechanism
from deniable.results.explain_result import ExplainResult
from deniable.scores import PrivacyLoss, privacy_loss
from deniable.upper import Upper

__all__ = ["DeniableAccountant", "NotPoissonWarning"]

NAME = "deniable"
_FALSE_ALARM = 1e-9  # the chance that Poisson batches are taken for others
_WHY = {
    "shuffled": (
        "The batches are those of passes over all records (shuffle=True or in order), not Poisson samples: the Poisson "
        "epsilon is not theirs, and get_epsilon does not return it. For such batches nothing better than no sampling "
        "is proved, so that every pass counts as one release on all records; see explain() for what is known from "
        "below. With poisson_sampling=True the Poisson epsilon holds."
    ),
    "unknown": (
        "The batches are not Poisson samples: the Poisson epsilon is not theirs, and get_epsilon does not return it. "
        "Nothing is known of how they are drawn, so that every step counts as a release on all records (no record may "
        "be in a batch twice). If every record takes part once in each completed pass, set accountant.sampling = "
        "'shuffled'. With "
        "poisson_sampling=True, and the loader that make_private returns, the Poisson epsilon holds."
    ),
}


class NotPoissonWarning(UserWarning):
    """Batches are not drawn as the sampling rate assumes."""


class DeniableAccountant(IAccountant):  # type: ignore[misc]  # Opacus has no types
    """The privacy loss of a training with Opacus, exact and on the safe side.

    Neighbours differ by one record more or less, as in Opacus's own accountants; where batches are not Poisson samples,
    by one record blanked out.

    Attributes:
        history: (noise multiplier, sample rate, steps) of every stretch of equal steps, as in all of Opacus's.
        sampling: how batches are drawn: "poisson", "shuffled" or "unknown"; found out by `make_private`, and unknown
            where the sizes of batches cannot be those of Poisson samples.
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []
        self._sampling = OPACUS_SAMPLINGS[0]
        self._sizes: Counter[int] = Counter()
        self._expected_size = inf

    @classmethod
    def mechanism(cls) -> str:
        """The accountant's name."""
        return NAME

    def __len__(self) -> int:
        return len(self.history)

    @property
    def sampling(self) -> str:
        """How batches are drawn."""
        return self._sampling

    @sampling.setter
    def sampling(self, word: str) -> None:
        self._sampling = one_of("sampling", word, OPACUS_SAMPLINGS)
        self._sizes.clear()

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """One more step."""
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """What the optimizer calls in every step; `make_private` asks for it, and its loader is looked at."""
        frame = inspect.currentframe()
        loader = frame.f_back.f_locals.get("data_loader") if frame and frame.f_back else None
        if loader is not None:
            self._weaken(_sampling_of(loader))
        count = super().get_optimizer_hook_fn(sample_rate)

        def hook(optimizer: Any) -> None:
            count(optimizer)
            self._see_batch(optimizer)

        return hook

    def get_epsilon(self, delta: float, **_others: object) -> float:
        """The smallest epsilon at `delta` of all steps so far; other accountants' settings are not needed."""
        return float(self._loss().epsilon(delta))

    def belief(self, delta: float, prior: float = 0.5) -> Upper:
        """How sure an observer becomes of a person's membership, except with probability `delta`."""
        return self._loss().belief(delta, prior)

    def advantage(self) -> Upper:
        """The largest TPR - FPR of any attack on membership."""
        return self._loss().advantage()

    def explain(self, delta: float = 1e-5, prior: float = 0.5) -> ExplainResult:
        """All scores of the steps so far, with sentences for a person (`.summary()`)."""
        return explain(self._release(), self._adjacency(), delta=delta, prior=prior)

    def state_dict(self, destination: Any = None) -> Any:
        """For a checkpoint: the history, and how batches are drawn."""
        state = super().state_dict(destination)
        state.update(sampling=self._sampling, batch_sizes=dict(self._sizes), expected_size=self._expected_size)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """From a checkpoint; the history is checked."""
        super().load_state_dict(state_dict)
        self.history = [(noise, rate, steps) for noise, rate, steps in check_history(state_dict["history"])]
        self._sampling = one_of("sampling", state_dict.get("sampling", OPACUS_SAMPLINGS[0]), OPACUS_SAMPLINGS)
        self._sizes = Counter(state_dict.get("batch_sizes", {}))
        self._expected_size = state_dict.get("expected_size", inf)

    def _loss(self) -> PrivacyLoss:
        return privacy_loss(self._release(), self._adjacency())

    def _release(self) -> Mechanism:
        self._judge_sizes()
        return from_opacus(self.history, sampling=self._sampling)

    def _adjacency(self) -> Adjacency:
        return Adjacency.ADD_REMOVE if self._sampling == OPACUS_SAMPLINGS[0] else Adjacency.ZERO_OUT

    def _weaken(self, found: str) -> None:
        """Whatever protects least of all that was seen holds for all steps; whoever is told so hears why."""
        self._sampling = max(self._sampling, found, key=OPACUS_SAMPLINGS.index)
        if found in _WHY:
            warnings.warn(_WHY[found], NotPoissonWarning, stacklevel=4)

    def _see_batch(self, optimizer: Any) -> None:
        size = _batch_size(optimizer)
        if size is not None and self._sampling == OPACUS_SAMPLINGS[0]:
            self._sizes[size] += 1
            self._expected_size = min(self._expected_size, optimizer.expected_batch_size)

    def _judge_sizes(self) -> None:
        """Poisson samples vary in size: so many of one size among so many would be a miracle."""
        if self._sampling != OPACUS_SAMPLINGS[0] or not self._sizes:
            return
        steps, equal = self._sizes.total(), max(self._sizes.values())
        rate = max(rate for _, rate, _ in self.history)
        chance = _log_choices(steps, equal) + (equal - 1) * _log_commonest(self._expected_size, rate)
        if chance < log(_FALSE_ALARM):
            self._weaken("unknown")


def _sampling_of(loader: Any) -> str:
    """How a loader draws its batches; the weakest word where nobody knows."""
    if isinstance(loader.batch_sampler, UniformWithReplacementSampler | DistributedUniformWithReplacementSampler):
        return "poisson"
    sampler = loader.sampler
    each_once = isinstance(sampler, SequentialSampler | DistributedSampler) or (
        isinstance(sampler, RandomSampler) and not sampler.replacement
    )
    return "shuffled" if each_once else "unknown"


def _batch_size(optimizer: Any) -> int | None:
    """The records of this step; None where only a part of them is at hand."""
    gradients = getattr(optimizer.params[0], "grad_sample", None)
    if gradients is None or optimizer._is_last_step_skipped:
        return None
    return sum(map(len, gradients)) if isinstance(gradients, list) else len(gradients)


def _log_commonest(expected: float, rate: float) -> float:
    """ln of the largest probability that a Poisson sample of `expected` records on average has of any one size."""
    if not 0 < rate < 1 or not 0 < expected < inf:
        return 0.0
    records = max(1, int(expected / rate))
    mode = min(records, int((records + 1) * rate))
    return min(0.0, _log_choices(records, mode) + mode * log(rate) + (records - mode) * log1p(-rate))


def _log_choices(all_of_them: int, chosen: int) -> float:
    return lgamma(all_of_them + 1) - lgamma(chosen + 1) - lgamma(all_of_them - chosen + 1)


register_accountant(NAME, DeniableAccountant, force=True)
