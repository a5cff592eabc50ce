"""deniable: choose, explain and audit the privacy of machine learning by what it means for a person."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deniable.calibration import Calibration, calibrate
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Composed,
    ConcentratedDP,
    CyclicPoisson,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FixedSize,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    Pixelization,
    PmfPair,
    Poisson,
    RandomAllocation,
    RandomizedResponse,
    RenyiDP,
    RepeatAndSelect,
    Sampled,
    Sampling,
    Shuffled,
    Subsampled,
    TotalVariation,
    Training,
    TruncatedPoisson,
    compose,
)
from deniable.promises import table as _promise_table
from deniable.promises.table import *  # noqa: F403 (every score of the table)
from deniable.scores import PrivacyLoss, posterior, privacy_loss
from deniable.sweeps import Sweep, sweep

__all__ = [
    "Adjacency",
    "ApproximateDP",
    "Calibration",
    "Composed",
    "ConcentratedDP",
    "CyclicPoisson",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FixedSize",
    "Gaussian",
    "GaussianDP",
    "Laplace",
    "Mechanism",
    "Pixelization",
    "PmfPair",
    "Poisson",
    "PrivacyLoss",
    "RandomAllocation",
    "RandomizedResponse",
    "RenyiDP",
    "RepeatAndSelect",
    "Sampled",
    "Sampling",
    "Shuffled",
    "Subsampled",
    "Sweep",
    "TotalVariation",
    "Training",
    "TruncatedPoisson",
    "calibrate",
    "compose",
    "posterior",
    "privacy_loss",
    "sweep",
]
__all__ += _promise_table.__all__
__version__ = "0.2.0"


_ROOMS = (
    "adversaries",
    "bounds",
    "campaigns",
    "canary",
    "comparison",
    "data",
    "evidence",
    "examination",
    "formats",
    "local",
    "opacus",
    "report",
    "results",
    "store",
    "testing",
    "training",
    "utility",
)
"""Modules that are imported when they are first asked for; some need torch."""
_FUNCTIONS = {
    "Budget": "deniable.answers.budget",
    "attack": "deniable.comparison.own_model",
    "audit": "deniable.campaigns.audit",
    "canaries": "deniable.canary.plan",
    "check_training": "deniable.testing.check_training",
    "choose": "deniable.answers.choose",
    "compare": "deniable.comparison.compare_levels",
    "examine": "deniable.examination.examine",
    "explain": "deniable.answers.explain",
    "fit_gaussian": "deniable.answers.further_figures",
    "from_dp_event": "deniable.formats",
    "from_opacus": "deniable.formats",
    "from_pld": "deniable.formats",
    "frontier": "deniable.utility.find_frontier",
    "index_records": "deniable.examination.recorded.batches.used_batches",
    "log_to_mlflow": "deniable.report.mlflow_log",
    "reproduce": "deniable.experiments",
    "singling_out": "deniable.answers.further_figures",
    "verdict": "deniable.campaigns.score_verdict",
    "watch_lightning": "deniable.examination.recorded.framework_callbacks",
    "watch_run": "deniable.examination.recorded.watch_run",
    "watch_trainer": "deniable.examination.recorded.framework_callbacks",
}
"""Likewise: the commands as functions, and where they are."""

if TYPE_CHECKING:
    from deniable.answers.budget import Budget as Budget
    from deniable.answers.choose import choose as choose
    from deniable.answers.explain import explain as explain
    from deniable.answers.further_figures import fit_gaussian as fit_gaussian
    from deniable.answers.further_figures import singling_out as singling_out
    from deniable.campaigns.audit import audit as audit
    from deniable.campaigns.score_verdict import verdict as verdict
    from deniable.canary.plan import canaries as canaries
    from deniable.comparison.compare_levels import compare as compare
    from deniable.comparison.own_model import attack as attack
    from deniable.examination.examine import examine as examine
    from deniable.examination.recorded.batches.used_batches import index_records as index_records
    from deniable.examination.recorded.framework_callbacks import watch_lightning as watch_lightning
    from deniable.examination.recorded.framework_callbacks import watch_trainer as watch_trainer
    from deniable.examination.recorded.watch_run import watch_run as watch_run
    from deniable.experiments import reproduce as reproduce
    from deniable.formats import from_dp_event as from_dp_event
    from deniable.formats import from_opacus as from_opacus
    from deniable.formats import from_pld as from_pld
    from deniable.report.mlflow_log import log_to_mlflow as log_to_mlflow
    from deniable.testing.check_training import check_training as check_training
    from deniable.utility.find_frontier import frontier as frontier

__all__ += [
    "Budget",
    "attack",
    "audit",
    "canaries",
    "check_training",
    "choose",
    "compare",
    "examine",
    "explain",
    "fit_gaussian",
    "from_dp_event",
    "from_opacus",
    "from_pld",
    "frontier",
    "index_records",
    "log_to_mlflow",
    "reproduce",
    "singling_out",
    "verdict",
    "watch_lightning",
    "watch_run",
    "watch_trainer",
]


def __getattr__(name: str) -> Any:
    """Rooms and commands, imported when they are first asked for."""
    if name in _ROOMS:
        return import_module(f"deniable.{name}")
    if name in _FUNCTIONS:
        return getattr(import_module(_FUNCTIONS[name]), name)
    raise AttributeError(f"module 'deniable' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, *(name for name in globals() if name.startswith("__"))})
