"""Run the grounds in turn until the time is over; exit 1 if anything was found."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from importlib import import_module

from hunt.find import Find

GROUNDS = ("theory", "statistics", "inputs", "trainings")


def look(ground: str, seed: int) -> Find | None:
    """One case of a ground; an exception is a find, too."""
    try:
        found: Find | None = import_module(f"hunt.{ground}").look(seed)
    except Exception as error:
        return Find(f"python -m hunt {ground} --seed {seed}", f"{type(error).__name__}: {error}", "no exception")
    return found


def hunt(ground: str, minutes: float) -> tuple[int, list[tuple[int, Find]]]:
    """Cases looked at within the time, and what they showed, by seed."""
    end, cases, finds = time.monotonic() + 60 * minutes, 0, []
    while time.monotonic() < end:
        seed = secrets.randbits(48)
        found = look(ground, seed)
        cases += 1
        if found is not None:
            finds.append((seed, found))
            print(f"{ground}, seed {seed}: {found}", flush=True)
    return cases, finds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hunt", description=__doc__)
    parser.add_argument("grounds", nargs="*", choices=GROUNDS, default=list(GROUNDS))
    parser.add_argument("--minutes", type=float, default=10.0, help="for all grounds together")
    parser.add_argument("--seed", type=int, help="look at this one case only")
    given = parser.parse_args()
    if given.seed is not None:
        finds = [found for ground in given.grounds if (found := look(ground, given.seed)) is not None]
        print(*finds, sep="\n") if finds else print("nothing found")
        return bool(finds)
    failed = False
    for ground in given.grounds:
        cases, shown = hunt(ground, given.minutes / len(given.grounds))
        failed |= bool(shown)
        print(f"{ground}: {cases:,} cases, {len(shown)} finds", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
