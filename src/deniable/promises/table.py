"""THE table of scores: what can be promised, asked and claimed about a release, one class a score.

An entry has its name (of the option, the JSON key, the keyword and the method of `PrivacyLoss` that answers it), its
range, its words, and the parameters at which it is asked. `__all__` is what `import deniable` offers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log1p

from deniable.fields import Field
from deniable.promises.promise import EVENLY, PERCENT, Promise
from deniable.scores import PrivacyLoss

__all__ = [
    "Accuracy",
    "Advantage",
    "Belief",
    "Epsilon",
    "Noise",
    "PositivePredictiveValue",
    "Promise",
    "Success",
    "TruePositiveRate",
]


def _logit(p: float) -> float:
    return log(p) - log1p(-p)


@dataclass(frozen=True)
class Belief(Promise):
    """Nobody who starts at `prior` becomes more than `bound` sure of a person's membership, except with probability
    `delta`.

    Examples:
        >>> import deniable as dn
        >>> round(dn.calibrate(dn.Gaussian, dn.Belief(0.75, delta=1e-5)).value, 3)
        3.996
    """

    field = Field("belief", "P", "Nobody becomes more than P sure, except with probability {delta}.", "share").on_page(
        "Nobody becomes surer than",
        "Belief that the person is in the data, seen from the prior below.",
        stops=(51, 99),
        usual=0.75,
        **EVENLY,
    )
    kind = "a posterior belief"
    label = "Belief, starting from {prior}{chance_of_more}"
    sentence = "nobody{starter} becomes more than {bound} sure {about}, except with a chance of {rarely}"
    delta: float
    prior: float = 0.5

    @property
    def floor(self) -> tuple[float, str]:
        return self.prior, "the prior belief"

    @property
    def level(self) -> float:
        return self.delta

    @property
    def loss_bound(self) -> float:
        """The privacy loss that takes the prior to the bound."""
        return _logit(self.bound) - _logit(self.prior)

    def risk(self, loss: PrivacyLoss) -> float:
        return loss.exceedance(self.loss_bound)

    @property
    def implied_scores(self) -> dict[str, float]:
        """A loss that exceeds epsilon with probability at most delta is (epsilon, delta)-DP, but not vice versa."""
        return {"belief": self.bound, "epsilon": self.loss_bound}


@dataclass(frozen=True)
class Advantage(Promise):
    """No attack has TPR - FPR above `bound`.

    Examples:
        >>> import deniable as dn
        >>> round(dn.calibrate(dn.Gaussian, dn.Advantage(0.1)).value, 3)
        3.979
    """

    field = Field("advantage", "A", "No attack has TPR - FPR above A.", "share").on_page(
        "Advantage of any attack", "True positive rate minus false positive rate.", stops=(1, 99), usual=0.1, **EVENLY
    )
    kind = "a membership advantage"
    label = "Membership advantage (TPR - FPR; total variation)"
    sentence = "no attack has a membership advantage above {bound}"


@dataclass(frozen=True)
class Accuracy(Promise):
    """No attack guesses membership right more often than `bound`, where a share `prior` are members.

    Examples:
        >>> import deniable as dn
        >>> round(dn.calibrate(dn.Gaussian, dn.Accuracy(0.55)).value, 3)
        3.979
    """

    field = Field("accuracy", "A", "No attack guesses membership right more often than A.", "share").on_page(
        "Right guesses of any attack", "Share of right guesses about membership.", stops=(51, 99), usual=0.6, **EVENLY
    )
    kind = "an attack accuracy"
    label = "Right guesses of an attack, where {prior} are members"
    sentence = "no attack guesses right more than {bound} of the time{members}"
    prior: float = 0.5

    @property
    def floor(self) -> tuple[float, str]:
        return max(self.prior, 1 - self.prior), "what guessing by the prior achieves"


class _OfCurve(Promise):
    """A point of the trade-off curve: what an attack finds whose false positive rate is the first parameter."""

    @property
    def curve_at(self) -> float:
        """The false positive rate at which the curve is read."""
        return next(iter(self.parameters.values()))

    @property
    def backwards(self) -> bool:
        """On the flat part of the trade-off curve."""
        return self.level + self.curve_at > 1

    def risk(self, loss: PrivacyLoss) -> float:
        return loss.tpr_bound(self.curve_at)

    def least_risk(self, loss: PrivacyLoss) -> float:
        return loss.tpr(self.curve_at).least


@dataclass(frozen=True)
class TruePositiveRate(_OfCurve):
    """No attack with false positive rate `fpr` finds more than a share `bound` of the members.

    Examples:
        >>> import deniable as dn
        >>> round(dn.calibrate(dn.Gaussian, dn.TruePositiveRate(0.05, fpr=0.01)).value, 3)
        1.467
    """

    field = Field("tpr", "T", "No attack finds more than a share T of members, at {fpr}.", "share").on_page(
        "Members found by any attack", "At the false positive rate below.", stops=(0.02, 50), usual=0.05, **PERCENT
    )
    kind = "a detection rate (TPR)"
    label = "Members found (TPR), at {fpr} false alarms (FPR)"
    sentence = "an attack with {fpr} false alarms finds at most {bound} of the members"
    fpr: float

    @property
    def floor(self) -> tuple[float, str]:
        return self.fpr, "the false positive rate, which blind guessing achieves"


@dataclass(frozen=True)
class PositivePredictiveValue(_OfCurve):
    """Of those an attack with false positive rate `fpr` accuses, at most a share `bound` are members, where a share
    `prior` of all are.

    Examples:
        >>> import deniable as dn
        >>> round(dn.calibrate(dn.Gaussian, dn.PositivePredictiveValue(0.6, fpr=0.01, prior=0.5)).value, 3)
        6.4
    """

    field = Field("ppv", "V", "At most a share V of the accused are members, at {fpr} and {prior}.", "share").on_page(
        "Members among the accused",
        "Of those an attack accuses, at most this share are members.",
        stops=(2, 99),
        usual=0.6,
        **EVENLY,
    )
    kind = "a predictive value (PPV)"
    label = "If flagged (at {fpr} false alarms): chance to be a member (PPV)"
    sentence = (
        "if an attacker with {fpr} false alarms flags someone{members}, the chance that they really were in the data "
        "is at most {bound}"
    )
    fpr: float
    prior: float

    @property
    def floor(self) -> tuple[float, str]:
        return self.prior, "the prior, which blind guessing achieves"

    @property
    def level(self) -> float:
        """The true positive rate at which the predictive value is `bound`."""
        return min(1.0, self.fpr * exp(_logit(self.bound) - _logit(self.prior)))


@dataclass(frozen=True)
class Success(_OfCurve):
    """No attack succeeds more often than `bound` that succeeds with `baseline` without the release.

    Singling out, re-identification, attribute inference or reconstruction; see `PrivacyLoss.success`.

    Examples:
        >>> import deniable as dn
        >>> round(dn.calibrate(dn.Gaussian, dn.Success(0.01, baseline=0.001)).value, 3)
        1.309
    """

    field = Field(
        "success",
        "S",
        "No singling out, re-identification, inference, reconstruction above S, at {baseline}.",
        "share",
    ).on_page(
        "Success of any attack", "At the success without the release below.", stops=(0.02, 99), usual=0.05, **PERCENT
    )
    kind = "a success (singling out, re-identification, ...)"
    label = "Singled out, re-identified, inferred or reconstructed, from {baseline}"
    sentence = (
        "no attack that succeeds with a chance of {baseline} without the release (singling out, re-identification, "
        "attribute inference, reconstruction) succeeds with more than {bound}"
    )
    baseline: float

    @property
    def floor(self) -> tuple[float, str]:
        return self.baseline, "the success without the release"


@dataclass(frozen=True)
class Epsilon(Promise):
    """The release is (bound, delta)-DP.

    Examples:
        >>> import deniable as dn
        >>> round(dn.calibrate(dn.Gaussian, dn.Epsilon(1.0, delta=1e-5)).value, 3)
        3.731
    """

    field = Field("epsilon", "E", "(E, D)-DP, D from {delta}.", "from zero", (0, 1e6)).on_page(
        "Epsilon", "Of an (epsilon, delta) guarantee.", (1e-3, 100), (0.05, 20), 1.0
    )
    kind = "an epsilon"
    label = "Epsilon at delta {delta}"
    sentence = "the release is ({bound}, {delta})-differentially private"
    delta: float

    @property
    def level(self) -> float:
        return self.delta

    def risk(self, loss: PrivacyLoss) -> float:
        return loss.delta(self.bound)


@dataclass(frozen=True)
class Noise(Promise):
    """The noise multiplier itself: no score is promised but what this noise implies.

    Examples:
        >>> import deniable as dn
        >>> dn.Noise(1.5)
        Noise(bound=1.5)
    """

    field = Field("noise", "Z", "What noise of Z x sensitivity promises.", "positive", (1e-2, 1e6))
    sentence = "the noise is {bound} x sensitivity"

    def score(self, loss: PrivacyLoss) -> float:
        """What was promised, since it is not about the loss."""
        return self.bound

    @property
    def implied_scores(self) -> dict[str, float]:
        return {}


SCORES: dict[str, type[Promise]] = {
    entry.field.name: entry
    for entry in (Belief, Advantage, Accuracy, TruePositiveRate, PositivePredictiveValue, Success, Epsilon)
}
"""Every score by its name, in the order in which they are shown."""
AUDITED: dict[str, type[Promise]] = {entry.field.name: entry for entry in (Belief, Advantage, Epsilon, Noise)}
"""What an audit may be asked to hold a training to, most telling first."""
