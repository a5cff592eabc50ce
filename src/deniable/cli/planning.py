"""A campaign that is planned now and played later: its command's options, kept beside its blocks."""

# ruff: noqa: PLC0415 (imports inside the functions, so that help is quick)

from __future__ import annotations

import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from deniable.engines import Campaign
    from deniable.engines.blocks import Certain
    from deniable.engines.planned import Planned

_OF_THE_RUN = {"out", "processes", "engine", "address", "task_memory", "task_gpus"}
"""Options that say where blocks are played and kept: they are no part of the plan."""
_NOT_PLANNED = {"plan", "resume", "json"}
"""Flags that say what this one command does."""
_ARGUMENTS = {
    "audit": ("data",),
    "compare": ("data",),
    "frontier": ("data",),
    "attack": ("model", "data"),
    "reproduce": ("paper", "item"),
}
"""What a command takes without an option's name, in its order."""
_OPTIONS = {"file": "data", "kind": "attack"}
"""Options whose parameter has another name."""


class Replanned(NamedTuple):
    """A campaign, and what says when its answer is certain, if it is to end then."""

    campaign: Campaign[Any]
    certain: Certain[Any] | None = None


def place_of_plan(out: str | None) -> Path:
    """Where a plan is kept."""
    if out is None:
        raise ValueError("--plan needs --out, the directory that the workers see")
    return Path(out)


def keep_plan(
    command: str, texts: Mapping[str, Any], place: Path, blocks: int | None, settings: Mapping[str, Any]
) -> None:
    """Keep the plan in `place`, and tell how it is played; `blocks` is None of many campaigns, which show when it is.

    Asked for JSON, it prints the plan's document.
    """
    from deniable.engines.planned import PLAN, Planned
    from deniable.formatting import count_of

    left_out = _OF_THE_RUN | _NOT_PLANNED
    options = {name: text for name, text in texts.items() if name not in left_out and (text or text == "")}
    last = [f"--out={place.resolve()}", *(["--resume"] if "resume" in texts else [])]
    finish = shlex.join(["deniable", command, *_words(command, options), *last])
    Planned(command, options, str(Path.cwd()), blocks, dict(settings), finish).write(place)
    if texts.get("json"):
        typer.echo((place / PLAN).read_text(encoding="utf-8"), nl=False)
        return
    where = shlex.quote(str(place))
    told = "" if blocks is None else f": {count_of(blocks, 'block')}"
    print(
        f"planned in {place}{told}. `deniable worker {where}` plays it, on "
        f"as many machines as see that directory (`deniable submit {where} --slurm` for an array); then\n{finish}\n"
        "tells the answer.",
        file=sys.stderr,
    )


def _words(command: str, given: Mapping[str, Any]) -> list[str]:
    """The options as they are written."""
    arguments = [given[name] for name in _ARGUMENTS[command] if name in given]
    flat = [word for one in arguments for word in ([one] if isinstance(one, str) else one)]
    named = {_OPTIONS.get(name, name): text for name, text in given.items() if name not in _ARGUMENTS[command]}
    return [*flat, *(_option(name, text) for name, text in named.items())]


def _option(name: str, text: str | bool) -> str:
    """A flag, or an option with its value."""
    written = f"--{name.replace('_', '-')}"
    return written if text is True else f"{written}={text}"


def play_planned(planned: Planned, place: Path, lease_seconds: float) -> str:
    """Be one of the workers of the campaign that is planned in `place`, until it is done; what was done, in words."""
    from deniable.engines import Shared
    from deniable.engines.worker import work_in
    from deniable.formatting import count_of

    if planned.command == "reproduce":
        from deniable.experiments import reproduce

        asked = {name: text for name, text in planned.options.items() if name in ("paper", "item", "scale")}
        found = reproduce(**asked, out=place, engine=Shared(lease_seconds))
        return f"{count_of(len(found.items), 'item')} finished in {place}"
    if planned.command == "frontier":  # what is measured depends on what was found: a worker comes to the answer
        from deniable.cli.frontier_command import find_planned

        find_planned(defaultdict(lambda: None, planned.options), place, Shared(lease_seconds))
        return f"all units finished in {place}"
    parts = plan_again(planned)
    played = sum(work_in(place, one.campaign, lease_seconds=lease_seconds, certain=one.certain) for one in parts)
    return f"{count_of(played, 'block')} played in {place}"


def plan_again(planned: Planned) -> list[Replanned]:
    """What a plan asks for, one campaign after another, planned on this machine; refused where it comes to other
    settings."""
    planners: dict[str, Callable[[Mapping[str, Any]], Iterator[Replanned]]]
    planners = {"audit": _audit, "compare": _compare, "attack": _attack}
    if planned.command not in planners:
        raise ValueError(f"a campaign of {planned.command!r} cannot be planned again: only {', '.join(planners)}")
    found = list(planners[planned.command](defaultdict(lambda: None, planned.options)))
    planned.check(found[0].campaign)
    return found


def _audit(texts: Mapping[str, Any]) -> Iterator[Replanned]:
    from deniable.campaigns.audit import watch_over
    from deniable.campaigns.campaign import campaign_of
    from deniable.campaigns.final_model import final_campaign
    from deniable.cli.audit_command import plan_audit
    from deniable.cli.options import read

    plan = plan_audit(texts)[1]
    watched = texts["stop"] == "certain"
    yield Replanned(campaign_of(plan), watch_over(plan, read(texts).get("confidence", 0.95)).add if watched else None)
    if texts["final_model"]:
        yield Replanned(final_campaign(plan))


def _compare(texts: Mapping[str, Any]) -> Iterator[Replanned]:
    from deniable.cli.compare_command import plan_comparison
    from deniable.comparison.play import campaign_of

    yield Replanned(campaign_of(plan_comparison(texts)))


def _attack(texts: Mapping[str, Any]) -> Iterator[Replanned]:
    from deniable.cli.attack_command import plan_attack

    yield Replanned(plan_attack(texts))
