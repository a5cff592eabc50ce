"""A worker as a process of its own, on a machine whose date jumps; started by the tests and by benchmarks/scale."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from work import slow_square, squares

from deniable.engines.worker import work_in


def start_worker(place: Path, blocks: int, seconds: float, lease: float) -> subprocess.Popen[bytes]:
    line = [sys.executable, __file__, *map(str, (place, blocks, seconds, lease))]
    return subprocess.Popen(line, stderr=subprocess.DEVNULL)


def main(place: str, blocks: str, seconds: str, lease: str) -> None:
    jumps = random.Random()
    time.time = lambda: jumps.uniform(0, 4e9)  # any date between 1970 and 2096, another one at every look
    work_in(place, squares(int(blocks), partial(slow_square, float(seconds))), lease_seconds=float(lease))


if __name__ == "__main__":
    main(*sys.argv[1:])
