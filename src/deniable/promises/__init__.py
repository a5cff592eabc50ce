"""What can be promised, asked and claimed about a release.

`table` has one class a score; calibration, command line, page, sentences, report and documents read it: a new score is
a class there and a method of `PrivacyLoss`. `promise` says what all have in common, and at what scores are asked;
`read_promise` finds the promise in what people gave.
"""

from __future__ import annotations

from deniable.promises.promise import PARAMETERS, SPELLINGS, Promise, Question, check_promise, resolve_spellings
from deniable.promises.read_promise import audited_promise, claimed_scores, promise_in, promised_bound
from deniable.promises.table import (
    AUDITED,
    SCORES,
    Accuracy,
    Advantage,
    Belief,
    Epsilon,
    Noise,
    PositivePredictiveValue,
    Success,
    TruePositiveRate,
)

__all__ = [
    "AUDITED",
    "PARAMETERS",
    "SCORES",
    "SPELLINGS",
    "Accuracy",
    "Advantage",
    "Belief",
    "Epsilon",
    "Noise",
    "PositivePredictiveValue",
    "Promise",
    "Question",
    "Success",
    "TruePositiveRate",
    "audited_promise",
    "check_promise",
    "claimed_scores",
    "promise_in",
    "promised_bound",
    "resolve_spellings",
]
