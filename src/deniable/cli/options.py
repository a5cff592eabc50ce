"""The options: their help, and the reading of their text into checked numbers.

Options arrive as text, so that a word, a NaN or an out-of-range value all meet the one validator (`deniable.checks`)
and its one wording, whatever the argument parser thinks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import typer

from deniable.checks import MOST_STEPS, positive, probability, real, whole

__all__ = ["Text", "option", "read"]

RELEASE = "What was released (exactly one)"
TRAINING = "The training: --records --batch --epochs, or --rate --steps"
LOCAL = "Or a local mechanism"
PROMISE = "The promise (exactly one)"
QUESTION = "What to answer"


def option(name: str, letter: str, text: str, panel: str) -> Any:
    """An option that takes a text, under a heading of the command's help."""
    return typer.Option(f"--{name}", metavar=letter, help=text, rich_help_panel=panel, show_default=False)


def _training(panel: str, steps: str) -> dict[str, Any]:
    """The description of a training, which `explain` takes beside --noise and `choose` takes alone."""
    return {
        "rate": option("rate", "Q", "Sampling rate: each record joins a step with probability Q. Default 1.", panel),
        "steps": option("steps", "T", steps, panel),
        "records": option("records", "N", "Number of training records.", panel),
        "batch": option("batch", "B", "Expected batch size: the sampling rate is B/N.", panel),
        "epochs": option("epochs", "E", "Passes over the data: there are E x ceil(N/B) steps.", panel),
    }


_with_noise = _training(RELEASE, "Number of training steps. Default 1.")
_alone = _training(TRAINING, "Number of training steps.")
Text = str | None

Epsilon = Annotated[
    Text, option("epsilon", "E", "An (E, D)-DP guarantee with D from --delta; for pure DP, --delta 0.", RELEASE)
]
Tvd = Annotated[Text, option("tvd", "A", "A total variation (membership advantage) of at most A.", RELEASE)]
Gdp = Annotated[Text, option("gdp", "MU", "A MU-GDP (Gaussian DP) guarantee.", RELEASE)]
Noise = Annotated[
    Text,
    option(
        "noise",
        "Z",
        "Gaussian noise of Z x sensitivity: one release, or every step of a training, described "
        "by --rate --steps or by --records --batch --epochs.",
        RELEASE,
    ),
]
Rate = Annotated[Text, _with_noise["rate"]]
Steps = Annotated[Text, _with_noise["steps"]]
Records = Annotated[Text, _with_noise["records"]]
Batch = Annotated[Text, _with_noise["batch"]]
Epochs = Annotated[Text, _with_noise["epochs"]]
Laplace = Annotated[Text, option("laplace", "B", "Laplace noise of scale B x sensitivity.", RELEASE)]
RandomizedResponse = Annotated[
    Text, option("randomized-response", "EPS", "Randomized response, EPS per answer.", RELEASE)
]
Categories = Annotated[Text, option("categories", "K", "Possible values of each answer. Default 2.", RELEASE)]
Features = Annotated[Text, option("features", "F", "Answers per person. Default 1.", RELEASE)]

PromisedBelief = Annotated[
    Text, option("belief", "P", "Nobody becomes more than P sure, except with probability --delta.", PROMISE)
]
PromisedAdvantage = Annotated[Text, option("advantage", "A", "No attack has TPR - FPR above A.", PROMISE)]
PromisedAccuracy = Annotated[
    Text, option("accuracy", "A", "No attack guesses membership right more often than A.", PROMISE)
]
PromisedTpr = Annotated[Text, option("tpr", "T", "No attack finds more than a share T of members, at --fpr.", PROMISE)]
PromisedPpv = Annotated[
    Text, option("ppv", "V", "At most a share V of the accused are members, at --fpr and --prior.", PROMISE)
]
PromisedEpsilon = Annotated[Text, option("epsilon", "E", "(E, D)-DP, D from --delta.", PROMISE)]
Local = Annotated[
    Text,
    option(
        "mechanism",
        "M",
        "In place of a training: laplace (noise is its scale) or randomized-response (1 / epsilon of an answer).",
        LOCAL,
    ),
]
LocalCategories = Annotated[Text, option("categories", "K", "Possible values of each answer. Default 2.", LOCAL)]
LocalFeatures = Annotated[Text, option("features", "F", "Answers per person. Default 1.", LOCAL)]
TrainingRate = Annotated[Text, _alone["rate"]]
TrainingSteps = Annotated[Text, _alone["steps"]]
TrainingRecords = Annotated[Text, _alone["records"]]
TrainingBatch = Annotated[Text, _alone["batch"]]
TrainingEpochs = Annotated[Text, _alone["epochs"]]

