"""Words of pages and docstrings are spelled rightly, or stand in words.txt; guides speak in short sentences.

Add a new name or term to words.txt (one a line, sorted; capitals as in a dictionary), after looking at it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("spellchecker", reason="spelling needs the extra 'dev'")
from spellchecker import SpellChecker

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("words.txt").read_text().splitlines()
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "examples").rglob("*.md"))
GUIDES = [page for page in PAGES if page.name != "CHANGELOG.md" and not {"theory", "results"} & set(page.parts)]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
_LONGEST_SENTENCE_WORDS = 45
_SHORTEST_WORD_LETTERS = 4
_NOT_PROSE = re.compile(
    r"^```.*?^```|^    .*?$|`[^`\n]*`|\]\([^)]*\)|<[^>]*>|https?://\S+|doi:\S+|arXiv:\S+", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(r"^ *(?:>>>|\.\.\.).*?$|``.*?``|`[^`]*`", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z]+(?:'[a-z]+)?(?![\w(]|\.\w|=)")
_HEAVY = re.compile(
    r"\b(utili[sz]\w+|leverag\w+|in order to|facilitat\w+|obviously|simply|trivially|aforementioned|thereof|whereby|"
    r"plethora|paradigm\w*|seamless\w*|cutting-edge|state-of-the-art|best-in-class)\b",
    re.IGNORECASE,
)
"""Words that say nothing, or that a shorter one says."""


def prose(page: str) -> str:
    """A page without its code, commands and addresses."""
    return _NOT_PROSE.sub(" ", page)


def docstrings(source: str) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented):
            yield _CODE.sub(" ", ast.get_docstring(node) or "")


def sentences(text: str) -> Iterator[str]:
    """Of running text: tables and headings have none."""
    for part in re.split(r"\n\s*\n|\n- |\n\d+\. ", re.sub(r"^[|#].*$", "", text, flags=re.MULTILINE)):
        yield from re.split(r"(?<=[.:;?!])\s+", " ".join(part.split()))


@pytest.fixture(scope="module")
def dictionary() -> SpellChecker:
    known = SpellChecker(language="en")
    known.word_frequency.load_words(word.lower() for word in KEPT)
    return known


def misspelled(texts: Iterator[str], dictionary: SpellChecker) -> list[str]:
    words = {word for text in texts for word in _WORD.findall(text) if len(word) >= _SHORTEST_WORD_LETTERS}
    return sorted(word for word in words if word.lower().removesuffix("'s") not in dictionary)


def test_pages_are_spelled_rightly(dictionary: SpellChecker) -> None:
    assert misspelled((prose(page.read_text()) for page in PAGES), dictionary) == []


def test_docstrings_are_spelled_rightly(dictionary: SpellChecker) -> None:
    assert misspelled((text for path in SOURCES for text in docstrings(path.read_text())), dictionary) == []


def test_the_list_of_words_is_kept() -> None:
    assert sorted(set(KEPT), key=lambda word: (word.lower(), word)) == KEPT
    usual = SpellChecker(language="en")
    assert [word for word in KEPT if word.lower() in usual] == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_guides_speak_plainly(page: Path) -> None:
    text = prose(page.read_text())
    assert [one for one in sentences(text) if len(one.split()) > _LONGEST_SENTENCE_WORDS] == []
    assert _HEAVY.findall(text) == []


def test_faults_are_seen(dictionary: SpellChecker) -> None:
    assert misspelled(iter(["The privcay of deniable", prose("`privcay`")]), dictionary) == ["privcay"]
    assert len([one for one in sentences(f"A {'very ' * 50}long one. And a short one.") if len(one.split()) > 45]) == 1
    assert _HEAVY.findall("We leverage it")
