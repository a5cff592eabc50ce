"""The page: whole by itself, escaped, with everything that was promised, measured and drawn, and its data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from deniable.campaigns.plot_data import MOST_POINTS, course
from deniable.evidence.measured import Trials
from deniable.report import read, render
from deniable.report.page import page
from deniable.report.pictures.scale_chart import epsilon_axis, share_axis
from deniable.report.stored_runs import ReportedRun
from deniable.results import read_result
from deniable.results.base import plain

Write = Callable[..., Path]
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "\"onmouseover=alert(3) x='",
    "]]><!-- --><svg onload=alert(4)>",
    "\u202eevil \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "{{ 7 * 7 }} $x^2$ \\n \u2028 &amp;",
    "long " * 2000,
)


class Reader(HTMLParser):
    """What a browser would make of a page: elements, headings, the data."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.words: list[str] = []
        self.data = ""
        self._data = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self._data = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._data = self._data and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._data:
            self.data += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_nothing_comes_from_outside(joint: str) -> None:
    reader = Reader(joint)
    for tag, attributes in reader.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "video", "audio", "base")
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href", "action"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "@import" not in joint
    assert not re.search(r"url\((?!#)", joint)
    scripts = [attributes for tag, attributes in reader.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}]


def test_names_are_used_once_and_lead_somewhere(joint: str) -> None:
    tags = Reader(joint).tags
    names = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in tags:
        for key in ("aria-labelledby", "aria-describedby", "href", "xlink:href"):
            if attributes.get(key):
                assert str(attributes[key]).removeprefix("#") in names
    for name in re.findall(r"url\(#([^)]*)\)", joint):
        assert name in names


def test_headings_go_down_one_at_a_time_and_figures_are_told(joint: str) -> None:
    reader = Reader(joint)
    assert reader.headings[0] == 1
    assert reader.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(reader.headings, reader.headings[1:], strict=False))
    pictures = re.findall(r"<svg.*?</svg>", joint, re.DOTALL)
    for picture in pictures:
        tree = ElementTree.fromstring(picture)  # well-formed, too
        told = {child.tag.rpartition("}")[2]: child.text for child in tree}
        assert len(told["title"] or "") > 5
        assert len(told["desc"] or "") > 20
        assert tree.attrib["role"] == "img"
    assert len(pictures) == 4 + 8 + 6 + 2 + 2  # scales, audit with exposure, comparison, attack, verdict


def test_the_data_is_there_whole(runs: dict[str, Path], joint: str) -> None:
    data = json.loads(Reader(joint).data)
    assert data["schema"] == "deniable/report/1"
    assert [run["document"] for run in data["runs"]] == [plain(read(path).result) for path in runs.values()]
    figures = data["runs"][0]["figures"]
    assert set(figures) == {
        "final-beliefs",
        "belief-over-steps",
        "sensitivity-over-steps",
        "roc",
        "roc-log",
        "epsilon-estimators",
        "region-of-privacy",
        "exposure",
    }
    assert sum(figures["final-beliefs"]["d"]) + sum(figures["final-beliefs"]["other"]) == 40
    assert all(run["scale"]["bars"] for run in data["runs"])


def test_the_first_screen_says_what_decides(runs: dict[str, Path]) -> None:
    text, document = Reader((runs["audit"] / "report.html").read_text()).text, read(runs["audit"]).result
    start = text[: text.index("What the observer saw")]
    assert document.verdict.capitalize() in start
    assert "95 % interval" in start
    assert "Nobody becomes more than 90 % sure whether a person is in the data" in start
    assert "In 40 trainings the observer guessed right" in start
    assert "This noise allows" in start
    for said in ("Neighbours", "The observer", "Sampling", "What a verdict is not", "How to do it again"):
        assert said in text
    assert document.input.data_sha256 in text
    assert "1797 x 8 x 8" in text
    assert "deniable audit digits --belief=0.9" in text
    assert document.provenance.versions["torch"] in text


