"""The frontier: how good the model is at every promise, between no model and no noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from deniable.report.pictures.picture import BLUE, INK, MUTED, ORANGE, Data, Picture, axes, legend_above, plain
from deniable.report.words.frontier_words import MEASURES
from deniable.results.frontier_result import FrontierLevel, FrontierResult, Repeated
from deniable.utility.knee import name_bound, short_bound, tell_value

SHARES = ("accuracy", "balanced_accuracy")


def frontier_pictures(document: FrontierResult) -> Iterator[Picture]:
    """The tuned measure at every promise."""
    metric = document.input.metric
    data = {
        "metric": metric,
        "names": [*(short_bound(document.input.promise, level.bound) for level in document.levels), "none"],
        "central": [_ends(document, level) for level in document.levels],
        "local": [_ends(document, level) for level in document.local],
        "none": _ends(document, document.none),
        "without_model": document.tuned_measure(document.without_model).mean,
        "answer": document.usual_answer,
        "promise": document.input.promise,
    }
    told = (
        f"{MEASURES[metric]} on new records at every promise, strictest on the left. A dot is the mean over "
        f"{document.input.repeats} trainings, a thick bar its limits, a thin bar where one more training lies "
        f"({100 * document.confidence:g} %)."
    )
    spoken = "; ".join(
        f"{name_bound(document.input.promise, level.bound)}: "
        f"{tell_value(metric, document.tuned_measure(level.quality).mean)}"
        for level in (*document.levels, document.none)
    )
    yield Picture("frontier", "What privacy costs", told, f"{told} {spoken}.", data, _draw)


def _ends(document: FrontierResult, level: FrontierLevel) -> list[float]:
    found: Repeated = document.tuned_measure(level.quality)
    return [found.mean, found.low, found.high, found.next_low, found.next_high]


_AXES = {
    "belief": "nobody becomes surer than",
    "advantage": "no attack has an advantage above",
    "accuracy": "no attack guesses right more often than",
    "tpr": "no attack finds more members than",
    "ppv": "of the accused at most this share are members",
    "success": "no attack succeeds more often than",
    "epsilon": "epsilon",
}


def _draw(data: Data) -> Figure:
    figure, found = axes(f"promise: {_AXES[data['promise']]}", MEASURES[data["metric"]], height=3.6)
    places = list(range(len(data["names"])))
    found.axhline(data["none"][0], color=INK, linewidth=1.0, linestyle="--", label="without noise")
    answer = plain(str(data["answer"]))
    found.axhline(
        data["without_model"], color=MUTED, linewidth=1.0, linestyle=":", label=f"no model: always {answer!r}"
    )
    _bars(found, places[:-1], data["central"], (BLUE, "o"), "noise in training")
    if data["local"]:
        _bars(found, [place + 0.18 for place in places[:-1]], data["local"], (ORANGE, "s"), "noise on records")
    _bars(found, places[-1:], [data["none"]], (INK, "D"), None)
    found.set_xticks(places, data["names"])
    found.grid(visible=False, axis="x")
    if data["metric"] in SHARES:
        found.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    legend_above(found, 2)
    return figure


def _bars(
    found: Axes, places: Sequence[float], rows: list[list[float]], looks: tuple[str, str], label: str | None
) -> None:
    colour, marker = looks
    means = [row[0] for row in rows]
    if len(rows) > 1:
        found.plot(places, means, color=colour, linewidth=1.0, alpha=0.6)
    for place, (_, low, high, next_low, next_high) in zip(places, rows, strict=True):
        found.vlines(place, next_low, next_high, color=colour, linewidth=1.0)
        found.vlines(place, low, high, color=colour, linewidth=3.5)
    found.plot(places, means, marker, color=colour, markersize=5, label=label)
