"""The script of a Slurm array whose tasks are workers of one campaign."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

SCRIPT = "campaign.slurm"
_TEXT = """#!/bin/sh
#SBATCH --job-name=deniable
#SBATCH --array=1-{workers}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem={memory_megabytes}M
#SBATCH --time={minutes}
#SBATCH --output={place}/slurm-%A_%a.out
#SBATCH --requeue
# Every task claims blocks of the campaign in this directory until all are there; one that is killed or runs out of time
# loses the block it was playing, and another task plays it. Submit it again at any time: finished blocks are kept.
export OMP_NUM_THREADS=1
exec {python} -m deniable worker {place}
"""


def write_script(directory: Path | str, workers: int, memory_megabytes: int, minutes: int) -> Path:
    """Write the array's script into `directory`, for workers that have this machine's Python; its path."""
    place = Path(directory).resolve()
    text = _TEXT.format(
        workers=workers,
        memory_megabytes=memory_megabytes,
        minutes=minutes,
        place=shlex.quote(str(place)),
        python=shlex.quote(sys.executable),
    )
    path = place / SCRIPT
    path.write_text(text, encoding="utf-8")
    return path