def test_a_comparison_says_its_recommendation_first(runs: dict[str, Path]) -> None:
    text, document = Reader((runs["compare"] / "report.html").read_text()).text, read(runs["compare"]).result
    listed = text.index("What privacy costs")  # in the contents
    start = text[: text.index("What privacy costs", listed + 1)]
    for sentence in document.recommendation.sentences:
        assert sentence in start


@pytest.mark.usefixtures("undrawn")
def test_local_noise_is_never_shown_as_a_protection(documents: dict[str, dict[str, Any]]) -> None:
    document = documents["audit"]
    sound = ReportedRun("sound", read_result(json.loads(json.dumps(document))))
    assert "NOT private" not in page([sound])
    document["input"]["sensitivity"] = "local"
    text = page([ReportedRun("test", read_result(document)), sound])
    assert "A model trained this way is NOT private." in text
    assert text.index("Verdict: Privacy audit of digits (sound)") < text.index(
        "Verdict: Privacy audit of digits (test)"
    )
    assert 'class="card open" aria-label="Verdict: Privacy audit of digits (test)"' in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("verdict", ["violated", "cannot judge", "other recipe", "consistent"])
def test_every_verdict_has_its_words_and_colour(documents: dict[str, dict[str, Any]], verdict: str) -> None:
    document = documents["audit"] | {"verdict": verdict, "closeness": None}
    text = page([ReportedRun("a", read_result(document))])
    tone = {"violated": "bad", "cannot judge": "open", "other recipe": "odd", "consistent": "open"}[
        verdict
    ]  # of 40 trainings
    assert f'class="card {tone} alone"' in text
    assert f'class="verdict">{verdict.capitalize()}<' in text


