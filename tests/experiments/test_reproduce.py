"""Running items: what is kept, what is made again, what is never overwritten; and the command."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from deniable.cli import main
from deniable.experiments import Item, ItemRun, Paper, Scale, Values, expected_seconds, find, run_items
from deniable.experiments.results_page import _pairs, results_page
from deniable.experiments.run import _draw_bytes
from deniable.experiments.statements import Claim, Known, Printed
from deniable.results.reproduce_result import ReproduceResult


def picture(found: Values) -> Figure:
    figure = Figure(figsize=(2, 2))
    figure.add_subplot().plot([0, found["x"]])
    return figure


def item(compute: Callable[[ItemRun], Values], name: str = "table-1", printed: str = "2", **more: object) -> Item:
    return Item(
        name=name,
        title="a number",
        caption="999 Table 1: a number | with a bar.",
        compute=compute,
        read_as=dict,
        draw=picture,
        comparisons=(Printed("x", **more), Claim("large", lambda found: found["x"] > 100, dict, smallest="full")),  # type: ignore[arg-type]
        seconds={Scale.SMOKE: 1.0, Scale.FULL: 2.0},
        printed={"x": printed},
        notes=("a note",),
    )


def paper(*items: Item) -> Paper:
    return Paper("999", "toy", "A toy", items)


def run(made: Paper, out: Path, scale: Scale = Scale.SMOKE) -> ReproduceResult:
    return run_items([(made, one) for one in made.items], scale, out, every=[made])


def test_finished_items_are_not_computed_again(tmp_path: Path) -> None:
    calls: list[int] = []
    made = paper(item(lambda run: (calls.append(1), {"x": 2})[1]))
    first, second = run(made, tmp_path), run(made, tmp_path)
    assert calls == [1]
    assert first == second
    run(made, tmp_path, Scale.FULL)
    assert calls == [1, 1]


def test_a_run_that_broke_off_goes_on(tmp_path: Path) -> None:
    done: list[str] = []

    def breaks(run: ItemRun) -> Values:
        if not done:
            done.append("broke")
            raise KeyboardInterrupt
        return {"x": 2}

    made = paper(item(lambda run: (done.append("first"), {"x": 2})[1] if done else {"x": 2}), item(breaks, "table-2"))
    with pytest.raises(KeyboardInterrupt):
        run(made, tmp_path)
    assert (tmp_path / "toy" / "table-1.json").exists()
    assert not (tmp_path / "toy" / "table-2.json").exists()
    assert run(made, tmp_path).missed == ()
    assert done == ["broke"]  # the first was not computed again


def test_another_version_makes_it_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    made = paper(item(lambda run: (calls.append(1), {"x": 2})[1]))
    run(made, tmp_path)
    monkeypatch.setattr("deniable.experiments.run.__version__", "9.9.9")
    assert run(made, tmp_path).items[0].versions["deniable"] == "9.9.9"
    assert len(calls) == 2


def test_kept_values_are_judged_anew(tmp_path: Path) -> None:
    assert run(paper(item(lambda run: {"x": 2})), tmp_path).missed == ()
    assert run(paper(item(lambda run: {"x": 2}, printed="3")), tmp_path).missed == ("toy table-1",)


def test_shared_work_is_done_once(tmp_path: Path) -> None:
    calls: list[int] = []

    def compute(run: ItemRun) -> Values:
        return run.once("campaign", {"noise": 1.0}, lambda: (calls.append(1), {"x": 2})[1], dict)

    run(paper(item(compute), item(compute, "figure-1")), tmp_path)
    assert calls == [1]
    work = ItemRun(Scale.SMOKE, tmp_path / "trials")
    assert work.room("campaign", {"noise": 1.0}) != work.room("campaign", {"noise": 2.0})
    assert work.room("campaign", {"a": 1, "b": 2}) == work.room("campaign", {"b": 2, "a": 1})


def test_a_larger_run_serves_a_smaller_one(tmp_path: Path) -> None:
    calls: list[int] = []
    made = paper(item(lambda run: (calls.append(1), {"x": 2})[1]))
    run(made, tmp_path, Scale.FULL)
    assert run(made, tmp_path).items[0].scale == "full"
    assert calls == [1]


def test_a_small_run_never_replaces_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = paper(item(lambda run: {"x": 2}))
    run(made, tmp_path, Scale.FULL)
    monkeypatch.setattr("deniable.experiments.run.__version__", "9.9.9")
    with pytest.raises(ValueError, match="holds toy table-1 at scale full"):
        run(made, tmp_path)


def test_missing_data_stops_its_own_item_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(run: ItemRun) -> Values:
        raise FileNotFoundError("put mnist.npz into a folder")

    made = paper(item(absent), item(lambda run: {"x": 2}, "table-2"))
    found = run(made, tmp_path)
    assert found.absent == {"toy table-1": "put mnist.npz into a folder"}
    assert [record.item for record in found.items] == ["table-2"]
    monkeypatch.setattr("deniable.experiments.PAPERS", (made,))
    assert command("toy", "--out", str(tmp_path)) == 1
    assert "toy table-1 was not run: put mnist.npz" in capsys.readouterr().out
    assert command("toy", "table-1", "--out", str(tmp_path)) == 2


@pytest.mark.parametrize("text", ["{", "{}", "[]", "", "null"])
def test_a_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    made = paper(item(lambda run: {"x": 2}))
    run(made, tmp_path)
    (tmp_path / "toy" / "table-1.json").write_text(text)
    with pytest.raises(ValueError, match=r"table-1\.json is not an item's record"):
        run(made, tmp_path)


def test_what_only_a_large_run_shows_is_left_out_and_said(tmp_path: Path) -> None:
    made = paper(item(lambda run: {"x": 2}))
    assert run(made, tmp_path).items[0].not_judged == ("large: judged from scale full on",)
    assert run(made, tmp_path, Scale.FULL).missed == ("toy table-1",)


def test_pictures_are_the_same_bytes(tmp_path: Path) -> None:
    made = paper(item(lambda run: {"x": 2}))
    run(made, tmp_path / "a")
    run(made, tmp_path / "b")
    for name in ("table-1.svg", "table-1.png"):
        assert (tmp_path / "a" / "toy" / name).read_bytes() == (tmp_path / "b" / "toy" / name).read_bytes()
    assert not list(tmp_path.rglob("*.part"))


def test_an_svg_loses_bytes_but_no_text() -> None:
    figure = Figure(figsize=(2, 2))
    axes = figure.add_subplot(title="epsilon = 0.0952")
    axes.plot([0.123456, 1.0], [0.0, 0.654321])
    plain = io.BytesIO()
    figure.savefig(plain, format="svg", metadata={"Date": None})
    small = _draw_bytes(figure, "svg")
    assert len(small) < 0.9 * len(plain.getvalue())
    assert b">epsilon = 0.0952</text>" in small
    ElementTree.fromstring(small)  # still well formed
    places = [len(one) for one in re.findall(rb"[LM] \d+\.(\d+)", small)]
    assert max(places) <= 2


def test_results_have_a_line_and_a_section_for_every_item(tmp_path: Path) -> None:
    off = Known("2", "the paper errs")
    made = paper(
        item(lambda run: {"x": 2}),
        item(lambda run: {"x": 2}, "table-2", printed="5", known={"x": off}),
        item(lambda run: {"x": 7}, "table-3", hindsight=True),
    )
    records = run(made, tmp_path).items
    page = results_page(records)
    assert page == (tmp_path / "RESULTS.md").read_text()
    assert "2 of 3 items meet what is stated" in page
    assert "Of the 3 statements 2 have a tolerance that is derived" in page
    rows = (row.replace("\N{NO-BREAK SPACE}", " ") for row in page.splitlines() if row.startswith("| toy | ["))
    lines = {row.split("[")[1].split("]")[0]: row for row in rows}
    assert list(lines) == ["Table 1", "Table 2", "Table 3"]
    assert lines["Table 1"].endswith("| smoke | holds |")
    assert "holds, differs for a known reason" in lines["Table 2"]
    assert "misses: x: x is 7, not 2" in lines["Table 3"]
    assert all(row.count(" | ") == 5 for row in lines.values())
    sections = page.split("### ")[1:]
    assert [one.splitlines()[0] for one in sections] == [f"Table {n}: a number" for n in (1, 2, 3)]
    assert all(f"[as a picture](toy/table-{n}.svg)" in one for n, one in enumerate(sections, 1))
    assert "- holds: x (equal to every printed digit; all 1 printed values met).\n" in sections[0]
    assert "| x | the paper | 5 |\n| x | ours | 2.0 |" in sections[1]
    assert "x: ours 2, printed 5. the paper errs" in sections[1]
    assert "- **misses**: x (equal to every printed digit; x is 7, not 2). *Settled with data in sight.*" in sections[2]
    assert page.count("a note") == 1  # told once for all three
    assert all("See note A above." in one for one in sections)


def test_the_papers_values_stand_beside_ours() -> None:
    printed = {"a": {"MNIST": ["0.24", None, "2e-3"]}, "b": "3.5e8", "c": ["12.3"]}
    values = {"a": {"MNIST": [0.2123, 0.5, 0.0031]}, "b": 3.98888e8, "c": [[12.1, 12.46]]}
    assert list(_pairs(printed, values, ())) == [
        ("a MNIST", ["0.24", "", "2e-3"], ["0.212", "", "0.0031"]),
        ("b", ["3.5e8"], ["3.99e+08"]),
        ("c", ["12.3"], ["12.10 to 12.46"]),
    ]


def test_shared_work_is_expected_of_the_first_only() -> None:
    first, second = item(lambda run: {"x": 2}), item(lambda run: {"x": 2}, "table-2")
    work = {"campaign": {Scale.SMOKE: 10.0, Scale.HOURS: 50.0, Scale.FULL: 100.0}}
    both = [replace(one, shared=work) for one in (first, second)]
    assert expected_seconds(both, Scale.SMOKE) == [11.0, 1.0]
    assert expected_seconds(both[1:], Scale.FULL) == [102.0]
    assert expected_seconds(both, Scale.HOURS) == [52.0, 2.0]
    assert expected_seconds(both, Scale.TEST) == [11.0, 1.0]


def test_papers_by_name() -> None:
    assert {paper.name for paper, _ in find("tvd")} == {"tvd"}
    ((_, only),) = find("tvd", "figure-8")
    assert only.name == "figure-8"


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["reproduce", *arguments])
    return int(left.value.code or 0)


def test_command_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert command() == 0
    shown = capsys.readouterr().out
    assert "erlingsson" in shown
    assert "at scale smoke" in shown
    assert command("--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed["items"]) == len(find())


def test_command_runs_an_item(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("tvd", "section-3", "--scale", "full", "--out", str(tmp_path)) == 0
    shown = capsys.readouterr()
    assert "1 table or figure at scale full" in shown.err
    assert "All hold" in shown.out
    assert command("tvd", "section-3", "--scale", "full", "--out", str(tmp_path), "--json") == 0
    shown = capsys.readouterr()
    assert "1 of them finished" in shown.err
    assert json.loads(shown.out)["items"][0]["values"]["accuracy"]["Laplace"] == pytest.approx(0.697, abs=5e-4)


def test_command_fails_where_an_item_misses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = paper(item(lambda run: {"x": 7}))
    monkeypatch.setattr("deniable.experiments.PAPERS", (made,))
    assert command("toy", "--out", str(tmp_path)) == 1
    assert "1 of 1 miss what was stated: toy table-1" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("005",), "PAPER must be one of d53, vldb, tvd, dbsec, erlingsson, or all"),
        (("tvd", "table-9"), "ITEM must be one of section-3, figure-1"),
        (("tvd", "figure-8", "--scale", "huge"), "--scale must be smoke, hours or full, got 'huge'"),
    ],
)
def test_bad_names_are_one_line(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(*arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    for place in (tmp_path / "taken", tmp_path / "taken" / "below", Path("/proc/nowhere")):
        assert command("tvd", "figure-8", "--out", str(place)) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"deniable: {place} cannot be written")
        assert error.count("\n") == 1


def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    made = paper(item(lambda run: pytest.fail("computed")))
    with pytest.raises(ValueError, match="name another directory with --out"):
        run(made, tmp_path / "taken")