Delta = Annotated[
    Text,
    option(
        "delta",
        "D",
        "Delta, and the probability that the belief is exceeded. Default 1/N if --records is given, else 1e-5.",
        QUESTION,
    ),
]
Prior = Annotated[Text, option("prior", "P", "Belief before the release. Default 0.5.", QUESTION)]
Fpr = Annotated[
    list[str] | None,
    option("fpr", "F", "False positive rate of an attack; repeatable. Default 0.001 and 0.01.", QUESTION),
]
Adjacent = Annotated[
    Text,
    option(
        "adjacency",
        "A",
        "Neighbours: add-remove (default; sensitivity C, the clipping norm), replace (2C) or zero-out (C).",
        QUESTION,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", metavar=" ", help="Print one JSON document, in full precision.", rich_help_panel=QUESTION),
]

Check = Callable[[str, Any], float]


def _limited(check: Check, low: float, high: float) -> Check:
    """`check`, and the range in which the figures still mean something and are computed exactly."""

    def within(name: str, value: Any) -> float:
        number = check(name, value)
        if not low <= number <= high:
            raise ValueError(f"{name} must be from {low:g} to {high:g}, got {value!r}")
        return number

    return within


_share: Check = partial(probability, open_ends=True)
_CHECKS: dict[str, Check] = {
    "epsilon": _limited(partial(positive, zero=True), 0, 1e6),
    "tvd": probability,
    "gdp": _limited(partial(positive, zero=True), 0, 1e3),
    "noise": _limited(positive, 1e-2, 1e6),
    "rate": probability,
    "steps": _limited(whole, 1, MOST_STEPS),
    "records": _limited(partial(whole, low=2), 2, 1e12),
    "batch": whole,
    "epochs": _limited(whole, 1, 1e6),
    "laplace": _limited(positive, 1e-3, 1e6),
    "randomized_response": _limited(positive, 1e-6, 700),
    "categories": _limited(partial(whole, low=2), 2, 1e9),
    "features": _limited(whole, 1, 1e6),
    "belief": _share,
    "advantage": _share,
    "accuracy": _share,
    "tpr": _share,
    "ppv": _share,
    "delta": probability,
    "prior": _share,
    "trials": _limited(whole, 1, 1e9),
    "clip": _limited(positive, 1e-6, 1e6),
    "lr": _limited(positive, 1e-12, 1e6),
    "seed": _limited(partial(whole, low=0), 0, 2**62),
    "confidence": _share,
    "processes": _limited(whole, 1, 4096),
    "repeats": _limited(whole, 1, 10_000),
    "classes": _limited(partial(whole, low=2), 2, 1e6),
    "patience": _limited(partial(whole, low=0), 0, 1e6),
    "claimed_epsilon": _limited(partial(positive, zero=True), 0, 1e6),
    "threshold": real,
}


def read(texts: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, by name, as checked numbers; ValueError names the option, the value, the range."""
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name in _CHECKS and text is not None:
            values[name] = _CHECKS[name](f"--{name.replace('_', '-')}", _parsed(text))
    if texts.get("fpr"):
        values["fpr"] = tuple(probability("--fpr", _parsed(text)) for text in texts["fpr"])
    return values


def _parsed(text: str) -> Any:
    """The number that `text` spells, whole where it is (1e6 is), or `text` itself for a check to refuse."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
