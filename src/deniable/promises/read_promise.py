"""The promise that people gave: on the command line, to an audit, in a document."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from deniable.checks import RefusedError, probability
from deniable.promises.promise import Promise
from deniable.promises.table import AUDITED, SCORES

if TYPE_CHECKING:
    from deniable.results.explain_result import AnswerInput
    from deniable.results.shared import Claimed


def audited_promise(claim: Mapping[str, float], delta: float) -> Promise:
    """The one promise of an audit, by its name; `delta` is also how often a belief may be exceeded."""
    probability("delta", delta, open_ends=True)
    if len(claim) != 1 or not claim.keys() <= AUDITED.keys():
        names, found = (", ".join(f"{{{name}}}" for name in names) for names in (AUDITED, claim))
        raise RefusedError(f"name the promise: exactly one of {names}, got {found.replace(', ', ' and ') or 'none'}")
    ((name, bound),) = claim.items()
    entry = AUDITED[name]
    return entry(entry.field.check(bound), **({"delta": delta} if "delta" in entry.parameter_names() else {}))


def claimed_scores(promise: Promise | None, delta: float) -> Claimed:
    """The scores that an audit's trials are held against; None where nothing is promised."""
    from deniable.results.shared import Claimed  # noqa: PLC0415 (`import deniable` stays light)

    implied = {} if promise is None else promise.implied_scores
    return Claimed(**{name: implied.get(name) for name in AUDITED if name != "noise"}, delta=delta)


def promise_in(given: AnswerInput) -> Promise:
    """The promise that `choose` was given; of several values of a parameter the first is meant."""
    name = next(name for name in SCORES if getattr(given, name) is not None)
    asked = {at: _first(getattr(given, at)) for at in SCORES[name].parameter_names()}
    return SCORES[name](getattr(given, name), **asked)


def promised_bound(given: AnswerInput, name: str, parameters: Mapping[str, float] | None = None) -> float:
    """What was promised of a score at these parameters; infinite where nothing was promised of it."""
    bound = getattr(given, name)
    meant = all(value == _first(getattr(given, at)) for at, value in (parameters or {}).items())
    return bound if bound is not None and meant else inf


def _first(value: Any) -> Any:
    return next(iter(value), None) if isinstance(value, tuple) else value
