from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the work, also for spawned processes
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "scale"))  # the model
sys.path.insert(0, str(Path(__file__).parents[1] / "training"))  # its games
