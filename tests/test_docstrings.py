"""Every public name has a docstring: arguments, what is returned, and an example that shows what it really gives."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType

import pytest

import deniable as dn

NAMES = [name for name in dn.__all__ if not name.startswith("__") and not isinstance(getattr(dn, name), ModuleType)]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(dn, name))]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(dn, name)) and name != "Adjacency"]  # that is a choice
SECTION = r"^{}:\n((?:    .*\n?|\n)+)"
NEEDS = {
    **dict.fromkeys(("audit", "compare", "examine", "frontier", "reproduce", "watch_run", "check_training"), "torch"),
    **{"attack": "sklearn", "log_to_mlflow": "mlflow"},
    **{"watch_lightning": "pytorch_lightning", "watch_trainer": "transformers"},
}
"""What an example needs beside the library's own dependencies."""


@pytest.mark.filterwarnings("ignore")  # MLflow and Lightning give advice
@pytest.mark.parametrize("name", NAMES)
def test_the_example_gives_what_it_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"its example needs {NEEDS[name]}")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    text = inspect.getdoc(getattr(dn, name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples, f"{name} has no example"
    shown: list[str] = []
    doctest.DocTestRunner().run(example, out=shown.append)
    assert not shown, "".join(shown)


def section(text: str, name: str) -> str:
    found = re.search(SECTION.format(name), text, re.MULTILINE)
    return textwrap.dedent(found[1]) if found else ""


def own_houses(kind: type) -> list[type]:
    return [one for one in kind.__mro__ if one.__module__.startswith("deniable")]


def texts(kind: type) -> Iterator[str]:
    """The docstrings of a class and of its fields."""
    for one in own_houses(kind):
        for node in ast.parse(textwrap.dedent(inspect.getsource(one))).body[0].body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield str(node.value.value).partition("Examples:")[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_tells_its_arguments_and_what_it_returns(name: str) -> None:
    function = getattr(dn, name)
    text = inspect.getdoc(function) or ""
    told = re.findall(r"^\**(\w+): ", section(text, "Args"), re.MULTILINE)
    assert sorted(told) == sorted(inspect.signature(function).parameters)
    assert section(text, "Returns").strip() or inspect.signature(function).return_annotation == "None"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_tells_its_fields_and_methods(name: str) -> None:
    kind = getattr(dn, name)
    told = " ".join(texts(kind))
    fields = [field for field in inspect.signature(kind).parameters if not field.startswith("_")]
    assert [field for field in fields if not re.search(rf"\b{field}\b", told)] == []
    public = {word for one in own_houses(kind) for word in vars(one) if not word.startswith("_")}
    methods = [word for word in public if isinstance(inspect.getattr_static(kind, word), property | FunctionType)]
    assert [word for word in methods if not inspect.getdoc(inspect.getattr_static(kind, word))] == []
