"""Code and docs/theory cite each other: every key, lemma and erratum exists, and every lemma is used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
THEORY = ROOT / "docs" / "theory"
CODE = sorted((ROOT / "src").rglob("*.py"))
READ = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
"""What users read, beside what the code says to them."""

_NAME = r"[A-Z][A-Za-z]+(?:-[A-Z][A-Za-z]+)?"
_CITED = re.compile(rf"\b({_NAME})(?:(?:, and|,| and) {_NAME})*(?: et al\.)?,? \(?((?:19|20)\d\d[a-z]?)\b(?!-\d\d)")
_LEMMAS = re.compile(r"\bLemmas? ((?:[A-Z]\d+(?:, | and | to |, and )?)+)")
_ERRATA = re.compile(r"\b[Ee]rrat(?:um|a) (\d+(?:(?:, | and )\d+)*)")
_BARE = re.compile(r"(?<![\d.,\w#-])00[0-4](?=['’]s\b|[;:)]| (?:[A-Z(]|to 004))|ERRATA")
_MONTHS = "January February March April May June July August September October November December"
_NO_SOURCE = {"Python", "Commission", "Copyright", "VLDB", "Census", "NIST", *_MONTHS.split()}


def cited_keys(text: str) -> set[str]:
    """First authors with years: Balle, Barthe and Gaboardi 2018 is Balle 2018."""
    joined = re.sub(r"\s+", " ", text)
    return {f"{name} {year}" for name, year in _CITED.findall(joined) if name not in _NO_SOURCE}


def cited_lemmas(text: str) -> set[str]:
    """Also those of a range: C1 to C3."""
    found: set[str] = set()
    for part in _LEMMAS.findall(re.sub(r"\s+", " ", text)):
        for letter, first, last in re.findall(r"([A-Z])(\d+)(?: to [A-Z](\d+))?", part):
            found |= {f"{letter}{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def cited_errata(text: str) -> set[int]:
    return {int(number) for part in _ERRATA.findall(re.sub(r"\s+", " ", text)) for number in re.findall(r"\d+", part)}


def _texts(paths: Iterable[Path]) -> dict[Path, str]:
    return {path: path.read_text() for path in paths}


def _page(name: str) -> str:
    return (THEORY / name).read_text()


KEYS = set(re.findall(r"^\| \[(.+?)\] \|", _page("references.md"), re.MULTILINE))
LEMMAS = set(re.findall(r"^## Lemma (\w+)", "\n".join(_texts(THEORY.glob("*.md")).values()), re.MULTILINE))
ERRATA = {int(number) for number in re.findall(r"^## Erratum (\d+)", _page("errata.md"), re.MULTILINE)}


def test_every_citation_exists():
    for path, text in _texts([*CODE, *READ]).items():
        assert path.name == "references.md" or cited_keys(text) <= KEYS, path
        assert cited_lemmas(text) <= LEMMAS, path
        assert cited_errata(text) <= ERRATA, path


def test_every_lemma_and_erratum_is_cited_by_the_code():
    code = "\n".join(_texts(CODE).values())
    assert cited_lemmas(code) == LEMMAS
    assert cited_errata(code) == ERRATA


def test_every_source_is_cited():
    everything = "\n".join(_texts([*CODE, *(page for page in READ if page.name != "references.md")]).values())
    assert cited_keys(everything) >= KEYS


def test_keys_on_the_pages_exist():
    for path, text in _texts(THEORY.glob("*.md")).items():
        assert set(re.findall(r"\[([A-Z][\w-]+ \d{4}[a-z]?)[\],]", text)) <= KEYS, path


def test_no_document_is_cited_by_a_number():
    for path, text in _texts([*CODE, *READ]).items():
        assert not _BARE.findall(text), path


def test_the_constants_named_are_there():
    """Each row of contour.md's table: the file has the names."""
    rows = re.findall(r"^\| (`_?[A-Z].*?) \| .* \| `(loss/[\w/]+\.py)` \|$", _page("contour.md"), re.MULTILINE)
    assert len(rows) > 8
    for names, file in rows:
        source = (ROOT / "src" / "deniable" / file).read_text()
        for name in re.findall(r"`(_?[A-Z_]+)\*?`", names):
            assert re.search(rf"^{name}", source, re.MULTILINE), (name, file)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(Balle, Barthe,\n    Gaboardi 2018, Theorem 2)", {"Balle 2018"}),
        ("Bernau 2021b, Section 4; Jia et al. 2023", {"Bernau 2021b", "Jia 2023"}),
        ("after Stephens (1986)", {"Stephens 1986"}),
        ("nothing from 2021-03-04, nor 1.2021", set()),
    ],
)
def test_citations_are_found(text, found):
    assert cited_keys(text) == found


def test_what_is_wrong_is_noticed():
    assert cited_keys("Nobody 1999") - KEYS
    assert cited_lemmas("Lemmas C1 to C3 and\n G9") == {"C1", "C2", "C3", "G9"}
    assert cited_errata("errata 11, 15 and 99") == {11, 15, 99}
    for bare in ("see 001 Eq. 5", "003's phi", "(ERRATA 4)", "which 004 (Table 2) has", "as in 002)"):
        assert _BARE.search(bare), bare
    for number in ("60,000 records", "0.001 Eq", "delta 0.003)", "1,003;", '"0.001"'):
        assert not _BARE.search(number), number


def test_methods_named_in_the_theory_exist():
    """`Class.name` stands in a file that has that class, as a method, a field or a function."""
    homes: dict[str, str] = {}
    for text in _texts(CODE).values():
        for name in re.findall(r"^class (\w+)", text, re.MULTILINE):
            homes[name] = homes.get(name, "") + text
    for page, text in _texts(THEORY.glob("*.md")).items():
        for owner, name in re.findall(r"`([A-Z]\w+)\.(\w+)`", text):
            assert re.search(rf"\bdef {name}\b|^    {name}\b ?[:=]", homes.get(owner, ""), re.MULTILINE), (
                page,
                owner,
                name,
            )


def test_the_index_names_all_lemmas():
    table = " ".join(line for line in _page("README.md").splitlines() if line.startswith("| ["))
    assert cited_lemmas("Lemmas " + ", ".join(re.findall(r"\b[A-Z]\d+(?: to [A-Z]\d+)?", table))) == LEMMAS