def everywhere(value: Any, text: str) -> Any:
    """`value` with every text of a person's own making replaced."""
    if isinstance(value, dict):
        kept = ("schema", "kind", "verdict", "closeness", "adjacency", "sensitivity", "better", "method", "rule")
        return {key: inner if key in kept else everywhere(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [everywhere(inner, text) for inner in value]
    return text if isinstance(value, str) else value


@pytest.mark.usefixtures("undrawn")  # drawn in the next test
@pytest.mark.parametrize("kind", ["audit", "compare", "verdict"])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_and_do_nothing(documents: dict[str, dict[str, Any]], text: str, kind: str) -> None:
    document = everywhere(documents[kind], text)
    shown = page([ReportedRun(text, read_result(document)), ReportedRun(text, read_result(document))])
    reader = Reader(shown)
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert "img" not in {tag for tag, _ in reader.tags}
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    assert " ".join(text.split()) in reader.text
    found = json.loads(reader.data)["runs"][0]
    assert (found["name"], found["document"]) == (text, document)
    body = shown[shown.index('id="data">') :]
    assert body.count("</script") == 1
    assert "\u2028" not in body


def test_hostile_texts_in_pictures_are_escaped(documents: dict[str, dict[str, Any]]) -> None:
    document = everywhere(documents["compare"], HOSTILE[3] + HOSTILE[1])
    shown = page([ReportedRun("x", read_result(document))])
    for picture in re.findall(r"<svg.*?</svg>", shown, re.DOTALL):
        tree = ElementTree.fromstring(picture)
        assert not [part for part in tree.iter() if part.tag.rpartition("}")[2] in ("script", "foreignObject")]
        assert not [name for part in tree.iter() for name in part.attrib if name.startswith("on")]
    assert "<script>alert" not in shown


def thousand(steps: int = 2000) -> Trials:
    generator = np.random.default_rng(0)
    on_d = generator.random(1000) < 0.5
    ratio = np.cumsum(generator.normal(np.where(on_d, 1, -1)[:, None] * 1e-3, 0.03, (1000, steps)), axis=1)
    return Trials(on_d, ratio, generator.random((1000, steps)), np.ones((1000, steps)))


def test_a_thousand_long_trainings_make_a_small_page_that_says_it_is_thinned(
    documents: dict[str, dict[str, Any]],
) -> None:
    document = documents["audit"] | {"course": plain(course(thousand()))}
    shown = page([ReportedRun("a", read_result(document))])
    assert len(shown.encode()) < 3 * 2**20
    assert f"{MOST_POINTS} of 2,000 steps are drawn" in shown
    assert f"{MOST_POINTS} of 1,001 thresholds are drawn" in shown


def test_the_run_folders_page_is_the_commands_page(runs: dict[str, Path]) -> None:
    assert (runs["audit"] / "report.html").read_text() == render([runs["audit"]])
    assert (runs["compare"] / "report.html").exists()


def test_a_course_is_what_the_trials_say() -> None:
    trials = thousand(30)
    found = course(trials)
    belief = 1 / (1 + np.exp(-trials.log_likelihood_ratio))
    inside = belief[trials.trained_on_d]
    low, middle, high = found.belief.d
    for step in (0, 17, 29):
        ordered = np.sort(inside[:, step])
        assert low[step] <= middle[step] <= high[step]
        assert np.mean(ordered <= middle[step]) == pytest.approx(0.5, abs=0.01)
        assert np.mean(ordered <= high[step]) == pytest.approx(0.95, abs=0.01)
    for place, count in enumerate(found.final_beliefs.d):
        assert count == np.sum((inside[:, -1] >= place / 40) & (inside[:, -1] < (place + 1) / 40))
    final = trials.log_likelihood_ratio[:, -1]
    for fpr, tpr in zip(found.roc.fpr[::20], found.roc.tpr[::20], strict=True):
        reached = [
            np.mean(final[trials.trained_on_d] >= threshold)
            for threshold in final
            if np.mean(final[~trials.trained_on_d] >= threshold) <= fpr + 1e-5
        ]
        assert tpr <= max([0.0, *reached]) + 1e-5


def test_a_course_of_one_side_alone_has_no_roc() -> None:
    trials = thousand(3)
    one = Trials(np.ones(1000, dtype=bool), trials.log_likelihood_ratio, trials.local_sensitivity, trials.sigma)
    found = course(one)
    assert found.roc is None
    assert found.belief.other is None


def test_scales_end_where_they_must() -> None:
    axis = share_axis("how sure")
    assert [axis.at(value) for value in (0.2, 0.5, 0.75, 1.0, None)] == [0, 0, 50, 100, 100]
    for values in ([None], [0.01], [3.3, None], [1e6], [0.0]):
        scale = epsilon_axis("epsilon", values)  # type: ignore[arg-type]
        assert 2 <= len(scale.ticks) <= 7
        assert all(0 <= scale.at(place) <= 100 for place, _ in scale.ticks)


@pytest.mark.usefixtures("undrawn")
def test_somebody_elses_training_shows_its_diagnostics_and_the_cause_first(
    documents: dict[str, dict[str, Any]],
) -> None:
    test = {"name": "noise scale", "p_value": 1e-9, "passed": False, "checked": True, "weakens_privacy": True}
    test |= {"observed": "0.5", "expected": 1, "sentence": "the noise is half of what is claimed"}
    passed = {**test, "name": "mean zero", "p_value": 0.4, "passed": True, "sentence": None}
    found = {"cause": test["sentence"], "false_alarm_rate": 0.01, "noise_ratio": 0.5, "tests": [test, passed]}
    document = documents["audit"] | {"diagnostics": found, "verdict": "violated", "closeness": None}
    text = Reader(page([ReportedRun("a", read_result(document))])).text
    assert text.index("The cause: the noise is half of what is claimed.") < text.index("What the observer saw")
    assert "the training does not do what it claims" in text
    assert "Violated 99 % confidence" in text
    assert "noise scale FAILED 1e-09 the noise is half of what is claimed" in text
    assert "mean zero passed 0.4 seen: 0.5; expected: 1" in text


@pytest.mark.usefixtures("undrawn")
def test_a_training_that_could_not_be_examined_has_a_page_without_figures(
    documents: dict[str, dict[str, Any]], written: Write
) -> None:
    document = documents["audit"] | {"measured": {"trials": 0}, "course": None, "verdict": "violated"}
    run = read(written(document))
    text = Reader(page([run])).text
    assert "Nothing was trained, so nothing was measured." in text
    assert "What the observer saw" not in text
