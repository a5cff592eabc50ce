"""Which line of a training's code decides a part of its claim, as well as that can be known from outside.

While `watch_code` is entered, torch tells of every optimizer's step and of every loader that is gone through, and
Opacus of every training that it makes private, which is then watched by `watch_run`. All of it is undone at the end.
"""

from __future__ import annotations

import ast
import inspect
import linecache
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
from deniable.examination.recorded.gradients.batch_gradients import LossOfBatch
from deniable.examination.recorded.watch_run import NEW_WATCHERS, RunWatcher, watch_run
from deniable.mechanisms import Training
from deniable.results.run_result import CodePlace, RunCheck

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


CodeLine = tuple[str, int]
"""A file and a line of it, from 1 on."""
_OF_NOISE = ("noise", "noise of each layer", "shape of the noise", "independent steps")
"""Parts of the claim that the noise decides."""
_NORMAL_DRAWS = ("randn", "randn_like", "normal", "normal_", "standard_normal")
"""Names of functions that draw normal numbers."""


@dataclass(frozen=True)
class CauseLines:
    """The lines of one training."""

    train: Callable[..., Any]
    seen: WatchedCode
    claimed: Training

    def place(self, check: RunCheck) -> CodePlace | None:
        """Where to look first: the setting that is at odds with the claim, or else the line that does it."""
        if check.name == "sampling":
            line = self._setting("poisson_sampling", lambda call: not call.poisson) or _most_often(self.seen.draws)
        elif check.name in _OF_NOISE:
            line = self._setting("noise_multiplier", lambda call: call.noise != self.claimed.noise) or self._noise()
        elif check.name == "moves of the weights":
            line = line_of_function(self.train)
        else:
            line = None
        return place_at(line or _most_often(self.seen.steps) or line_of_function(self.train))

    def _noise(self) -> CodeLine | None:
        """The last line before the step, in the function that steps, that draws normal numbers."""
        step = None if self.seen.private else _most_often(self.seen.steps)
        around = [] if step is None else [one for one in _nodes_around(step) if isinstance(one, ast.FunctionDef)]
        if step is None or not around:
            return None
        calls = [node for node in ast.walk(around[-1]) if isinstance(node, ast.Call)]
        drawn = [node.lineno for node in calls if _called_name(node) in _NORMAL_DRAWS and node.lineno <= step[1]]
        return (step[0], max(drawn)) if drawn else None

    def _setting(self, keyword: str, differs: Callable[[PrivateCall], bool]) -> CodeLine | None:
        """The line of a keyword of Opacus' `make_private`, where what it was told differs from the claim."""
        for call in self.seen.private:
            if call.line is not None and differs(call):
                return _line_of_keyword(call.line, keyword)
        return None


def place_at(line: CodeLine | None) -> CodePlace | None:
    """The line, its file as seen from the current folder, and what is written there."""
    if line is None:
        return None
    file, number = line
    here = Path(file)
    shown = here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here
    return CodePlace(file=shown.as_posix(), line=number, text=linecache.getline(file, number).strip())


def line_of_function(function: Callable[..., Any]) -> CodeLine | None:
    """Where a function is defined; None for one that has no source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else (os.fspath(code.co_filename), code.co_firstlineno)


def _most_often(lines: Counter[CodeLine]) -> CodeLine | None:
    return lines.most_common(1)[0][0] if lines else None


def _line_of_keyword(line: CodeLine, keyword: str) -> CodeLine:
    """Of the call around this line that has such a keyword; the line itself where there is none."""
    calls = [node for node in _nodes_around(line) if isinstance(node, ast.Call)]
    named = [given.value.lineno for call in calls for given in call.keywords if given.arg == keyword]
    return (line[0], named[-1]) if named else line


def _nodes_around(line: CodeLine) -> list[ast.expr | ast.stmt]:
    """The parts of the file that contain this line, outer ones first; none where the file cannot be read."""
    file, number = line
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr | ast.stmt)]
    return [one for one in nodes if one.lineno <= number <= (one.end_lineno or one.lineno)]


def _called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
