"""Results in MLflow: numbers, verdict, page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import deniable as dn
from deniable.results import read_result

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow gives advice


def test_a_result_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs the extra 'mlflow'")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("private models")
    found = dn.explain(dn.Gaussian(1.0))
    with mlflow.start_run() as run:
        dn.log_to_mlflow(found)
    kept = mlflow.get_run(run.info.run_id)
    folder = tmp_path / kept.info.experiment_id / run.info.run_id / "artifacts"
    assert "<html" in (folder / "report.html").read_text()
    assert read_result(msgspec.json.decode((folder / "result.json").read_bytes())) == found


def test_without_mlflow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(ValueError, match=r"deniable\[mlflow\]"):
        dn.log_to_mlflow(dn.explain(dn.Gaussian(1.0)))
