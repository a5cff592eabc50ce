"""`deniable verdict`: scores from any tool against a claim; words and a table, or JSON."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from deniable.checks import RefusedError
from deniable.cli import options
from deniable.cli.options import RenamedCommand, Text, flag, option

if TYPE_CHECKING:
    from deniable.evidence.examined_claim import Asked
    from deniable.results.verdict_result import VerdictResult

EXAMPLES = (
    "Examples:\n\ndeniable verdict scores.csv --claimed-epsilon 2 --delta 1e-5 --rows-from trainings\n\n"
    "deniable verdict scores.csv --claimed-epsilon 2 --delta 1e-5 --noise 1 --rate .01 --steps 1000\n\n"
    "deniable verdict canaries.csv --claimed-epsilon 2 --delta 1e-5 --rows-from one-run\n\n"
    "deniable verdict plan.json\n\n"
    "deniable verdict growing.csv --claimed-epsilon 2 --delta 1e-5 --rows-from trainings --watch"
)


class VerdictCommand(RenamedCommand):
    """Takes the claim by the name that other commands give it."""

    other_names: ClassVar[Mapping[str, str]] = {"--epsilon": "--claimed-epsilon", "--from": "--rows-from"}


CLAIM, EXAMINED = "The claim", "How it is examined (settle this before you see the scores)"


def verdict(
    context: typer.Context,
    scores: Annotated[
        str,
        typer.Argument(
            metavar="SCORES.csv",
            help="One row per record: columns score and member (1 or 0). Or the .json file of a canary plan, with "
            "coins, scores and, if there was one, the claim.",
            show_default=False,
        ),
    ],
    claimed_epsilon: Annotated[Text, option("claimed-epsilon", "E", "The claim: (E, D)-DP.", CLAIM)] = None,
    delta: Annotated[Text, option("delta", "D", "D of the claim.", CLAIM)] = None,
    noise: Annotated[Text, option("noise", "Z", "Claimed noise / sensitivity, if it is known.", CLAIM)] = None,
    rate: Annotated[Text, option("rate", "Q", "Claimed sampling rate. Default 1.", CLAIM)] = None,
    steps: Annotated[Text, option("steps", "T", "Claimed number of steps. Default 1.", CLAIM)] = None,
    adjacency: Annotated[
        Text, option("adjacency", "A", "add-remove (default), replace or zero-out; matters when sampling.", CLAIM)
    ] = None,
    rows_from: Annotated[
        Text,
        option(
            "rows-from",
            "F",
            "How the rows arose: trainings (one row each, independent; assumed if not stated) or one-run (canaries of "
            "one training, each included by its own fair coin). A column run, naming each row's training, tells it, "
            "too.",
            EXAMINED,
        ),
    ] = None,
    watch: Annotated[
        bool,
        flag(
            "watch",
            "Watch the rows in their order: the verdict may be asked for again after every new row, and no look "
            "costs confidence.",
            EXAMINED,
        ),
    ] = False,
    method: Annotated[
        Text,
        option(
            "method",
            "M",
            "What the verdict rests on: mechanism (default with --noise), region (default without), gaussian, "
            "separation or likelihood (for log-likelihood ratios), advantage (weaker); with --rows-from one-run: "
            "one-run, one-run-gaussian, one-run-mechanism (default with --noise), or order-statistics (sharper, "
            "and only for canaries that are independent of each other).",
            EXAMINED,
        ),
    ] = None,
    rule: Annotated[
        Text,
        option(
            "rule",
            "R",
            "Where the threshold comes from: bonferroni (default), fixed, split or multi-split.",
            EXAMINED,
        ),
    ] = None,
    threshold: Annotated[Text, option("threshold", "T", "The threshold of rule fixed. Default 0.", EXAMINED)] = None,
    confidence: Annotated[Text, option("confidence", "P", "Of the verdict. Default 0.95.", EXAMINED)] = None,
    estimators: Annotated[
        bool,
        flag("estimators", "Show every estimator of epsilon.", EXAMINED),
    ] = False,
    json: Annotated[
        bool,
        flag("json", "Print one JSON document, in full precision.", EXAMINED),
    ] = False,
) -> None:
    """Test a privacy claim with the scores of your own attack: violated, consistent, or cannot judge."""
    from deniable.cli.common import patience

    try:
        with patience("Reading the scores ..."):
            result = _judge(scores, context.params)
    except (ValueError, OSError) as refused:
        raise typer.TyperException(options.refusal_text(refused)) from refused
    if json:
        typer.echo(result.to_json())
        return
    from deniable.cli.show.show_verdict import show

    show(result, every_estimator=estimators)


def _judge(scores: str, texts: Mapping[str, Any]) -> VerdictResult:
    """The verdict on a table of scores, or on the file of a canary plan."""
    if not scores.lower().endswith(".json"):
        from deniable.campaigns.score_verdict import judge_file

        return judge_file(scores, _read_claim(texts))
    from deniable.canary.plan import read_plan

    sure = options.read(texts).get("confidence", 0.95)
    if texts["claimed_epsilon"] is None and texts["noise"] is None:
        return read_plan(scores).verdict(method=texts["method"], confidence=sure)
    asked = _read_claim(texts)
    claimed = asked.claim if asked.training is None else asked.training
    return read_plan(scores).verdict(claimed, delta=asked.delta, method=texts["method"], confidence=sure)


def _read_claim(texts: Mapping[str, Any]) -> Asked:
    from deniable.evidence.examined_claim import Asked, rule_named
    from deniable.mechanisms import Adjacency, Training
    from deniable.promises import Epsilon

    values = options.read(texts)
    for name in ("claimed_epsilon", "delta"):
        if name not in values:
            raise RefusedError(f"{{{name}}} is missing: name the claim, {{claimed_epsilon}} and {{delta}}", name)
    stray = [name for name in ("rate", "steps") if name in values and "noise" not in values]
    if stray:
        raise RefusedError(f"{{{stray[0]}}} goes with {{noise}}, which is missing", stray[0], values[stray[0]])
    claim, kind = Epsilon(values["claimed_epsilon"], values["delta"]), Adjacency(texts["adjacency"] or "add-remove")
    noise, rate, steps = values.get("noise"), values.get("rate", 1.0), values.get("steps", 1)
    training = None if noise is None else Training(noise, rate, steps, kind)
    sure = {"confidence": values["confidence"]} if "confidence" in values else {}
    rule = rule_named(texts["rule"], values.get("threshold"))
    return Asked(claim, training, _method(texts), rule, rows_from=texts["rows_from"], **sure)


def _method(texts: Mapping[str, Any]) -> str | None:
    given: str | None = texts["method"]
    if not texts["watch"]:
        return given
    stray = [name for name in ("method", "rule", "threshold") if texts[name] not in (None, "watch")]
    if stray:
        raise ValueError(f"--watch is an estimator of its own, without thresholds to choose: leave --{stray[0]} out")
    return "watch"
