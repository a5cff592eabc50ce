"""A campaign that is planned now and played later: its command's options, kept beside its blocks."""

# ruff: noqa: PLC0415 (imports inside the functions, so that help is quick)

from __future__ import annotations

import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from deniable.engines import Campaign
    from deniable.engines.campaign import Certain
    from deniable.engines.planned import Planned

__all__ = ["Replanned", "keep_plan", "plan_again"]

_OF_THE_RUN = {"out", "processes", "engine", "address", "task_memory", "task_gpus"}
"""Options that say where blocks are played and kept: they are no part of the plan."""


class Replanned(NamedTuple):
    """A campaign, and what says when its answer is certain, if it is to end then."""

    campaign: Campaign[Any]
    certain: Certain[Any] | None = None


def keep_plan(command: str, texts: Mapping[str, Any], campaign: Campaign[Any], out: str) -> None:
    """Keep the plan in `out`, and tell how it is played."""
    from deniable.engines.planned import Planned

    options = {name: text for name, text in texts.items() if isinstance(text, str) and name not in _OF_THE_RUN}
    finish = shlex.join(["deniable", command, *_words(options), f"--out={Path(out).resolve()}", "--resume"])
    Planned(command, options, str(Path.cwd()), campaign.blocks, dict(campaign.settings), finish).write(out)
    print(
        f"planned in {out}: {campaign.blocks} blocks. `deniable worker {out}` plays them, on as many machines as see "
        f"that directory (`deniable submit {out} --slurm` for an array); then\n{finish}\njudges them.",
        file=sys.stderr,
    )


def _words(options: Mapping[str, str]) -> list[str]:
    named = [f"--{name.replace('_', '-')}={text}" for name, text in options.items() if name not in ("data", "file")]
    data = [options["data"]] if "data" in options else [f"--data={options['file']}"] if "file" in options else []
    return [*data, *named]


def plan_again(planned: Planned) -> Replanned:
    """The campaign that a plan asks for, planned on this machine; refused where it comes to other settings."""
    planners: dict[str, Callable[[Mapping[str, Any]], Replanned]] = {"audit": _audit, "compare": _compare}
    if planned.command not in planners:
        raise ValueError(f"a campaign of {planned.command!r} cannot be played by workers: only audit and compare")
    found = planners[planned.command](defaultdict(lambda: None, planned.options))
    planned.check(found.campaign)
    return found


def _audit(texts: Mapping[str, Any]) -> Replanned:
    from deniable.campaigns.audit import watch_over
    from deniable.campaigns.campaign import campaign_of
    from deniable.cli.audit import plan_audit
    from deniable.cli.options import read

    plan = plan_audit(texts)[1]
    watched = texts["stop"] == "certain"
    return Replanned(campaign_of(plan), watch_over(plan, read(texts).get("confidence", 0.95)).add if watched else None)


def _compare(texts: Mapping[str, Any]) -> Replanned:
    from deniable.cli.compare import plan_comparison
    from deniable.comparison.play import campaign_of

    return Replanned(campaign_of(plan_comparison(texts)))
