"""The options: made from the fields' one table, and the reading of their text into checked numbers.

Options arrive as text, so that a word, a NaN or an out-of-range value all meet the one validator (`deniable.checks`)
and its one wording, whatever the argument parser thinks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from inspect import Parameter, signature
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from deniable.answers.batches import BATCHES, PERSON, REPLACEMENT, SAMPLINGS
from deniable.answers.parse import COUNTED, LOCAL, RELEASES, SAMPLED
from deniable.answers.written import WRITTEN
from deniable.checks import RefusedError
from deniable.fields import Field
from deniable.formats.bounded_json import read_document
from deniable.promises import AUDITED, PARAMETERS, SCORES, SPELLINGS, resolve_spellings

RELEASE = "What was released (exactly one)"
TRAINING = "The training: --records --batch --epochs, or --rate --steps"
LOCAL_MECHANISM = "Or a local mechanism"
PROMISE = "The promise (exactly one)"
QUESTION = "What to answer"
Text = str | None


def option_name(name: str) -> str:
    """A field's name as an option."""
    return f"--{name.replace('_', '-')}"


class RenamedCommand(TyperCommand):
    """A command whose options may be asked for by other names: those of earlier versions, or of other commands."""

    other_names: ClassVar[Mapping[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments by today's names."""
        return super().parse_args(ctx, [self._rename(word) for word in args])

    def _rename(self, word: str) -> str:
        name, equals, value = word.partition("=")
        return self.other_names.get(name, name) + equals + value


def option(name: str, letter: str, text: str, panel: str) -> Any:
    """An option that takes a text, under a heading of the command's help."""
    return typer.Option(f"--{name}", metavar=letter, help=text, rich_help_panel=panel, show_default=False)


def field_option(field: Field, panel: str, text: str | None = None) -> Parameter:
    """The option of a field, as a parameter of its command; `text` where a command has something else to say of it."""
    made = option(option_name(field.name)[2:], field.letter, text or field.help_text(option_name), panel)
    kind: Any = Annotated[list[str] | None, made] if field.repeatable else Annotated[Text, made]
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def word_option(name: str, letter: str, text: str, panel: str) -> Parameter:
    """An option that takes a word."""
    kind = Annotated[Text, option(name, letter, text, panel)]
    return Parameter(name.replace("-", "_"), Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def flag(name: str, text: str, panel: str, show_default: bool = True) -> Any:
    """An option that is there or not, under a heading of the command's help."""
    return typer.Option(f"--{name}", metavar=" ", help=text, rich_help_panel=panel, show_default=show_default)


def flag_option(name: str, text: str, panel: str) -> Parameter:
    """The same as a parameter of a command."""
    made = flag(name, text, panel, show_default=False)
    return Parameter(name.replace("-", "_"), Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, made])


def taking(options: Iterable[Parameter], before: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command, which takes them as keywords, these options before its own one of that name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = signature(command, eval_str=True)
        kept = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        place = next(place for place, one in enumerate(kept) if one.name == before)
        rest = (one.replace(kind=Parameter.KEYWORD_ONLY) for one in kept[place:])
        parameters = [*kept[:place], *options, *rest]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


def _release_options() -> Iterator[Parameter]:
    for release in RELEASES.values():
        yield field_option(release.field, RELEASE)
        for field in release.companions.values():
            default = " Default 1." if field.name == "steps" else ""
            yield field_option(replace(field, text=field.text + default), RELEASE)


def promise_options(scores: Mapping[str, Any] = SCORES) -> Iterator[Parameter]:
    """Every promise of a table."""
    return (field_option(score.field, PROMISE) for score in scores.values())


_ASKED = [
    *(field_option(field, QUESTION) for field in (PARAMETERS | SPELLINGS).values()),
    word_option(
        "adjacency",
        "A",
        "Neighbours: add-remove (default; sensitivity C, the clipping norm), replace (2C; default of fixed batches) or "
        "zero-out (C; default of shuffled and truncated ones).",
        QUESTION,
    ),
]


def _batch_options(panel: str) -> list[Parameter]:
    """How batches are drawn, where that is not by Poisson."""
    text = f"How batches are drawn: poisson (default: each record by itself, at rate Q), {', '.join(SAMPLINGS)}."
    repeated = "With --sampling fixed: a record may be drawn into a batch again."
    return [
        word_option("sampling", "S", text, panel),
        *(field_option(field, panel) for field in BATCHES.values()),
        flag_option(option_name(REPLACEMENT)[2:], repeated, panel),
        field_option(PERSON, panel),
    ]


EXPLAIN = [
    *_release_options(),
    *(word_option(name.replace("_", "-"), "FILE", text, RELEASE) for name, text in WRITTEN.items()),
    *_batch_options(RELEASE),
    *_ASKED,
]
CHOOSE = [
    *promise_options(),
    *(field_option(field, TRAINING) for field in (COUNTED | SAMPLED).values()),
    *_batch_options(TRAINING),
    word_option(
        "mechanism",
        "M",
        "In place of a training: laplace (noise is its scale) or randomized-response (1 / epsilon of an answer).",
        LOCAL_MECHANISM,
    ),
    *(field_option(field, LOCAL_MECHANISM) for field in LOCAL.values()),
    *_ASKED,
]
Frontier = Annotated[
    Text,
    option("frontier", "FILE", "Say what accuracy to expect: what `deniable frontier` wrote.", QUESTION),
]
Json = Annotated[
    bool,
    flag("json", "Print one JSON document, in full precision.", QUESTION),
]

_OTHERS = (
    Field("trials", "N", "", "whole", (1, 1e9)),
    Field("clip", "C", "", "positive", (1e-6, 1e6)),
    Field("learning_rate", "L", "", "positive", (1e-12, 1e6)),
    Field("seed", "S", "", "whole", (0, 2**62)),
    Field("confidence", "P", "", "share"),
    Field("processes", "N", "", "whole", (1, 4096)),
    Field("task_memory", "GB", "", "positive", (1e-3, 1e6)),
    Field("task_gpus", "G", "", "from zero", (0, 1e4)),
    Field("lease", "S", "", "positive", (0.1, 1e6)),
    Field("workers", "N", "", "whole", (1, 1e6)),
    Field("memory", "GB", "", "positive", (1e-3, 1e6)),
    Field("hours", "H", "", "positive", (1e-2, 1e5)),
    Field("repeats", "R", "", "whole", (1, 10_000)),
    Field("shadows", "N", "", "whole", (4, 4096)),
    Field("queries", "Q", "", "whole", (1, 10)),
    Field("classes", "C", "", "whole", (2, 1e6)),
    Field("patience", "E", "", "whole", (0, 1e6)),
    Field("claimed_epsilon", "E", "", "from zero", (0, 1e6)),
    Field("threshold", "T", "", "real"),
    Field("mean_runs", "K", "", "positive", (1.001, 1e6)),
)
"""Of single commands, which tell them."""
FIELDS: dict[str, Field] = {
    **{name: score.field for name, score in (SCORES | AUDITED).items()},
    **{name: release.field for name, release in RELEASES.items()},
    **(COUNTED | SAMPLED | BATCHES | LOCAL | PARAMETERS | SPELLINGS),
    PERSON.name: PERSON,
    **{field.name: field for field in _OTHERS},
}


def read(texts: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, by name, as checked numbers; `RefusedError` names field, value and range."""
    values: dict[str, Any] = {}
    for name, field in FIELDS.items():
        given = texts.get(name)
        if field.repeatable and given:
            values[name] = tuple(field.read(_parse_number(text)) for text in given)
        elif not field.repeatable and given is not None:
            values[name] = field.read(_parse_number(given))
    words = {name: texts[name] for name in ("sampling", REPLACEMENT) if texts.get(name)}
    documents = {name: read_document(name, texts[name]) for name in WRITTEN if texts.get(name) is not None}
    return {**resolve_spellings(values), **words, **documents}


def _parse_number(text: str) -> Any:
    """The number that `text` spells, whole where it is (1e6 is), or `text` itself for a check to refuse."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


_WORDS = {
    "adjacency",
    "rows_from",
    "attack",
    "calibration",
    "engine",
    "mechanism",
    "optimizer",
    "sampling",
    "sensitivity",
    REPLACEMENT,
    *WRITTEN,
}
_ARGUMENTS = {"item", "paper", "scores"}
"""What commands take without an option, named as the help names it."""


def refusal_text(refused: Exception) -> str:
    """A refusal in one sentence, with fields option_name as options."""
    if isinstance(refused, OSError) and refused.errno is not None:
        return f"{refused.filename or 'the disk'}: {refused.strerror}"
    if not isinstance(refused, RefusedError):
        return str(refused)
    return refused.phrase(_spell_field)


def _spell_field(name: str) -> str:
    if name in _ARGUMENTS:
        return name.upper()
    return option_name(name) if name in FIELDS or name in _WORDS else name
