"""Where a training that runs draws its batches, is made private and steps: lines of the user's own code.

While `watch_code` is entered, torch tells of every optimizer's step and of every loader that is gone through, and
Opacus of every training that it makes private, which is then watched by `watch_run`. All of it is undone at the end.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader

import deniable
from deniable.examination.recorded.batch_gradients import LossOfBatch
from deniable.examination.recorded.watch_run import NEW_WATCHERS, RunWatcher, watch_run
from deniable.testing.cause_lines import CodeLine

_WATCHER_SHARE = 1.0
"""Of the run's time that recomputing may take: a test wants certainty."""
_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_OURS = f"{Path(deniable.__file__).parent}{os.sep}"
_INSTALLED = ("site-packages", "dist-packages")


class BudgetSpentError(BaseException):
    """Ends a training between two steps; no `except Exception` of the training's own may catch it."""


@dataclass(frozen=True)
class PrivateCall:
    """A call of Opacus' `make_private`: its line, and what it was told."""

    line: CodeLine | None
    noise: float | None
    poisson: bool


@dataclass
class WatchedCode:
    """What was seen of a training's code."""

    deadline: float
    steps: Counter[CodeLine] = field(default_factory=Counter)
    draws: Counter[CodeLine] = field(default_factory=Counter)
    private: list[PrivateCall] = field(default_factory=list)
    watchers: list[RunWatcher] = field(default_factory=list)
    taken: int = 0
    """Steps that were begun."""
    spent: bool = False
    """Whether the training was ended because its time was over."""

    def note_step(self) -> None:
        """Called before every step of any optimizer; ends the training where its time is over.

        A watcher plays optimizers again, on weights of its own: these steps are not the training's.
        """
        if _is_ours(sys._getframe(1)):
            return
        if perf_counter() > self.deadline:
            self.spent = True
            raise BudgetSpentError
        self.taken += 1
        if (line := users_line(sys._getframe(1))) is not None:
            self.steps[line] += 1


def _is_ours(frame: FrameType | None) -> bool:
    """Whether what calls the libraries on top of the stack is a module of this package, other than this one."""
    while frame is not None and (frame.f_code.co_filename == __file__ or _is_installed(frame.f_code.co_filename)):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_OURS)


def _is_installed(name: str) -> bool:
    """Whether a file is Python's, or an installed package's that is not this one."""
    elsewhere = name.startswith(_STANDARD) or any(part in name for part in _INSTALLED)
    return elsewhere and not name.startswith(_OURS)


def users_line(frame: FrameType | None) -> CodeLine | None:
    """The innermost line on the stack that belongs neither to Python, nor to an installed package, nor to us."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<", _OURS)) and not _is_installed(name):
            return name, frame.f_lineno
        frame = frame.f_back
    return None


@contextmanager
def watch_code(seconds: float, loss: LossOfBatch) -> Iterator[WatchedCode]:
    """Watch whatever trains inside of the block, for so many seconds."""
    seen = WatchedCode(deadline=perf_counter() + seconds)
    token = NEW_WATCHERS.set(seen.watchers)
    hook = register_optimizer_step_pre_hook(_before_step(seen))
    restore = [_replace(DataLoader, "__iter__", _noting_draws(seen))]
    if find_spec("opacus") is not None:
        from opacus import PrivacyEngine  # noqa: PLC0415 (takes a second)

        restore.append(_replace(PrivacyEngine, "make_private", _watching_private(seen, loss)))
    try:
        yield seen
    finally:
        for undo in restore:
            undo()
        hook.remove()
        NEW_WATCHERS.reset(token)


def _before_step(seen: WatchedCode) -> Callable[[Optimizer, Any, Any], None]:
    return lambda _optimizer, _arguments, _named: seen.note_step()


def _replace(owner: type, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[], None]:
    """Put another method in the place of one; returns what puts it back."""
    earlier = getattr(owner, name)
    setattr(owner, name, make(earlier))
    return lambda: setattr(owner, name, earlier)


def _noting_draws(seen: WatchedCode) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(earlier: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(earlier)
        def iterate(loader: Any) -> Any:
            if (line := users_line(sys._getframe(1))) is not None:
                seen.draws[line] += 1
            return earlier(loader)

        return iterate

    return make


def _watching_private(seen: WatchedCode, loss: LossOfBatch) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(earlier: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(earlier)
        def make_private(engine: Any, **told: Any) -> Any:
            line = users_line(sys._getframe(1))
            made = earlier(engine, **told)
            poisson = bool(told.get("poisson_sampling", True))
            seen.private.append(PrivateCall(line, told.get("noise_multiplier"), poisson))
            watch_run(made[0], made[1], made[-1], loss=loss, budget=_WATCHER_SHARE)
            return made

        return make_private

    return make
