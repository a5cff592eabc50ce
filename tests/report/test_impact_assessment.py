"""The impact assessment: every figure is the report's, what only a person can write is marked, both files are whole."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import deniable as dn
from deniable.cli import main
from deniable.report.impact_assessment import assess
from deniable.report.page import make_chapters, page
from deniable.report.page_notes import NONE, UNKNOWN, tell_personal_data
from deniable.report.plain_document import Heading, Listed, OpenPlace, Paragraph, Rows, write_docx, write_markdown
from deniable.report.stored_runs import ReportedRun
from deniable.utility.expected_quality import expect_quality, read_built_in

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


@pytest.fixture(scope="module")
def choice() -> ReportedRun:
    family: Callable[[float], dn.Mechanism] = lambda noise: dn.Gaussian(noise).subsampled(0.01).composed(500)  # noqa: E731
    return ReportedRun("plan", dn.choose(family, dn.Belief(0.8, 1e-5), "add-remove", baseline=[0.01]))


def words_of(docx: bytes) -> list[str]:
    """The paragraphs of a .docx file, as a word processor reads them."""
    with zipfile.ZipFile(io.BytesIO(docx)) as file:
        assert file.testzip() is None
        parts = {name: ElementTree.fromstring(file.read(name)) for name in file.namelist()}
    assert set(parts) == {
        "[Content_Types].xml",
        "_rels/.rels",
        "word/_rels/document.xml.rels",
        "word/document.xml",
        "word/styles.xml",
    }
    found = parts["word/document.xml"].iter(f"{W}p")
    return ["".join(text.text or "" for text in paragraph.iter(f"{W}t")) for paragraph in found]


def test_figures_are_the_reports_and_open_places_are_marked(choice: ReportedRun) -> None:
    blocks = assess([choice])
    (chapter,) = make_chapters([choice])
    text = "\n".join(words_of(write_docx(blocks)))
    for said in (chapter.meaning, chapter.promise, chapter.measured, chapter.text, chapter.quality, *chapter.cautions):
        assert said in text
    assert choice.result.strength.name in text
    assert sum(isinstance(block, OpenPlace) for block in blocks) >= 9
    assert text.count("[To be written by a person: ") == sum(isinstance(block, OpenPlace) for block in blocks)
    titles = [block.text for block in blocks if isinstance(block, Heading) and block.level == 2]
    assert [title[:2] for title in titles[:5]] == ["1.", "2.", "3.", "4.", "5."]


def test_a_frontier_beside_a_plan_says_how_good_the_model_is(choice: ReportedRun) -> None:
    frontier = read_built_in("adult")
    alone, (beside, _) = make_chapters([choice]), make_chapters([choice, ReportedRun("adult", frontier)])
    assert alone[0].quality == UNKNOWN
    assert make_chapters([ReportedRun("noise", dn.explain(dn.Laplace(2.0)))])[0].quality == ""
    advantage = dn.Advantage(choice.result.scores.advantage)
    assert beside.quality == expect_quality(frontier, advantage).text
    assert beside.quality in "\n".join(words_of(write_docx(assess([choice, ReportedRun("adult", frontier)]))))


def test_the_page_has_contents_words_and_what_is_personal(choice: ReportedRun) -> None:
    found = page([choice])
    assert '<nav aria-label="Contents">' in found
    for part in range(1, len(make_chapters([choice])[0].parts) + 1):
        assert f'href="#run-1-part-{part}"' in found
        assert f'id="run-1-part-{part}"' in found
    assert "<dt>epsilon</dt>" in found
    assert NONE in found
    assert "roc-log" in found
    assert '<span class="sure">moderate protection</span>' in found
    assert "How strong this is: moderate" in found
    assert "US Census 2020, state level" in found
    data = json.loads(found.partition('id="data">')[2].partition("</script>")[0])
    assert data["runs"][0]["document"]["strength"]["name"] == choice.result.strength.name


def test_what_names_records_is_told(runs: dict[str, Path]) -> None:
    from deniable.report.stored_runs import read  # noqa: PLC0415

    audit = read(runs["audit"]).result
    told = " ".join(tell_personal_data(audit))
    assert str(audit.input.record) in told
    assert "most exposed records" in told
    assert NONE not in told


@pytest.mark.parametrize("name", ["out.md", "out.docx"])
def test_the_command_writes_both_and_refuses_others(
    name: str, tmp_path: Path, runs: dict[str, Path], capsys: Any
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["assess", str(runs["audit"]), str(runs["verdict"]), "--out", str(tmp_path / name)])
    assert not left.value.code
    content = (tmp_path / name).read_bytes()
    text = content.decode() if name.endswith(".md") else "\n".join(words_of(content))
    assert "Do not release" in text or "Not enough evidence" in text or "Release" in text
    with pytest.raises(SystemExit) as left:
        main(["assess", str(runs["audit"]), "--out", str(tmp_path / "out.pdf")])
    assert left.value.code == 2
    assert "must be a file that ends in .md or .docx" in capsys.readouterr().err


NASTY = "a|b <script> & *x* [l](u) `c` \x07 \u2028 \n# no heading"


def test_texts_stay_texts() -> None:
    blocks = [Heading(NASTY), Paragraph(NASTY), OpenPlace(NASTY), Listed((NASTY,)), Rows((NASTY, "b"), ((NASTY, ""),))]
    written = write_markdown(blocks)
    assert len([line for line in written.splitlines() if line.startswith("#")]) == 1
    assert "<script>" not in written
    assert "](u)" not in written.replace("\\](u)", "")
    docx = words_of(write_docx(blocks))
    assert sum("a|b <script> & *x*" in line for line in docx) == 6
    assert write_docx(blocks) == write_docx(blocks)


def test_columns_fit_the_page_and_their_longest_words() -> None:
    rows = (("probability", "-", "x" * 64), ("b", "of a release that everybody sees", "c"))
    with zipfile.ZipFile(io.BytesIO(write_docx([Rows(("Score", "", "value"), rows)]))) as file:
        widths = [int(found) for found in re.findall(r'gridCol w:w="(\d+)"', file.read("word/document.xml").decode())]
    assert sum(widths) <= 11906 - 2 * 1134
    assert widths[0] >= 130 * len("probability")
    assert widths[1] > widths[0]


def test_a_table_without_headings_has_no_empty_row() -> None:
    with zipfile.ZipFile(io.BytesIO(write_docx([Rows(("", ""), (("a", "b"),))]))) as file:
        assert file.read("word/document.xml").decode().count("<w:tr>") == 1
