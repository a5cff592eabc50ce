"""Which line of a training's code decides a part of its claim, as well as that can be known from outside."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.mechanisms import Training
from deniable.results.run_result import CodePlace, RunCheck

if TYPE_CHECKING:
    from deniable.testing.watched_code import PrivateCall, WatchedCode

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
