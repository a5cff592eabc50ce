"""`import deniable` adds at most a fifth to what its own foundations cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from ratios import Ratio

FOUNDATIONS = "numpy, scipy.special"


def seconds_to_import(modules: str) -> float:
    """The time of the import alone, in an interpreter that has imported nothing yet."""
    program = f"from time import perf_counter as now; start = now(); import {modules}; print(now() - start)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def test_import_time(record: Callable[[Ratio], None]) -> None:
    pairs = [(seconds_to_import("deniable"), seconds_to_import(FOUNDATIONS)) for _ in range(7)]
    ours, foundations = (min(times) for times in zip(*pairs, strict=True))
    record(Ratio("import deniable", f"import {FOUNDATIONS}", ours, foundations))
    assert ours < 1.21 * foundations
