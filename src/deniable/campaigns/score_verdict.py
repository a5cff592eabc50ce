"""`verdict`: the scores of anybody's attack, from a file or from memory, against a claim."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec import structs

from deniable.campaigns.provenance import verdict_command, versions
from deniable.data.scores_file import read_rows
from deniable.evidence.attack_scores import Scores
from deniable.evidence.examined_claim import Asked, rule_named
from deniable.evidence.row_origin import settle_origin
from deniable.evidence.score_audit import judge_scores
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Epsilon
from deniable.results.base import plain
from deniable.results.shared import Provenance
from deniable.results.verdict_result import VerdictResult


def verdict(
    scores: Path | str | Scores,
    claimed_epsilon: float,
    delta: float,
    *,
    noise: float | None = None,
    rate: float = 1.0,
    steps: int = 1,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    rows_from: str | None = None,
    method: str | None = None,
    rule: str | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
) -> VerdictResult:
    """Test a privacy claim with the scores of your own attack: violated, consistent, or cannot judge.

    Settle everything before you see the scores: a verdict that was chosen among several is worth nothing.

    Args:
        scores: A table (.csv, .csv.gz or .parquet) with columns score and member, or
            `deniable.evidence.attack_scores.Scores`.
        claimed_epsilon: The claim: (claimed_epsilon, delta)-DP.
        delta: Of the claim.
        noise: Claimed standard deviation / sensitivity, if it is known; then with `rate` and `steps`.
        rate: Claimed sampling rate.
        steps: Claimed number of steps.
        adjacency: What neighbours are; matters when sampling.
        rows_from: How the rows arose: trainings (one row each) or one-run (canaries of one training). Default:
            what the column run tells, else trainings are assumed and the result says so.
        method: What the verdict rests on. Default: mechanism with `noise`, region without, one-run for one run.
        rule: Where the threshold comes from: bonferroni (default), fixed, split or multi-split.
        threshold: Of rule fixed. Default 0.
        confidence: Of the verdict.

    Returns:
        The verdict, what is shown against what is claimed, and every limit.

    Examples:
        >>> import deniable as dn
        >>> import numpy as np
        >>> from deniable.evidence.attack_scores import Scores
        >>> draw = np.random.default_rng(0)
        >>> scores = Scores(draw.normal(2, 1, 500), draw.normal(0, 1, 500))
        >>> dn.verdict(scores, claimed_epsilon=1.0, delta=1e-5, rows_from="trainings").verdict
        'violated'
    """
    training = None if noise is None else Training(noise, rate, steps, Adjacency(adjacency))
    claim = Epsilon(claimed_epsilon, delta)
    asked = Asked(claim, training, method, rule_named(rule, threshold), confidence, rows_from)
    return judge_scores(scores, asked) if isinstance(scores, Scores) else judge_file(scores, asked)


def judge_file(path: Path | str, asked: Asked) -> VerdictResult:
    """The verdict on a file's scores, with what the file says of its rows and how to get the verdict again."""
    rows = read_rows(path)
    found = settle_origin(rows.score, rows.member, rows.run, asked)
    result = judge_scores(found.scores, found.asked)
    given = structs.replace(result.input, scores=str(path))
    return result.replace(
        input=given,
        notes=(*filter(None, [found.inferred]), *result.notes),
        provenance=Provenance(
            sha256=sha256(Path(path).read_bytes()).hexdigest(),
            versions=versions(),
            command=verdict_command(plain(given)),
        ),
    )
