"""The calls behind docs/compared-with.md: `python benchmarks/peers.py`, in any environment with some of the tools.

Each tool answers a question that deniable answers, too; CPU seconds of one cold call. What is not installed says so.
"""

from __future__ import annotations

import importlib.metadata
import time
import warnings
from collections.abc import Callable

import numpy as np

import deniable as dn

RATE, STEPS, NOISE, DELTA = 0.005, 6000, 1.0, 1e-5


def training(noise: float) -> dn.Mechanism:
    return dn.Gaussian(noise).subsampled(RATE).composed(STEPS)


def scores() -> tuple[np.ndarray, np.ndarray]:
    """An attack's scores of 400 members and 400 others, two standard deviations apart."""
    random = np.random.default_rng(0)
    return random.normal(2, 1, 400), random.normal(0, 1, 400)


def epsilon_by_deniable() -> float:
    return dn.privacy_loss(training(NOISE), "add-remove").epsilon(DELTA)


def noise_by_deniable() -> float:
    return dn.calibrate(training, dn.Advantage(0.1), "add-remove").value


def bound_by_deniable() -> float:
    from deniable.evidence.attack_scores import Scores  # noqa: PLC0415

    found = dn.verdict(Scores(*scores()), claimed_epsilon=1.0, delta=DELTA, rows_from="trainings")
    return found.measured.epsilon.lower_bound.value or 0.0


def epsilon_by_dp_accounting() -> float:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, pld  # noqa: PLC0415

    step = PoissonSampledDpEvent(RATE, GaussianDpEvent(NOISE))
    return pld.PLDAccountant().compose(step, STEPS).get_epsilon(DELTA)


def epsilon_by_opacus() -> float:
    from opacus.accountants import PRVAccountant  # noqa: PLC0415

    accountant = PRVAccountant()
    accountant.history = [(NOISE, RATE, STEPS)]
    return accountant.get_epsilon(DELTA)


def epsilon_by_opake() -> float:
    from opake.dpsgd import accounting  # noqa: PLC0415

    return (accounting.poisson(accounting.gaussian(NOISE), RATE) * STEPS).epsilon_at(DELTA)


def noise_by_riskcal() -> float:
    from riskcal.calibration.dpsgd import find_noise_multiplier_for_advantage  # noqa: PLC0415

    return find_noise_multiplier_for_advantage(0.1, sample_rate=RATE, num_steps=STEPS)


def bound_by_jax_privacy() -> float:
    from jax_privacy.auditing import CanaryScoreAuditor  # noqa: PLC0415

    return CanaryScoreAuditor(*scores()).epsilon_clopper_pearson(significance=0.05, delta=DELTA)


QUESTIONS: dict[str, dict[str, Callable[[], float]]] = {
    "epsilon at delta 1e-5, noise 1, rate .005, 6,000 steps": {
        "deniable": epsilon_by_deniable,
        "dp-accounting": epsilon_by_dp_accounting,
        "opacus": epsilon_by_opacus,
        "opake-dpsgd": epsilon_by_opake,
    },
    "noise for an advantage of at most 10 %, the same training": {
        "deniable": noise_by_deniable,
        "riskcal": noise_by_riskcal,
    },
    "epsilon that 400 and 400 scores prove at delta 1e-5, 95 % confidence": {
        "deniable": bound_by_deniable,
        "jax-privacy": bound_by_jax_privacy,
    },
}


def main() -> None:
    warnings.simplefilter("ignore")
    for question, tools in QUESTIONS.items():
        print(question)
        for tool, answer in tools.items():
            try:
                version = dn.__version__ if tool == "deniable" else importlib.metadata.version(tool)
            except importlib.metadata.PackageNotFoundError:
                print(f"  {tool}: not installed here")
                continue
            start = time.process_time()
            found = answer()
            print(f"  {tool} {version}: {found:.6g}, {time.process_time() - start:.3f} s")


if __name__ == "__main__":
    main()
