"""A result in a run of MLflow: its figures as metrics, its verdict as a tag, its page and document as artifacts."""

from __future__ import annotations

from importlib import import_module
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from deniable.checks import of_kind
from deniable.results.base import Result


def log_to_mlflow(result: Result) -> None:
    """Log a result into the active MLflow run, or into a new one; needs the package mlflow or mlflow-skinny.

    Every number of the result is a metric ``deniable.<name>``, the verdict a tag ``deniable.verdict``; ``report.html``
    is the page for the people who decide, ``result.json`` the document that `deniable report` reads.

    Args:
        result: What `dn.examine`, `dn.audit`, `dn.explain` or another command found.

    Examples:
        >>> import deniable as dn
        >>> import mlflow
        >>> from tempfile import mkdtemp
        >>> mlflow.set_tracking_uri(f"file://{mkdtemp()}")
        >>> experiment = mlflow.set_experiment("private models")
        >>> with mlflow.start_run():
        ...     dn.log_to_mlflow(dn.explain(dn.Gaussian(1.0)))
    """
    of_kind("result", result, Result, "what a command found")
    try:
        mlflow: Any = import_module("mlflow")
    except ModuleNotFoundError as error:
        raise ValueError("MLflow is not installed: pip install 'deniable[mlflow]'") from error
    mlflow.log_metrics(_metrics(result))
    if (verdict := getattr(result, "verdict", None)) is not None:
        mlflow.set_tag("deniable.verdict", verdict)
        mlflow.set_tag("deniable.verdict_text", getattr(result, "verdict_text", ""))
    with TemporaryDirectory() as folder:
        result.report(Path(folder) / "report.html")
        result.save(Path(folder) / "result.json")
        mlflow.log_artifacts(folder)


def _metrics(result: Result) -> dict[str, float]:
    """The numbers of a result, and of its checks the p-values."""
    named = {field: getattr(result, field) for field in result.__struct_fields__}
    found = {f"deniable.{name}": value for name, value in named.items() if _is_number(value)}
    for check in named.get("checks", ()):
        if isinstance(check, msgspec.Struct) and _is_number(p_value := getattr(check, "p_value", None)):
            found[f"deniable.p_value.{getattr(check, 'name', '')}"] = p_value
    return {name: float(value) for name, value in found.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
