"""Every public name has a docstring with an example, and every example shows what it really gives."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

import pytest

import deniable as dn

NAMES = [name for name in dn.__all__ if not name.startswith("__") and not isinstance(getattr(dn, name), ModuleType)]
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
