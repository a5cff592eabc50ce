"""Notebooks run from top to bottom and print what they show.

Renew their outputs with: python tests/test_notebooks.py [NOTEBOOK...]
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
_DOTS_PER_INCH = 80


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of today, in the current folder."""
    known: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    for count, cell in enumerate(notebook["cells"]):
        shown = {"outputs": outputs(cell, known), "execution_count": count} if cell["cell_type"] == "code" else {}
        cells.append({**cell, **shown})
    return {**notebook, "cells": cells}


def outputs(cell: dict[str, Any], known: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, and the value or picture that it ends with."""
    *first, last = ast.parse("".join(cell["source"])).body
    ends_with_value = isinstance(last, ast.Expr)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(ast.Module([*first, *([] if ends_with_value else [last])], []), "cell", "exec"), known)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), known) if ends_with_value else None
    printed = out.getvalue()
    found = [{"output_type": "stream", "name": "stdout", "text": printed.splitlines(True)}] if printed else []
    return found if value is None else [*found, display(value)]


def display(value: Any) -> dict[str, Any]:
    """A picture as PNG, anything else as its short text."""
    if hasattr(value, "savefig"):
        drawn = io.BytesIO()
        value.savefig(drawn, format="png", dpi=_DOTS_PER_INCH, bbox_inches="tight")
        data = {"image/png": base64.b64encode(drawn.getvalue()).decode()}
    else:
        data = {"text/plain": repr(value).splitlines(True)}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def texts(notebook: dict[str, Any]) -> list[Any]:
    """All outputs but for the pixels of pictures."""
    shown = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [output.get("text") or output["data"].get("text/plain", "a picture") for output in shown]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_does(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="notebooks need the extra 'train'")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(notebook)
    assert texts(found) == texts(notebook)
    assert "a picture" in texts(found)


def test_a_changed_output_is_noticed() -> None:
    notebook = {"cells": [{"cell_type": "code", "source": ["print(1)\n", "2"], "outputs": []}]}
    assert texts(run(notebook)) == [["1\n"], ["2"]] != texts(notebook)


def renew() -> None:
    """Put the outputs of today into the notebooks that are named, or into all."""
    warnings.simplefilter("ignore")
    for path in [Path(name).resolve() for name in sys.argv[1:]] or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
            found = run(json.loads(path.read_text()))
        path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    renew()
